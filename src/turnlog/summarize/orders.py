"""The sentences in which a user forbids or requires something, in the user's own words.

What a user pasted is not the user's own: code, quotations, elements of markup, lines of logs, and the middle of a very
long text. What a program wrote in the user's name is not either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from ..log.messages import Message, Text, ToolResult, text_of
from ..view.program_prefaces import is_inserted, is_of_program, is_preface
from .order_words import LANGUAGES, Words
from .speakers import is_output, refusal_of

_LONGEST = 600
"""Characters of a sentence. A longer one has no end of its own, so it is likely to be data."""

_LONG, _ENDS = 6_000, 1_500
"""Characters: of a text longer than `_LONG`, only the lines within `_ENDS` of its beginning and end are the user's: the
rest was probably pasted."""

_LINE = 10_000  # characters of a line; a longer one is data
_FEWEST = 2  # words of a sentence that says something by itself

_SHORT = 25  # words of a sentence in which weak words count


class _Language(Struct, frozen=True):
    """The expressions of one language, compiled."""

    orders: re.Pattern[str]
    reports: re.Pattern[str] | None
    weak: re.Pattern[str] | None
    weak_reports: re.Pattern[str] | None
    script: re.Pattern[str] | None

    @classmethod
    def of(cls, words: Words) -> _Language:
        """The language of these words."""
        reports, weak, weak_reports = (
            re.compile(source, re.VERBOSE) if source else None
            for source in (words.reports, words.weak, words.weak_reports)
        )
        script = re.compile(f"[{words.script}]") if words.script else None
        return cls(re.compile(words.orders, re.VERBOSE), reports, weak, weak_reports, script)

    def may_say(self, lower: str) -> bool:
        """Whether a text in lower case has any of the words at all: most texts have none, and need no closer look."""
        if self.script is not None and self.script.search(lower) is None:
            return False
        return self.orders.search(lower) is not None or (self.weak is not None and self.weak.search(lower) is not None)

    def says(self, lower: str) -> bool:
        """Whether a sentence in lower case has words of an order."""
        if self.script is not None and self.script.search(lower) is None:
            return False
        if _outside(self.orders, self.reports, lower):
            return True
        weak = self.weak is not None and self.weak.search(lower) is not None and len(_WORD.findall(lower)) <= _SHORT
        if not weak or self.weak is None or (self.reports is not None and _outside(self.reports, None, lower)):
            return False
        return _outside(self.weak, self.weak_reports, lower)


def _outside(sign: re.Pattern[str], exceptions: re.Pattern[str] | None, lower: str) -> bool:
    """Whether `sign` is found outside of the places that `exceptions` finds."""
    places: list[tuple[int, int]] | None = None
    for one in sign.finditer(lower):
        if places is None:
            places = [found.span() for found in exceptions.finditer(lower)] if exceptions is not None else []
        if not any(first <= one.start() < max(last, first + 1) for first, last in places):
            return True
    return False


# Content that is not the user's own words; what is inside is blanked, so that positions stay the same.
_FENCES = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|<!--.*?(?:-->|\Z)", re.DOTALL)
_TAG = re.compile(r"<([A-Za-z][\w.-]{0,60})(?:\s[^<>]{0,300})?>")
_BLANKED = re.compile(r"[^\n]")
_TAGS = 200  # so many kinds of elements without an end are looked for
_INLINE = re.compile(r"`[^`\n]*`")
# A line of code, a log, a table, a diff, a quotation, a heading.
_PASTED = re.compile(
    r"""\s*(?:[>|#│┃╭╰├└⎿●⏺$%+]|[-=_*]{3,}|@@|//|/\*|\*/|\*\ @|\[?\d{4}-\d\d-\d\d[T\ ]|\d\d:\d\d:\d\d|\[\d|\d+[→\t|]
        |(?:at|File|Traceback|diff|index|commit|import|from|def|class|function|const|let|var|return|public|private
           |if\ \(|for\ \(|raise|throw|print|echo|sudo)\s+[\w"'.({/<@-]+[\s(=;]*(?:[\w"'.({/<=-]+)?\s*[;{(=]
        |(?:error|warning|warn|info|debug|trace|fatal)\b\s*[:\[(]|[{}\[\]<]|["'][\w.-]+["']\s*:|[\w.-]+=\S|\t)
    | .*\t.*\S | .*\w\(.*\).*[={]""",
    re.VERBOSE | re.IGNORECASE,
)
_PASTED_END = re.compile(r"(?:[;{}]|\(\)|=>|\);|/>)\s*$")
_LOOKED_AT = 300  # characters of a line at which it is told from the user's words
# A line of a diff.
_DIFF = re.compile(r"diff --git |@@ |--- \S|index [0-9a-f]{6,}")
# A line after which something was pasted: at once, or behind a blank line.
_PASTES = (
    r"feedback|errors?|output|logs?|trace(?:back)?|comments?|review|says|said|wrote|response|reply|docs|document(?:ation)?"
    r"|article|snippet|report|e-?mail|transcript|context"
)
_ANNOUNCES = re.compile(rf".*\b(?:{_PASTES})\b[^:]*:\s*$", re.IGNORECASE)
_HERE_IT_IS = re.compile(rf"\W*(?:here|this|below)(?:\ is|\ are|'s)\b.*\b(?:{_PASTES})\b[^:]*:\s*$", re.IGNORECASE)
_BULLET = re.compile(r"\s*(?:[-*•–]|\d{1,2}[.)]|[a-z][.)])\s+")
_STOP = re.compile(
    r"[。！？؟]|(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bvs)(?<!\bz\.B)(?<!\bd\.h)(?<!\bca)(?<!\bcf)[.!?]+(?=[\s\"')\]]|$)"
)
_WORD = re.compile(r"[^\W\d]+")
_LANGUAGES = [_Language.of(words) for words in LANGUAGES.values()]


def orders_of(message: Message) -> tuple[str, ...]:
    """The sentences of a user's message that forbid, require or allow something, in order, each as it stands there.
    What a user said when refusing a call counts as well."""
    if message.role != "user" or is_preface(message) or is_output(message):
        return ()
    found: list[str] = []
    for part in message.parts:
        if isinstance(part, Text):
            found += orders_in(part.text)
        elif isinstance(part, ToolResult):
            found += _said_in_refusal(text_of(Message("user", part.parts)) if part.parts else "")
    return tuple(dict.fromkeys(found))


def _said_in_refusal(text: str) -> tuple[str, ...]:
    said = refusal_of(text) or ""
    return (said,) if 0 < len(said) <= _LONGEST else orders_in(said)


def orders_in(text: str) -> tuple[str, ...]:
    """The same of one text of the user."""
    return tuple(text[start:end] for start, end in order_spans(text))


def order_spans(text: str) -> tuple[tuple[int, int], ...]:
    """The places of these sentences in a text of the user."""
    return _order_spans(text) if _may_say(text) else ()


@lru_cache(maxsize=2_000)  # the messages of a long session are read again at each decision
def _order_spans(text: str) -> tuple[tuple[int, int], ...]:
    if is_of_program(text) or is_inserted(text):
        return ()
    return tuple(one for one in _sentences(text) if is_order(text[one[0] : one[1]]))


def _may_say(text: str) -> bool:
    """Whether a text has any words of an order where the user's own lines may be (see `_lines`)."""
    ends = (text,) if len(text) <= _ENDS + _LINE + _ENDS else (text[: _ENDS + _LINE], text[-_ENDS:])
    return any(language.may_say(lower) for lower in map(str.lower, ends) for language in _LANGUAGES)


def is_order(sentence: str) -> bool:
    """Whether one sentence forbids, requires or allows something."""
    lower = sentence.lower()
    return any(language.says(lower) for language in _LANGUAGES) and not _asks(lower)


def _asks(lower: str) -> bool:
    """Whether a sentence only asks a question. A request in the form of a question is an order."""
    asks = lower.rstrip(" \"')").endswith(("?", "？"))
    return asks and re.match(r"\W*(?:and |also |so )?(?:please|(?:can|could|would|will) you)\b", lower) is None


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """The places of the user's own sentences in a text. One that ends with a colon includes the list under it."""
    plain = _INLINE.sub(lambda found: "`" * len(found[0]), _without_elements(_FENCES.sub(_blank, text)))
    for first, last in _paragraphs(plain):
        start = first
        while start < last:
            stop = _STOP.search(plain, start, last)
            end = stop.end() if stop is not None else last
            sentence = text[start:end]
            begin, size = start + len(sentence) - len(sentence.lstrip()), len(sentence.strip())
            if 0 < size <= _LONGEST and _says_something(plain[start:end]):
                yield begin, begin + size
            start = end


def _blank(found: re.Match[str]) -> str:
    return _BLANKED.sub("\t", found[0])


def _without_elements(text: str) -> str:
    """The text with what is inside elements of markup blanked."""
    if "</" not in text:
        return text
    pieces, done, endless = [], 0, set[str]()
    for opens in _TAG.finditer(text):
        name = opens[1]
        if opens.start() < done or name in endless or len(endless) > _TAGS:
            continue
        end = text.find(f"</{name}", opens.end())
        if end < 0:
            endless.add(name)
            continue
        pieces += [text[done : opens.start()], _BLANKED.sub("\t", text[opens.start() : end])]
        done = end
    return "".join([*pieces, text[done:]])


def _says_something(plain: str) -> bool:
    words = _WORD.findall(plain)
    return len(words) >= _FEWEST or any(not word.isascii() for word in words)


def _paragraphs(plain: str) -> Iterator[tuple[int, int]]:
    """The ranges of lines that belong together: lines that are wrapped, or a list under a line that ends with a colon.
    Lines that are not the user's own words are left out."""
    begin = end = -1
    head = ""  # the last line of the range
    listing = False
    for first, at, line, own in _lines(plain):
        if not own:
            if begin >= 0:
                yield begin, end
            begin = -1
            continue
        found = _BULLET.match(line)
        wraps = begin >= 0 and found is None and line.lstrip()[:1].islower() and head.rstrip()[-1:] not in ".!?:;"
        listing = begin >= 0 and found is not None and (listing or head.rstrip().endswith(":"))
        if begin >= 0 and not wraps and not (listing and at - begin <= _LONGEST):
            yield begin, end
            begin = -1
        if begin < 0:
            begin, listing = first + (found.end() if found is not None else 0), False
        end, head = at, line
    if begin >= 0:
        yield begin, end


def _lines(plain: str) -> Iterator[tuple[int, int, str, bool]]:
    """The lines of a text, each with its range, and whether it is the user's own words."""
    at, before, blank = 0, "", True
    pasted = diff = announced = False
    for line in plain.splitlines(keepends=True):
        first, at = at, at + len(line)
        if not line.strip():
            announced = announced or _ANNOUNCES.match(before[-_LOOKED_AT:]) is not None
            pasted, blank = False, True
            yield first, at, line, False
            continue
        diff = _DIFF.match(line) is not None or (diff and line[0] in " +-@\\")
        indented = line.startswith(("  ", "\t")) and _BULLET.match(line) is None
        follows = pasted or before.rstrip().endswith(":") or (blank and line.startswith("    "))
        pasted = _is_pasted(line) or (indented and follows) or (pasted and line[:1] == " ")
        middle = len(plain) > _LONG and _ENDS < first < len(plain) - _ENDS
        yield first, at, line, not (pasted or diff or announced or middle)
        announced = announced or _HERE_IT_IS.match(line[-_LOOKED_AT:]) is not None
        before, blank = line, False


def _is_pasted(line: str) -> bool:
    if len(line) > _LINE or _PASTED.match(line[:_LOOKED_AT]) is not None:
        return True
    return _PASTED_END.search(line[-_LOOKED_AT:]) is not None
