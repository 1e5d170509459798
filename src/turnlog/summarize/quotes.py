"""Quotes from a conversation: find the lines that may be needed, and the sentences that are quoted for what they say,
and choose those that are worth their length.

In whole sentences are quoted: the agent's own words, which say more for their length than the outputs that it says them
of; what calls that failed said; rules that a tool read; and the notes that an agent wrote for its successor.
"""

from __future__ import annotations

import re
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from msgspec import Struct

from .._platform.lazy import lazy_pattern
from .._platform.texts import clip
from ..view.program_prefaces import is_handover
from .errors import CODE_BLOCK, SENTENCE_END, is_process
from .identifiers import Vocabulary, find_word
from .instructions import gives_orders
from .reading import Place, Quote, Said, Sentence, Who

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


_LONGEST = 600  # characters of a sentence that are quoted
_LEAST = 8  # characters; a shorter sentence says little
# Words of findings, reasons, results and what is left: sentences with them are worth more.
_TELLING = lazy_pattern(
    r"\b(?:because|caused?|causes|since|due to|instead|rather than|issue|problem|bug|fix(?:ed|es)?|fail(?:s|ed|ing)?"
    r"|error|wrong|broken|missing|works?|pass(?:es|ed)?|verified|confirmed|found|already|only|not|never|but|however|so"
    r"|need(?:s|ed)? to|must|should|remain(?:s|ing)?|next|todo|pending|done|completed?|added|removed|updated|created"
    r"|changed|renamed|moved|replaced|committed|pushed|decid\w+|chose)\b|n't\b",
    re.IGNORECASE,
)
_MOST_TELLING = 2  # words of them that count
_WORKED = 8  # texts, calls and results of a turn that has something to report
_REPORT = 600  # characters of a text that is a report, wherever it stands

# Worth of a character, in thousandths.
_PLAIN, _REPORTED, _PASSING = 3_000, 10_000, 500
_ANNOUNCED = 1_500  # of a sentence that announces a change
_NEWEST = (30_000, 14_000, 11_000)  # of the newest reports
_NEWEST_SHARE = 0.12  # of the room, for each of them
_TOLD = 25  # percent that each telling word adds
_FAILED, _OPEN_FAILURE = 4_000, 8_000  # of a line of a result that failed, and of one that is not known to be mended
_RULE, _BESIDE_RULES = 12_000, 2_000  # of a rule in a file of rules, and of the other lines there
_HANDED_OVER = 40_000  # of a note for a successor
_HANDED_SHARE = 0.4  # of the room, for such notes
_READS = 4_000  # of a sentence in a short result, or in what another agent reported
_SHORT = 1_500  # characters of a short result
_LEAST_WORDS, _OF_WORDS = 6, 0.6  # words of a sentence, and the share of it that they are
_PLAIN_WORD = lazy_pattern(r"(?<![^\s\"'(])[^\W\d_]+(?:['’]\w+)?(?=[\s,.;:!?)\"']|$)")
_AGENT = lazy_pattern(r"(?:^|[_./-])(?:sub)?(?:task|agent)s?(?:$|[_.-])", re.IGNORECASE)
_OF_FAILURE = 1_200  # characters of a result that failed, half at either end
_OF_RULES = 3_000  # characters of a file of rules
_RULES = lazy_pattern(
    r"(?:^|[/\\\s'\"=])(?:AGENTS|CLAUDE|GEMINI|SKILL|TASK)\.md\b|\.cursorrules\b|copilot-instructions\.md\b"
)


def sentence_quotes(text: str, vocabulary: Vocabulary) -> tuple[Sentence, ...]:
    """The sentences, lines of lists and lines of code in a text of the agent that say something."""
    code = [match.span() for match in CODE_BLOCK.finditer(text)][::-1] if "```" in text or "~~~" in text else []
    found: list[Sentence] = []
    start = 0
    for end, after in (*(match.span() for match in SENTENCE_END.finditer(text)), (len(text), len(text))):
        line = text[start:end].strip()
        if len(line) >= _LEAST and any(map(str.isalnum, line)):
            while code and code[-1][1] <= start:
                code.pop()
            passing = bool(code and code[-1][0] <= start) or is_process(line)
            telling = 0 if passing else min(_MOST_TELLING, len({word.lower() for word in _TELLING.findall(line)}))
            line = clip(line, _LONGEST)
            quote = Quote(start, end - start, line, tuple(vocabulary.words(line)))
            found.append(Sentence(quote, passing, telling))
        start = after
    return tuple(found)


