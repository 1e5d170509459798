"""Sessions from traces, in which each call of a model repeats the history.

Calls are read in the order in which they ended. A call whose input goes on where a session stands continues it, with
what is new in its input and its output; one that shares only a beginning rewinds the session; any other begins a
session of its own, as a subagent does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from ..log.messages import Media, Part, Reasoning, Text, ToolCall, ToolResult, compact_json, sha256_hex
from ..log.texts import strings_in
from ..models.makers import makers
from ..providers.openai_chat import PROVIDER
from .drafting import as_utc
from .fields import Fields
from .framework_messages import json_in, maker_named, message_of, read_parts
from .parts import shown
from .protocol import Imported
from .repeats import is_empty, result_text
from .transcript import Transcript
from .unread import unread_keys
from .writing import SessionWriter

_Key = tuple[str, ...]

_SAID = ("input", "output", "history", "unread", "error")
"""Keys of a step under which there is what was said; under others, a word may be one that was said by chance."""
_LABELS = ("role", "type", "id", "name", "mime_type", "mediaType", "status", "state", "format", "finish_reason")
"""Keys of messages and blocks whose values say nothing by themselves."""


class Span(Struct, kw_only=True):
    """A step of a trace. `group` names the conversation that it belongs to, `line` where it stands. Of a model's call,
    `input` and `output` are messages of any shape, and `usages` what was billed; of a tool's run, `output` is its
    result, and `call_id` and `name` say which. What is not read of `fields`, the whole step, becomes a note."""

    kind: Literal["model", "tool", "step"]
    group: str
    line: int
    fields: Fields
    start: Any = None
    end: Any = None
    name: str = ""
    input: Any = None
    output: Any = None
    error: str = ""
    model: str = ""
    vendor: str = ""
    stop: str = ""
    response_id: str = ""
    usages: list[Mapping[str, Any]] = field(default_factory=list)
    cost: Any = None
    call_id: str = ""

    @property
    def maker(self) -> str:
        """Who made the model; "" if it is unknown."""
        return maker_named(self.vendor, self.model)


class _Item(Struct):
    """A part of a message, with what it is recognised by when it is repeated; `message` counts messages."""

    role: str
    part: Part
    key: _Key
    message: int


class _Thread:
    """A session that grows call by call: the keys of what it holds, and the number of the record of each."""

    def __init__(self, writer: SessionWriter, system: _Key, blobs: Mapping[str, bytes]) -> None:
        self.writer, self.system, self.blobs = writer, system, blobs
        self.latest, self.is_new = "", True
        self.keys: list[_Key] = []
        self.records: list[int] = []
        self.open: dict[str, str] = {}

    def add(self, items: Iterable[_Item], time: Any, line: int, runs: Mapping[str, Span], **about: Any) -> None:
        """Add what is new. Results have time and line of their tool's run, if it is among `runs`, by their ids."""
        message = -1
        for item in items:
            part = item.part
            run = runs.get(part.call_id) if isinstance(part, ToolResult) else None
            self.latest = max(self.latest, as_utc(run.end if run else time))
            self.writer.at(self.latest)
            more = about if item.role == "assistant" else {}
            joined = isinstance(part, ToolResult) or item.message == message
            self.writer.say(item.role, [part], run.line if run else line, joined=joined, **more)
            message = item.message
            if item.key and item.role != "system":
                self.keys.append(item.key)
                self.records.append(self.writer.log.last + 1)
            if isinstance(part, ToolCall) and part.id:
                self.open[part.id] = part.name
            elif isinstance(part, ToolResult):
                self.open.pop(part.call_id, None)
            for inner in part.parts if isinstance(part, ToolResult) else (part,):
                if isinstance(inner, Media) and inner.sha256:
                    self.writer.log.blobs[inner.sha256] = self.blobs[inner.sha256]

    def rewind(self, kept: int) -> None:
        """Take back all but the first `kept` parts."""
        if kept < len(self.keys):
            self.writer.flush()
            self.writer.log.rewound(self.records[kept], "a later call of the model had another history")
            del self.keys[kept:], self.records[kept:]

    def shared(self, keys: list[_Key]) -> int:
        """How many of `keys` the session begins with; a message is shared whole or not at all."""
        count = min(len(keys), len(self.keys))
        shared = next((index for index in range(count) if keys[index] != self.keys[index]), count)
        while 0 < shared < len(self.records) and self.records[shared - 1] == self.records[shared]:
            shared -= 1
        return shared

    def window(self, keys: list[_Key]) -> int:
        """How many of `keys`, from the first, are the end of the session, whose beginning the model was not sent."""
        starts = (index for index, key in enumerate(self.keys) if keys and key == keys[0])
        sizes = (len(self.keys) - start for start in starts)
        return next((size for size in sizes if size > 1 and self.keys[-size:] == keys[:size]), 0)


