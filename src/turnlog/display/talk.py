"""A session as a talk: its turns, and in each of them what was said and done, in order.

The terminal and Markdown lay it out. Whatever the log has of the conversation is an item here, or a mark that names it;
only notes, usage and the beginnings and ends of turns, tools and sessions are left to the list of records.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Literal

from msgspec import Struct

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
    Note,
    PartialAnswer,
    Record,
    SealedRecord,
    StreamCheckpoint,
    SummaryRecord,
    UnknownRecord,
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
from ..view.turns import turns_of
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
    line on what happened. `folded` is what only readers of everything want: a result, what stands behind a mark.
    """

    kind: TalkKind
    n: int
    text: str = ""
    label: str = ""
    info: CallInfo | None = None
    is_path: bool = False
    files: tuple[ChangedFile, ...] = ()
    folded: str = ""

    @property
    def outcome(self) -> str:
        """How a call ended, or what it waits for."""
        return "" if self.info is None else self.info.outcome or self.info.standing


class Talk:
    """The talk of one session. Raises SessionNotFound, CorruptRecord."""

    def __init__(self, store: Store, session_id: str) -> None:
        self._store = store
        self.info = store.info(session_id)
        self.bills: Bills = store.usage(session_id)
        self.records = list(store.read(session_id, last=self.info.records))
        self.turns = turns_of(self.records)
        self._places = {record.n: i for i, record in enumerate(self.records)}
        self._rewinds = Rewinds.of(self.records)
        before = self.records[: self._places[self.turns[0].first] if self.turns else len(self.records)]
        calls = [*calls_of(before), *(info for turn in self.turns for info in turn.calls)]
        self._calls: dict[int, list[CallInfo]] = {}
        self._changes: dict[int, list[Record]] = {}
        self._answered = {(info.result, info.result_part) for info in calls if info.result}
        for info in calls:
            self._calls.setdefault(info.record, []).append(info)
        for record in self.records:
            if isinstance(record.body, FileChange):
                place = record.body.call_record if record.body.call_record in self._calls else record.n
                self._changes.setdefault(place, []).append(record)

    # -- facts -------------------------------------------------------------------------------------

    @property
    def model(self) -> str:
        """The model that wrote most, or that the session is for; "" if none is on record."""
        if self.bills:
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
        """The number of a turn, when it began (with the date where that is another one), its duration and its cost."""
        turn, earlier = self.turns[number - 1], self.turns[max(0, number - 2)].started
        begun = clock(turn.started)
        if begun and day(turn.started) != day(earlier):
            begun = f"{day(turn.started)} {begun}"
        parts = [str(number), begun, lasted(turn.seconds), cents(turn.cost) if turn.bills else ""]
        parts += [f"taken back by decision {turn.rewound}"] if turn.rewound else []
        return " · ".join(filter(None, parts))

    # -- items -------------------------------------------------------------------------------------

    def turn_at(self, n: int) -> int:
        """The number of the turn with record `n`; 0 if it stands before the first turn."""
        return sum(turn.first <= n for turn in self.turns)

    def items(self, number: int) -> Iterator[TalkItem]:
        """What was said and done in the turn of this number, from 1 on; 0: before the first one."""
        turn = self.turns[number - 1] if number else None
        end = self._places[self.turns[0].first] if self.turns else len(self.records)
        start, end = (self._places[turn.first], self._places[turn.last] + 1) if turn else (0, end)
        gone = self._rewinds.by(self.records[start].n - 1) if start < end else 0
        for record in self.records[start:end]:
            before, gone = gone, self._rewinds.by(record.n)
            if gone and gone != before:
                yield TalkItem("mark", record.n, f"from here on taken back by decision {gone}")
            elif before and not gone:
                yield TalkItem("mark", record.n, "up to here")
            yield from self._items(record)
        if turn is not None and turn.status != "completed" and not turn.rewound:
            yield TalkItem("mark", turn.last, "no answer on record" if turn.status == "processing" else turn.standing)

    def _items(self, record: Record) -> Iterator[TalkItem]:
        body, n = record.body, record.n
        if isinstance(body, MessageBody):
            yield from self._said(record, body.message)
        elif isinstance(body, StreamCheckpoint):
            if record is self.records[-1]:
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
        message = self.records[self._places[info.result]].message if info.result in self._places else None
        result = message.parts[info.result_part] if message is not None else None
        folded = _content(result.parts) if isinstance(result, ToolResult) else info.reason
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
        yield TalkItem("mark", n, words, folded=_content(part.parts))
    else:
        yield TalkItem("mark", n, _named(part), folded=_content([part]))


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
