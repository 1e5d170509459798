"""A session as a talk: its turns, and in each of them what was said and done, in order.

The terminal and Markdown lay it out. Whatever the log has of the conversation is an item here, or a mark that names it;
only notes, usage and the beginnings and ends of turns, tools and sessions are left to the list of records.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, takewhile
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from .._platform.lazy import cached_property
from .._platform.times import clock, day, local
from .._platform.units import counted, lasted
from ..log.bills import Bills
from ..log.messages import Message, Part, Reasoning, Text, ToolCall, ToolResult, compact_json, tool_called
from ..log.origins import origin_of
from ..log.records import (
    Configuration,
    Decision,
    FileChange,
    MessageBody,
    MessageRecord,
    Note,
    PartialAnswer,
    Record,
    SealedRecord,
    StreamCheckpoint,
    SummaryRecord,
    UnknownRecord,
    UsageRecord,
)
from ..log.store import Store
from ..models.makers import makers
from ..models.pricing import total_cost
from ..session.answer import TRANSPORT
from ..stores.billing import with_subagents
from ..stores.subagents import SUBAGENT
from ..view.curate.lines import without_escapes
from ..view.decisions import Rewinds
from ..view.file_edits import about_call
from ..view.program_prefaces import is_inserted, is_preface, request_in
from ..view.tool_calls import CallInfo, calls_of
from ..view.turns import TurnInfo, turns_of
from ..workspace.diff import net_changes
from ..workspace.diff.folding import differences
from .description import describe, describe_part
from .wording import cents

TalkKind = Literal["user", "program", "assistant", "reasoning", "call", "mark"]


class ChangedFile(Struct, frozen=True):
    """A file that a call changed: its path, and what became of it in a word or in numbers of lines."""

    path: str
    change: str
    added: int = 0
    removed: int = 0


class TalkItem(Struct, frozen=True):
    """What was said or done in record `n`.

    `program` is text that a program wrote: `label` says which. For a `call`, `label` is its tool and `text` what it is
    about, `is_path` if that is a path; `info` has its outcome and `files` what it changed. A `mark` is a remark in one
    line on what happened; `part` is the part of the message that it names. `folded` is what only readers of everything
    want: a result, what stands behind a mark.
    """

    kind: TalkKind
    n: int
    text: str = ""
    label: str = ""
    info: CallInfo | None = None
    is_path: bool = False
    files: tuple[ChangedFile, ...] = ()
    folded: str = ""
    part: Part | None = None

    @property
    def outcome(self) -> str:
        """How a call ended, or what it waits for."""
        return "" if self.info is None else self.info.outcome or self.info.standing


_AROUND = 100
"""How many records before and after a window are read: results stand behind their calls."""

_TURN_KINDS = ("turn_opened", "turn_closed", "turn_resumed")


class Talk:
    """The talk of one session. Raises SessionNotFound, CorruptRecord.

    With `first` and `last`, a window: the talk of these records, for which only those around them are read. `turns` are
    all turns of the session, if they are known. `is_thin`: long texts are left out, which leaves turns, facts and
    headings.
    """

    def __init__(
        self,
        store: Store,
        session_id: str,
        first: int = 1,
        last: int | None = None,
        *,
        turns: Sequence[TurnInfo] | None = None,
        is_thin: bool = False,
    ) -> None:
        self._store = store
        self.info = store.info(session_id)
        many = self.info.records
        self.first, self.last = first, many if last is None else min(last, many)
        begin, end = max(1, first - _AROUND), min(self.last + _AROUND, many)
        self.is_whole = begin == 1 and end == many
        records = store.read(session_id, first=begin, last=end)
        self.records = [*map(_thin, records)] if is_thin else list(records)
        self._places = {record.n: i for i, record in enumerate(self.records)}
        self._rewinds = Rewinds.of(store.of_kinds(session_id, ("decision",)))
        self.turns = turns_of([*self._openings(begin), *self.records]) if turns is None else turns
        self.counts = begin == 1 or turns is not None
        """Whether the turns are numbered from the session's first one on."""
        self._numbers = {turn.first: number for number, turn in enumerate(self.turns, 1)}
        known = (turn for turn in self.turns if turn.first >= begin and (turn.last < end or end == many))
        self._ends = {turn.last: turn for turn in (known if turns is None else turns)}
        calls = calls_of(self.records)
        self._calls: dict[int, list[CallInfo]] = {}
        self._changes: dict[int, list[Record]] = {}
        self._answered = {(info.result, info.result_part) for info in calls if info.result}
        for info in calls:
            self._calls.setdefault(info.record, []).append(info)
        for record in self.records:
            if isinstance(record.body, FileChange):
                place = record.body.call_record if record.body.call_record in self._calls else record.n
                self._changes.setdefault(place, []).append(record)

    def _openings(self, begin: int) -> Iterator[Record]:
        """The openings and closings of turns before a window: a turn may have begun there."""
        records = self._store.of_kinds(self.info.id, _TURN_KINDS) if begin > 1 else iter(())
        return takewhile(lambda record: record.n < begin, records)

    @cached_property
    def bills(self) -> Bills:
        """The usage of the whole session, by model."""
        return self._store.usage(self.info.id)

    # -- facts -------------------------------------------------------------------------------------

    @property
    def model(self) -> str:
        """The model that wrote most, or that the session is for; "" if none is on record."""
        if self.is_whole and self.bills:
            return max(self.bills, key=lambda name: self.bills[name].output)
        bodies = (record.body for record in reversed(self.records))
        return next((name for body in bodies if (name := getattr(body, "model", "")) and isinstance(name, str)), "")

    @property
    def speaker(self) -> str:
        """What to call the model: the name of its maker's models, such as Claude, or Assistant."""
        names = [maker.counted_as.partition("-")[0] for maker in makers().values()]
        word = next((name for name in names if name and name in self.model.lower()), "assistant")
        return word.upper() if len(word) < 4 else word.title()

    def facts(self, *, files: bool = False) -> Iterator[str]:
        """The agent program, the model, when, how many turns and calls, and the cost. With `files`, for a page: the
        day with its year, and how many files changed."""
        agent = origin_of(self.records)[0].removesuffix("-code").removesuffix("-cli")
        name = self.model.rsplit("/", 1)[-1]
        head, _, dated = name.rpartition("-")
        name = head if dated.isdecimal() and len(dated) == 8 else name
        yield from filter(None, (agent, name.removeprefix(f"{agent}-") if agent else name))
        times = [record.time for record in self.records if record.message is not None]
        if times and (begun := local(times[0])) is not None:
            first, last = day(times[0]), day(times[-1])
            until = f"-{clock(times[-1])}" if first == last else f" - {last} {clock(times[-1])}"
            if files:  # a page is read in another year, too
                yield first if first.endswith(str(begun.year)) else f"{first} {begun.year}"
            else:
                yield f"{first} {clock(times[0])}" + (until if until != f"-{clock(times[0])}" else "")
        yield counted(len(self.turns), "turn")
        if files:
            if changed := self._figures(record for record in self.records if isinstance(record.body, FileChange)):
                added, removed = sum(file.added for file in changed), sum(file.removed for file in changed)
                yield f"{counted(len(changed), 'file')} (+{added} -{removed})"
        elif calls := sum(map(len, self._calls.values())):
            yield counted(calls, "call")
        if self.bills:
            yield cents(total_cost(self.bills))
        bills, many = with_subagents(self._store, self.info.id)
        if many:
            yield " ".join(
                filter(None, (cents(total_cost(bills)) if bills else "", f"with {counted(many, 'subagent')}"))
            )

    def heading(self, number: int) -> str:
        """The number of a turn, when it began (with the date where that is another one), its duration and its cost; the
        number only where all turns before it are known, duration and cost only where its end is."""
        turn, earlier = self.turns[number - 1], self.turns[max(0, number - 2)].started
        begun = clock(turn.started)
        if begun and (day(turn.started) != day(earlier) or (number == 1 and not self.is_whole)):
            begun = f"{day(turn.started)} {begun}"
        parts = [str(number) if self.counts else "", begun]
        if turn.last in self._ends:
            parts += [lasted(turn.seconds), cents(turn.cost) if turn.bills else ""]
        parts += [f"taken back by decision {turn.rewound}"] if turn.rewound else []
        return " · ".join(filter(None, parts))

    # -- items -------------------------------------------------------------------------------------

    def turn_at(self, n: int) -> int:
        """The number of the turn with record `n`; 0 if it stands before the first turn."""
        return sum(turn.first <= n for turn in self.turns)

    def turn_from(self, n: int) -> int:
        """The number of the turn that begins with record `n`; 0 if none does."""
        return self._numbers.get(n, 0)

    def turn_to(self, n: int) -> TurnInfo | None:
        """The turn that ends with record `n`; None if none is known to."""
        return self._ends.get(n)

    def items(self, number: int) -> Iterator[TalkItem]:
        """What was said and done in the turn of this number, from 1 on; 0: before the first one."""
        turn = self.turns[number - 1] if number else None
        end = self._places[self.turns[0].first] if self.turns else len(self.records)
        start, end = (self._places[turn.first], self._places[turn.last] + 1) if turn else (0, end)
        for record in self.records[start:end]:
            yield from self.items_of(record)

    def items_of(self, record: Record) -> Iterator[TalkItem]:
        """What was said and done in one record."""
        yield from self.edge_at(record.n)
        yield from self.content_of(record)
        turn = self.turn_to(record.n)
        if turn is not None and turn.status != "completed" and not turn.rewound:
            yield TalkItem("mark", turn.last, "no answer on record" if turn.status == "processing" else turn.standing)

    def edge_at(self, n: int) -> Iterator[TalkItem]:
        """Before record `n`, the mark that what was taken back begins or ends there."""
        before, gone = self._rewinds.by(n - 1), self._rewinds.by(n)
        if gone and gone != before:
            yield TalkItem("mark", n, f"from here on taken back by decision {gone}")
        elif before and not gone:
            yield TalkItem("mark", n, "up to here")

    def result_of(self, info: CallInfo) -> tuple[Record, ToolResult] | None:
        """The record and the part that answer a call; None if that is not on record."""
        record = self.records[self._places[info.result]] if info.result in self._places else None
        part = record.message.parts[info.result_part] if record is not None and record.message is not None else None
        return (record, part) if record is not None and isinstance(part, ToolResult) else None

    def answered_since(self, n: int) -> list[int]:
        """The records of the calls whose results stand behind record `n`."""
        return [info.record for infos in self._calls.values() for info in infos if info.result > n]

    def changes_at(self, n: int) -> list[Record]:
        """The file changes that the calls of record `n` made, or that stand there by themselves."""
        return self._changes.get(n, [])

    def content_of(self, record: Record) -> Iterator[TalkItem]:
        """The items of a record itself."""
        body, n = record.body, record.n
        if isinstance(body, MessageBody):
            yield from self._said(record, body.message)
        elif isinstance(body, StreamCheckpoint):
            if record.n == self.info.records:
                yield TalkItem("mark", n, f"{''.join(map(str, describe(record).headline))}; it is not finished")
        elif isinstance(body, Configuration):
            if (name := f"{body.provider} {body.model}".strip()) and self._is_new(record, body):
                yield TalkItem("mark", n, f"from here on with {name}")
        elif isinstance(body, (Decision, SealedRecord, UnknownRecord)) or (
            isinstance(body, SummaryRecord) and body.state != "claimed"
        ):
            told = describe(record)
            blocks = [block.text for block in told.blocks if block.kind == "text"]
            facts = ["".join(map(str, block.words)) for block in told.blocks if block.kind == "fact"]
            explained = isinstance(body, Decision) or (isinstance(body, SummaryRecord) and body.reason)
            why = [*blocks[:1], *facts] if explained else []
            words = f"{told.kind} {n}: {''.join(map(str, told.headline))}"
            yield TalkItem(
                "mark", n, ": ".join(filter(None, (words, " ".join(why)))), folded="\n".join(blocks[len(why[:1]) :])
            )
        elif isinstance(body, Note) and body.topic == SUBAGENT:
            yield TalkItem("mark", n, f"subagent: session {body.text}")
        elif isinstance(body, Note) and body.topic == TRANSPORT:
            yield TalkItem("mark", n, body.text)
        elif isinstance(body, FileChange) and n in self._changes:
            for file in self._figures(self._changes[n]):
                yield TalkItem("mark", n, f"{file.path} {file.change}")

    def _is_new(self, record: Record, body: Configuration) -> bool:
        """Whether this record sets another model than the one before it."""
        earlier = (each.body for each in reversed(self.records[: self._places[record.n]]))
        last = next((each for each in earlier if isinstance(each, Configuration)), None)
        if last is None and self.records[0].n > 1:
            older = self._store.of_kinds(self.info.id, ("configuration",), reverse=True)
            found = next((each for each in older if each.n < record.n), None)
            last = found.body if found is not None and isinstance(found.body, Configuration) else None
        return last is not None and (last.provider, last.model) != (body.provider, body.model)

    def _said(self, record: Record, message: Message) -> Iterator[TalkItem]:
        n, calls = record.n, list(self._calls.get(record.n, ()))
        changed = self._figures(self._changes.get(n, ())) if calls else []
        for is_text, parts in groupby(enumerate(message.parts), lambda entry: isinstance(entry[1], Text)):
            if is_text:
                yield from _words(n, message, "\n".join(part.text for _, part in parts if isinstance(part, Text)))
                continue
            for at, part in parts:
                if isinstance(part, ToolCall) and calls:
                    info = calls.pop(0)
                    own = [f for f in changed if not calls or posixpath.basename(f.path) in part.raw_arguments]
                    changed = [file for file in changed if file not in own]
                    yield self._call(info, tuple(own))
                elif not isinstance(part, ToolResult) or (n, at) not in self._answered:
                    yield from _other(n, part)
        if not message.parts:
            yield TalkItem("mark", n, f"an empty message of role {message.role}")
        if isinstance(record.body, PartialAnswer):
            pieces = "".join(f", in the midst of {_named(part)}" for part in record.body.fragments)
            words = f"interrupted{pieces}: {record.body.reason}"
            yield TalkItem("mark", n, words, folded=_content(record.body.fragments))

    def _call(self, info: CallInfo, files: tuple[ChangedFile, ...]) -> TalkItem:
        about, is_path = about_call(info.call)
        answer = self.result_of(info)
        folded = _content(answer[1].parts) if answer is not None else info.reason
        return TalkItem("call", info.record, about, tool_called(info.call), info, is_path, files, folded)

    def _figures(self, records: Iterable[Record]) -> list[ChangedFile]:
        """What these changes did to files, net."""
        found = []
        for change, diff in differences(net_changes(records), self._store.get_blob):
            if isinstance(diff, str) or diff.is_binary:
                found.append(ChangedFile(change.path, change.action))
            else:
                figures = f"+{diff.additions} -{diff.deletions}"
                word = "" if change.action == "modified" else f"{change.action} "
                found.append(ChangedFile(change.path, word + figures, diff.additions, diff.deletions))
        return found


