"""Write a session from the entries of a program, which are read in order.

`SessionWriter` is what a format of its own needs beside its words for things: it joins the pieces of an answer, gives
calls without ids one and their results the same, records turns, usage, changed files and branches, and counts what is
not read, so that nothing is left out in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from operator import is_
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ..log.messages import Message, Outcome, Part, Text, ToolCall, ToolResult
from ..log.origins import PROGRAM
from ..log.records import Body, MessageRecord, Note, PartialAnswer, UsageRecord
from ..log.usage import Usage, is_uncounted, tokens_billed
from ..models.makers import makers
from ..providers.protocol import Provider
from .drafting import Drafting, as_utc
from .edits import KnownChange
from .fields import Fields, kind_of
from .json_values import mapping, within
from .messages import read_message
from .parts import shown, texts, thoughts
from .protocol import Imported
from .repeats import is_empty
from .transcript import Transcript, json_document
from .unread import unread_keys

DEAREST = 1e9
"""No answer costs that much; a larger figure is damage."""


class SessionWriter:
    """Collects one session of `file`. `form` is the name of its format; `provider` the API whose form its messages
    have, or that its model is spoken to in. `agent` is the program that wrote it, by default `form`; "" for none.

    `id`, `title`, `parent`, `model`, `vendor` (the transcript's name for who is asked) and `files` are set while
    entries are read; `state` is for the format's own use. Of entries, the keys in `envelope` are left out of notes: the
    kind, ids, times; and those in `noise`, separated by spaces, of the objects in them, too. If `is_silent`, the
    program keeps no results of its tools: a call that is followed by another message has run.
    """

    def __init__(
        self,
        file: Transcript,
        form: str,
        provider: Provider,
        *,
        agent: str | None = None,
        beside: bool = False,
        envelope: Iterable[str] = ("type", "id", "uuid", "timestamp"),
        noise: str = "",
        is_silent: bool = False,
    ) -> None:
        self.file, self.form, self.provider = file, form, provider
        self.log = Drafting(file, beside=beside, edits=True)
        if name := form if agent is None else agent:
            self.log.note(PROGRAM, {"agent": name})
        self.id = self.title = self.parent = self.model = self.vendor = ""
        self.files: list[str] = []
        self.state: dict[str, Any] = {}
        self.children: dict[str, SessionWriter] = {}
        self._agent, self._envelope, self._noise, self._is_silent = agent, envelope, noise, is_silent
        self._time: Any = None
        self._role, self._began = "", self._time
        self._parts: list[Part] = []
        self._lines: list[int] = []
        self._about: dict[str, Any] = {}
        self._notes: list[tuple[Any, Note]] = []
        self._open: dict[int, ToolCall] = {}
        self._open_of: dict[str, list[int]] = {}
        self._numbered = self._calls = self._content = 0
        self._silent: list[ToolCall] = []
        self._after: dict[str, int] = {"": self.log.last}
        self._left: list[str] = []
        self._leaf = ""

    def child(self, agent: str) -> SessionWriter:
        """The writer of the subagent whose entries are in the same file; itself if `agent` is empty."""
        if agent and agent not in self.children:
            child = SessionWriter(self.file, self.form, self.provider, agent=self._agent, beside=True)
            child._envelope, child._noise, child._is_silent = self._envelope, self._noise, self._is_silent
            self.children[agent] = child
            child.id, child.parent = f"{self.id}.agent-{agent}", self.id
        return self.children[agent] if agent else self

    # -- entries ---------------------------------------------------------------------------------

    def take(self, entry: Fields, line: int, kind: str, handlers: Mapping[str, Handler | None]) -> None:
        """Record one entry by the handler for its kind. What the handler did not read becomes a note, and a warning if
        it may be content. A kind with None is bookkeeping and becomes a note; an unknown kind is named once."""
        entry.skip(*self._envelope)
        entry.skip_everywhere(self._noise.split())
        before = self._content
        if handler := handlers.get(kind):
            handler(self, entry, line)
        rest = entry.unread()
        if kind not in handlers:
            has_content = bool(unread_keys(rest, is_empty=True))
            self.log.count(f"an entry of type {kind!r}", line, "entry" if has_content else "nothing")
        elif handler:
            for key in unread_keys(rest, is_empty=before == self._content):
                self.log.count(f"`{_without_numbers(key)}` of an entry of type {kind!r}", line)
        if rest:
            self.note(kind, rest)

    def parts_of(
        self, blocks: Iterable[Fields], makers: Mapping[str, Maker | None], line: int = 0, key: str = "type"
    ) -> list[Part]:
        """The parts of a message, from its blocks: each kind has its maker. A kind with None is bookkeeping; an
        unknown kind is named once. What a maker does not read stays unread in the entry."""
        parts: list[Part] = []
        for block in blocks:
            kind = kind_of(block, key)
            if maker := makers.get(kind):
                made = list(maker(block))
                parts += made
                if made and not any(map(_says, made)):
                    self._report_empty(block, kind, line)
            elif kind not in makers:
                self.log.count(f"a block of type {kind!r}", line, "part" if block.unread() else "nothing")
        return parts

    def _report_empty(self, block: Fields, kind: str, line: int) -> None:
        """Report what a block holds that says nothing otherwise; `take` reports what is named like content."""
        rest = block.unread()
        named = unread_keys(rest, is_empty=False)
        for key in unread_keys(rest, is_empty=True):
            if key not in named:
                self.log.count(f"`{key}` of a block of type {kind!r}", line)
                self._content += 1

    def at(self, time: Any) -> None:
        """Set the time of what is recorded from now on; a `time` that cannot be read changes nothing."""
        self._time = time if as_utc(time) else self._time
        if not self._parts:
            self.log.at(self._time)

    def branch(self, entry_id: str, parent: str, line: int = 0) -> None:
        """Say which entry comes next, in a tree of entries. If it does not follow the entry before it, the user went
        back to its parent, and a rewind is recorded."""
        self._left.append(self._leaf)
        if not self._parts:
            self._settle()
        if parent != self._leaf and parent not in {*self._after, *self._left}:
            what = f"its parent {parent!r} is not in the file; it was read as following the entry before it"
            self.log.warn(line, what, "nothing")
        elif parent != self._leaf:
            self.flush()
            if self._after[parent] < self.log.last:
                self.log.at(self._time)
                self.log.rewound(self._after[parent] + 1, "the user went back and took another branch")
        self._leaf = entry_id

    def _settle(self) -> None:
        """Note the last record of the entries that were left: with all that their message adds, as changed files."""
        for entry in self._left:
            self._after.setdefault(entry, self.log.last)
        self._left.clear()

    # -- the conversation ------------------------------------------------------------------------

    def say(
        self,
        role: str,
        parts: Iterable[Part],
        line: int = 0,
        *,
        joined: bool = False,
        piece: bool = False,
        **about: Any,
    ) -> None:
        """Add parts to the conversation. If they are `joined`, they continue the message before them, if that is of the
        same role; a `piece` of a text or a result continues the one before it, too. `about` are fields of the record
        (`source`, `model`, `stop`, `response_id`), and `by_program`."""
        added = list(parts)
        if not added:
            return
        self._content += sum(map(_says, added))
        is_next = not self._parts or not (joined or piece) or role != self._role
        if is_next or _are_results(added) != _are_results(self._parts):
            self.flush()
            self._role, self._began = role, self._time
        for part in added:
            whole = _whole(self._parts[-1], part) if piece and self._parts else None
            self._parts[len(self._parts) - (whole is not None) :] = [whole or part]
        self._lines += [line] if line and line not in self._lines else []
        self._about |= {key: value for key, value in about.items() if value}

    def message(
        self,
        wire: Mapping[str, Any],
        line: int = 0,
        *,
        provider: Provider | None = None,
        opaque: bool = True,
        before: Iterable[Part] = (),
        **about: Any,
    ) -> bool:
        """Add a message in the shape of an API, by default that of the session, with the parts `before` put first.
        Blocks that cannot be read become notes and warnings, without `opaque` also those that only a provider
        understands. Returns whether anything was read."""
        message = read_message(provider or self.provider, wire, self.log, line, opaque=opaque)
        if message is None:
            return False
        self.flush()
        self.log.at(self._time)
        self._content += sum(map(_says, message.parts))
        self._record(replace(message, parts=(*before, *message.parts)) if before else message, line, about)
        return True

    def result(
        self,
        call_id: str,
        content: Any,
        line: int = 0,
        *,
        name: str = "",
        outcome: Outcome = "ok",
        change: KnownChange | None = None,
        **about: Any,
    ) -> None:
        """Add the result of a call; results in a row are one message. `content` are parts, or any JSON. Without an id,
        it answers the first open call of that name, or the first of all. `change` is what the program says that the
        call did to its file."""
        if change is not None:
            self.log.known[call_id] = change
        parts = content if isinstance(content, tuple) else shown(content, self.log.blob)
        self.say("user", [ToolResult(call_id, name, parts, outcome)], line, joined=True, **about)

    def flush(self, interrupted: str = "") -> None:
        """Record the message whose parts were collected; `interrupted` says why an answer is not whole."""
        if not self._parts:
            return
        parts, lines, about = tuple(self._parts), self._lines, self._about
        self._parts, self._lines, self._about = [], [], {}
        self.log.at(self._began)
        message = Message(self._role, parts, by_program=bool(about.pop("by_program", False)))  # type: ignore[arg-type]
        source = about.pop("source", "") or f"line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}" * bool(lines)
        self._record(message, 0, {**about, "source": source}, interrupted)
        self._add_notes()
        self._settle()

    def _add_notes(self) -> None:
        notes, self._notes = self._notes, []
        for time, note in notes:
            self.log.at(time)
            self.log.add(note)

    def _record(self, message: Message, line: int, about: Mapping[str, Any], interrupted: str = "") -> None:
        ran, self._silent = self._silent, []
        has_calls = any(isinstance(part, (ToolCall, ToolResult)) for part in message.parts)
        if has_calls:
            message = self.log.with_results(self._paired(message), lambda result: result)
        if about.get("by_program"):
            message = replace(message, by_program=True)
        fields = {"source": f"line {line}" if line else "", **about}
        fields.pop("by_program", None)
        if message.role == "assistant":
            fields["model"] = fields.get("model") or self.model
        if interrupted and message.role == "assistant":
            self.log.add(PartialAnswer(message, interrupted, model=fields["model"]))
        else:
            self.log.add(MessageRecord(message, **fields))
        for part in message.parts if has_calls else ():
            if isinstance(part, ToolCall) and self._is_silent:
                self._silent.append(part)
        for call in ran:
            self.log.edited(call)

    def _paired(self, message: Message) -> Message:
        """The message with an id for each call that has none, and for each result that of the call that it answers."""
        parts = list(message.parts)
        for index, part in enumerate(parts):
            if isinstance(part, ToolCall):
                if not part.id:
                    self._numbered += 1
                    part = replace(part, id=f"call-{self._numbered}", form=None)
                self._calls += 1
                self._open[self._calls] = part
                self._open_of.setdefault(part.id, []).append(self._calls)
            elif isinstance(part, ToolResult):
                call = self._answered(part)
                if call is not None and not part.call_id:
                    part = replace(part, call_id=call.id, form=None)
            parts[index] = part
        return message if all(map(is_, parts, message.parts)) else replace(message, parts=tuple(parts))

    def _answered(self, result: ToolResult) -> ToolCall | None:
        """The call that a result answers, which is no longer open; None if there is none."""
        if result.call_id:
            number = next(iter(self._open_of.get(result.call_id, ())), 0)
        else:
            calls = self._open.items() if result.name else ()
            alike = (number for number, call in calls if call.name == result.name)
            number = next(alike, 0) or next(iter(self._open), 0)
        call = self._open.pop(number, None)
        if call is not None:
            self._open_of[call.id].remove(number)
        return call

    def compact(
        self,
        reason: str,
        summary: str = "",
        detail: Mapping[str, Any] | None = None,
        *,
        first: int = 1,
        last: int = 0,
        messages: Sequence[Message] = (),
    ) -> None:
        """Record that the model saw a summary, or `messages`, in place of records `first` to `last`, by
        default all; a note, if there are no messages yet. Without either nothing happened."""
        messages = messages or [Message("user", (part,), by_program=True) for part in texts(summary)]
        if not messages:
            return
        self.flush()
        if self.log.messages:
            self.log.at(self._time)
            self.log.compacted(first, last or self.log.last, reason, detail or {}, messages)
        else:
            self.note("compaction", {"summary": summary})

    # -- records beside it -----------------------------------------------------------------------

    def add(self, body: Body) -> int:
        """Append another record behind what was said; returns its number."""
        self.flush()
        self.log.at(self._time)
        return self.log.add(body)

    def note(self, topic: str, data: Any, text: str = "") -> None:
        """Record something outside the conversation; empty values are left out. It stands behind the message that is
        being collected, which stays open."""
        data = {key: value for key, value in data.items() if not is_empty(value)} if isinstance(data, dict) else data
        if not is_empty(data) or text:
            self._notes.append((self._time, Note(topic=topic, text=text, data=data)))
            if not self._parts:
                self._add_notes()

    def facts(self, topic: str, values: Mapping[str, Any]) -> None:
        """Record facts of the session as a note: those that are new or changed since the last note on this topic."""
        self.log.at(self._time)
        self.log.note_changes(topic, {key: value for key, value in values.items() if not is_empty(value)})

    def place(self, folder: Any, topic: str = "context", **facts: Any) -> None:
        """Record in which folder the program works from now on, with other facts of the session."""
        self.log.files.work_in(folder)
        self.facts(topic, {"cwd": folder, **facts})

    def beside(self, path: Path) -> dict[str, Any]:
        """The object in another file of the session, as JSON; an empty one if there is none."""
        try:
            value = json_document(path.read_bytes())
        except (ValueError, OSError):
            value = None
        self.files += [str(path)] if path.is_file() else []
        return mapping(value)

    def turn(self, turn_id: str) -> None:
        """Record that a turn begins."""
        self.flush()
        self.log.at(self._time)
        self.log.open_turn(turn_id)

    def end(self, status: str, reason: str = "") -> None:
        """Record that the open turn ended: `completed`, `failed` or `cancelled`."""
        self.flush()
        self.log.at(self._time)
        self.log.close_turn(status, reason)

    def usage(
        self,
        raw: Any,
        keys: Mapping[str, str],
        *,
        model: str = "",
        vendor: str = "",
        cost: Any = None,
        incomplete: bool = False,
        **about: Any,
    ) -> None:
        """Record what an answer was billed. `keys` has for each field of `Usage` the paths in `raw` whose sum it is:
        `{"input": "input cache.read", "output": "output|completion"}`, where `|` is between the names that a path had
        in different versions. Without input or output, or with `incomplete`, the usage is a minimum. `vendor` is who
        was asked, by default that of the session, `cost` what it says that was paid, in US dollars."""
        figures = {field: [_at(raw, path) for path in paths.split()] for field, paths in keys.items()}
        is_cost = isinstance(cost, (int, float)) and not isinstance(cost, bool) and 0 < cost < DEAREST
        charged = Decimal(str(cost)) if is_cost else None
        if not is_cost and not any(tokens_billed(value) for values in figures.values() for value in values):
            return
        sums: dict[str, Any] = {field: sum(map(tokens_billed, values)) for field, values in figures.items()}
        known = [value for values in figures.values() for value in values]
        is_missing = any(values[0] is None for field, values in figures.items() if field in ("input", "output"))
        usage = Usage(**sums, charged=charged, incomplete=incomplete or is_missing or is_uncounted(*known))
        self.add(UsageRecord(self.api_of(vendor or self.vendor), model or self.model, usage, raw, **about))

    def thinking(self, text: str, *, signature: str = "", encrypted: str = "") -> tuple[Part, ...]:
        """Thinking as a part, in the API of the vendor; none if there is nothing of it."""
        return thoughts(text, self.api_of(self.vendor), signature=signature, encrypted=encrypted)

    def api_of(self, vendor: str) -> str:
        """turnlog's name for the API in which a vendor's models are spoken to; that of the session if it is unknown."""
        maker = makers().get(vendor)
        return maker.provider if maker else self.provider.name

    def done(self) -> Imported:
        """The finished session."""
        self.flush()
        return self.log.imported(self.id, self.form, self.title, parent=self.parent, files=self.files)


def _at(raw: Any, paths: str) -> Any:
    values = (within(raw, *path.split(".")) for path in paths.split("|"))
    return next((value for value in values if value is not None), None)


Maker = Callable[[Fields], Iterable[Part]]
"""Makes the parts of one block."""

Handler = Callable[[SessionWriter, Fields, int], None]
"""Records one entry, from its fields and the number of its line."""


def kinds(words: str, handler: Handler | None = None) -> dict[str, Handler | None]:
    """The same handler for several kinds, separated by spaces: by default none, for kinds that become notes."""
    return dict.fromkeys(words.split(), handler)


def sets(*, skip: str = "", **keys: str) -> Handler:
    """A handler that sets `title`, `model` or `parent` of the session, each from a path of keys."""

    def handler(writer: SessionWriter, entry: Fields, line: int) -> None:
        for name, path in keys.items():
            *outer, key = path.split(".")
            holder = entry.inside(*outer) if outer else entry
            setattr(writer, name, holder.text(key) or getattr(writer, name))
        entry.skip(*skip.split())

    return handler


def ends(status: str, reason: str = "") -> Handler:
    """A handler that ends the open turn, if there is one, for the reason under that key of the entry."""

    def handler(writer: SessionWriter, entry: Fields, line: int) -> None:
        if writer.log.turn:
            writer.end(status, entry.text(reason))

    return handler


def ignored(writer: SessionWriter, entry: Fields, line: int) -> None:
    """A handler for entries that say only that something began or ended."""
    entry.skip(*entry.value)


def _are_results(parts: Iterable[Part]) -> bool:
    return any(isinstance(part, ToolResult) for part in parts)


def _says(part: Part) -> bool:
    """Whether a part says more than that it is there."""
    if isinstance(part, ToolCall):
        return bool(part.arguments or part.raw)
    return bool(part.parts) if isinstance(part, ToolResult) else True


def _whole(before: Part, piece: Part) -> Part | None:
    """A text or a result with its next piece; None if the parts are no pieces of the same."""
    match before, piece:
        case Text(form=None), Text(form=None):
            return Text(before.text + piece.text)
        case ToolResult(), ToolResult() if before.call_id == piece.call_id:
            outcome = piece.outcome if before.outcome == "ok" else before.outcome
            return replace(before, parts=(*before.parts, *piece.parts), outcome=outcome)
    return None


def _without_numbers(path: str) -> str:
    """A path without the positions in its lists: `a[3].b` as `a[].b`."""
    return "".join(
        piece if index == 0 else "[]" + piece.partition("]")[2] for index, piece in enumerate(path.split("["))
    )
