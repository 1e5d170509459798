"""What of a record can be searched for, and what a query asks for.

A query is plain words and "phrases", all of which have to be there; `word*` stands for every word
that begins so. Nothing else in it has a meaning. Words are runs of letters and digits, compared
without case and without accents, by Python's tables: those of SQLite's own tokenizers end with Unicode 6.1.
Of scripts that are written without spaces each letter is a word, and a query of several a phrase: nobody can tell
where their words end, and a sentence is not what people look for.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence, Set
from functools import cache, lru_cache
from itertools import pairwise

from msgspec import Struct

from ..errors import InputError, text_given
from ..log.messages import Message, Text, ToolCall, ToolResult
from ..log.records import MessageRecord, PartialAnswer, Record, ToolFinished, ToolStarted
from ..log.texts import SEARCHABLE, Found, texts_in
from .records import kind_of

_SNIPPET_CHARACTERS = 160
# Combining marks belong to the word that they stand in. Those of Hebrew and Arabic are vowels that most leave out.
_MARK = (
    "\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
)
# Thai, Lao, Burmese, Khmer, kana, Chinese characters.
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_ALONE = re.compile(f"[{_SPACELESS}]")
_LETTER = f"[^\\W_{_SPACELESS}]"
_PLAIN_WORD = re.compile("[a-z0-9]+")
# What ASCII parts from the rest, with something in it that is none.
_FOREIGN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]*+[^\x00-\x7f][^\x00-/:-@\[-`{-\x7f]*+")
_SHORT_RUN = 32
"""Characters of a run that is likely to come again: a word."""
_PIECE = re.compile(r'"([^"]*)"?(\*?)|([^\s"]+)')


@cache
def _word_pattern() -> re.Pattern[str]:
    """What a word is. Made when first needed: it takes as long as to open a store."""
    return re.compile(f"{_LETTER}(?:{_LETTER}|[{_MARK}])*|(?=[^\\W_])[{_SPACELESS}]")


class Term(Struct, frozen=True):
    """Words that have to stand next to each other; with `prefix` the last is the beginning of one."""

    words: tuple[str, ...]
    prefix: bool = False


class Entry(Struct, frozen=True):
    """What a search knows of a record: its text, its role (see `Hit`), and the tools it is about."""

    text: str
    role: str
    tools: tuple[str, ...] = ()


def parse_query(query: str) -> tuple[Term, ...]:
    """The terms of a query. Raises InputError if there is no word in it."""
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
    """A word as it is compared."""
    return word.lower() if word.isascii() else "".join(map(_base, word.lower()))


@lru_cache(maxsize=16384)
def _base(char: str) -> str:
    """A letter without its accents if it is a Latin or a Greek one."""
    base = unicodedata.normalize("NFD", char)[0]
    if base.isascii() or "\u0370" <= base <= "\u03ff":
        return base
    return "" if unicodedata.combining(char) else char


def _words(text: str) -> list[str]:
    """The words as they are compared, however their letters are put together: some systems part them from their
    marks in the names of files."""
    if text.isascii():
        return _PLAIN_WORD.findall(text.lower())
    return [fold(word) for word in _word_pattern().findall(unicodedata.normalize("NFC", text))]


def indexed(text: str) -> str:
    """`text` for an index that knows the letters and digits of ASCII and takes whatever is beyond for a part of a word:
    with its other words as they are compared, so that it finds what `matches` does."""
    return text if text.isascii() else _FOREIGN.sub(_indexed_run, text)


def _indexed_run(run: re.Match[str]) -> str:
    return (_indexed_again if len(run[0]) < _SHORT_RUN else _indexed_once)(run[0])


def _indexed_once(run: str) -> str:
    return " ".join(_words(run))


_indexed_again = lru_cache(maxsize=8192)(_indexed_once)


def matches(terms: Sequence[Term], text: str) -> bool:
    """Whether all of `terms` stand in `text`."""
    words = _words(text)
    there = set(words)
    return all(_stands(term, words, there) for term in terms)


def _stands(term: Term, words: list[str], there: set[str]) -> bool:
    *whole, last = term.words
    if not there.issuperset(whole if term.prefix else term.words):
        return False
    if not whole:
        return not term.prefix or any(word.startswith(last) for word in there)
    for index in range(len(words) - len(whole)):
        if words[index : index + len(whole)] == whole:
            word = words[index + len(whole)]
            if word.startswith(last) if term.prefix else word == last:
                return True
    return False


def may_match(terms: Sequence[Term], raw: bytes) -> bool:
    """Whether an encoded record may hold `terms`: a quick look, before it is decoded."""
    if not raw.isascii() or b"\\u" in raw:
        return True
    lower = raw.lower()
    return all(word.encode() in lower for term in terms for word in term.words)


class Finder:
    """Shows where the terms of a query stand in a text."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self._terms = terms
        spelled = list(map(_pattern, terms))
        begins = ["" if _ALONE.match(term.words[0]) else f"(?<!{_LETTER})" for term in terms]
        self._anywhere = re.compile("|".join(map("".join, zip(begins, spelled, strict=True))), re.IGNORECASE)
        # A pattern that begins with letters, and takes no others for them, is looked for at the speed of `find`.
        self._lower = [re.compile(pattern).search for pattern in spelled]

    def snippet(self, text: str) -> tuple[str, tuple[int, int]]:
        """The piece of `text` around the first term, on one line, and where in it that stands.

        (0, 0) where the text holds none.
        """
        start, end = self._place(text)
        end = min(end, start + _SNIPPET_CHARACTERS)
        left = max(0, min(start - (_SNIPPET_CHARACTERS - (end - start)) // 3, len(text) - _SNIPPET_CHARACTERS))
        right = max(end, left + _SNIPPET_CHARACTERS)
        before = ("…" if left else "") + _one_line(text[left:start]).lstrip()
        found = before + _one_line(text[start:end])
        after = _one_line(text[end:right]).rstrip() + ("…" if right < len(text) else "")
        return found + after, (len(before), len(found))

    def _place(self, text: str) -> tuple[int, int]:
        lower = text.lower()
        if len(lower) == len(text):  # else what is found in one stands elsewhere in the other
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
    """How a term may be spelled, from its first letter on."""
    pattern = re.escape(term.words[0])
    for before, word in pairwise(term.words):
        parted = "*" if _ALONE.match(before) or _ALONE.match(word) else "+"
        pattern += rf"[\W_]{parted}{re.escape(word)}"
    if _ALONE.match(term.words[-1]):
        return pattern
    return pattern + (f"{_LETTER}*" if term.prefix else f"(?!{_LETTER})")


def _whole(search: Callable[[str, int], re.Match[str] | None], text: str) -> tuple[int, int] | None:
    """Where `search` finds what does not begin inside a word."""
    match = search(text, 0)
    while match:
        start, end = match.span()
        if not start or not text[start - 1].isalnum() or _ALONE.search(text[start - 1 : start + 1]):
            return start, end
        match = search(text, start + 1)
    return None


def _start(span: tuple[int, int]) -> int:
    return span[0]


def _one_line(text: str) -> str:
    if "  " not in text and text.isprintable():
        return text
    return re.sub(r"\s+", " ", text)


class ToolNames:
    """The names behind call ids, for results that do not say whose they are: met in reading order."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def learn(self, record: Record, only: Set[str] | None = None) -> set[str]:
        """Take in the calls of a record, or those of them with an id in `only`; returns the ids."""
        learned = set()
        for part in record.message.parts if record.message is not None else ():
            if isinstance(part, ToolCall) and (only is None or part.id in only):
                self._names[part.id] = part.name
                learned.add(part.id)
        return learned

    def name(self, call_id: str) -> str:
        """The tool of the nearest call of that id before, empty if there is none."""
        return self._names.get(call_id, "")


def entry_of(record: Record, names: ToolNames) -> Entry:
    """What a search knows of a record; `names` has to know the calls before it, and learns its own."""
    names.learn(record)
    role, text = role_and_text(record)
    match record.body:
        case MessageRecord(message=message) | PartialAnswer(message=message):
            return Entry(text, role, _tools_of(message, names))
        case ToolStarted(name=name):
            return Entry(text, role, (name,))
        case ToolFinished(call_id=call_id):
            return Entry(text, role, tuple(filter(None, (names.name(call_id),))))
        case _:
            return Entry(text, role)


def role_and_text(record: Record) -> tuple[str, str]:
    """The role of a record (see `Hit`) and its text: what can be said of it without the records before."""
    message = record.message
    role = kind_of(record.body) if message is None else _role_of(message)
    if type(record.body) is MessageRecord and len(record.body.message.parts) == 1:
        [part] = record.body.message.parts
        if type(part) is Text:
            return role, part.text
    return role, "\n".join(text for found in texts_in(record.body, SEARCHABLE) for text in _words_of(found))


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


def _words_of(found: Found) -> Iterator[str]:
    """The texts of which a person may look for a word."""
    if found.kind in ("text", "url"):
        yield found.value
    elif found.kind == "call":
        yield found.value.name
        yield from [found.value.raw] if found.value.raw is not None else _leaves(found.value.arguments)
    else:
        yield from _leaves(found.value)


def _leaves(value: object) -> Iterator[str]:
    """Keys, texts and numbers of a JSON value, in order."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _leaves(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
