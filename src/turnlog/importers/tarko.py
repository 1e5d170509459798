"""Event streams of Tarko, the agent framework of UI-TARS and Agent TARS: a JSON array, or JSON lines.

Event kinds as declared in github.com/bytedance/UI-TARS-desktop, multimodal/tarko,
agent-event-stream types. A message is an event; `tool_call` says that a call began to run, and its
result follows as `tool_result`. Streamed pieces repeat the message that follows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .._platform.encoding import plain_utf8
from ..errors import ImportFailed
from ..log.messages import (
    Media,
    Message,
    Outcome,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    compact_json,
    sha256_hex,
)
from ..log.records import Configuration, MessageRecord, PartialAnswer, ToolFinished, ToolStarted, TurnClosed, TurnOpened
from ..providers.openai_chat import PROVIDER
from .drafting import Drafting, title_from
from .lines import Line, json_document, json_lines
from .protocol import Damage, Imported, Origin, contents, origin_name, session_id_of
from .salvage import document_or_rest
from .wire_message import read_message

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
_EVENT = re.compile(
    rb'\A\s*\[?\s*\{\s*"id"\s*:\s*"[^"]*"\s*,\s*"type"\s*:\s*"(%s)"' % "|".join(sorted(_KINDS)).encode()
)
_TYPED = re.compile(rb'"type"\s*:\s*"(%s)"' % "|".join(sorted(_OWN)).encode())
_TIME = re.compile(rb'"timestamp"\s*:\s*\d{13}\b')
_PLACE = frozenset({"id", "type", "timestamp"})
_MESSAGE_KEYS = _PLACE | {"content", "toolCalls", "finishReason", "rawContent", "messageId"}


class Tarko:
    """Imports Tarko event streams."""

    name = "tarko-events"

    def sniff(self, head: bytes, path: Path | None) -> int:
        """By the kinds of events and their times in milliseconds."""
        plain = head.lstrip(b"\0")
        if not _TIME.search(plain) or b'"payload"' in plain:
            return 0
        if _EVENT.search(plain):
            return 85
        return 60 if plain.lstrip()[:1] in (b"{", b"[") and _TYPED.search(plain) else 0

    def read(self, origin: Origin) -> list[Imported]:
        """The one session of the stream."""
        data, file = contents(origin), origin_name(origin)
        warnings: list[Damage] = []
        events = _events(data, file, warnings)
        if not any(_word(event.value.get("type")) in _KINDS for event in events):
            reason = f" ({warnings[0].message})" if warnings else ""
            raise ImportFailed(f"{file}: no event of a Tarko stream in it{reason}; give its event stream as JSON")
        log = Drafting(file, warnings)
        stream = _Stream(log)
        for event in events:
            stream.take(event)
        stream.finish()
        first = next((_word(event.value.get("id")) for event in events if _word(event.value.get("id"))), "")
        return [
            Imported(
                session_id=session_id_of(stream.session or f"tarko-{first or sha256_hex(data)[:16]}"),
                format=_FORMAT,
                title=stream.title,
                drafts=log.finished(),
                blobs=log.blobs,
                warnings=tuple(log.warnings),
                files=(file,),
            )
        ]


IMPORTER = Tarko()


def _events(data: bytes, file: str, warnings: list[Damage]) -> list[Line]:
    """The events of an array, whose places count from 1, or of lines."""
    listed = plain_utf8(data).lstrip(b"\0 \t\r\n").startswith(b"[")
    value = document_or_rest(data, "", file, warnings) if listed else _document(data)
    held = value.get("events") if isinstance(value, dict) else value
    found: Iterable[Line]
    if isinstance(held, list):
        found = [Line(number, item) for number, item in enumerate(held, 1)]
    else:
        found = json_lines(data, file, warnings)
    events: list[Line] = []
    for line in found:
        if isinstance(line.value, dict) and line.value:
            events.append(line)
        else:
            warnings.append(Damage(file, line.number, "left out, no event: a JSON object was expected"))
    return events


def _document(data: bytes) -> Any:
    try:
        return json_document(data)
    except ValueError:
        return None


class _Stream:
    """One pass over the events, and what it has to remember on the way."""

    def __init__(self, log: Drafting) -> None:
        self.log = log
        self.session = self.title = self.model = self.turn = ""
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
        """Draft one event; one of another kind becomes a note."""
        event, kind = line.value, _word(line.value.get("type")) or "unknown"
        self.log.at(event.get("timestamp"))
        handler = self.handlers.get(kind)
        if handler is None:
            self.log.note(kind, _without(event, _PLACE))
        else:
            handler(event, line.number)

    def _user(self, event: Mapping[str, Any], number: int) -> None:
        message = read_message(
            PROVIDER, {"role": "user", "content": event.get("content")}, self.log, number, opaque=False
        )
        if message is None:
            return
        self.title = self.title or title_from(message)
        self.log.add(MessageRecord(message=message, source=_source(event, number)))
        rest = _without(event, _MESSAGE_KEYS)
        if rest:
            self.log.note(_word(event.get("type")), rest)

    def _assistant(self, event: Mapping[str, Any], number: int) -> None:
        calls = event.get("toolCalls")
        wire = {"role": "assistant", "content": event.get("content")}
        if isinstance(calls, list) and calls:
            wire["tool_calls"] = calls
        message = read_message(PROVIDER, wire, self.log, number, opaque=False)
        if message is None:
            return
        thoughts = tuple(Reasoning(provider=PROVIDER.name, text=text) for text in self.thoughts)
        self.thoughts.clear()
        self.pieces.clear()
        body = MessageRecord(
            message=Message("assistant", (*thoughts, *message.parts), form=message.form),
            model=self.model,
            stop=_word(event.get("finishReason")),
            response_id=_word(event.get("messageId")),
            source=_source(event, number),
        )
        self.log.add(body)
        raw = event.get("rawContent")
        rest = _without(event, _MESSAGE_KEYS) | ({"rawContent": raw} if raw and raw != event.get("content") else {})
        if rest:
            self.log.note("answer", rest)

    def _thinking(self, event: Mapping[str, Any], number: int) -> None:
        """Thinking comes ahead of the message that it belongs to."""
        text = _word(event.get("content"))
        if text and event.get("isComplete") is not False:
            self.thoughts.append(text)
        else:
            self.log.note("assistant_thinking_message", _without(event, _PLACE))

    def _started(self, event: Mapping[str, Any], number: int) -> None:
        self._declare(event.get("tool"))
        call_id = _word(event.get("toolCallId"))
        call, name = self.log.call_record(call_id), _word(event.get("name"))
        self.log.add(ToolStarted(call_id=call_id, call_record=call, name=name))
        if event.get("arguments") != self._arguments(call, call_id):
            self.log.note("tool_call", {"call_id": call_id, "arguments": event.get("arguments")})

    def _arguments(self, call_record: int, call_id: str) -> Any:
        body = self.log.drafts[call_record - 1].body if call_record else None
        parts = body.message.parts if isinstance(body, MessageRecord) else ()
        called = [part for part in parts if isinstance(part, ToolCall) and part.id == call_id]
        return called[-1].arguments if called else None

    def _declare(self, tool: Any) -> None:
        """The tools that the model may call, as far as calls have shown them."""
        if not isinstance(tool, dict) or not _word(tool.get("name")):
            return
        schema = tool.get("schema")
        declared = Tool(
            name=tool["name"],
            description=_word(tool.get("description")),
            parameters=schema if isinstance(schema, dict) else None,
        )
        if self.tools.get(declared.name) != declared:
            self.tools[declared.name] = declared
            tools = tuple(self.tools.values())
            self.log.add(Configuration(provider=PROVIDER.name, model=self.model, tools=tools))

    def _result(self, event: Mapping[str, Any], number: int) -> None:
        call_id, content, error = _word(event.get("toolCallId")), event.get("content"), event.get("error")
        failed = bool(error) or (isinstance(content, dict) and content.get("status") == "error")
        parts = self._parts(content, number)
        if isinstance(error, str) and error and not any(isinstance(p, Text) and error in p.text for p in parts):
            parts = (*parts, Text(error))
        outcome: Outcome = "failed" if failed else "ok"
        name, call = _word(event.get("name")) or self.log.call_name(call_id), self.log.call_record(call_id)
        elapsed = event.get("elapsedMs")
        timed = isinstance(elapsed, (int, float)) and not isinstance(elapsed, bool) and 0 <= elapsed < 1e12
        seconds = round(elapsed / 1000, 6) if timed and elapsed is not None else 0.0
        kept = tuple(part for part in parts if isinstance(part, (Text, Media)))
        result = ToolResult(call_id=call_id, name=name, parts=kept, outcome=outcome)
        self.log.add(ToolFinished(call_id=call_id, call_record=call, outcome=outcome, seconds=seconds))
        self.log.add(MessageRecord(message=Message("user", (result,)), source=_source(event, number)))

    def _parts(self, content: Any, number: int) -> tuple[Part, ...]:
        """A result's content: text, content parts of the chat API, or any JSON, which becomes text."""
        if content is None:
            return ()
        if isinstance(content, str):
            return (Text(content),)
        if isinstance(content, list) and all(isinstance(p, dict) and p.get("type") in _PARTS for p in content):
            message = read_message(PROVIDER, {"role": "user", "content": content}, self.log, number, opaque=False)
            return message.parts if message is not None else ()
        return (Text(compact_json(content)),)

    def _opened(self, event: Mapping[str, Any], number: int) -> None:
        self.session = self.session or _word(event.get("sessionId"))
        self.model = _word(event.get("model")) or self.model
        self.turn = _word(event.get("id")) or f"event-{number}"
        self.log.add(TurnOpened(turn_id=self.turn))
        self.log.note("agent_run_start", _without(event, _PLACE))

    def _closed(self, event: Mapping[str, Any], number: int) -> None:
        told = _word(event.get("status"))
        status = {"aborted": "cancelled", "error": "failed"}.get(told, told or "completed")
        self.log.add(TurnClosed(turn_id=self.turn or "unknown", status=status))
        self.log.note("agent_run_end", _without(event, _PLACE))
        self.turn = ""

    def _piece(self, event: Mapping[str, Any], number: int) -> None:
        """Repeated whole by the message that follows, unless the stream was cut before it came."""
        if event.get("type") == "assistant_streaming_message":
            self.pieces.append(_word(event.get("content")))

    def finish(self) -> None:
        """The stream ended: what was being said then is an answer that was cut off."""
        text = "".join(self.pieces)
        if text or self.thoughts:
            thoughts = tuple(Reasoning(provider=PROVIDER.name, text=thought) for thought in self.thoughts)
            parts = (*thoughts, *((Text(text),) if text else ()))
            cut = PartialAnswer(message=Message("assistant", parts), reason="the stream ended", model=self.model)
            self.log.add(cut)


_PARTS = frozenset({"text", "image_url"})


def _source(event: Mapping[str, Any], number: int) -> str:
    own = _word(event.get("id"))
    return f"event {number}" + (f" id {own}" if own else "")


def _without(event: Mapping[str, Any], keys: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in event.items() if key not in keys}


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""
