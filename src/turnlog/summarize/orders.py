"""The sentences in which a user forbids or requires something, in the user's own words: only what was typed counts
(`typed.py`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from msgspec import Struct

from ..log.messages import Message, Text, ToolResult, text_of
from ..view.program_prefaces import is_preface
from .order_words import LANGUAGES, Words
from .paste_forms import form
from .speakers import is_output, refusal_of
from .typed import ENDS, LONG_LINE, has_typed_pieces, typed_lines, typed_pieces

_LONGEST = 600
"""Characters of a sentence. A longer one has no end of its own, so it is likely to be data."""

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


@cache
def _languages() -> list[_Language]:
    return [_Language.of(words) for words in LANGUAGES.values()]


def _outside(sign: re.Pattern[str], exceptions: re.Pattern[str] | None, lower: str) -> bool:
    """Whether `sign` is found outside of the places that `exceptions` finds."""
    places: list[tuple[int, int]] | None = None
    for one in sign.finditer(lower):
        if places is None:
            places = [found.span() for found in exceptions.finditer(lower)] if exceptions is not None else []
        if not any(first <= one.start() < max(last, first + 1) for first, last in places):
            return True
    return False


_STOP = re.compile(
    r"[。！？؟]|(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bvs)(?<!\bz\.B)(?<!\bd\.h)(?<!\bca)(?<!\bcf)[.!?]+(?=[\s\"')\]]|$)"
)
_WORD = re.compile(r"[^\W\d]+")


def orders_of(message: Message) -> tuple[str, ...]:
    """The sentences of a user's message that forbid, require or allow something, in order, each as it stands there.
    What a user said when refusing a call counts as well."""
    if message.role != "user" or message.by_program or is_preface(message) or is_output(message):
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
    return _order_spans(text) if _may_say(text) or (len(text) > LONG_LINE and has_typed_pieces(text)) else ()


@lru_cache(maxsize=2_000)  # the messages of a long session are read again at each decision
def _order_spans(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(sorted(one for piece in typed_pieces(text) for one in _sentences(text, *piece)))


def _may_say(text: str) -> bool:
    """Whether a text has any words of an order where the user's own lines may be (see `typed_lines`)."""
    ends = (text,) if len(text) <= ENDS + LONG_LINE + ENDS else (text[: ENDS + LONG_LINE], text[-ENDS:])
    return any(language.may_say(lower) for lower in map(str.lower, ends) for language in _languages())


def is_order(sentence: str) -> bool:
    """Whether one sentence forbids, requires or allows something."""
    lower = sentence.lower()
    return any(language.says(lower) for language in _languages()) and not _asks(lower)


def _asks(lower: str) -> bool:
    """Whether a sentence only asks a question. A request in the form of a question is an order."""
    asks = lower.rstrip(" \"')").endswith(("?", "？"))
    return asks and re.match(r"\W*(?:and |also |so )?(?:please|(?:can|could|would|will) you)\b", lower) is None


def _sentences(text: str, place: int, plain: str) -> Iterator[tuple[int, int]]:
    """The places of the user's orders in a text, of which `plain` is the piece that begins at `place`. A sentence that
    ends with a colon includes the list under it."""
    for first, last in _paragraphs(plain):
        start = first
        while start < last:
            stop = _STOP.search(plain, start, last)
            end = stop.end() if stop is not None else last
            sentence = text[place + start : place + end]
            begin, size = place + start + len(sentence) - len(sentence.lstrip()), len(sentence.strip())
            if 0 < size <= _LONGEST and _says_something(plain[start:end]) and is_order(plain[start:end].strip()):
                yield begin, begin + size
            start = end


def _says_something(plain: str) -> bool:
    words = _WORD.findall(plain)
    return len(words) >= _FEWEST or any(not word.isascii() for word in words)


def _paragraphs(plain: str) -> Iterator[tuple[int, int]]:
    """The ranges of lines that belong together: lines that are wrapped, or a list under a line that ends with a colon.
    Lines that are not the user's own words are left out."""
    begin = end = -1
    head = ""  # the last line of the range
    listing = False
    for first, at, line, own in typed_lines(plain):
        if not own:
            if begin >= 0:
                yield begin, end
            begin = -1
            continue
        found = form("bullet").match(line)
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
