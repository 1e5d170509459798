"""The searchable words of a record, and the words that a query asks for.

A query consists of plain words and "phrases", all of which a record must contain; `word*` stands for every word that
begins with it. Nothing else in a query has a special meaning. Words are runs of letters and digits, compared without
case and accents by Python's tables, because the tables of SQLite's tokenizers end with Unicode 6.1. In scripts written
without spaces each letter is a word, and a query of several letters is a phrase: the ends of words cannot be found
there, and people do not search for whole sentences.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence, Set
from functools import cache, lru_cache
from itertools import pairwise

from msgspec import Struct

from .._platform.given import text_given
from .._platform.lazy import cached_property, lazy_pattern
from ..errors import InputError
from ..log.messages import Message, Text, ToolCall, ToolResult
from ..log.records import MessageRecord, PartialAnswer, Record, ToolFinished, ToolStarted
from ..log.texts import SEARCHABLE, FoundText, texts_in
from .records import kind_of

_SNIPPET_CHARACTERS = 160
# Combining marks belong to the word around them. The marks of Hebrew and Arabic are vowels that most writers omit.
_MARK = (
    "\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
)
# Thai, Lao, Burmese, Khmer, kana, Chinese characters.
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_ALONE = lazy_pattern(f"[{_SPACELESS}]")
_LETTER = f"[^\\W_{_SPACELESS}]"
_PLAIN_WORD = lazy_pattern("[a-z0-9]+")
_FOREIGN_LETTER = lazy_pattern(r"[^\x00-\x7f]")
# A run between ASCII separators that contains at least one character outside ASCII.
_FOREIGN = lazy_pattern(r"(?<![A-Za-z0-9])[A-Za-z0-9]*+[^\x00-\x7f][^\x00-/:-@\[-`{-\x7f]*+")
_SHORT_RUN = 32
"""Runs with fewer characters are cached: they are words, which are likely to occur again."""
_PIECE = lazy_pattern(r'"([^"]*)"?(\*?)|([^\s"]+)')


@cache
def _word_pattern() -> re.Pattern[str]:
    """The pattern of a word, compiled at first use, because that takes as long as opening a store."""
    return re.compile(f"{_LETTER}(?:{_LETTER}|[{_MARK}])*|(?=[^\\W_])[{_SPACELESS}]")


class Term(Struct, frozen=True):
    """Words that must follow each other; with `prefix`, the last one is the beginning of a word."""

    words: tuple[str, ...]
    prefix: bool = False


class SearchEntry(Struct, frozen=True):
    """The searchable content of a record: its text, its role (see `Hit`), and the tools that it is about."""

    text: str
    role: str
    tools: tuple[str, ...] = ()


def parse_query(query: str) -> tuple[Term, ...]:
    """The terms of a query. Raises InputError if it contains no word."""
    terms = []
    text_given("query", query)
    for match in _PIECE.finditer(query):
        quoted, star, plain = match.groups()
        piece = quoted if plain is None else plain
        words = tuple(_words(piece))
        if words:
            terms.append(Term(words, bool(star) if plain is None else plain.endswith("*")))
    if not terms:
        raise InputError(f'query: {query!r} contains no word; give words, "phrases" or beginnings (umbrel*)')
    return tuple(terms)


def fold(word: str) -> str:
    """A word in the form in which words are compared."""
    return word.lower() if word.isascii() else _FOREIGN_LETTER.sub(_base_met, word.lower())


def _base_met(char: re.Match[str]) -> str:
    return _base(char[0])


@lru_cache(maxsize=16384)
def _base(char: str) -> str:
    """A letter without its accents, if it is Latin or Greek."""
    base = unicodedata.normalize("NFD", char)[0]
    if base.isascii() or "\u0370" <= base <= "\u03ff":
        return base
    return "" if unicodedata.combining(char) else char


def _words(text: str) -> list[str]:
    """The words of a text in the form in which they are compared. Composed and decomposed letters give the same words
    (some systems decompose letters in file names)."""
    if text.isascii():
        return _PLAIN_WORD.findall(text.lower())
    return [fold(word) for word in _word_pattern().findall(unicodedata.normalize("NFC", text))]


def indexed(text: str) -> str:
    """`text` for an index that knows only ASCII letters and digits and takes every other character for a part of a
    word. Words with other letters are put in the form in which words are compared, so that the index finds what
    `matches` finds."""
    return text if text.isascii() else _FOREIGN.sub(_indexed_run, text)


def _indexed_run(run: re.Match[str]) -> str:
    return (_indexed_again if len(run[0]) < _SHORT_RUN else _indexed_once)(run[0])


def _indexed_once(run: str) -> str:
    return " ".join(_words(run))


_indexed_again = lru_cache(maxsize=8192)(_indexed_once)


def matches(terms: Sequence[Term], text: str) -> bool:
    """Whether `text` contains all of `terms`."""
    words = _words(text)
    present = set(words)
    return all(_occurs(term, words, present) for term in terms)


def _occurs(term: Term, words: list[str], present: set[str]) -> bool:
    *whole, last = term.words
    if not present.issuperset(whole if term.prefix else term.words):
        return False
    if not whole:
        return not term.prefix or any(word.startswith(last) for word in present)
    for index in range(len(words) - len(whole)):
        if words[index : index + len(whole)] == whole:
            word = words[index + len(whole)]
            if word.startswith(last) if term.prefix else word == last:
                return True
    return False


def may_match(terms: Sequence[Term], raw: bytes) -> bool:
    """Whether an encoded record may contain `terms`: a quick check before it is decoded."""
    if not raw.isascii() or b"\\u" in raw:
        return True
    lower = raw.lower()
    return all(word.encode() in lower for term in terms for word in term.words)


class Finder:
    """Finds the place of a query's terms in a text."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self._terms = terms
        spelled = list(map(_pattern, terms))
        # A case-sensitive pattern that begins with plain letters is searched as fast as with `find`.
        self._lower = [re.compile(pattern).search for pattern in spelled]

    @cached_property
    def _anywhere(self) -> re.Pattern[str]:
        """A pattern that ignores case, for the few texts whose length changes in lower case. Compiling it takes longer
        than a search."""
        begins = ("" if _ALONE.match(term.words[0]) else f"(?<!{_LETTER})" for term in self._terms)
        spelled = map(_pattern, self._terms)
        return re.compile("|".join(map("".join, zip(begins, spelled, strict=True))), re.IGNORECASE)

    def snippet(self, text: str) -> tuple[str, tuple[int, int]]:
        """The part of `text` around the first term, on one line, and the start and end of the term in it.

        (0, 0) if the text does not contain a term.
        """
        start, end = self._place(text)
        end = min(end, start + _SNIPPET_CHARACTERS)
        left = max(0, min(start - (_SNIPPET_CHARACTERS - (end - start)) // 3, len(text) - _SNIPPET_CHARACTERS))
        right = max(end, left + _SNIPPET_CHARACTERS)
        before = ("…" if left else "") + _one_line(text[left:start]).lstrip()
        with_term = before + _one_line(text[start:end])
        after = _one_line(text[end:right]).rstrip() + ("…" if right < len(text) else "")
        return with_term + after, (len(before), len(with_term))

    def everywhere(self, text: str) -> list[tuple[int, int]]:
        """The start and end of every place of a term in a text, in order, without those that overlap others. Terms that
        are spelled with accents in it are found only if the text has no other."""
        lower = text.lower()
        if len(lower) != len(text):
            spans = [match.span() for match in self._anywhere.finditer(text)]
        else:
            spans = sorted(span for search in self._lower for span in _wholes(search, lower))
        found: list[tuple[int, int]] = []
        for start, end in spans or [self._place(text)]:
            if end > start >= (found[-1][1] if found else 0):
                found.append((start, end))
        return found

    def _place(self, text: str) -> tuple[int, int]:
        lower = text.lower()
        if len(lower) == len(text):  # otherwise positions in both texts differ
            spans = [span for search in self._lower if (span := _whole(search, lower))]
            if spans:
                return min(spans, key=_start)
        if match := self._anywhere.search(text):
            return match.span()
        for match in _word_pattern().finditer(text):  # spelled with accents
            word = fold(unicodedata.normalize("NFC", match.group()))
            for term in self._terms:
                if word.startswith(term.words[0]) if term.prefix and len(term.words) == 1 else word == term.words[0]:
                    return match.span()
        return 0, 0


def _pattern(term: Term) -> str:
    """A pattern for the spellings of a term, matching from its first letter."""
    pattern = re.escape(term.words[0])
    for before, word in pairwise(term.words):
        parted = "*" if _ALONE.match(before) or _ALONE.match(word) else "+"
        pattern += rf"[\W_]{parted}{re.escape(word)}"
    if _ALONE.match(term.words[-1]):
        return pattern
    return pattern + (f"{_LETTER}*" if term.prefix else f"(?!{_LETTER})")


def _whole(search: Callable[[str, int], re.Match[str] | None], text: str) -> tuple[int, int] | None:
    """The first match of `search` that does not begin inside a word."""
    return next(_wholes(search, text), None)


def _wholes(search: Callable[[str, int], re.Match[str] | None], text: str) -> Iterator[tuple[int, int]]:
    """The matches of `search` that do not begin inside a word."""
    match = search(text, 0)
    while match:
        start, end = match.span()
        if not start or not text[start - 1].isalnum() or _ALONE.search(text[start - 1 : start + 1]):
            yield start, end
        match = search(text, start + 1)


def _start(span: tuple[int, int]) -> int:
    return span[0]


def _one_line(text: str) -> str:
    if "  " not in text and text.isprintable():
        return text
    return re.sub(r"\s+", " ", text)


class ToolNames:
    """The tool names of calls by call id, for results that do not name their tool. Records must be given in reading
    order."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def learn(self, record: Record, only: Set[str] | None = None) -> set[str]:
        """Note the calls of a record, or only the calls with an id in `only`; returns their ids."""
        learned = set()
        for part in record.message.parts if record.message is not None else ():
            if isinstance(part, ToolCall) and (only is None or part.id in only):
                self._names[part.id] = part.name
                learned.add(part.id)
        return learned

    def name(self, call_id: str) -> str:
        """The tool of the nearest earlier call with that id; empty if there is none."""
        return self._names.get(call_id, "")


def entry_of(record: Record, names: ToolNames) -> SearchEntry:
    """The searchable content of a record. `names` must have learned the calls before the record; its own calls are
    added."""
    names.learn(record)
    role, text = role_and_text(record)
    match record.body:
        case MessageRecord(message=message) | PartialAnswer(message=message):
            return SearchEntry(text, role, _tools_of(message, names))
        case ToolStarted(name=name):
            return SearchEntry(text, role, (name,))
        case ToolFinished(call_id=call_id):
            return SearchEntry(text, role, tuple(filter(None, (names.name(call_id),))))
        case _:
            return SearchEntry(text, role)


def role_and_text(record: Record) -> tuple[str, str]:
    """The role of a record (see `Hit`) and its text; neither depends on earlier records."""
    message = record.message
    role = kind_of(record.body) if message is None else _role_of(message)
    if type(record.body) is MessageRecord and len(record.body.message.parts) == 1:
        [part] = record.body.message.parts
        if type(part) is Text:
            return role, part.text
    return role, "\n".join(text for found_text in texts_in(record.body, SEARCHABLE) for text in _words_of(found_text))


def _role_of(message: Message) -> str:
    parts = message.parts
    if parts and isinstance(parts[0], ToolResult) and all(isinstance(part, ToolResult) for part in parts):
        return "tool"
    return message.role


def _tools_of(message: Message, names: ToolNames) -> tuple[str, ...]:
    tools: dict[str, None] = {}
    for part in message.parts:
        if isinstance(part, ToolCall):
            tools[part.name] = None
        elif isinstance(part, ToolResult):
            tools[part.name or names.name(part.call_id)] = None
    tools.pop("", None)
    return tuple(tools)


def _words_of(field: FoundText) -> Iterator[str]:
    """The searchable texts of a field: its text, a call's name and arguments, or the leaves of its JSON value."""
    if field.kind in ("text", "url"):
        yield field.value
    elif field.kind == "call":
        yield field.value.name
        yield from [field.value.raw] if field.value.raw is not None else _leaves(field.value.arguments)
    else:
        yield from _leaves(field.value)


def _leaves(value: object) -> Iterator[str]:
    """The keys, texts and numbers of a JSON value, in order."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _leaves(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
