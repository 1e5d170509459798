"""What the user typed of a text that stands in the user's place.

What was pasted is not typed: code, quotations, elements of markup, lines of logs, whole mails and documents, and the
middle of a very long text. What a program wrote in the user's name is not either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..view.program_prefaces import is_inserted, is_of_program
from .paste_forms import form
from .pastes import pasted_lines

LONG_LINE = 10_000
"""Characters of a line; a longer one is data."""

ENDS = 1_500
"""Characters: of a text longer than `_LONG`, only the lines within `ENDS` of its beginning and end are the user's: the
rest was probably pasted."""

_LONG = 6_000

_BLANKED = re.compile(r"[^\n]")
_TAGS = 200  # so many kinds of elements without an end are looked for
# Elements in which programs put what the user typed: Cursor, Copilot, cline and its relatives, Claude Code.
_TYPED = frozenset(
    ("user_query", "userRequest", "user_request", "user_message", "user_input", "task", "command-args", "user-prompt")
)
_REQUEST = "\n## My request for Codex:"  # the line below which Codex puts what the user typed
_LOOKED_AT = 300  # characters of a line at which it is told from the user's words


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
            for found in form("answers_in").finditer(text):
                yield found.start(2), _plain(found[2])
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


def _hide(found: re.Match[str]) -> str:
    """Backticks of the same length. Quoted sentences end the sentence around them if another begins behind them."""
    behind = found.string[found.end() : found.end() + 2]
    ends = found[0][0] != "`" and (behind[:1] in "\r\n" or (behind[0].isspace() and behind[1:].isupper()))
    return "`" * (len(found[0]) - ends) + "." * ends


def _blank(found: re.Match[str]) -> str:
    return _BLANKED.sub("\t", found[0])


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
    at, before, blank = 0, "", True
    pasted = diff = announced = False
    for line, whole in zip(lines, pasted_lines(lines), strict=True):
        first, at = at, at + len(line)
        if not line.strip():
            # What was announced is there if it was blanked.
            announced = announced or form("announces").match(before[-_LOOKED_AT:]) is not None
            announced = announced and not line.strip("\r\n \u2028")
            pasted, blank = False, True
            yield first, at, line, False
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
        yield first, at, line, not (pasted or diff or announced or middle or whole)
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
