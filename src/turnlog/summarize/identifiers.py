"""Which words of a conversation a later step may need again, and how likely that is."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from .reading import Said

__all__ = ["Seen", "Vocabulary", "find_word", "seen_in"]

_WORD = re.compile(r"https?://[^\s\"'<>)\]}]+|[\w~./@$+-]{3,}")
_NAMES = re.compile(r"[A-Za-z]\d|\d[A-Za-z]|[a-z][A-Z]|\w[_/@]\w|\w\.\w|\d\d\d|/\w|^[A-Z]{4,8}$|\w-\w*\d|\d-\w")
_LONGEST = 120  # characters; what is longer is data, not a name
_CROWD = 100  # identifiers in a result from which on each counts less


class Vocabulary:
    """The identifiers of texts. It remembers its verdict on every word, since words repeat."""

    def __init__(self) -> None:
        self._judged: set[str] = set()
        self._names: set[str] = set()
        self._trimmed: dict[str, str] = {}  # the name in a word that is one without the punctuation at its ends
        self._untidy: set[str] = set()  # the keys of it

    def words(self, text: str) -> set[str]:
        """The identifiers in `text`: paths, ids, numbers, dates, symbols; no plain words of a language."""
        words = set(_WORD.findall(text))
        for word in words - self._judged:
            name = _named(word)
            if name == word:
                self._names.add(word)
            elif name:
                self._trimmed[word] = name
                self._untidy.add(word)
        self._judged |= words
        found = words & self._names
        if words & self._untidy:
            found.update(self._trimmed[word] for word in words & self._untidy)
        return found


def _named(raw: str) -> str:
    """The identifier in `raw`, without the punctuation around it, or ""."""
    word = raw.rstrip(".-/+") if raw[0] in "/.~" else raw.strip(".-/+")
    return word if 3 <= len(word) <= _LONGEST and _NAMES.search(word) else ""


class Seen(Struct):
    """Where an identifier stands. `first` is the position of the first text that has it, `crowd` how many identifiers
    that text has, `own` whether it is a call; the rest are numbers of texts."""

    first: int
    crowd: int
    own: bool = False
    user: int = 0
    assistant: int = 0
    result: int = 0

    def weight(self, word: str) -> int:
        """How likely it is needed again, in hundredths of a percent or so; whole numbers, so that sums are exact.

        Measured on recorded sessions of coding agents: of what one long result showed under 1 % is used again, of
        what a user said 5 %, of what the agent itself used once, twice, three times 6, 10 and 15 %, and half as much
        again where the agent brought it up.
        """
        weight = 140 * min(_CROWD, self.crowd) // max(1, self.crowd)
        if self.user:
            weight = max(weight, 450)
        if self.assistant:
            weight = (600, 1000, 1400)[min(self.assistant, 3) - 1]
            weight += (weight // 2 if self.own else 0) + (weight // 2 if self.user else 0)
        if word.strip("$-").replace(".", "").isdigit():
            return weight * 7 // 10 if self.assistant else weight * 7 // 20
        if not self.assistant and word.isupper() and word.isalpha():
            return weight // 2
        return weight


def seen_in(said: Iterable[Said], vocabulary: Vocabulary) -> dict[str, Seen]:
    """Every identifier of what was said, in no order to rely on."""
    seen: dict[str, Seen] = {}
    for at, one in enumerate(said):
        words = vocabulary.words(one.text)
        own = one.who == "call"
        for word in words:
            entry = seen.get(word)
            if entry is None:
                entry = seen[word] = Seen(at, len(words), own)
            if one.who == "user":
                entry.user += 1
            elif one.who == "result":
                entry.result += 1
            else:
                entry.assistant += 1
    return seen


def find_word(word: str, text: str) -> int:
    """Position of `word` in `text` as a word of its own, or -1."""
    at = text.find(word)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(word) : at + len(word) + 1]
        if not (before.isalnum() and word[0].isalnum()) and not (after.isalnum() and word[-1].isalnum()):
            return at
        at = text.find(word, at + 1)
    return -1