class TraceReader:
    """Makes sessions of the spans of one file, by conversation. `words` has the paths of usage, as
    `SessionWriter.usage` takes them."""

    def __init__(self, file: Transcript, form: str, words: Mapping[str, str]) -> None:
        self.file, self.form, self.words = file, form, words
        self._groups: dict[str, list[_Thread]] = {}
        self._tools: dict[str, list[Span]] = {}
        self._told: set[str] = set()
        self._unknown: list[str] = []
        self._blobs: dict[str, bytes] = {}

    def read(self, spans: Iterable[Span]) -> list[Imported]:
        """Every session, the main one of each conversation before those that it began. Steps before the first call of a
        conversation are told behind it."""
        every = sorted(spans, key=_ended)
        begun = {span.group: _ended(span) for span in reversed(every) if span.kind == "model"}
        if not begun:
            raise self.file.refused("call of a model", "export the trace with the messages of its calls")
        if lost := [span for span in every if span.group not in begun]:
            what = f"left out: {len(lost)} steps of traces in which no model was called"
            self.file.warn(lost[0].line, what, "part")
        known = (span for span in every if span.group in begun)
        handlers = {"model": self._called, "tool": self._ran, "step": self._stood}
        for span in sorted(known, key=lambda span: (max(_ended(span), begun[span.group]), span.kind == "step")):
            handlers[span.kind](span)
        for group, threads in self._groups.items():
            for thread in threads:
                self._unanswered(group, thread)
            for span in self._tools.get(group, ()):
                self._stood(span)
        return [thread.writer.done() for threads in self._groups.values() for thread in threads]

    # -- steps -----------------------------------------------------------------------------------

    def _called(self, span: Span) -> None:
        items, unread = self._items(span.input, "user", span)
        answer, more = self._items(span.output, "assistant", span)
        system = tuple(part for item in items if item.role == "system" for part in item.key)
        keys = [item.key for item in items if item.key and item.role != "system"]
        thread, kept, known = self._thread(span, system, keys)
        writer = thread.writer
        if thread.is_new:
            thread.is_new = False
            thread.add((item for item in items if item.role == "system"), span.start, span.line, {})
        elif items and system != thread.system:
            writer.facts("system", {"text": [part.text for item in items if isinstance(part := item.part, Text)]})
        self._told.update(text for item in items if item.role == "system" for text in _texts_of(item.part))
        thread.rewind(kept)
        writer.model = span.model or writer.model
        fresh = _after(items, known)
        new = {id(item) for item in fresh}
        unsaid = [text for item in items if id(item) not in new for text in self._unsaid(item)]
        for _, batch in groupby(fresh, lambda item: isinstance(item.part, ToolResult)):
            self._add(thread, list(batch), span, {})  # what ran since the call before, then what was said
        about = {"model": span.model, "stop": span.stop, "response_id": span.response_id}
        thread.add(answer, span.end, span.line, {}, **about)
        self._told.update(text for item in answer for text in _texts_of(item.part))
        writer.at(span.end)
        for usage in span.usages:
            writer.usage(usage, self.words, vendor=span.maker, model=span.model, cost=span.cost)
        if not items and not answer:
            writer.log.count("the messages of a call, which the trace does not hold", span.line, "nothing")
        for rest, is_hollow in (*unread, *more):
            for key in unread_keys(rest, is_empty=is_hollow):
                writer.log.count(f"`{key}` of a message", span.line, "entry" if is_hollow else "part")
        for kind in self._unknown:
            writer.log.count(f"a block of type {kind!r}", span.line)
        self._unknown.clear()
        left = [rest for rest, _ in (*unread, *more)]
        self._note(thread, span, {"history": unsaid, "unread": left, **span.fields.unread()})
        self._told.update(map(str.strip, unsaid))

    def _unsaid(self, item: _Item) -> list[str]:
        """The texts of a repeated part that were not told before: thinking, or another result of the same call."""
        part = ToolCall("", "", item.part.arguments) if isinstance(item.part, ToolCall) else item.part
        texts = list(strings_in(part.arguments)) if isinstance(part, ToolCall) else _texts_of(part)
        return [text for text in texts if text.strip() and text.strip() not in self._told]

    def _ran(self, span: Span) -> None:
        self._tools.setdefault(span.group, []).append(span)

    def _stood(self, span: Span) -> None:
        values = {"input": span.input, "output": span.output, **span.fields.unread()}
        self._note(self._groups[span.group][0], span, values)

    def _note(self, thread: _Thread, span: Span, values: Mapping[str, Any]) -> None:
        """Record what no message says."""
        all_values = {**values, "error": span.error}.items()
        rest = {key: self._news(value) if key in _SAID or not _is_word(value) else value for key, value in all_values}
        thread.writer.at(span.end)
        thread.writer.flush()
        thread.writer.facts(f"{span.kind} {span.name}".strip(), rest)

    def _news(self, value: Any) -> Any:
        """A value without the texts that were told, and without messages of which nothing remains; None for those."""
        if isinstance(value, str):
            if value.strip() in self._told:
                return None
            inner = json_in(value)
            return value if inner is None or not is_empty(self._news(inner)) else None
        if isinstance(value, list):
            return [rest for item in value if not is_empty(rest := self._news(item))] or None
        if not isinstance(value, dict):
            return value
        rest = {key: new for key, item in value.items() if not is_empty(new := self._news(item))}
        is_message = any(key in value for key in ("content", "parts", "kwargs", "text", "tool_calls"))
        if (is_message or rest.keys() <= {*_LABELS}) and not any(
            " " in text for key in rest for text in strings_in(rest[key])
        ):
            return None
        return rest or None

    # -- tools -----------------------------------------------------------------------------------

    def _add(self, thread: _Thread, items: list[_Item], span: Span, runs: dict[str, Span]) -> None:
        """Add parts to the session, results with how their tool's run ended, and notes of these runs. Runs that are not
        given are looked for."""
        for index, item in enumerate(items):
            self._told |= {*_texts_of(item.part)}
            result = item.part
            if not isinstance(result, ToolResult):
                continue
            name = result.name or thread.open.get(result.call_id, "")
            run = runs.get(result.call_id) or self._run(result.call_id, name, span.group)
            if run is not None:
                runs[result.call_id] = run
                if run.error and result.outcome == "ok":
                    items[index] = replace(item, part=replace(result, outcome="failed"))
        thread.add(items, span.start, span.line, runs)
        for run in runs.values():
            self._note(thread, run, {"output": run.output, **run.fields.unread()})

    def _run(self, call_id: str, name: str, group: str) -> Span | None:
        """The run of a tool, by the id of its call, or else the first run of that tool; it is then forgotten."""
        runs = self._tools.get(group, [])
        named = [run for run in runs if not run.call_id and run.name and run.name == name]
        found = next((run for run in runs if run.call_id and run.call_id == call_id), next(iter(named), None))
        if found is not None:
            runs.remove(found)
        return found

    def _unanswered(self, group: str, thread: _Thread) -> None:
        """Add the results of calls that no later call of the model repeats."""
        runs = {call_id: run for call_id, name in thread.open.items() if (run := self._run(call_id, name, group))}
        items = [
            _Item("user", ToolResult(call_id, thread.open[call_id], parts), ("result", call_id), 0)
            for call_id, run in runs.items()
            for parts in [shown(run.output if run.output is not None else run.error, self._blob)]
        ]
        if items:
            self._add(thread, items, next(iter(runs.values())), runs)

    # -- the history -----------------------------------------------------------------------------

    def _thread(self, span: Span, system: _Key, keys: list[_Key]) -> tuple[_Thread, int, int]:
        """The session that a call belongs to, how much of it stays, and how much of the call's input it holds."""
        threads = self._groups.setdefault(span.group, [])
        if not keys and threads:
            return threads[-1], len(threads[-1].keys), 0
        best: tuple[int, int, _Thread] | None = None
        for thread in threads:
            shared = kept = thread.shared(keys)
            if system != thread.system and not shared == len(thread.keys) > 1:
                continue
            if not shared:
                shared, kept = thread.window(keys), len(thread.keys)
            if shared and (best is None or shared > best[0]):
                best = shared, kept, thread
        if best is not None:
            return best[2], best[1], best[0]
        is_first = not any(self._groups[group] for group in self._groups)
        writer = SessionWriter(self.file, self.form, PROVIDER, agent="", beside=not is_first)
        writer.id = f"{span.group}-{len(threads) + 1}" if threads else span.group
        writer.parent = threads[0].writer.id if threads else ""
        threads.append(_Thread(writer, system, self._blobs))
        return threads[-1], 0, 0

    def _items(self, wires: Any, usual: str, span: Span) -> tuple[list[_Item], list[tuple[dict[str, Any], bool]]]:
        """The parts of messages, and what is not read of each, with whether that is all of it."""
        found: list[_Item] = []
        unread: list[tuple[dict[str, Any], bool]] = []
        for number, wire in enumerate(wires or ()):
            message = message_of(wire)
            about = message.inside("response_metadata")
            stop, model = message.text("finish_reason", "stop_reason"), about.text("model_name", "model")
            if usual == "assistant":
                span.stop = span.stop or stop or about.text("stop_reason", "finish_reason")
            span.model = model if usual == "assistant" and model else span.model or model
            message.skip("response_metadata", "usage_metadata")
            maker = makers().get(span.maker)
            role, parts, unknown = read_parts(message, self._blob, maker.provider if maker else PROVIDER.name)
            self._unknown += unknown
            found += [_Item(role or usual, part, _key(role or usual, part), number) for part in parts]
            if rest := message.unread():
                unread.append((rest, not parts))
        return found, unread

    def _blob(self, data: bytes) -> str:
        self._blobs[name := sha256_hex(data)] = data
        return name


