"""Find the words of a conversation that a later step may need again, and how likely that is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from .._platform.lazy import lazy_pattern
from .reading import Said

_WORD = lazy_pattern(r"https?://[^\s\"'<>)\]}]+|[\w~./@$+-]{3,}")
_APART = "".join(chr(code) if re.match(r"[\w~./@$+-]", chr(code)) else " " for code in range(128))
"""A table for `str.translate` that leaves only the characters of `_WORD` in ASCII text: twice as fast as a search."""
_NAMES = lazy_pattern(r"[A-Za-z]\d|\d[A-Za-z]|[a-z][A-Z]|\w[_/@]\w|\w\.\w|\d\d\d|/\w|^[A-Z]{4,8}$|\w-\w*\d|\d-\w")
_LONGEST = 120  # characters; a longer word is data, not a name
_REMEMBERED = 20_000  # words
_FEW = 64  # a result with fewer identifiers was asked for them
_RECURRING = 420  # weight of an identifier in several results, in one of them among few
_CROWD = 100  # if a result has more identifiers, each counts less


class Vocabulary:
    """Finds the identifiers of texts. It remembers the result for every word, as words repeat, and returns the same
    object for the same identifier."""

    def __init__(self) -> None:
        self._verdicts = _Verdicts()
        self._lines: dict[str, tuple[str, ...]] = {}
        self._lines_before: dict[str, tuple[str, ...]] = {}

    def forget(self, but: Iterable[str]) -> None:
        """Forget the lines that were not used since the last call; and, if very many words are remembered, all words
        except these identifiers."""
        self._lines_before, self._lines = self._lines, {}
        if len(self._verdicts) > _REMEMBERED:
            self._verdicts = _Verdicts((word, word) for word in but)

    def of_line(self, line: str) -> tuple[str, ...]:
        """The identifiers in a line of a summary. They are remembered, as most lines are in the next summary too."""
        identifiers = self._lines.get(line)
        if identifiers is None:
            identifiers = self._lines_before.get(line)
            self._lines[line] = identifiers = tuple(self.words(line)) if identifiers is None else identifiers
        return identifiers

    def words(self, text: str) -> list[str]:
        """The identifiers in `text`: paths, ids, numbers, dates, symbols; no plain words of a language. Each is
        contained once, in order of appearance."""
        plain = text.isascii() and "://" not in text
        words = text.translate(_APART).split() if plain else _WORD.findall(text)
        identifiers = dict.fromkeys(map(self._verdicts.__getitem__, words))
        identifiers.pop("", None)
        return list(identifiers)


class _Verdicts(dict[str, str]):
    """The identifier in each word of a text; "" for words that name nothing."""

    def __missing__(self, word: str) -> str:
        name = _named(word)
        if name:
            name = word if name == word else self.setdefault(name, name)
        self[word] = name
        return name


def _named(raw: str) -> str:
    """The identifier in `raw`, without the punctuation around it, or ""."""
    if raw.isalpha() and (raw.islower() or raw.istitle()):
        return ""  # most words
    word = raw.rstrip(".-/+") if raw[0] in "/.~" else raw.strip(".-/+")
    return word if 3 <= len(word) <= _LONGEST and _NAMES.search(word) else ""


class IdentifierPlaces:
    """The places of a conversation's identifiers. `first` has the position of the first text that contains each.
    Identifiers in texts that stay in requests (`staying`) are not in `first`, and have no weight.
    """

    def __init__(self, said: Sequence[Said], staying: Iterable[Said]) -> None:
        self._said = said
        self._user: Counter[str] = Counter()
        self._assistant: Counter[str] = Counter()
        self._results: Counter[str] = Counter()
        self._among_few: set[str] = set()
        self.first: dict[str, int] = {}
        for index in range(len(said) - 1, -1, -1):
            entry = said[index]
            self.first.update(dict.fromkeys(entry.note.words, index))
            if entry.who == "user":
                self._user.update(entry.note.words)
            elif entry.who != "result":
                self._assistant.update(entry.note.words)
            else:
                self._results.update(entry.note.words)
                if len(entry.note.words) < _FEW:
                    self._among_few.update(entry.note.words)
        self.staying = set[str]().union(*(entry.note.words for entry in staying))
        for word in self.staying:
            self.first.pop(word, None)

    def weights(self) -> dict[str, int]:
        """How likely each identifier is needed again, in about hundredths of a percent; whole numbers, so that sums are
        exact.

        Measured on recorded sessions of coding agents: of the identifiers in a long result, under 1 % are used again;
        of those in a short one, 1 %, and 4 % if they are in another result too; of those in a user message, 5 %; of
        those that the agent used once, twice or three times, 6, 10 and 15 %, and half as many again if the agent used
        them first.
        """
        shown = [140 * min(_CROWD, crowd) // max(1, crowd) for crowd in (len(entry.note.words) for entry in self._said)]
        users, assistants = self._user, self._assistant
        weights: dict[str, int] = {}
        for word, first in self.first.items():
            is_number = not word[0].isalpha() and word.strip("$-").replace(".", "").isdigit()
            if word in assistants:
                weight = (600, 1000, 1400)[min(assistants[word], 3) - 1]
                by_agent, by_user = self._said[first].who == "call", word in users
                weight += (weight // 2 if by_agent else 0) + (weight // 2 if by_user else 0)
                if is_number:
                    weight = weight * 7 // 10
            else:
                weight = max(shown[first], 450) if word in users else shown[first]
                if is_number:
                    weight = weight * 7 // 20
                elif self._results[word] > 1 and word in self._among_few:
                    weight = max(weight, _RECURRING)
                elif word.isupper() and word.isalpha():
                    weight //= 2
            weights[word] = weight
        return weights


def find_word(word: str, text: str) -> int:
    """The position of `word` in `text`, not as a part of a longer word; -1 if there is none."""
    position = text.find(word)
    while position >= 0:
        before, after = text[position - 1 : position], text[position + len(word) : position + len(word) + 1]
        if not (before.isalnum() and word[0].isalnum()) and not (after.isalnum() and word[-1].isalnum()):
            return position
        position = text.find(word, position + 1)
    return -1