def _other(n: int, part: Part) -> Iterator[TalkItem]:
    """The item of a part that is neither text nor a call, nor a result that a call has."""
    if isinstance(part, Reasoning):
        if text := "\n\n".join(filter(None, (part.text, *part.summary))):
            yield TalkItem("reasoning", n, text)
    elif isinstance(part, ToolResult):
        words = f"a result without a call: {part.name} {part.call_id}, {part.outcome}"
        yield TalkItem("mark", n, words, folded=_content(part.parts), part=part)
    else:
        yield TalkItem("mark", n, _named(part), folded=_content([part]), part=part)


def _words(n: int, message: Message, text: str) -> Iterator[TalkItem]:
    """The words of a message, as those of whoever wrote them."""
    if message.role == "system":
        yield TalkItem("program", n, text, "system")
    elif message.role == "user" and (message.by_program or is_preface(message) or is_inserted(text)):
        yield TalkItem("program", n, text, "program")
    else:
        before, said = request_in(text) if message.role == "user" else ("", text)
        if before:
            yield TalkItem("program", n, before, "program")
        yield TalkItem(message.role, n, said.lstrip("\n") if before else said)


def _named(part: Part) -> str:
    """A part of a message in a few words."""
    block = describe_part(part)
    return " ".join(filter(None, (block.label, block.name, block.text if block.kind == "media" else block.id)))


