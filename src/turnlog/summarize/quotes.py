"""Quotes from a conversation: the lines that hold what may be needed, and which of them are worth their place."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from .identifiers import Seen, Vocabulary, find_word
from .reading import Said

__all__ = ["Excerpt", "Heading", "choose", "excerpts"]

_LINE = 160  # characters of a line that are quoted
_FRAME = 3  # characters or so that a line costs besides its text


class Excerpt(Struct):
    """A quote: the text `at` which it stands, where it begins there, the identifiers it has. `step` is the position
    of the call that it belongs to, else its own."""

    at: int
    start: int
    step: int
    text: str
    words: frozenset[str]


class Heading(Struct):
    """What stands above the quotes of one step, and the identifiers it has."""

    text: str
    words: frozenset[str]


def excerpts(
    said: Sequence[Said], seen: Mapping[str, Seen], words: Iterable[str], vocabulary: Vocabulary
) -> Iterator[Excerpt]:
    """The lines in which `words` appear first."""
    spots: dict[int, list[str]] = {}
    for word in words:
        spots.setdefault(seen[word].first, []).append(word)
    for at, wanted in spots.items():
        text = said[at].text
        spans: set[tuple[int, int]] = set()
        for word in wanted:
            place = find_word(word, text)
            if place >= 0 and not any(a <= place and place + len(word) <= z for a, z in spans):
                spans.add(_span(text, place, place + len(word)))
        call = said[at].call
        for start, end in sorted(spans):
            quote = text[start:end].strip()
            yield Excerpt(at, start, at if call is None else call, quote, frozenset(vocabulary.words(quote)))


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


def choose(
    candidates: Sequence[Excerpt],
    headings: Mapping[int, Heading],
    seen: Mapping[str, Seen],
    weights: Mapping[str, int],
    covered: set[str],
    room: float,
) -> list[Excerpt]:
    """The quotes that are worth most for their length, within `room` characters.

    A word is worth something the first time only: half for being there, half for standing where it was first said.
    """
    covered, bound, opened = set(covered), set(), set()

    def value(excerpt: Excerpt) -> tuple[float, float]:
        worth, cost = 0, len(excerpt.text) + _FRAME
        for word in excerpt.words:
            weight = weights.get(word, 0)
            if word not in covered:
                worth += weight
            if word not in bound and weight and seen[word].first == excerpt.at:
                worth += weight
        if excerpt.step not in opened:
            heading = headings[excerpt.step]
            cost += len(heading.text) + _FRAME
            for word in heading.words - excerpt.words:
                if word not in covered and (weight := weights.get(word, 0)):
                    worth += weight * 2 if seen[word].first == excerpt.step else weight
        return worth / cost, cost

    heap = [(-value(excerpt)[0], index) for index, excerpt in enumerate(candidates)]
    heapq.heapify(heap)
    chosen: list[Excerpt] = []
    while heap:
        _, index = heapq.heappop(heap)
        excerpt = candidates[index]
        density, cost = value(excerpt)
        if density <= 0 or cost > room:
            continue
        if heap and density < -heap[0][0]:
            heapq.heappush(heap, (-density, index))
            continue
        room -= cost
        chosen.append(excerpt)
        covered |= excerpt.words
        bound |= {word for word in excerpt.words if word in seen and seen[word].first == excerpt.at}
        if excerpt.step not in opened:
            opened.add(excerpt.step)
            covered |= headings[excerpt.step].words
            bound |= {w for w in headings[excerpt.step].words if w in seen and seen[w].first == excerpt.step}
    return chosen
