"""Quotes from a conversation: find the lines that may be needed, and choose those that are worth their length."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from msgspec import Struct

from .identifiers import Vocabulary, find_word
from .reading import Place, Quote, Said, Who

_LINE = 160  # characters of a line that are quoted
_PATIENCE = 200  # after so many quotes in a row that do not fit, check whether any other could
_FRAME = 3  # about the characters that a line costs besides its text
_SAYS = 8  # characters; a shorter line without an identifier says little
_AT = attrgetter("at")
_SPARE: dict[Who, int] = {"user": 300, "call": 200, "assistant": 100}
"""Worth of 1,000 characters in which no identifier is likely to be needed again: who wrote them decides. Results are
not quoted for their own sake: they can be had again, and would fill every digest."""


class Excerpt(Struct, gc=False):
    """A quote and the position of its text. `step` is the position of the call that it belongs to, or the same position
    if there is none. `given` is its worth without the identifiers in it."""

    at: int
    step: int
    quote: Quote
    given: int = 0


class Heading(Struct, gc=False):
    """The line above the quotes of one step, and the identifiers in it."""

    text: str
    words: tuple[str, ...]


def excerpts(
    said: Sequence[Said], first: Mapping[str, int], words: Iterable[str], vocabulary: Vocabulary
) -> Iterator[Excerpt]:
    """The lines in which `words` appear first."""
    spots: dict[int, list[str]] = {}
    for word in words:
        spots.setdefault(first[word], []).append(word)
    for index in sorted(spots):
        entry = said[index]
        step = index if entry.call is None else entry.call
        done = 0
        for place in _places(entry, spots[index], vocabulary):
            if place.at >= done:
                quote = place.quote
                done = quote.start + quote.length
                yield Excerpt(index, step, quote)


def others(
    said: Sequence[Said], chosen: Iterable[Excerpt], staying: set[str], room: float, vocabulary: Vocabulary
) -> Iterator[Excerpt]:
    """Lines of the user and of the agent that are not among the `chosen`, about `room` characters of them, the newest
    first. They are worth less than any line with a likely identifier. Lines of which requests show all identifiers
    anyway (`staying`) are left out."""
    chosen_places = {(excerpt.at, excerpt.quote.start) for excerpt in chosen}
    spare = [index for index, entry in enumerate(said) if entry.who in _SPARE]
    for index in sorted(spare, key=lambda index: (_SPARE[said[index].who], index), reverse=True):
        entry = said[index]
        step = index if entry.call is None else entry.call
        for start, end in _lines(entry.text):
            if (index, start) in chosen_places:
                continue
            line = entry.text[start:end].strip()
            words = tuple(vocabulary.words(line))
            if words and staying.issuperset(words):
                continue
            room -= len(line) + _FRAME
            quote = Quote(start, end - start, line, words)
            yield Excerpt(index, step, quote, len(line) * _SPARE[entry.who] // 1000 + 1)
            if room < 0:
                return


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """The ranges of the lines of a text that say something, of long ones the beginning."""
    start = 0
    for line in text.split("\n"):
        if len(line.strip()) >= _SAYS and any(map(str.isalnum, line)):
            yield _span(text, start, start + 1)
        start += len(line) + 1


def _places(entry: Said, words: Sequence[str], vocabulary: Vocabulary) -> list[Place]:
    """The places of these words in a text, in order, and the lines to quote for them. Words that were searched once are
    remembered."""
    places_by_word = entry.note.quotes
    if not places_by_word.keys() >= set(words):
        _look(entry, [word for word in words if word not in places_by_word], vocabulary)
    return sorted([place for word in words if (place := places_by_word[word]) is not None], key=_AT)


def _look(entry: Said, words: Iterable[str], vocabulary: Vocabulary) -> None:
    """Find these words in a text and remember their places."""
    text, places_by_word = entry.text, entry.note.quotes
    spans: dict[tuple[int, int], Quote] = {}
    for word in words:
        position = find_word(word, text)
        if position < 0:
            places_by_word[word] = None
            continue
        start, end = span = _span(text, position, position + len(word))
        if span not in spans:
            line = text[start:end].strip()
            spans[span] = Quote(start, end - start, line, tuple(vocabulary.words(line)))
        places_by_word[word] = Place(position, spans[span])


def _span(text: str, start: int, end: int) -> tuple[int, int]:
    """The range that is quoted around text[start:end]: its line, or a part of a long line."""
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


def _place(excerpt: Excerpt) -> tuple[int, int, int]:
    return excerpt.at, excerpt.quote.start, excerpt.quote.length


class ChosenQuotes:
    """The quotes that are worth most for their length: as many as there is room for.

    A word counts only once: half of its weight for being quoted at all, half for being quoted from the text where it
    came first. Words in `covered` are in the digest already.
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
        """The chosen quotes, those of most worth first."""
        self._candidates: list[Excerpt] = []
        self._headings = headings
        self._first = first
        self._weights = weights
        self._covered = set(covered)
        self._bound: set[str] = set()
        self._touched: set[str] = set()
        self._quoted: set[tuple[int, int, int]] = set()  # places of the chosen: a candidate may be there twice
        self._unopened: dict[int, tuple[int, list[tuple[str, int]]]] = {}
        self._framed_steps: set[int] = set()
        for step in headings:
            self._frame(step)
        self._costs: list[int] = []  # characters, as last computed
        # The worth for its length of each, and -position: the best last. The worth is computed again before it is used.
        self._waiting: list[tuple[float, int]] = []
        self._left: list[tuple[float, int]] = []  # did not fit
        self.admit(candidates)

    def admit(self, candidates: Sequence[Excerpt]) -> None:
        """Add candidates. Their steps have headings."""
        old_count = len(self._candidates)
        for step in {excerpt.step for excerpt in candidates} - self._framed_steps:
            self._frame(step)
        self._candidates += candidates
        self._costs += [0] * len(candidates)
        self._waiting += [self._value(index) for index in range(old_count, len(self._candidates))]
        self._waiting.sort()

    def open(self, steps: Iterable[int], room: float) -> int:
        """Choose the headings of these steps, even without quotes, as far as they fit into `room` characters. Returns
        how many characters they take."""
        used = 0
        for step in steps:
            cost = len(self._headings[step].text) + _FRAME
            if used + cost <= room:
                used += cost
                self._add(Excerpt(step, step, Quote(0, 0, "", ())))
        return used

    def renew(self) -> None:
        """Compute again the worth of all candidates not chosen: those under a heading that is chosen now cost less."""
        if self._left or self._touched:
            self._waiting[:] = sorted([*map(self._renewed, self._waiting), *self._left])
            self._left.clear()

    def take(self, room: float, *, fill: bool = True) -> float:
        """Choose more quotes within `room` characters. With `fill`, go on with smaller ones if one does not fit.
        Returns how many characters they take."""
        waiting, left, before = self._waiting, self._left, room
        misses, patience = 0, _PATIENCE
        while waiting:
            density, index = self._renewed(waiting.pop())
            if density <= 0 or _place(self._candidates[-index]) in self._quoted:
                continue
            if waiting and density < waiting[-1][0]:
                insort(waiting, (density, index))
            elif self._costs[-index] <= room:
                room -= self._costs[-index]
                self._add(self._candidates[-index])
                misses, patience = 0, _PATIENCE
            elif not fill:
                waiting.append((density, index))
                break
            else:
                left.append((density, index))
                misses += 1
                if misses == patience:
                    if room < self._least():
                        break
                    patience *= 3
        return before - room

    def _frame(self, step: int) -> None:
        """Note the characters of a heading that is not chosen yet, and its words with their worth."""
        heading = self._headings[step]
        uncovered = ((word, self._weights.get(word, 0)) for word in heading.words if word not in self._covered)
        gains = [(word, weight * 2 if self._first[word] == step else weight) for word, weight in uncovered if weight]
        self._unopened[step] = len(heading.text) + _FRAME, gains
        self._framed_steps.add(step)

    def _renewed(self, entry: tuple[float, int]) -> tuple[float, int]:
        """The present worth of a candidate for its length, and -position."""
        excerpt, touched = self._candidates[-entry[1]], self._touched
        if (
            excerpt.step in self._unopened
            and touched.isdisjoint(excerpt.quote.words)
            and touched.isdisjoint(self._headings[excerpt.step].words)
        ):
            return entry
        return self._value(-entry[1])

    def _least(self) -> int:
        """The fewest characters that any candidate takes that was not tried yet."""
        candidates, costs, unopened = self._candidates, self._costs, self._unopened
        return min(
            (
                costs[-index] if candidates[-index].step in unopened else len(candidates[-index].quote.text) + _FRAME
                for _, index in self._waiting
            ),
            default=0,
        )

    def drop(self, room: float) -> bool:
        """Remove the quotes of least worth until `room` characters are free. Returns whether that succeeded."""
        quoted = Counter(excerpt.step for excerpt in self.chosen)
        while room > 0 and self.chosen:
            excerpt = self.chosen.pop()
            self._quoted.discard(_place(excerpt))
            quoted[excerpt.step] -= 1
            heading = 0 if quoted[excerpt.step] else len(self._headings[excerpt.step].text) + _FRAME
            room -= len(excerpt.quote.text) + _FRAME + heading
        return room <= 0

    def _add(self, excerpt: Excerpt) -> None:
        self.chosen.append(excerpt)
        self._quoted.add(_place(excerpt))
        self._cover(excerpt.quote.words, excerpt.at)
        if self._unopened.pop(excerpt.step, None) is not None:
            self._cover(self._headings[excerpt.step].words, excerpt.step)

    def _cover(self, words: Iterable[str], at: int) -> None:
        self._touched.update(words)
        self._covered.update(words)
        self._bound.update(word for word in words if self._first.get(word) == at)

    def _value(self, index: int) -> tuple[float, int]:
        """The worth of a candidate for its length, and -position."""
        weights, first, covered, bound = self._weights, self._first, self._covered, self._bound
        excerpt = self._candidates[index]
        place, words = excerpt.at, excerpt.quote.words
        worth, cost = excerpt.given, len(excerpt.quote.text) + _FRAME
        for word in words:
            if weight := weights.get(word):
                if word not in covered:
                    worth += weight
                if first[word] == place and word not in bound:
                    worth += weight
        if frame := self._unopened.get(excerpt.step):
            cost += frame[0]
            for word, gain in frame[1]:
                if word not in words and word not in covered:
                    worth += gain
        self._costs[index] = cost
        return worth / cost, -index
