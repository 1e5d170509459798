"""The memory of a conversation: a fold over its records, one after another.

It depends on nothing but the records, so that it is the same whether it followed a session or was made from the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from .._platform.given import kind_given, text_given
from .._platform.texts import clip
from ..errors import InputError
from ..log.messages import Message, Text, ToolCall, ToolResult
from ..log.records import Decision, FileChange, MessageRecord, PartialAnswer, Record
from ..summarize.changed_files import FileChanges, FileState, FileStates, PendingWrites, State
from ..summarize.errors import WRITTEN_KEYS, FailedCall, FailedCalls, brief_of
from ..summarize.failures import Failure, is_harmless
from ..summarize.orders import orders_of
from ..summarize.reading import failure_in, flat_lines, is_output, with_calls
from ..tokens.counters import counter_for
from ..tokens.protocol import Counter
from ..view.decisions import Rewinds
from ..view.program_prefaces import is_of_program
from ..view.repair.pairing import At, Pairing
from ..view.types import Shown
from .calls import changes_in, command_of, commands_in_blocks, lines_read
from .entities import Candidate, Entity, Fact, Kind, Mention, Who
from .language import ENGLISH, Language
from .resolve import resolve
from .sentences import TURNS
from .words import ENDS, WORDS, path_of, raised_in

# -- block -----------------------------------------------------------------------------------------
#
# A memory as text for a prompt, within a number of tokens.

_TITLE = "What this conversation is about; [n] is record n:"
_FILES, _FACTS, _ERRORS = "Files, the last used first:", "What the user requires:", "Errors, not seen to be fixed:"
_FIRST = 8  # files that come before everything else
_LONGEST = 240  # characters of a line, apart from a path


def file_line(file: Entity) -> str:
    """A file with what was last done to it, the lines that were last read, and whether it changed since."""
    notes = []
    if file.state == "failed":
        notes.append(f"last change failed [{file.at}]")
    if file.changed:
        notes.append(f"{file.change} [{file.changed}]" + (f" ({file.changes} changes)" if file.changes > 1 else ""))
    if file.read:
        first, last = file.lines
        lines = f" lines {first}-{last}" if last else ""
        notes.append(f"read{lines} [{file.read}]" + (", changed since" if file.stale else ""))
    return f"{file.value}: {', '.join(notes) or f'mentioned [{file.last}]'}"


def working_set(files: Iterable[Entity], max_tokens: int, count: Callable[[str], int]) -> tuple[Entity, ...]:
    """As many of `files` as have room with their lines, in order. Each line is counted with its line end."""
    fitting = []
    for file in files:
        max_tokens -= count(f"{file_line(file)}\n")
        if max_tokens < 0:
            break
        fitting.append(file)
    return tuple(fitting)


def block(
    files: Sequence[Entity],
    facts: Sequence[Fact],
    errors: Sequence[Entity],
    max_tokens: int,
    count: Callable[[str], int],
) -> str:
    """The memory as text of at most `max_tokens` tokens: files, what the user requires, open errors. The most recent of
    each stay if not everything has room. "" if there is nothing to say, or no room."""
    lines = {
        _FACTS: [f"[{fact.record}] {clip(fact.text, _LONGEST)}" for fact in reversed(facts)],
        _FILES: [file_line(file) for file in files],
        _ERRORS: [f"[{error.at}] {clip(error.value, _LONGEST)}" for error in errors],
    }
    order = [(_FILES, i) for i in range(_FIRST)]
    longest = max(map(len, lines.values()))
    order += [(name, i if name != _FILES else i + _FIRST) for i in range(longest) for name in lines]
    room = max_tokens - count(f"{_TITLE}\n")
    taken: dict[str, list[int]] = {name: [] for name in lines}
    closed: set[str] = set()
    for name, i in order:
        if i >= len(lines[name]) or name in closed:
            continue
        cost = count(f"{lines[name][i]}\n") + (0 if taken[name] else count(f"{name}\n"))
        if cost > room:
            closed.add(name)
            continue
        room -= cost
        taken[name].append(i)
    text = _text(lines, taken)
    while text and count(text) > max_tokens:  # counted apart, lines may take less than together
        max(taken.values(), key=len).pop()
        text = _text(lines, taken)
    return text


def _text(lines: dict[str, list[str]], taken: dict[str, list[int]]) -> str:
    text_lines = []
    for name, places in taken.items():
        if places:
            shown = reversed(places) if name == _FACTS else places
            text_lines += [name, *(lines[name][i] for i in shown)]
    return "\n".join([_TITLE, *text_lines]) if text_lines else ""


KINDS = ("message", "partial", "file_change", "decision")
"""The kinds of records that a memory is made of."""

_TRAIL = 600  # mentions that `resolve` looks back over
_SYMBOLS = 8  # symbols that are kept with a file
_PATIENCE = 300  # records for which a call may wait for its result
_ALIKE = 60  # characters in which two calls are alike
_CHANGES: dict[str, State] = {"modified": "edited", "created": "created", "deleted": "deleted", "renamed": "moved"}


class _Call(NamedTuple):
    """A call that waits for its result: its record, its command, and what it does to files."""

    call: ToolCall
    record: int
    command: Entity | None
    writes: PendingWrites[Entity]


class Memory:
    """What a conversation is about, up to record `last`, which made so many `calls` of tools.

    Give it the records of a log in order (`take`). Records that a rewind took back are left out: after a rewind, make a
    new memory (`Memory.of`).
    """

    def __init__(self, rewinds: Rewinds = Rewinds(), committed: int = 0) -> None:
        self.last = 0
        self._changes = FileChanges(self._changed_files, committed)
        self.counter: Counter | None = None
        self._rewinds = rewinds
        self._entities: dict[tuple[Kind, str], Entity] = {}
        self._paths: dict[str, list[Entity]] = {}  # the files with this name, the last mentioned last
        self._pairing = Pairing()
        self._calls: dict[At, _Call] = {}
        self.calls = 0
        self._failed = FailedCalls()
        self._trail: deque[Mention] = deque(maxlen=_TRAIL)
        self._turns: deque[int] = deque(maxlen=TURNS)  # records of what the user typed
        self._spoken: list[tuple[int, Message]] = []  # user messages whose facts were not read yet
        self._facts: list[Fact] = []
        self._answer: Shown | None = None  # the last answer, which may have its command in its text
        self._place = 0

    @classmethod
    def of(cls, records: Iterable[Record], rewinds: Rewinds | None = None) -> Memory:
        """The memory of a whole log. Without `rewinds`, those in force are found in the records."""
        if rewinds is None:
            records = list(records)
            rewinds = Rewinds.of(records)
        memory = cls(rewinds)
        for record in records:
            memory.take(record)
        return memory

    def follows(self, record: Record) -> bool:
        """Whether the memory can take in this record; not if it takes others back, or brings them back."""
        body = record.body
        if not isinstance(body, Decision) or record.n <= self.last:
            return True
        return body.action != "rewind" and all(body.supersedes != rewind for _, _, rewind in self._rewinds.ranges)

    def take(self, record: Record) -> None:
        """Take in the next record."""
        self.last, self._place = record.n, 0
        match record.body:
            case MessageRecord(message=message) | PartialAnswer(message=message):
                if not (self._rewinds.ranges and self._rewinds.by(record.n)):
                    self._message(record.n, message)
            case FileChange():
                self._changed(record.n, record.body)

    # -- what is in it -----------------------------------------------------------------------------

    @property
    def entities(self) -> Sequence[Entity]:
        """All entities, the last mentioned first."""
        return sorted(self._entities.values(), key=lambda one: (-one.last, one.kind, one.value))

    @property
    def files(self) -> Sequence[Entity]:
        """The files that calls read or changed, the last used first."""
        used = [
            entity for entity in self._entities.values() if entity.kind == "file" and (entity.read or entity.changed)
        ]
        return sorted(used, key=lambda entity: (-max(entity.read, entity.changed, entity.at), entity.value))

    @property
    def changed_files(self) -> Sequence[Entity]:
        """The files that were changed, the last changed first."""
        return sorted(self._changed_files(), key=lambda entity: (-entity.changed, entity.value))

    def _changed_files(self) -> list[Entity]:
        return [entity for entity in self._entities.values() if entity.kind == "file" and entity.changed]

    @property
    def committed(self) -> int:
        """The record of the last call that committed changes to git, 0 if none did."""
        return self._changes.committed

    @property
    def file_states(self) -> FileStates:
        """The same with their last states, as a digest names them."""
        return FileStates([FileState(file.value, file.change, file.changed) for file in self.changed_files])

    @property
    def is_changing_files(self) -> bool:
        """Whether a call without a result may still fail, and so not have changed its files. One that has waited for
        hundreds of records is not waited for any longer."""
        return any(
            (call.writes.before or call.writes.trees) and self.last - call.record <= _PATIENCE
            for call in self._calls.values()
        )

    @property
    def errors(self) -> Sequence[Entity]:
        """The errors whose calls were not seen to work since, the newest first."""
        open_errors = [
            entity for entity in self._entities.values() if entity.kind == "error" and entity.state == "open"
        ]
        return sorted(open_errors, key=lambda entity: (-entity.at, entity.value))

    @property
    def failed_calls(self) -> Sequence[FailedCall]:
        """The calls that failed, in the order of their results. A search that found nothing did not fail."""
        return self._failed.failed

    @property
    def trail(self) -> Sequence[Mention]:
        """The last mentions, oldest first."""
        return self._trail

    @property
    def facts(self) -> Sequence[Fact]:
        """What the user required, forbade or allowed, oldest first, in the user's words."""
        for n, message in self._spoken:
            self._facts += [Fact(n, text) for text in orders_of(message)]
        self._spoken.clear()
        return self._facts

    def resolve(self, reference: str, said: str = "", *, language: Language = ENGLISH) -> list[Candidate]:
        """What a reference such as "that file", "the error", "it" or "the second one" stands for after the last record:
        the likeliest first, each with reasons; [] if it stands for nothing that is known. `said` is the text that the
        reference is in, if it is not on record yet: names in it count as the last ones. A short sentence with a pronoun
        ("Run that again.") stands for one thing that was at hand in the last turns and fits, or for nothing."""
        kind_given("language", language, Language, "a turnlog.memory.Language")
        reference, said = text_given("reference", reference), text_given("said", said)
        return resolve(reference, said, self._trail, self._entities.values(), self.last, self._turns, language)

    def working_set(self, max_tokens: int) -> tuple[Entity, ...]:
        """The files that were used last, as many as have room in `max_tokens` tokens with their paths and states."""
        return working_set(self.files, _tokens(max_tokens), self._count)

    def block(self, max_tokens: int) -> str:
        """The memory as text for a prompt, at most `max_tokens` tokens: files with their last states, what the user
        requires, errors not seen to be fixed. "" if there is nothing to say, or no room for it."""
        return block(self.files, self.facts, self.errors, _tokens(max_tokens), self._count)

    def _count(self, text: str) -> int:
        return (self.counter or counter_for("", "")).text(text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Memory):
            return NotImplemented
        return (self.last, self.entities, list(self.trail), self.facts, self.failed_calls) == (
            *(other.last, other.entities, list(other.trail), other.facts, other.failed_calls),
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Memory({len(self._entities)} entities, up to record {self.last})"

    # -- messages ----------------------------------------------------------------------------------

    def _message(self, n: int, message: Message) -> None:
        if message.role == "system":
            return
        if message.role == "user" and is_output(message) and self._answer is not None:
            answer, output = with_calls([self._answer, Shown(message, (n,))])
            self._pairing.see(answer)
            for j, part in enumerate(answer.message.parts):
                if isinstance(part, ToolCall):
                    self._call(answer.records[0], j, part)
            message = output.message
        elif message.role == "user":
            self._spoke(n, message)
        self._answer = Shown(message, (n,)) if message.role == "assistant" else None
        self._pairing.see(Shown(message, (n,)))
        for j, part in enumerate(message.parts):
            if isinstance(part, Text):
                self._text(n, part.text, message.role)
            elif isinstance(part, ToolCall):
                self._call(n, j, part)
            elif isinstance(part, ToolResult):
                self._result(n, j, part)

    def _spoke(self, n: int, message: Message) -> None:
        self._spoken.append((n, message))

    def _text(self, n: int, text: str, role: str) -> None:
        who: Who = "assistant" if role == "assistant" else "user"
        if who == "user" and is_of_program(text):
            who = "result"
        if who == "user" and n not in self._turns:
            self._turns.append(n)
        self._mentions(n, text, who)
        if who == "assistant" and "```" in text:
            for command in commands_in_blocks(text):
                self._entity("command", command, n, who)
        if who == "user":
            for line in raised_in(text):
                error = self._entity("error", line, n, who)
                error.state, error.at = "open", n

    def _mentions(self, n: int, text: str, who: Who) -> None:
        """Note what a text names. A name in code belongs to the file that was named before it, or to the next one if
        the text named none yet."""
        file: Entity | None = None
        waiting: list[str] = []
        for kind, value, lines in WORDS.of(text, symbols=who in ("user", "assistant", "call")):
            if kind == "file":
                file = self._file(value, n, who)
                file.lines = file.lines if lines == (0, 0) else lines
                _speak(file, waiting)
                waiting.clear()
                continue
            self._entity(kind, value, n, who)
            if kind == "symbol":
                waiting.append(value)
                if file is not None:
                    _speak(file, waiting)
                    waiting.clear()

    # -- calls and their results -------------------------------------------------------------------

    def _call(self, n: int, j: int, call: ToolCall) -> None:
        self.calls += 1
        text = command_of(call)
        command = self._entity("command", text, n, "call") if text else None
        files = ((self._file(write.path, n, "call", own=not write.gone), write) for write in changes_in(call))
        writes = self._changes.call(n, call, files)
        self._mentions(n, text or _values(call), "call")
        self._calls[self._pairing.seen - 1, j] = _Call(call, n, command, writes)

    def _result(self, n: int, j: int, result: ToolResult) -> None:
        answered = self._pairing.answered.get(j)
        asked = self._calls.pop(answered[0], None) if answered is not None else None
        text = "\n".join(part.text for part in result.parts if isinstance(part, Text))
        failure = failure_in(result)
        if asked is not None:
            harmless = failure is not None and is_harmless(asked.call, failure)
            self._ended(n, asked, text, None if harmless else failure)
        if asked is None or not asked.writes.before:  # what an edit prints again of a file is no news
            self._mentions(n, text, "result")

    def _ended(self, n: int, asked: _Call, text: str, failure: Failure | None) -> None:
        """Take in how a call ended."""
        self._judge(n, asked, text, failure)
        self._changes.ended(asked.writes, n, text, failure)
        if failure is not None:
            return
        shown = None if asked.writes.before else lines_read(asked.call, text)
        if shown is not None:
            file = self._file(shown[0], n, "result", own=True)
            file.read, file.lines = n, shown[1]
            file.state, file.at = ("read", n) if not file.changed else (file.state, file.at)

    def _judge(self, n: int, asked: _Call, text: str, failure: Failure | None) -> None:
        """Note whether a command worked, an error of its call, and that a call works which failed before."""
        if asked.command is not None:
            asked.command.state, asked.command.at = "worked" if failure is None else "failed", n
        if failure is None:
            for _, name in self._failed.works(asked.call, n, lambda: text):
                error = self._entities.get(("error", name))
                if error is not None:
                    error.state, error.at = "fixed", n
            return
        failed, name = self._failed.fails(asked.call, asked.record, n, failure)
        if failed.is_error:
            error = self._entity("error", name, n, "result")
            error.state, error.at, error.about = "open", n, f"{asked.call.name} {brief_of(asked.call)}"[:_ALIKE]

    def _changed(self, n: int, change: FileChange) -> None:
        """Take in a recorded change of a file. If a call just made it, it is not counted twice."""
        path = path_of(change.path)
        if change.root and not _is_absolute(path):
            path = f"{path_of(change.root).rstrip('/')}/{path}"
        called = self._entities.get(("file", path.rpartition("/")[2]))
        if called is not None and called.changed and self._is_by(change, called.changed):
            self._rename(called, path)  # the call named it from its own folder
        file = self._file(path, n, "disk", own=True)
        counted = file.changed and (file.changed >= (change.call_record or n) or self._is_by(change, file.changed))
        if counted and file.change == "undone":
            return  # the change is that git took it back
        file.state = file.change = _CHANGES[change.action]
        file.at = file.changed = n
        file.changes += 0 if counted else 1

    def _is_by(self, change: FileChange, record: int) -> bool:
        """Whether a file was changed by the calls of this record: it is said so, or one of them is still at work."""
        if change.call_record:
            return change.call_record == record
        return any(call.record == record for call in self._calls.values())

    # -- entities ----------------------------------------------------------------------------------

    def _entity(self, kind: Kind, value: str, n: int, who: Who) -> Entity:
        entity = self._entities.get((kind, value))
        if entity is None:
            entity = self._entities[kind, value] = Entity(kind, value, n, n)
        return self._seen(entity, n, who)

    def _seen(self, entity: Entity, n: int, who: Who) -> Entity:
        entity.last = n
        entity.mentions += 1
        entity.by[who] = entity.by.get(who, 0) + 1
        self._trail.append(Mention(n, who, entity, self._place))
        self._place += 1
        return entity

    def _file(self, path: str, n: int, who: Who, *, own: bool = False) -> Entity:
        """The file with this path. A path that is the end of another is the same file; with `own`, a name without a
        folder is not, as it may be a file of the working folder."""
        path = path_of(path)
        alike = self._paths.setdefault(path.rpartition("/")[2], [])
        file = self._entities.get(("file", path))
        if file is None:
            file = next((other for other in reversed(alike) if _is_same(other, path, own)), None)
            if file is None:
                file = self._entities["file", path] = Entity("file", path, n, n)
                alike.append(file)
            elif len(path) > len(file.value):
                self._rename(file, path)
        if alike[-1] is not file:
            alike[:] = [*(other for other in alike if other is not file), file]
        return self._seen(file, n, who)

    def _rename(self, file: Entity, path: str) -> None:
        """Know a file by a longer path, unless another one has it."""
        if ("file", path) not in self._entities:
            del self._entities["file", file.value]
            file.value = path
            self._entities["file", path] = file


class FileMemory(Memory):
    """What became of the files of a conversation: the same as in its memory, for less work, and nothing else. What a
    text names is looked at all the same, as it tells which paths are of one file."""

    @classmethod
    def after(cls, n: int, files: Iterable[Entity], rewinds: Rewinds, committed: int = 0) -> FileMemory:
        """A memory that goes on behind record `n`. Of what came before, it knows these files, the last used first, and
        the record that committed changes last."""
        memory = cls(rewinds, committed)
        memory.last = n
        for file in reversed([*files]):
            memory._entities[file.key] = file
            memory._paths.setdefault(file.value.rpartition("/")[2], []).append(file)
        return memory

    def _spoke(self, n: int, message: Message) -> None:
        """No facts are asked for."""

    def _text(self, n: int, text: str, role: str) -> None:
        self._mentions(n, text, "user")

    def _mentions(self, n: int, text: str, who: Who) -> None:
        for named in WORDS.files(text):
            self._file(named.value, n, who)

    def _judge(self, n: int, asked: _Call, text: str, failure: Failure | None) -> None:
        """Files do not tell which commands worked."""

    def _entity(self, kind: Kind, value: str, n: int, who: Who) -> Entity:
        return Entity(kind, value, n, n)

    def _seen(self, entity: Entity, n: int, who: Who) -> Entity:
        return entity


def _is_same(file: Entity, path: str, own: bool) -> bool:
    """Whether one of two different paths is the end of the other, so that both are likely to be the same file."""
    if file.value.endswith(f"/{path}"):
        return "/" in path or not own
    return path.endswith(f"/{file.value}") and ("/" in file.value or not file.changed)


def _speak(file: Entity, symbols: Sequence[str]) -> None:
    """Note that symbols were spoken of together with a file."""
    for symbol in symbols:
        file.symbols = (symbol, *(spoken for spoken in file.symbols if spoken != symbol))[:_SYMBOLS]


def _tokens(given: int) -> int:
    if not isinstance(given, int) or given < 1:
        raise InputError(f"max_tokens takes a number of tokens, at least 1, not {given!r}")
    return given


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "~")) or path[1:2] == ":"


def _values(call: ToolCall) -> str:
    """The arguments of a call without their names, which belong to the tool, and without the content that it writes."""
    if not isinstance(call.arguments, dict):
        return call.raw_arguments[: ENDS[0]]
    given = [value for key, value in call.arguments.items() if key not in WRITTEN_KEYS]
    return "\n".join(value if isinstance(value, str) else "\n".join(flat_lines([value])) for value in given)
