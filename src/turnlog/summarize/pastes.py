"""Which lines of a text are a paste as a whole: mails, chats, comments, documents, logs, configurations, help.

A paste of prose (a mail, a document) goes on to the end of the text, unless its form says where it ends: a mail at its
closing, a text between two rules at the second one. What stands behind it may belong to it, so it does not count as
typed. A paste of lines (a log, a configuration, a chat) ends at the next blank line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from .._platform.lazy import lazy_pattern
from ..view.program_prefaces import is_inserted, is_of_program
from .paste_forms import form

_LOOKED_AT = 300  # characters of a line that are looked at
_FIELDS = 12  # lines that the head of a mail has at most
_NAMES = 3  # words of a name
_TITLE = 80  # characters of a title
_SIGNED = 6  # lines of a name below the closing of a mail


def pasted_lines(lines: Sequence[str]) -> list[bool]:
    """For each line of a text whether it is part of a paste that is recognised by more than this line."""
    read = [line[:_LOOKED_AT].rstrip("\r\n\u2028\u2029\x0b\x0c\x1c\x1d\x1e\x85") for line in lines]
    pasted = [False] * len(read)
    for first, last in _Pastes(read).all():
        pasted[first:last] = [True] * (last - first)
    return pasted


class _Pastes:
    """The pastes in the lines of one text, each as the range of its lines."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._blank = [not line.strip() for line in lines]
        size = len(lines)
        self._next_blank = [size] * (size + 1)  # for each line, the next that is blank
        for index in range(size - 1, -1, -1):
            self._next_blank[index] = index if self._blank[index] else self._next_blank[index + 1]
        self._end = size  # where prose ends that begins at some line: the user says so, or it goes on to the end

    def all(self) -> Iterator[tuple[int, int]]:
        """All pastes; they may overlap."""
        yield from self._between_rules()
        yield from self._mails()
        yield from self._chats()
        yield from self._prose()
        yield from self._help()
        yield from self._blocks()

    def _is(self, name: str, index: int) -> bool:
        return form(name).match(self._lines[index]) is not None

    def _begins(self, index: int) -> bool:
        """Whether a block of lines begins here."""
        return not self._blank[index] and (index == 0 or self._blank[index - 1])

    def _after(self, index: int) -> int:
        """The next line from `index` on that is not blank."""
        while index < len(self._lines) and self._blank[index]:
            index += 1
        return index

    def _to_the_end(self, index: int) -> tuple[int, int]:
        """A paste of prose that begins here."""
        for behind in range(index + 1, len(self._lines)):
            if self._begins(behind) and self._is("above", behind):
                return index, behind
        return index, len(self._lines)

    # -- rules around a text ---------------------------------------------------------------------------

    def _between_rules(self) -> Iterator[tuple[int, int]]:
        opened = -1
        rules: dict[str, list[int]] = {}
        for index, line in enumerate(self._lines):
            if self._blank[index]:
                continue
            title = form("titled").match(line) or form("marker").match(line)
            if title is not None and any(map(str.isalpha, title["title"])):
                if form("ends").match(title["title"]) is not None:
                    if opened >= 0:
                        yield opened, index + 1
                    opened = -1
                elif opened < 0 and not self._opens_mail(index):
                    opened = index
            rule = form("rule").match(line)
            if rule is not None and not self._is_underline(index):
                rules.setdefault(rule["mark"] or rule["label"], []).append(index)
        if opened >= 0:
            yield self._to_the_end(opened)
        for places in rules.values():
            if len(places) > 1:
                yield places[0], places[-1] + 1
        begins = [places[0] for mark, places in rules.items() if mark[0] == "<"]
        closes = [places[-1] for mark, places in rules.items() if mark[0] == ">"]
        if begins and closes and min(begins) < max(closes):
            yield min(begins), max(closes) + 1
        if self._lines and self._lines[0].strip() == "---" and "---" in map(str.strip, self._lines[1:]):
            yield self._to_the_end(0)  # a document with its data ahead

    def _is_underline(self, index: int) -> bool:
        """Whether this line underlines a title."""
        if index == 0 or self._blank[index - 1] or not self._is("underline", index):
            return False
        title = self._lines[index - 1].strip()
        return len(title) <= _TITLE and title[-1] not in ".!?:;," and any(map(str.isalpha, title))

    # -- mails -----------------------------------------------------------------------------------------

    def _mails(self) -> Iterator[tuple[int, int]]:
        index = 0
        while index < len(self._lines):
            if self._blank[index] or not self._opens_mail(index):
                index += 1
                continue
            behind = self._after(index + 1)
            if self._lines[behind : behind + 1] and self._lines[behind].startswith(">"):
                yield index, behind  # each line of this mail is quoted
                index = behind + 1
                continue
            end = self._end_of_mail(index + 1)
            yield index, end
            index = end

    def _opens_mail(self, index: int) -> bool:
        if any(self._is(name, index) for name in ("forwarded", "address", "to_me")) or self._wrote(index, 1):
            return True
        if self._begins(index) and self._wrote(index, 2):  # programs wrap this line
            return True
        if self._is("greeting", index) and self._begins(index):
            # The user greets as well, but with nothing ahead, and with no name or nothing behind.
            return index > 0 or (not self._is("to_model", index) and self._is_signed())
        if self._is("sender", index) and (self._begins(index) or "@" in self._lines[index]):
            return True
        if not self._is("field", index):
            return False
        names = set[str]()
        for line in self._lines[index : index + _FIELDS]:
            match = form("field").match(line)
            if match is None:
                break
            names.add(match["name"].lower())
        return len(names) > 1

    def _wrote(self, index: int, lines: int) -> bool:
        """Whether so many lines say who wrote what follows, and when."""
        line = " ".join(self._lines[index : index + lines])
        return line.rstrip().endswith((":", "：")) and form("wrote").match(line) is not None

    def _end_of_mail(self, index: int) -> int:
        """The end of the mail whose text begins about here."""
        for here in range(index, len(self._lines)):
            if self._begins(here) and self._is("above", here):
                return here
            if self._is("sign_off", here) or self._is("signature", here):
                end = self._next_blank[here]
                behind = self._after(end)
                if end == here + 1 and self._is_name(behind):
                    end = self._next_blank[behind]
                    behind = self._after(end)
                while behind < len(self._lines) and self._is_footer(behind):
                    end = self._next_blank[behind]
                    behind = self._after(end)
                return end
        return len(self._lines)

    def _is_signed(self) -> bool:
        """Whether a text that begins with a greeting has a closing with a name, and more behind it."""
        for index in range(1, len(self._lines)):
            if self._is("sign_off", index) or self._is("signature", index):
                named = self._next_blank[index] > index + 1 or "," in self._lines[index].rstrip().rstrip(",")
                named = named or self._is_name(self._after(index + 1))
                return named and self._after(self._end_of_mail(index)) < len(self._lines)
        return False

    def _is_name(self, index: int) -> bool:
        """Whether the block that begins here is the name below the closing of a mail."""
        block = self._lines[index : self._next_blank[min(index, len(self._lines))]]
        return 0 < len(block) <= _SIGNED and len(block[0]) <= _TITLE // 2 and block[0].rstrip()[-1] not in ".!?:"

    def _is_footer(self, index: int) -> bool:
        return self._is("footer", index) or self._is("signature", index)

    # -- chats -----------------------------------------------------------------------------------------

    def _chats(self) -> Iterator[tuple[int, int]]:
        timed = [index for index in range(len(self._lines)) if not self._blank[index] and self._is("timed", index)]
        for index in filter(self._begins, range(len(self._lines))):
            named = index + 1 < len(self._lines) and len(self._lines[index].split()) <= _NAMES
            if self._is("stamped", index) or (named and self._is("time", index + 1)):
                yield index, self._next_blank[index]
        if len(timed) > 1:
            first = timed[0]
            if form("timed").match(self._lines[first].strip()) and self._lines[first].strip()[:1].isdigit():
                first -= 1 if first and not self._blank[first - 1] and len(self._lines[first].split()) <= 2 else 0
            yield first, self._next_blank[timed[-1]]
        spoken, turns = list[tuple[int, str]](), dict[str, int]()
        for index, line in enumerate(self._lines):
            turn = form("turn").match(line)
            if turn is not None:
                turns.setdefault(turn["name"].lower(), index)
            speaker = form("speaker").match(line)
            if speaker is not None and speaker["name"].lower() not in _LABELS:
                spoken.append((index, speaker["name"].lower()))
        if len(turns) > 1:
            yield self._to_the_end(min(turns.values()))
        if _is_talk([name for _, name in spoken]):
            last, name = spoken[-1]
            end = self._next_blank[last]
            yield spoken[0][0], self._to_the_end(last)[1] if form("answers").match(name) is not None else end

    # -- prose -----------------------------------------------------------------------------------------

    def _prose(self) -> Iterator[tuple[int, int]]:
        """Documents, comments, and what somebody or a file says."""
        for index in range(len(self._lines)):
            if not self._blank[index] and any(self._is(name, index) for name in ("said", "comment", "file")):
                yield self._to_the_end(index)
                break
        if len(self._lines) > 1 and self._is("path", 0) and not self._tells_of_program():
            yield self._to_the_end(0)
        marks, requests = list[int](), 0
        for index in range(len(self._lines)):
            if not self._blank[index] and self._is_mark(index):
                marks.append(index)
                requests += self._is("request", index)
        asks = bool(marks) and self._is("request", marks[0]) and requests * 2 > len(marks)
        if len(marks) > 1 and requests < len(marks) and not asks:
            yield self._to_the_end(marks[0])
        stories = [index for index in range(len(self._lines)) if self._is("scenario", index)]
        if stories:
            steps = [index for index in range(stories[0], len(self._lines)) if self._is("step", index)]
            first = next(index for index in range(stories[0] + 1) if self._is("story", index))
            yield from [(first, self._next_blank[steps[-1]])] if len(steps) > 1 else []

    def _tells_of_program(self) -> bool:
        """Whether the text names a file of a program and then says something: no program begins so."""
        below = self._after(1)
        return self._is("program_path", 0) and below < len(self._lines) and self._is("sentence", below)

    def _is_mark(self, index: int) -> bool:
        """Whether this line is a heading, or the beginning of a clause."""
        line = self._lines[index]
        if (
            self._is("heading", index)
            and not self._is_comment(index)
            or self._is("clause", index)
            or self._is("roman", index)
        ):
            return True
        behind = self._lines[index + 1] if index + 1 < len(self._lines) else ""
        if behind and self._is_underline(index + 1):
            return True
        caps = form("caps").match(line)
        if caps is None or not self._begins(index):
            return False
        words = line.split()
        return behind.startswith("    ") or (len(words) > 1 and not behind.strip() and not _ORDERS.intersection(words))

    def _is_comment(self, index: int) -> bool:
        """Whether a line that looks like a heading is a comment: another one, or a setting, is right below it."""
        below = self._lines[index + 1] if index + 1 < len(self._lines) else ""
        same = below.split(" ", 1)[0] == self._lines[index].split(" ", 1)[0]
        return same or (not below.startswith("- ") and bool(below) and self._is("key", index + 1))

    # -- what programs print ---------------------------------------------------------------------------

    def _help(self) -> Iterator[tuple[int, int]]:
        for index in range(len(self._lines)):
            if not self._blank[index] and self._is("usage", index):
                end = self._next_blank[index]
                behind = self._after(end)
                while behind < len(self._lines) and (
                    self._lines[behind][:1].isspace() or self._lines[behind].rstrip().endswith(":")
                ):
                    end = self._next_blank[behind]
                    behind = self._after(end)
                options = [here for here in range(end, len(self._lines)) if self._is("option", here)]
                yield index, max(end, self._next_blank[options[-1]]) if options else end
                return

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """Tool output, logs, traces and configurations. What stands above a log in the same block was typed."""
        for index in filter(self._begins, range(len(self._lines))):
            end = self._next_blank[index]
            begin = self._lines[index : min(index + 3, end)]
            if begin[0].rstrip().endswith((":", "]")) and form("output").match("\n".join(begin)) is not None:
                yield index, end
            for here in range(index, end):
                if self._is("labelled", here):
                    continue
                if self._is("log", here) or self._is("error", here) or self._is("option", here):
                    yield here, end
                    break
            if end - index > 2 and _is_table(self._lines[index:end]):
                yield index, end
            if end - index > 2 and not self._is("prose_key", index):
                keys = [self._is("key", here) for here in range(index, end)]
                real = sum(
                    self._lines[here].lstrip()[:1] not in "#-" for here in range(index, end) if keys[here - index]
                )
                if real > 2 and sum(keys) * 5 >= (end - index) * 3:
                    yield index + keys.index(True), end


