"""A summary without a model: what was asked, done and found, in quotes with their record numbers.

It is made from the original messages each time, so that nothing is summarised twice; an earlier summary is read only
for originals that are not available. It reads like a hand-over note: a few sections have a share of the room each,
such as the user's words, files changed, decisions, errors, open ends. The rest of the room is for quotes, those that
are worth most for their length: of what the agent said (see `sentences`), of calls with their arguments, and under
each call of the lines of its result (see `IdentifierPlaces.weights` and `ChosenQuotes`). Quotes of an earlier digest
compete with them by worth: they neither leave nor stay because of their age.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from .._platform.lazy import lazy_pattern
from .._platform.texts import clip
from ..log.messages import ToolResult, text_of
from ..view.program_prefaces import is_handover
from ..view.types import Shown
from .changed_files import FileStates, file_states, lines_of, states_in
from .errors import ended, errors
from .events import acts, changes_things, open_ends
from .identifiers import IdentifierPlaces
from .instructions import gives_orders, most_telling, standing
from .notes import NoteCache, NoteReader
from .protocol import Material
from .quotes import ChosenQuotes, Excerpt, Heading, excerpts, handed_over, others, results, sentences
from .reading import Quote, Said, with_calls
from .sections import (
    ASKED,
    DECIDED,
    DONE,
    EARLIER,
    ERRORS,
    FILES,
    HEADING,
    OPEN,
    REPORTED,
    SAID_FAILED,
    STATE,
    SectionLine,
    about_of,
    fitting,
    in_order,
    last_checks,
    quoted,
    read_lines,
    what_became,
    with_the_task,
    without_open,
)

_TITLE = "Digest of records {} to {}; [n] is record n"
_NUMBER = "[{}]"  # before what the agent said
_HANDOVER = "handover"  # who speaks in a note that an agent wrote for its successor
_TITLED = lazy_pattern(r"(?:[^\n]*\n)?Digest of records (\d+) to (\d+);")  # after the heading that the view adds
_BARE = lazy_pattern(r"\[\d+\] \S+:$")  # a heading that says nothing by itself
_REFUSING = lazy_pattern(r"\[\d+\] refusing .+?: ")  # text with a refusal is an order, whatever its words
_SHARES = {EARLIER: 0.4, ASKED: 0.15, FILES: 0.05, DECIDED: 0.03, STATE: 0.06, ERRORS: 0.1, OPEN: 0.05}
_MOST = 2_500  # characters of a section of decisions, checks, errors or open ends
_ALL_FILES = 0.45  # the share for files if their states are given: they are what a reader cannot do without
_SOME_FILES = 0.2  # the same for the files of these messages alone
_NEW = 0.3  # share of the room for quotes that is reserved for messages that no earlier digest covered
_ACTS = 0.12  # the largest share of the room for calls that changed something
_FEW = 800  # characters: in a digest up to this length, quotes say more than such calls
_ACT = 60  # characters of the arguments of such a call

_CHARACTERS = 3.4  # characters per token at the beginning of the search for the right length
_SAMPLE = 100  # lines from which the characters per token are measured
_GOAL = 0.99  # share of the target at which the search aims
_TRIES = 6  # how many times a text is made and counted
_LIKELY = 8  # tokens of the target for each identifier that quotes are searched for
_MORE = 8_000  # tokens up to which a digest is filled with lines in which nothing is likely to be needed
_FULL = 0.97  # share of the target that is close enough to stop
# Lines of an earlier summary whose originals are not available were worth keeping before:
_GIVEN = 500, 700  # worth of an identifier that is only there, in the oldest and in the newest line
_QUOTED = 500  # worth of such a line, without the identifiers in it
_NEVER = 1 << 62


class Digest:
    """The offline summarizer. It uses no model, no clock and no random numbers.

    `memory` caches what was found in each text for the next digest; the result is the same, only faster. `files` gives
    all files that were changed, the last changed first; without it, those that the messages change are named.
    """

    id = "digest/12"

    def __init__(self, memory: NoteCache | None = None, files: Callable[[], FileStates] | None = None) -> None:
        self._memory = memory
        self._files = files

    def read_ahead(self, messages: Sequence[Shown]) -> None:
        """Read messages now that will be summarised later. This saves time and changes no digest."""
        if self._memory is not None:
            self._memory.read_ahead(with_calls(messages))

    def summarize(self, material: Material, /) -> str:
        """Quotes and facts from `material`, nearly `material.target` tokens long; "" if there is not even room for a
        title."""
        states = None if self._files is None else self._files()
        draft = _Draft(material, NoteCache() if self._memory is None else self._memory, states)
        room, best, before = material.target * _CHARACTERS, "", ""
        draft.fill(room)
        text, tokens = draft.text(), 0
        draft.change(_GOAL * material.target * _characters(text, material.count) - len(text))
        for _ in range(_TRIES):
            text = draft.text()
            if text == before:  # it tells all that is worth telling
                full = min(_GOAL * material.target, _MORE)
                if not draft.tell_more(full * len(text) / max(1, tokens) - len(text)):
                    break
                text = draft.text()
            before, tokens = text, material.count(text)
            if tokens <= material.target and len(text) > len(best):
                best = text
            if _FULL * material.target <= tokens <= material.target:
                break
            if not draft.change(_GOAL * material.target * len(text) / max(1, tokens) - len(text)):
                room *= _GOAL * material.target / max(1, tokens)
                draft.fill(room)
        return best


class _Draft:
    """All content that a digest of one material may have."""

    def __init__(self, material: Material, memory: NoteCache, states: FileStates | None) -> None:
        reader = NoteReader(memory)
        self._material = material
        self._vocabulary = reader.vocabulary
        titled = _TITLED.match(material.previous)
        messages = material.messages if titled is None else _without_results_ahead(material.messages)
        self._said = reader.read(with_calls(messages))
        staying = reader.read(with_calls(material.kept))
        seen = IdentifierPlaces(self._said, staying)
        self._first_at, self._weights, self._staying = seen.first, seen.weights(), seen.staying
        answers = (
            entry for entry in self._said if entry.who == "result" and entry.asked is not None and not entry.error
        )
        self._newest = {
            (entry.tool, entry.brief): entry for entry in answers if entry.brief and " … " not in entry.brief
        }
        self._failed = {entry.call: entry.record for entry in self._said if entry.call is not None and entry.error}
        records = [number for shown in messages for number in shown.records]
        self._first, self._last = (min(records), max(records)) if records else (0, 0)
        earlier = self._earlier(material.previous, titled, staying)
        earlier_size = sum(len(line.text) for line in earlier[DONE])
        found = excerpts(self._said, self._first_at, self._likely(earlier_size), self._vocabulary)
        self._quotes = [quote for quote in found if self._said[quote.at].who != "assistant"]
        room = material.target * _CHARACTERS
        self._quotes += sentences(self._said, staying, room)
        self._quotes += results(self._said, self._vocabulary)
        self._quotes += handed_over(self._said, room, self._vocabulary)
        reader.close(self._weights)
        self._headings: dict[int, Heading] = {}
        self._head(self._quotes)
        self._acts = acts(self._said)
        for index in self._acts:
            self._headings.setdefault(index, self._act(self._said[index]))
        self._carried: dict[int, tuple[SectionLine, Excerpt]] = {}  # quotes of an earlier digest, by their place there
        self._earlier_acts: list[int] = []  # the places of calls that changed something, the newest first
        self._ends: dict[int, SectionLine] = {}  # lines that a call failed, by the place of the call's line
        self._carry(earlier[DONE], seen.staying)
        self._states = states if states is not None else self._changed([line.text for line in earlier[FILES]])
        self._file_share = _SOME_FILES if states is None else _ALL_FILES
        self._became = what_became(self._said, staying)
        asked = self._asked(earlier[ASKED])
        first = min((about_of(line.text, 0) for line, _ in asked), default=0)
        user_records = (entry.record for entry in staying if entry.who == "user" and entry.note.line)
        self._tells_the_task = first < min(user_records, default=_NEVER)
        self._sections: dict[str, list[SectionLine]] = {  # lines, the most important first
            EARLIER: earlier[EARLIER],
            ASKED: self._by_weight(asked),
            FILES: [],  # see `_lines`
            DECIDED: self._decided(earlier[DECIDED], staying),
            STATE: last_checks(self._said, staying) + earlier[STATE][::-1],
            ERRORS: [SectionLine(place, line) for place, (_, line) in enumerate(errors(self._said, staying))]
            + self._since(earlier[ERRORS], staying)[::-1],
            OPEN: [SectionLine(place, line) for place, line in enumerate(open_ends(self._said, staying))]
            + earlier[OPEN],
        }

    def _changed(self, earlier: Sequence[str]) -> FileStates:
        """The files that the messages change, and after them those that an earlier digest names."""
        states = [*file_states(self._said).states]
        paths = {state.path for state in states}
        before = sorted(states_in(earlier), key=lambda state: -state.record)
        return FileStates([*states, *(state for state in before if state.path not in paths)])

    def _likely(self, earlier_size: int) -> Iterable[str]:
        """The identifiers of most weight, for which quotes are searched. There are fewer if an earlier digest has many
        characters of quotes, as they take room."""
        target = self._material.target
        most = 20 + (target - min(target * 2 // 3, int(earlier_size / _CHARACTERS * 1.5))) // _LIKELY
        if len(self._weights) <= most:
            return self._weights
        return sorted(sorted(self._weights, reverse=True), key=self._weights.__getitem__, reverse=True)[:most]

    def fill(self, room: float) -> None:
        """Choose the content for about `room` characters."""
        self._texts = {  # of the sections
            name: with_the_task(lines, room, room * _SHARES[ASKED] - len(ASKED))
            if name == ASKED and self._tells_the_task
            else self._lines(name, lines, room)
            for name, lines in self._sections.items()
        }
        self._texts[ASKED] = [self._answered(line) for line in self._texts[ASKED]]
        failed = {about_of(line, 0) for line in self._texts[ERRORS]}  # what went wrong is told there
        self._texts[STATE] = [
            f"{line.partition(SAID_FAILED)[0]}{SAID_FAILED}" if about_of(line, 0) in failed else line
            for line in self._texts[STATE]
        ]
        lines = [line for texts in self._texts.values() for line in texts]
        used: float = len(self._title()) + len(DONE) + sum(len(line) + 1 for line in lines)
        covered = set[str]().union(*map(self._vocabulary.of_line, lines))
        self._choice = ChosenQuotes(self._unsaid(self._quotes), self._headings, self._first_at, self._weights, covered)
        opened = self._choice.open(self._acts, _ACTS * (room - _FEW))
        used += opened + self._choice.open(self._earlier_acts, _ACTS * room - opened)
        self._choice.renew()
        if self._carried:
            used += self._choice.take(_NEW * (room - used), fill=False)
            self._choice.admit([excerpt for _, excerpt in reversed(self._carried.values())])  # the newer first if equal
        self._choice.take(room - used)

    def _answered(self, line: str) -> str:
        """A line of what the user said, with what became of it."""
        heading = HEADING.match(line)
        return line if heading is None else line + self._became.get(int(heading[1]), "")

    def tell_more(self, room: float) -> bool:
        """Add lines without likely identifiers, up to `room` characters. Returns whether there are any."""
        if room > 0:
            lines = self._unsaid(others(self._said, self._choice.chosen, self._staying, 2 * room, self._vocabulary))
            self._head(lines)
            self._choice.admit(lines)
        return room > 0 and self.change(room)

    def _lines(self, section: str, lines: list[SectionLine], room: float) -> list[str]:
        """The lines of a section that fit into its share of `room` characters."""
        if section == FILES:
            return [line.text for line in lines_of(self._states, room * self._file_share - len(section))]
        most = room * _SHARES[section] if section in (EARLIER, ASKED) else min(room * _SHARES[section], _MOST)
        return fitting(lines, most - len(section))

    def _unsaid(self, quotes: Iterable[Excerpt]) -> list[Excerpt]:
        """The quotes that the sections of a line for each record do not contain."""
        shown: dict[int, str] = {}
        for line in (line for name in (ASKED, DECIDED, STATE, ERRORS) for line in self._texts[name]):
            if (heading := HEADING.match(line)) is not None:
                shown[int(heading[1])] = shown.get(int(heading[1]), "") + line
        texts = (index for index, entry in enumerate(self._said) if entry.record in shown and entry.who != "call")
        shown_by_index = {index: shown[self._said[index].record] for index in texts}
        return [excerpt for excerpt in quotes if excerpt.quote.text not in shown_by_index.get(excerpt.at, "")]

    def change(self, room: float) -> bool:
        """Add quotes if `room` is positive, else remove quotes. Returns whether that was possible."""
        if room <= 0:
            return self._choice.drop(-room)
        self._choice.renew()
        return self._choice.take(room) > 0

    def text(self) -> str:
        """The digest with the content chosen so far."""
        chosen = self._choice.chosen
        reported: list[Excerpt] = []
        found: list[Excerpt] = []
        for excerpt in chosen:
            if excerpt.at >= 0:
                (reported if self._said[excerpt.step].who in ("user", "assistant") else found).append(excerpt)
        texts = {**self._texts, REPORTED: self._told(reported), DONE: self._told(found)}
        if carried := [self._carried[excerpt.at][0] for excerpt in chosen if excerpt.at < 0]:
            steps = {excerpt.step for excerpt in chosen}
            ends = [end for step, end in self._ends.items() if step in steps]
            texts[EARLIER] = [*texts[EARLIER], *in_order([*carried, *ends])]
        order = (ASKED, REPORTED, STATE, FILES, DECIDED, ERRORS, OPEN, EARLIER, DONE)
        return "\n".join([self._title(), *(line for name in order if texts[name] for line in (name, *texts[name]))])

    def _title(self) -> str:
        return _TITLE.format(self._first, self._last)

    def _told(self, chosen: Iterable[Excerpt]) -> list[str]:
        """The chosen quotes in order, each under the line that it belongs to, and a note for each call that failed."""
        lines: list[str] = []
        step = index = -1
        for excerpt in sorted(chosen, key=lambda excerpt: (excerpt.step, excerpt.at, excerpt.quote.start)):
            if excerpt.step != step:
                lines += self._failure(step) if index == step else []
                step = index = excerpt.step
                lines.append(self._headings[step].text)
            entry = self._said[excerpt.at]
            if excerpt.at != index:
                index = excerpt.at
                lines.append(f"→ [{entry.record}]{' failed' if entry.error else self._since_then(entry)}")
            if lines[-1] == _NUMBER.format(entry.record):
                lines[-1] += " " + quoted(excerpt.quote.text).strip()
            elif entry.who != "call" or excerpt.quote.text not in entry.brief:
                lines.append(quoted(excerpt.quote.text))
        return lines + (self._failure(step) if index == step else [])

    def _failure(self, call: int) -> list[str]:
        """The note that a call failed, if its result is not quoted: otherwise the call would seem to have succeeded."""
        failed = self._failed.get(call)
        return [f"→ [{failed}] failed"] if failed is not None else []

    def _since_then(self, entry: Said) -> str:
        """The note that the same call had a different result later, so that a quote may no longer be true; "" if it had
        not."""
        newest = self._newest.get((entry.tool, entry.brief), entry)
        then, newest_part = entry.part, newest.part
        same = isinstance(then, ToolResult) and isinstance(newest_part, ToolResult) and then.parts == newest_part.parts
        return "" if same or newest.record <= entry.record else f"; otherwise at [{newest.record}]"

    def _head(self, quotes: Iterable[Excerpt]) -> None:
        """Make the headings under which these quotes stand."""
        for step in {excerpt.step for excerpt in quotes} - self._headings.keys():
            self._headings[step] = self._heading(self._said[step])

    def _heading(self, entry: Said) -> Heading:
        if entry.who == "call":
            return Heading(f"[{entry.record}] {entry.tool} {_shown(entry.brief)}", entry.note.named)
        if entry.who == "assistant":
            return Heading(_NUMBER.format(entry.record), ())
        handed_over = entry.who == "user" and is_handover(entry.text)
        return Heading(f"[{entry.record}] {_HANDOVER if handed_over else entry.tool or entry.who}:", ())

    def _act(self, entry: Said) -> Heading:
        """The heading of a call without quotes: its tool, and the beginning of its arguments."""
        brief = clip(_shown(entry.brief), _ACT)
        return Heading(f"[{entry.record}] {entry.tool} {brief}", tuple(self._vocabulary.words(brief)))

    def _decided(self, earlier: list[SectionLine], staying: list[Said]) -> list[SectionLine]:
        """The assistant's decisions that stand, the newest first, those of an earlier digest last."""
        lines = [*earlier]
        texts = [line.text.partition("] ")[2] for line in earlier]
        others: list[int] = []  # what is not told here, but may replace what is
        entries = [*((entry, False) for entry in self._said), *((entry, True) for entry in staying)]
        for entry, stays in sorted(entries, key=lambda pair: pair[0].record):
            told = entry.note.decisions or ((entry.note.line,) if entry.who == "user" and entry.note.line else ())
            if entry.who == "user" or stays:
                others += range(len(texts), len(texts) + len(told))
            texts += told
            lines += [SectionLine(len(lines) + at, f"[{entry.record}] {text}") for at, text in enumerate(told)]
        return [lines[place] for place in standing(texts, frozenset(others))][::-1]

    def _since(self, earlier: list[SectionLine], staying: list[Said]) -> list[SectionLine]:
        """The errors in an earlier summary, updated with how they ended."""
        updated = ended([(line.text, line.about) for line in earlier], [*self._said, *staying])
        return [SectionLine(line.place, text, line.about) for line, text in zip(earlier, updated, strict=True)]

    def _asked(self, earlier: list[SectionLine]) -> list[tuple[SectionLine, bool]]:
        """The lines of what the user said, in order, each with whether it gives orders."""
        texts = (text_of(shown.message) for shown in self._material.kept if shown.treatment == "noted")
        noted = "\n".join(texts)  # orders, which need not be said again
        user_entries = [
            (index, entry)
            for index, entry in enumerate(self._said)
            if entry.note.line and entry.who in ("user", "result")
        ]
        user_entries = [(index, entry) for index, entry in user_entries if entry.note.line not in noted]
        lines = [(SectionLine(index, _heard(entry)), entry.note.orders) for index, entry in user_entries]
        before = [
            (line, gives_orders(line.text.partition("] ")[2]) or _REFUSING.match(line.text) is not None)
            for line in earlier
        ]
        return [*before, *lines]

    def _by_weight(self, asked: list[tuple[SectionLine, bool]]) -> list[SectionLine]:
        """The lines of what the user said, the most important first."""
        texts = [line.text.partition("] ")[2] for line, _ in asked]
        orders = [order for _, order in asked]
        return [asked[index][0] for index in most_telling(texts, orders, task=self._tells_the_task)]

    def _earlier(
        self, previous: str, titled: re.Match[str] | None, staying: list[Said]
    ) -> dict[str, list[SectionLine]]:
        """The lines of an earlier summary whose originals are not available, by section: what the user said, files,
        errors; under `DONE` the quotes of a digest, in order; under `EARLIER` all others, those of most worth first."""
        sections: dict[str, list[SectionLine]] = {
            name: [] for name in (ASKED, FILES, ERRORS, EARLIER, OPEN, DECIDED, STATE, DONE)
        }
        at_hand = self._first if self._said and titled is not None else _NEVER
        if titled is not None:
            if self._said and self._first <= int(titled[1]):
                return sections
            self._first = int(titled[1])
            self._last = max(self._last, int(titled[2]))
        planned = max((entry.record for entry in (*self._said, *staying) if entry.note.tasks is not None), default=-1)
        seen: dict[tuple[str, ...], SectionLine] = {}  # an earlier digest may contain a line twice
        stood: tuple[SectionLine, ...] = ()
        under: tuple[SectionLine, ...] = ()
        path: tuple[str, ...] = ()
        for section, line in read_lines(previous[titled.start(1) if titled is not None else 0 :], titled is not None):
            if line.about >= at_hand:
                continue  # covered by its original
            if line.under is not stood:  # otherwise the lines above are those of the line before
                stood, path = line.under, tuple(above.text for above in line.under)
                under = tuple(seen.setdefault(path[: i + 1], above) for i, above in enumerate(stood))
            key = (*path, line.text)
            if key in seen:
                continue  # a repetition
            seen[key] = line = SectionLine(line.place, line.text, line.about, under)
            if section == OPEN:
                if line.about > planned and " said last: " not in line.text:
                    sections[OPEN].append(line)
            elif section in (ASKED, FILES, DECIDED, STATE, ERRORS):
                if section == ASKED:
                    line = SectionLine(line.place, without_open(line.text), line.about, under)
                sections[section].append(line)
            elif not _BARE.match(line.text):
                done = titled is not None and (line.under or HEADING.match(line.text))
                sections[DONE if done else EARLIER].append(line)
        sections[EARLIER].sort(key=lambda line: -self._worth(line.text))
        return sections

    def _carry(self, lines: Sequence[SectionLine], staying: set[str]) -> None:
        """Add the quotes of an earlier digest to the candidates."""
        oldest, newest = min((line.about for line in lines), default=0), max((line.about for line in lines), default=0)
        for line in lines:
            head = line.under[0] if line.under else line
            youth = (line.about - oldest) / max(1, newest - oldest)
            weight = _GIVEN[0] + int((_GIVEN[1] - _GIVEN[0]) * youth)
            if line.text.startswith("→ ["):
                self._ends[head.place] = line
                continue
            if head.place not in self._headings:
                text = head.text.partition("] ")[2]
                self._headings[head.place] = Heading(head.text, self._given(text, head.place, weight, staying))
                if changes_things(text.partition(" ")[0]):
                    self._earlier_acts.insert(0, head.place)
            quote, worth = Quote(0, 0, "", ()), 0
            if line is not head:
                quote, worth = Quote(0, 0, line.text, self._given(line.text, line.place, weight, staying)), _QUOTED
            self._carried[line.place] = line, Excerpt(line.place, head.place, quote, worth)
        did_not_fail = self._carried.keys() - self._ends.keys()
        self._earlier_acts = [place for place in self._earlier_acts if place in did_not_fail]

    def _given(self, text: str, place: int, weight: int, staying: set[str]) -> tuple[str, ...]:
        """The identifiers in a line of an earlier digest. Those that are nowhere else get this weight."""
        words = self._vocabulary.of_line(text)
        for word in words:
            if word not in self._first_at and word not in staying:
                self._first_at[word], self._weights[word] = place, weight
        return words

    def _worth(self, line: str) -> float:
        words = self._vocabulary.of_line(line)
        return (_QUOTED + sum(max(_GIVEN[0], self._weights.get(word, 0)) for word in words)) / (len(line) + 10)


def _without_results_ahead(messages: Sequence[Shown]) -> Sequence[Shown]:
    """`messages` without the first ones that contain only results: their calls are not available, but the earlier
    digest has these calls and how they ended."""
    first = next(
        (index for index, shown in enumerate(messages) if not all(map(_is_result, shown.message.parts))), len(messages)
    )
    return messages[first:]


def _is_result(part: object) -> bool:
    return isinstance(part, ToolResult)


def _characters(text: str, count: Callable[[str], int]) -> float:
    """The characters per token, measured on a sample of the lines."""
    lines = text.split("\n")
    sample = "\n".join(lines[:: max(1, len(lines) // _SAMPLE)])
    return len(sample) / max(1, count(sample))


def _shown(brief: str) -> str:
    """The arguments of a call as a heading shows them: a command without its key."""
    return brief.removeprefix("command=").removeprefix("cmd=")


def _heard(entry: Said) -> str:
    """The line of a user's text; it names the tool if the user said it when refusing a call."""
    return f"[{entry.record}] {f'refusing {entry.tool}: ' if entry.who == 'result' else ''}{entry.note.line}"