def sentences(said: Sequence[Said], staying: Sequence[Said], room: float) -> Iterator[Excerpt]:
    """The sentences of the agent as candidates for a digest of `room` characters. Those of its newest reports are worth
    most."""
    texts = [index for index, entry in enumerate(said) if entry.who == "assistant"]
    ends = [index for index in texts if _ends_work(said, index, staying)]
    long = [index for index in texts if len(said[index].text) >= _REPORT]
    reports = {*ends, *long}
    alone = sum(entry.who == "user" and entry.note.line != "" for entry in said) <= 1
    newest = dict(zip(sorted(reports if alone else ends, reverse=True), _NEWEST, strict=False))
    for index in texts:
        entry = said[index]
        left = room * _NEWEST_SHARE if index in newest else 0
        is_report = index in reports
        changes = index + 1 < len(said) and said[index + 1].note.changes
        for sentence in entry.note.sentences:
            left -= len(sentence.quote.text)
            worth = _REPORTED if is_report else _PLAIN if not sentence.passing else _ANNOUNCED if changes else _PASSING
            worth = newest[index] if left > 0 else worth
            worth = worth * (100 + _TOLD * sentence.telling) // 100
            yield Excerpt(index, index, sentence.quote, len(sentence.quote.text) * worth // 1000)


def results(said: Sequence[Said], vocabulary: Vocabulary) -> Iterator[Excerpt]:
    """The lines of results that failed, and of files of rules, as candidates."""
    worked = {(entry.tool, entry.brief): entry.record for entry in said if entry.who == "result" and not entry.error}
    for index, entry in enumerate(said):
        if entry.who != "result" or entry.call is None:
            continue
        if entry.error:
            is_mended = worked.get((entry.tool, entry.brief), 0) > entry.record
            worth, most = _FAILED if is_mended else _OPEN_FAILURE, _OF_FAILURE // 2
            for line in _whole_lines(entry, most, vocabulary):
                yield Excerpt(index, entry.call, line, len(line.text) * worth // 1000)
        elif _RULES.search(entry.brief):
            for line in _whole_lines(entry, _OF_RULES, vocabulary):
                worth = _RULE if gives_orders(line.text) else _BESIDE_RULES
                yield Excerpt(index, entry.call, line, len(line.text) * worth // 1000)
        elif len(entry.text) <= _SHORT or _AGENT.search(entry.tool):
            for line in _whole_lines(entry, _OF_RULES, vocabulary):
                if _reads(line.text):
                    yield Excerpt(index, entry.call, line, len(line.text) * _READS // 1000)


def _reads(line: str) -> bool:
    """Whether a line is a sentence of a language, not data."""
    words = _PLAIN_WORD.findall(line)
    return len(words) >= _LEAST_WORDS and sum(map(len, words)) + len(words) >= _OF_WORDS * len(line)


def handed_over(said: Sequence[Said], room: float, vocabulary: Vocabulary) -> Iterator[Excerpt]:
    """The lines of notes that an agent wrote for its successor, as candidates for a digest of `room` characters."""
    left = room * _HANDED_SHARE
    for index in range(len(said) - 1, -1, -1):
        entry = said[index]
        if entry.who == "user" and is_handover(entry.text):
            for line in _whole_lines(entry, int(room), vocabulary):
                left -= len(line.text)
                worth = _HANDED_OVER if left > 0 else _REPORTED
                yield Excerpt(index, index, line, len(line.text) * worth // 1000)


def _whole_lines(entry: Said, most: int, vocabulary: Vocabulary) -> Iterator[Quote]:
    """The lines of a text, whole if they are not very long; of a long text, `most` characters at either end."""
    text = entry.text
    start = 0
    for line in text.split("\n"):
        at, start = start, start + len(line) + 1
        plain = line.strip()
        if (at < most or len(text) - at < most) and len(plain) >= _LEAST and any(map(str.isalnum, plain)):
            plain = clip(plain, _LONGEST)
            yield Quote(at, len(line), plain, tuple(vocabulary.words(plain)))


def _ends_work(said: Sequence[Said], index: int, staying: Sequence[Said]) -> bool:
    """Whether a text ends a turn in which calls were made."""
    following = said[index + 1] if index + 1 < len(said) else next(iter(staying), None)
    before = said[max(0, index - _WORKED) : index]
    worked = len(before) == _WORKED and all(entry.who != "user" for entry in before)
    return worked and following is not None and following.who == "user"