def _is_table(rows: Sequence[str]) -> bool:
    """Whether all rows have the same number of values, with commas or the like between them."""
    return any(
        len({row.count(mark) for row in rows}) == 1 and all(mark in row and f"{mark} " not in row for row in rows)
        for mark in ",;"
    )


def _is_talk(names: Sequence[str]) -> bool:
    """Whether these speakers, in order, talk with each other: somebody speaks again after another did."""
    if any(form("asks").match(name) for name in names) and any(form("answers").match(name) for name in names):
        return True
    turns = [name for before, name in pairwise(["", *names]) if name != before]
    return len(turns) > 2 and len(set(turns)) < len(turns)


_LABELS = frozenset(
    "note notes nb important goal task rule rules warning hint tip example examples todo fix error step remember"
    " context problem expected actual result input output hinweis wichtig achtung aufgabe ziel regel beispiel".split()
)
"""Words before a colon that name no speaker."""

_ORDERS = frozenset(
    "NEVER ALWAYS NOT DON'T DONT MUST ONLY STOP NO PLEASE NIE NIEMALS NICHT IMMER NUR JAMAIS NUNCA".split()
)
"""Words in capital letters that make a line an order, not a title."""


# -- typed -----------------------------------------------------------------------------------------
#
# What the user typed of a text that stands in the user's place.
#
# What was pasted is not typed: code, quotations, elements of markup, lines of logs, whole mails and documents, and
# the middle of a very long text. What a program wrote in the user's name is not either.