def _ended(span: Span) -> str:
    return as_utc(span.end) or as_utc(span.start)


def _after(items: list[_Item], known: int) -> list[_Item]:
    """What follows the first `known` items that are recognised, without the thinking of the message that they end."""
    said = [item for item in items if item.role != "system"]
    position, message = 0, -1
    while known:
        known -= bool(said[position].key)
        message = said[position].message
        position += 1
    while position < len(said) and not said[position].key and said[position].message == message:
        position += 1
    return said[position:]


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and " " not in value and json_in(value) is None


def _key(role: str, part: Part) -> _Key:
    """What a part is recognised by when it is repeated; () for what is often left out then."""
    if isinstance(part, ToolCall):
        return ("call", part.id or f"{part.name} {part.raw_arguments}")
    if isinstance(part, ToolResult):
        return ("result", part.call_id or result_text([part]))
    if isinstance(part, Media):
        return ("media", part.sha256 or part.url)
    text = part.text.strip() if isinstance(part, Text) else ""
    return (role, text) if text else ()


def _texts_of(part: Part) -> list[str]:
    texts = [part.text] if isinstance(part, (Text, Reasoning)) else []
    if isinstance(part, ToolCall):
        texts = [part.id, part.name, part.raw_arguments, compact_json(part.arguments), *strings_in(part.arguments)]
    elif isinstance(part, ToolResult):
        texts = [part.call_id, part.name, *(inner.text for inner in part.parts if isinstance(inner, Text))]
    return [text.strip() for text in texts]
