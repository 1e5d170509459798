"""Quotes from a conversation: the lines that hold what may be needed, and which of them are worth their place."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from .identifiers import find_word
from .notes import Reader
from .reading import Place, Quote, Said

__all__ = ["Choice", "Excerpt", "Heading", "excerpts"]

_LINE = 160  # characters of a line that are quoted
_FRAME = 3  # characters or so that a line costs besides its text


class Excerpt(Struct, gc=False):
    """A quote and the position of its text. `step` is that of the call that it belongs to, else the same."""

    at: int
    step: int
    quote: Quote


class Heading(Struct):
    """What stands above the quotes of one step, and the identifiers it has."""

    text: str
    words: tuple[str, ...]


def excerpts(said: Sequence[Said], first: Mapping[str, int], words: Iterable[str], reader: Reader) -> Iterator[Excerpt]:
    """The lines in which `words` appear first."""
    spots: dict[int, list[str]] = {}
    for word in words:
        spots.setdefault(first[word], []).append(word)
    for at in sorted(spots):
        one = said[at]
        step = at if one.call is None else one.call
        done = 0
        for place, quote in _quotes(one, spots[at], reader):
            if place >= done:
                done = quote.start + quote.length
                yield Excerpt(at, step, quote)


def _quotes(one: Said, words: Sequence[str], reader: Reader) -> list[tuple[int, Quote]]:
    """Where these words stand in a text, in order, and the lines to quote for them. What was looked for once is at hand
    from then on."""
    known = one.note.quotes
    missing = [word for word in words if word not in known]
    if missing:
        text = reader.text(one)
        spans: dict[tuple[int, int], Quote] = {}
        for word in missing:
            at = find_word(word, text)
            if at < 0:
                known[word] = None
                continue
            start, end = span = _span(text, at, at + len(word))
            if span not in spans:
                line = text[start:end].strip()
                spans[span] = Quote(start, end - start, line, tuple(reader.vocabulary.words(line)))
            known[word] = Place(at - start, spans[span])
    found = [place for word in words if (place := known[word]) is not None]
    return sorted(((one.quote.start + one.into, one.quote) for one in found), key=lambda one: one[0])


def _span(text: str, start: int, end: int) -> tuple[int, int]:
    """What is quoted around text[start:end]: its line, or so much of a long one."""
    left = text.rfind("\n", 0, start) + 1
    right = text.find("\n", end)
    right = len(text) if right < 0 else right
    if right - left > _LINE:
        spare = max(0, _LINE - (end - start)) // 2
        a, z = max(left, start - spare), min(right, end + spare)
        if a > left and (space := text.find(" ", a, start)) >= 0:
            a = space + 1
        if z < right and (space := text.rfind(" ", end, z)) >= 0:
            z = space
        return a, z
    return left, right


class Choice:
    """The quotes that are worth most for their length: more of them, or fewer, as there is room.

    A word is worth something the first time only: half for being there, half for standing where it was first said.
    Words that are `covered` are there already.
    """

    def __init__(
        self,
        candidates: Sequence[Excerpt],
        headings: Mapping[int, Heading],
        first: Mapping[str, int],
        weights: Mapping[str, int],
        covered: Iterable[str],
    ) -> None:
        self.chosen: list[Excerpt] = []
        """What was chosen, that of most worth first."""
        self._candidates = candidates
        self._headings = headings
        self._first = first
        self._weights = weights
        self._covered = set(covered)
        self._bound: set[str] = set()
        self._opened: set[int] = set()
        self._heap = [(-self._value(one)[0], index) for index, one in enumerate(candidates)]
        heapq.heapify(self._heap)
        self._left: list[tuple[float, int]] = []  # did not fit

    def take(self, room: float) -> bool:
        """Choose more, within `room` characters; whether any could be."""
        heap, before = self._heap, len(self.chosen)
        for one in self._left:
            heapq.heappush(heap, one)
        self._left = []
        while heap:
            entry = heapq.heappop(heap)
            excerpt = self._candidates[entry[1]]
            density, cost = self._value(excerpt)
            if density <= 0:
                continue
            if heap and density < -heap[0][0]:
                heapq.heappush(heap, (-density, entry[1]))
                continue
            if cost > room:
                self._left.append((-density, entry[1]))
                continue
            room -= cost
            self._add(excerpt)
        return len(self.chosen) > before

    def drop(self, room: float) -> bool:
        """Let go of those of least worth, until there are `room` characters more; whether there were as many."""
        quoted = Counter(one.step for one in self.chosen)
        while room > 0 and self.chosen:
            one = self.chosen.pop()
            quoted[one.step] -= 1
            heading = 0 if quoted[one.step] else len(self._headings[one.step].text) + _FRAME
            room -= len(one.quote.text) + _FRAME + heading
        return room <= 0

    def _add(self, excerpt: Excerpt) -> None:
        self.chosen.append(excerpt)
        self._cover(excerpt.quote.words, excerpt.at)
        if excerpt.step not in self._opened:
            self._opened.add(excerpt.step)
            self._cover(self._headings[excerpt.step].words, excerpt.step)

    def _cover(self, words: Iterable[str], at: int) -> None:
        self._covered.update(words)
        self._bound.update(word for word in words if self._first.get(word) == at)

    def _value(self, excerpt: Excerpt) -> tuple[float, float]:
        weights, first, covered, bound = self._weights, self._first, self._covered, self._bound
        worth, cost = 0, len(excerpt.quote.text) + _FRAME
        words = excerpt.quote.words
        for word in words:
            if weight := weights.get(word, 0):
                if word not in covered:
                    worth += weight
                if word not in bound and first[word] == excerpt.at:
                    worth += weight
        if excerpt.step not in self._opened:
            heading = self._headings[excerpt.step]
            cost += len(heading.text) + _FRAME
            for word in heading.words:
                if word not in words and word not in covered and (weight := weights.get(word, 0)):
                    worth += weight * 2 if first[word] == excerpt.step else weight
        return worth / cost, cost