LONG_LINE = 10_000
"""Characters of a line; a longer one is data."""

ENDS = 1_500
"""Characters: of a text longer than `_LONG`, only the lines within `ENDS` of its beginning and end are the user's: the
rest was probably pasted."""

_LONG = 6_000

_BLANKED = lazy_pattern(r"[^\n]")
_TAGS = 200  # so many kinds of elements without an end are looked for
# Elements in which programs put what the user typed: Cursor, Copilot, cline and its relatives, Claude Code.
_TYPED = frozenset(
    ("user_query", "userRequest", "user_request", "user_message", "user_input", "task", "command-args", "user-prompt")
)
_REQUEST = "\n## My request for Codex:"  # the line below which Codex puts what the user typed


def typed_pieces(text: str) -> Iterator[tuple[int, str]]:
    """The pieces of a text in which the user's words are, each with its place. In a piece, what was pasted as code or
    as an element of markup is blanked: positions stay the same."""
    if is_of_program(text) or is_inserted(text):
        return
    first = 0
    if form("codex").match(text) is not None:
        asked = text.find(_REQUEST)
        if asked < 0:
            return
        first = asked + len(_REQUEST)
    elif form("output").match(text) is not None:
        if form("answered").match(text) is not None:
            for answer in form("answers_in").finditer(text):
                yield answer.start(2), _plain(answer[2])
        return
    plain, inner = _without_elements(form("fences").sub(_blank, text[first:]))
    yield first, form("inline").sub(_hide, plain)
    for start, end in inner:
        yield first + start, _plain(text[first + start : first + end])


