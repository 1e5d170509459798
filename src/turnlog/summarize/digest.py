"""A summary without a model: what was asked, done and found, in quotes that name their records.

It is made of the originals each time, so that nothing is summarised twice; an earlier summary is read only where its
originals are not at hand. A few sections have a share of the room each: the user's words, files changed, errors, open
ends. The rest goes to what was done, in order: calls with their arguments, and under each the lines of its result, or
of what was said, that are worth most for their length (see `identifiers.Seen.weight` and `excerpts.choose`).
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable

from msgspec import Struct

from .events import errors, failed, files, open_ends
from .identifiers import Vocabulary, seen_in
from .protocol import Material
from .quotes import Excerpt, Heading, choose, excerpts
from .reading import Said, clip, read

__all__ = ["Digest"]

_TITLE = "Digest of records {} to {}; [n] is record n"
_TITLED = re.compile(r"(?:\[[^\n]*\]\n)?Digest of records (\d+) to (\d+);")  # under the heading that a view may give it
_EARLIER, _ASKED, _FILES = "## From an earlier summary", "## Asked", "## Files changed"
_DONE, _ERRORS, _OPEN = "## Done and found", "## Errors", "## Open"
_SHARES = {_EARLIER: 0.4, _ASKED: 0.15, _FILES: 0.05, _ERRORS: 0.05, _OPEN: 0.04}

_CHARACTERS = 3.4  # of a token: where the search for the right length begins
_TRIES = 4  # times that a text is made and counted
_FULL = 0.96  # of the target: no more tries
_GIVEN = 400  # worth of an identifier that only an earlier summary has: someone thought it worth keeping
_HEADING = re.compile(r"\[\d+\] ")
_CONSTRAINT = re.compile(
    r"\b(?:must|never|always|don't|do not|only|should|instead|prefer|make sure|without|avoid)\b", re.I
)


class Digest:
    """The offline summarizer: no model, no clock, no chance."""

    id = "digest/1"

    def summarize(self, material: Material, /) -> str:
        """Quotes and facts of `material`, in nearly all of the room; "" if there is none for a title."""
        draft = _Draft(material)
        room, best = material.target * _CHARACTERS, ""
        for _ in range(_TRIES):
            text = draft.within(room)
            tokens = material.count(text)
            if tokens <= material.target and len(text) > len(best):
                best = text
            if _FULL * material.target <= tokens <= material.target:
                break
            room *= 0.985 * material.target / max(1, tokens)
        return best


class _Line(Struct):
    """A line of a section, where it stands there, and the lines without which it says nothing."""

    place: int
    text: str
    under: tuple[_Line, ...] = ()


class _Draft:
    """All that a digest of one material might say."""

    def __init__(self, material: Material) -> None:
        self._said = read(material.messages)
        self._vocabulary = Vocabulary()
        self._seen = seen_in(self._said, self._vocabulary)
        for one in read(material.kept):
            for word in self._vocabulary.words(one.text):
                self._seen.pop(word, None)
        self._weights = {word: entry.weight(word) for word, entry in self._seen.items()}
        likely = heapq.nlargest(20 + material.target // 2, ((weight, word) for word, weight in self._weights.items()))
        self._quotes = list(excerpts(self._said, self._seen, [word for _, word in likely], self._vocabulary))
        self._headings = {quote.step: self._heading(self._said[quote.step]) for quote in self._quotes}
        records = [number for shown in material.messages for number in shown.records]
        self._first, self._last = (min(records), max(records)) if records else (0, 0)
        asked, earlier = self._earlier(material.previous)
        self._sections: dict[str, list[_Line]] = {  # lines, the most important first
            _EARLIER: earlier,
            _ASKED: self._asked(asked),
            _FILES: [_Line(place, line) for place, line in enumerate(files(self._said))],
            _ERRORS: [_Line(at, line) for at, line in errors(self._said)],
            _OPEN: [_Line(place, line) for place, line in enumerate(open_ends(self._said))],
        }

    def within(self, room: float) -> str:
        """The digest in about `room` characters."""
        title = _TITLE.format(self._first, self._last)
        texts = {name: _fitting(lines, room * _SHARES[name] - len(name)) for name, lines in self._sections.items()}
        used = len(title) + len(_DONE) + sum(len(line) + 1 for lines in texts.values() for line in lines)
        covered = self._vocabulary.words("\n".join(line for lines in texts.values() for line in lines))
        texts[_DONE] = self._told(choose(self._quotes, self._headings, self._seen, self._weights, covered, room - used))
        order = (_EARLIER, _ASKED, _FILES, _DONE, _ERRORS, _OPEN)
        return "\n".join([title, *(line for name in order if texts[name] for line in (name, *texts[name]))])

    def _told(self, chosen: Iterable[Excerpt]) -> list[str]:
        """The chosen quotes in order, under what they belong to."""
        lines: list[str] = []
        step = at = -1
        for quote in sorted(chosen, key=lambda quote: (quote.step, quote.at, quote.start)):
            if quote.step != step:
                step = at = quote.step
                lines.append(self._headings[step].text)
            if quote.at != at:
                at = quote.at
                lines.append(f"→ [{self._said[at].record}]{' failed' if failed(self._said[at]) else ''}")
            if self._said[at].who != "call" or quote.text not in self._said[at].brief:
                lines.append(quote.text)
        return lines

    def _heading(self, one: Said) -> Heading:
        if one.who == "call":
            return Heading(f"[{one.record}] {one.tool} {one.brief}", frozenset(self._vocabulary.words(one.brief)))
        return Heading(f"[{one.record}] {one.tool or one.who}:", frozenset())

    def _asked(self, earlier: list[_Line]) -> list[_Line]:
        """What the user said: the first of it, what sounds like a constraint, the newest."""
        said = [
            _Line(at, f"[{one.record}] {clip(one.text, 300)}") for at, one in enumerate(self._said) if one.who == "user"
        ]
        lines = earlier + said
        rest = lines[1:][::-1]
        return lines[:1] + sorted(rest, key=lambda line: _CONSTRAINT.search(line.text) is None)

    def _earlier(self, previous: str) -> tuple[list[_Line], list[_Line]]:
        """Of an earlier summary what its originals cannot tell any more: the user's words, and the other lines.

        Those with the most identifiers for their length come first, but each further line under the same heading
        counts less, so that one long list does not push out what is older.
        """
        titled = _TITLED.match(previous)
        if titled is not None:
            if self._said and self._first <= int(titled[1]):
                return [], []
            self._first = int(titled[1])
            self._last = max(self._last, int(titled[2]))
        asked: list[_Line] = []
        other: list[tuple[float, _Line]] = []
        lines = previous[titled.start(1) if titled is not None else 0 :].splitlines()
        under: tuple[_Line, ...] = ()
        section, nth = "", 0
        for place, text in enumerate(lines, start=-len(lines)):
            line = _Line(place, text)
            if not text.strip() or (titled is not None and (place == -len(lines) or section == _OPEN)):
                continue
            if titled is not None and text.startswith("## "):
                section, under, nth = text, (), 0
            elif section == _ASKED:
                asked.append(line)
            elif section in (_DONE, _EARLIER) and text.startswith("→ ["):
                under = (*under[:1], line)
            else:
                if section in (_DONE, _EARLIER) and _HEADING.match(text):
                    under, nth = (line,), 0
                    other.append((self._worth(text), line))
                else:
                    nth += section in (_DONE, _EARLIER)
                    other.append((self._worth(text) / (1 + nth), _Line(place, text, under)))
        return asked, [line for _, line in sorted(other, key=lambda one: -one[0])]

    def _worth(self, line: str) -> float:
        words = self._vocabulary.words(line)
        return (100 + sum(max(_GIVEN, self._weights.get(word, 0)) for word in words)) / (len(line) + 10)


def _fitting(lines: Iterable[_Line], room: float) -> list[str]:
    """As many of `lines` as fit in `room` characters, in the order of their places."""
    taken: dict[int, str] = {}
    for line in lines:
        needed = [one for one in (*line.under, line) if one.place not in taken]
        size = sum(len(one.text) + 1 for one in needed)
        if size <= room:
            taken.update((one.place, one.text) for one in needed)
            room -= size
    return [taken[place] for place in sorted(taken)]