def _content(parts: Sequence[Part]) -> str:
    """The content of parts as text; media are named."""
    return "\n".join(_text(part) for part in parts)


def _text(part: Part) -> str:
    if isinstance(part, Text):
        return without_escapes(part.text)
    block = describe_part(part)
    return f"[{_named(part)}]" if block.kind == "media" else block.text or compact_json(block.value)


# -- thin records ----------------------------------------------------------------------------------

_TITLE = 120


def _thin(record: Record) -> Record:
    """A record without its long texts, sufficient to derive turns, calls and facts."""
    body = record.body
    match body:
        case MessageRecord() | PartialAnswer():
            parts = tuple(map(_thin_part, body.message.parts))
            body = replace(body, message=Message(body.message.role, parts, by_program=body.message.by_program))
            if isinstance(body, PartialAnswer):
                body = replace(body, fragments=())
        case UsageRecord():
            body = replace(body, raw=None)
        case Decision():
            body = replace(body, detail={})
    return Record(record.n, record.time, body)


def _thin_part(part: Part) -> Part:
    match part:
        case Text(text=words):
            return Text(words[:_TITLE])
        case ToolCall(id=call_id, name=name, kind=kind):
            return ToolCall(call_id, name, kind=kind)
        case ToolResult(call_id=call_id, name=name, outcome=outcome, kind=kind, synthetic=synthetic):
            return ToolResult(call_id, name, (), outcome, kind, synthetic)
        case _:
            return Text("")