def has_typed_pieces(text: str) -> bool:
    """Whether a program marked in a text what the user typed: it may be anywhere in it."""
    return form("codex").match(text) is not None or any(f"</{name}>" in text for name in _TYPED)


def _plain(text: str) -> str:
    return form("inline").sub(_hide, _without_elements(form("fences").sub(_blank, text))[0])


def _hide(match: re.Match[str]) -> str:
    """Backticks of the same length. Quoted sentences end the sentence around them if another begins behind them."""
    behind = match.string[match.end() : match.end() + 2]
    ends = match[0][0] != "`" and (behind[:1] in "\r\n" or (behind[0].isspace() and behind[1:].isupper()))
    return "`" * (len(match[0]) - ends) + "." * ends


def _blank(match: re.Match[str]) -> str:
    return _BLANKED.sub("\t", match[0])


def _without_elements(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text with elements of markup blanked, and where in these elements the user's words are."""
    inner: list[tuple[int, int]] = []
    if "</" not in text:
        return text, inner
    pieces, done, endless = [], 0, set[str]()
    for opens in form("tag").finditer(text):
        name = opens[1]
        if opens.start() < done or name in endless or len(endless) > _TAGS:
            continue
        end = text.find(f"</{name}", opens.end())
        if end < 0:
            endless.add(name)
            continue
        if name in _TYPED:
            inner.append((opens.end(), end))
        pieces += [text[done : opens.start()], _BLANKED.sub("\t", text[opens.start() : end])]
        done = end
    return "".join([*pieces, text[done:]]), inner


def typed_lines(plain: str) -> Iterator[tuple[int, int, str, bool]]:
    """The lines of a piece, each with its range, and whether it is the user's own words."""
    lines = plain.splitlines(keepends=True)
    position, before, blank = 0, "", True
    pasted = diff = announced = False
    for line, whole in zip(lines, pasted_lines(lines), strict=True):
        first, position = position, position + len(line)
        if not line.strip():
            # What was announced is there if it was blanked.
            announced = announced or form("announces").match(before[-_LOOKED_AT:]) is not None
            announced = announced and not line.strip("\r\n \u2028")
            pasted, blank = False, True
            yield first, position, line, False
            continue
        diff = form("diff").match(line) is not None or (diff and line[0] in " +-@\\")
        indented = line.startswith(("  ", "\t")) and form("bullet").match(line) is None
        listed = before.rstrip().endswith(":") and form("own_list").match(before[-_LOOKED_AT:]) is None
        follows = pasted or listed or (blank and line.startswith("    "))
        comment = not before and line.startswith(" * ")
        pasted = comment or _is_pasted(line) or (indented and follows) or (pasted and line[:1] == " ")
        middle = len(plain) > _LONG and ENDS < first < len(plain) - ENDS
        if announced and blank and (pasted or whole):
            announced = False  # this is what was announced, and its form tells where it ends
        yield first, position, line, not (pasted or diff or announced or middle or whole)
        announced = announced or form("here_it_is").match(line[-_LOOKED_AT:]) is not None
        before, blank = line, False


def _is_pasted(line: str) -> bool:
    if len(line) > LONG_LINE:
        return True
    if form("labelled").match(line[:_LOOKED_AT]) or form("sentence").match(line[:_LOOKED_AT]):
        return False
    if form("line").match(line[:_LOOKED_AT]) is not None:
        return True
    return form("code_end").search(line[-_LOOKED_AT:]) is not None
