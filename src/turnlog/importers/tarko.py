"""Event streams of Tarko, the agent framework of UI-TARS and Agent TARS: a JSON array, or JSON lines.

Event kinds as declared in github.com/bytedance/UI-TARS-desktop, multimodal/tarko, agent-event-stream types. Each
message is an event. `tool_call` means that a call began to run; its result follows as `tool_result`. Streamed fragments
repeat the message that follows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._platform.lazy import lazy_pattern
from ..log.messages import Media, Message, Outcome, Part, Reasoning, Text, Tool, ToolResult, compact_json, sha256_hex
from ..log.records import Configuration, MessageRecord, PartialAnswer, ToolFinished, ToolStarted
from ..providers.openai_chat import PROVIDER
from .drafting import Drafting
from .json_values import mapping, without, word
from .messages import read_message
from .protocol import Imported, Origin
from .transcript import Line, Transcript

_FORMAT = "tarko-events"

_KINDS = frozenset(
    {
        *("user_message", "assistant_message", "assistant_thinking_message", "tool_call", "tool_result", "system"),
        *("assistant_streaming_message", "assistant_streaming_thinking_message", "assistant_streaming_tool_call"),
        *("agent_run_start", "agent_run_end", "environment_input", "plan_start", "plan_update", "plan_finish"),
        "final_answer",
    }
)
_OWN = _KINDS - {"system", "tool_call", "tool_result"}
_EVENT = lazy_pattern(
    rb'\A\s*\[?\s*\{\s*"id"\s*:\s*"[^"]*"\s*,\s*"type"\s*:\s*"(%s)"' % "|".join(sorted(_KINDS)).encode()
)
_TYPED = lazy_pattern(rb'"type"\s*:\s*"(%s)"' % "|".join(sorted(_OWN)).encode())
_TIME = lazy_pattern(rb'"timestamp"\s*:\s*\d{13}\b')
_PLACE = frozenset({"id", "type", "timestamp"})
_RESULT_KEYS = _PLACE | {"toolCallId", "name", "content", "error", "elapsedMs"}
_MESSAGE_KEYS = _PLACE | {"content", "toolCalls", "finishReason", "rawContent", "messageId"}


def sniff(head: bytes, path: Path | None) -> int:
    """Recognised by the kinds of events and their times in milliseconds."""
    plain = head.lstrip(b"\0")
    if not _TIME.search(plain) or b'"payload"' in plain:
        return 0
    if _EVENT.search(plain):
        return 85
    return 60 if plain.lstrip()[:1] in (b"{", b"[") and _TYPED.search(plain) else 0


def read(origin: Origin) -> list[Imported]:
    """The one session of the stream."""
    file = Transcript(origin)
    events = _events(file)
    if not any(word(event.value.get("type")) in _KINDS for event in events):
        raise file.refused("event of a Tarko stream", "give its event stream as JSON")
    stream = _Stream(Drafting(file))
    for event in events:
        stream.take(event)
    stream.finish()
    first = next(filter(None, (word(event.value.get("id")) for event in events)), sha256_hex(file.data)[:16])
    return [stream.log.imported(stream.session or f"tarko-{first}", _FORMAT)]


def _events(file: Transcript) -> list[Line]:
    """The events of lines, or of an array; positions in an array count from 1."""
    listed = file.data.lstrip(b"\0 \t\r\n").startswith(b"[")
    value = file.document_or_rest("") if listed else file.document_or_none()
    events = value.get("events") if isinstance(value, dict) else value
    lines = (Line(number, item) for number, item in enumerate(events, 1)) if isinstance(events, list) else file.lines()
    return file.objects("event", lines)


class _Stream:
    """One pass over the events, with its state."""

    def __init__(self, log: Drafting) -> None:
        self.log = log
        self.session = self.model = ""
        self.tools: dict[str, Tool] = {}
        self.thoughts: list[str] = []
        self.pieces: list[str] = []
        self.handlers = {
            "user_message": self._user,
            "environment_input": self._user,
            "assistant_message": self._assistant,
            "assistant_thinking_message": self._thinking,
            "tool_call": self._started,
            "tool_result": self._result,
            "agent_run_start": self._opened,
            "agent_run_end": self._closed,
            "assistant_streaming_message": self._piece,
            "assistant_streaming_thinking_message": self._piece,
            "assistant_streaming_tool_call": self._piece,
        }

    def take(self, line: Line) -> None:
        """Draft one event; an event of an unknown kind becomes a note."""
        event, kind = line.value, word(line.value.get("type")) or "unknown"
        self.log.at(event.get("timestamp"))
        handler = self.handlers.get(kind)
        if handler is None:
            of = f"an event of type {kind!r}"
            self.log.left_unread(line.number, "", without(event, _PLACE), is_empty=False, of=of)
            self.log.note(kind, without(event, _PLACE))
        else:
            handler(event, line.number)

    def _user(self, event: Mapping[str, Any], number: int) -> None:
        wire = {"role": "user", "content": event.get("content")}
        message = read_message(PROVIDER, wire, self.log, number, opaque=False)
        if message is None:
            return
        self.log.add(MessageRecord(message=message, source=_source(event, number)))
        rest = without(event, _MESSAGE_KEYS)
        if rest:
            self.log.left_unread(number, "", rest, is_empty=not message.parts)
            self.log.note(word(event.get("type")), rest)

    def _assistant(self, event: Mapping[str, Any], number: int) -> None:
        calls = event.get("toolCalls")
        wire = {"role": "assistant", "content": event.get("content")}
        if isinstance(calls, list) and calls:
            wire["tool_calls"] = calls
        message = read_message(PROVIDER, wire, self.log, number, opaque=False)
        if message is None:
            return
        self.pieces.clear()
        body = MessageRecord(
            message=Message("assistant", (*self._thought(), *message.parts), form=message.form),
            model=self.model,
            stop=word(event.get("finishReason")),
            response_id=word(event.get("messageId")),
            source=_source(event, number),
        )
        self.log.add(body)
        raw = event.get("rawContent")
        rest = without(event, _MESSAGE_KEYS) | ({"rawContent": raw} if raw and raw != event.get("content") else {})
        if rest:
            self.log.left_unread(number, "", without(event, _MESSAGE_KEYS), is_empty="content" not in event)
            self.log.note("answer", rest)

    def _thinking(self, event: Mapping[str, Any], number: int) -> None:
        """Remember thinking for the message that follows it."""
        text = word(event.get("content"))
        if text and event.get("isComplete") is not False:
            self.thoughts.append(text)
        else:
            self.log.note("assistant_thinking_message", without(event, _PLACE))

    def _started(self, event: Mapping[str, Any], number: int) -> None:
        self._declare(mapping(event.get("tool")))
        call_id, arguments = word(event.get("toolCallId")), event.get("arguments")
        record, call = self.log.call_record(call_id), self.log.call(call_id)
        self.log.add(ToolStarted(call_id=call_id, call_record=record, name=word(event.get("name"))))
        if arguments != (call.arguments if call is not None else None):
            self.log.note("tool_call", {"call_id": call_id, "arguments": arguments})

    def _declare(self, tool: Mapping[str, Any]) -> None:
        """Record the tools that the model may call, as far as calls have shown them."""
        if not word(tool.get("name")):
            return
        schema = tool.get("schema")
        parameters = schema if isinstance(schema, dict) else None
        declared = Tool(tool["name"], word(tool.get("description")), parameters)
        if self.tools.get(declared.name) != declared:
            self.tools[declared.name] = declared
            tools = tuple(self.tools.values())
            self.log.add(Configuration(provider=PROVIDER.name, model=self.model, tools=tools))

    def _result(self, event: Mapping[str, Any], number: int) -> None:
        call_id, content, error = word(event.get("toolCallId")), event.get("content"), event.get("error")
        failed = bool(error) or (isinstance(content, dict) and content.get("status") == "error")
        parts = self._parts(content, number)
        if content is None and not error:
            self.log.left_unread(number, "", without(event, _RESULT_KEYS), is_empty=True, of="a tool result")
        if isinstance(error, str) and error and not any(isinstance(p, Text) and error in p.text for p in parts):
            parts = (*parts, Text(error))
        outcome: Outcome = "failed" if failed else "ok"
        name, call = word(event.get("name")) or self.log.call_name(call_id), self.log.call_record(call_id)
        elapsed = event.get("elapsedMs")
        timed = isinstance(elapsed, (int, float)) and not isinstance(elapsed, bool) and 0 <= elapsed < 1e12
        seconds = round(elapsed / 1000, 6) if timed and elapsed is not None else 0.0
        result_parts = tuple(part for part in parts if isinstance(part, (Text, Media)))
        result = ToolResult(call_id=call_id, name=name, parts=result_parts, outcome=outcome)
        self.log.add(ToolFinished(call_id=call_id, call_record=call, outcome=outcome, seconds=seconds))
        self.log.add(MessageRecord(message=Message("user", (result,)), source=_source(event, number)))

    def _parts(self, content: Any, number: int) -> tuple[Part, ...]:
        """The content of a result: text, content parts of the chat API, or any JSON, which becomes text."""
        if content is None:
            return ()
        if isinstance(content, str):
            return (Text(content),)
        if isinstance(content, list) and all(isinstance(p, dict) and p.get("type") in _PARTS for p in content):
            message = read_message(PROVIDER, {"role": "user", "content": content}, self.log, number, opaque=False)
            return message.parts if message is not None else ()
        return (Text(compact_json(content)),)

    def _opened(self, event: Mapping[str, Any], number: int) -> None:
        self.session = self.session or word(event.get("sessionId"))
        self.model = word(event.get("model")) or self.model
        self.log.open_turn(word(event.get("id")) or f"event-{number}")
        self.log.note("agent_run_start", without(event, _PLACE))

    def _closed(self, event: Mapping[str, Any], number: int) -> None:
        status = word(event.get("status"))
        self.log.close_turn({"aborted": "cancelled", "error": "failed"}.get(status, status or "completed"))
        self.log.note("agent_run_end", without(event, _PLACE))

    def _piece(self, event: Mapping[str, Any], number: int) -> None:
        """Remember a fragment, in case the stream is cut before the message that repeats it."""
        if event.get("type") == "assistant_streaming_message":
            self.pieces.append(word(event.get("content")))

    def finish(self) -> None:
        """Handle the end of the stream: fragments without their message are an interrupted answer."""
        text = "".join(self.pieces)
        if text or self.thoughts:
            parts = (*self._thought(), *((Text(text),) if text else ()))
            self.log.add(PartialAnswer(Message("assistant", parts), "the stream ended", model=self.model))

    def _thought(self) -> tuple[Reasoning, ...]:
        """The thinking that is not part of a message yet."""
        thoughts = tuple(Reasoning(provider=PROVIDER.name, text=text) for text in self.thoughts)
        self.thoughts.clear()
        return thoughts


_PARTS = frozenset({"text", "image_url"})


def _source(event: Mapping[str, Any], number: int) -> str:
    event_id = word(event.get("id"))
    return f"event {number}" + (f" id {event_id}" if event_id else "")
