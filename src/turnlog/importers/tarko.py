"""Event streams of Tarko, the agent framework of UI-TARS and Agent TARS: a JSON array, or JSON lines.

Event kinds as declared in github.com/bytedance/UI-TARS-desktop, multimodal/tarko, agent-event-stream types. Each
message is an event. `tool_call` means that a call began to run; its result follows as `tool_result`. Streamed fragments
repeat the message that follows them.
"""

from __future__ import annotations

from ..log.messages import Message, Outcome, Reasoning, Text, Tool
from ..log.records import Configuration, PartialAnswer, ToolFinished, ToolStarted
from ..providers.openai_chat import PROVIDER
from .fields import Fields, kind_of
from .json_values import word
from .messages import read_message
from .parts import shown
from .protocol import Imported, Origin
from .transcript import Transcript
from .writing import Handler, SessionWriter

_FORMAT = "tarko-events"

_KINDS = frozenset(
    {
        *("user_message", "assistant_message", "assistant_thinking_message", "tool_call", "tool_result", "system"),
        *("assistant_streaming_message", "assistant_streaming_thinking_message", "assistant_streaming_tool_call"),
        *("agent_run_start", "agent_run_end", "environment_input", "plan_start", "plan_update", "plan_finish"),
        "final_answer",
    }
)


def read(origin: Origin) -> list[Imported]:
    """The one session of the stream."""
    file = Transcript(origin)
    events = file.entries("event", "events")
    if not any(word(event.value.get("type")) in _KINDS for event in events):
        raise file.refused("event of a Tarko stream", "give its event stream as JSON")
    writer = SessionWriter(file, _FORMAT, PROVIDER, agent="")
    writer.state.update(tools={}, thoughts=[], pieces=[])
    for event in events:
        writer.at(event.value.get("timestamp"))
        writer.take(Fields(event.value), event.number, kind_of(Fields(event.value), "type"), _HANDLERS)
    if text := "".join(writer.state["pieces"]):
        writer.state["thoughts"].append(Text(text))
    if parts := tuple(writer.state["thoughts"]):  # fragments without their message are an interrupted answer
        writer.add(PartialAnswer(Message("assistant", parts), "the stream ended", model=writer.model))
    first = next(filter(None, (word(event.value.get("id")) for event in events)), "") or file.digest
    writer.id = writer.id or f"tarko-{first}"
    return [writer.done()]


def _source(event: Fields, number: int) -> str:
    event_id = word(event.value.get("id"))
    return f"event {number}" + (f" id {event_id}" if event_id else "")


def _user(writer: SessionWriter, event: Fields, number: int) -> None:
    wire = {"role": "user", "content": event.get("content")}
    writer.message(wire, number, opaque=False, source=_source(event, number))


def _assistant(writer: SessionWriter, event: Fields, number: int) -> None:
    content, calls = event.get("content"), event.get("toolCalls")
    wire = {"role": "assistant", "content": content} | ({"tool_calls": calls} if calls else {})
    if event.value.get("rawContent") == content:
        event.skip("rawContent")
    thoughts, stop, answer_id = writer.state["thoughts"], event.text("finishReason"), event.text("messageId")
    source = _source(event, number)
    if writer.message(wire, number, opaque=False, before=thoughts, stop=stop, response_id=answer_id, source=source):
        writer.state["pieces"].clear()
        thoughts.clear()
    if "content" not in event.value:
        writer.log.left_unread(number, "", event.unread(), is_empty=True)


def _thinking(writer: SessionWriter, event: Fields, number: int) -> None:
    """Remember thinking for the message that follows it."""
    if event.value.get("isComplete") is not False and (text := event.text("content")):
        writer.state["thoughts"].append(Reasoning(provider=PROVIDER.name, text=text))
        event.skip("isComplete")


def _started(writer: SessionWriter, event: Fields, number: int) -> None:
    _declare(writer, event.inside("tool"))
    event.skip("startTime")
    call_id = event.text("toolCallId")
    record, call = writer.log.call_record(call_id), writer.log.call(call_id)
    writer.add(ToolStarted(call_id=call_id, call_record=record, name=event.text("name")))
    if call is not None and event.value.get("arguments") == call.arguments:
        event.skip("arguments")


def _declare(writer: SessionWriter, tool: Fields) -> None:
    """Record the tools that the model may call, as far as calls have shown them."""
    schema = tool.get("schema")
    declared = Tool(tool.text("name"), tool.text("description"), schema if isinstance(schema, dict) else None)
    tools = writer.state["tools"]
    if declared.name and tools.get(declared.name) != declared:
        tools[declared.name] = declared
        writer.add(Configuration(provider=PROVIDER.name, model=writer.model, tools=tuple(tools.values())))


def _result(writer: SessionWriter, event: Fields, number: int) -> None:
    call_id, content, error = event.text("toolCallId"), event.get("content"), event.text("error")
    failed = bool(event.value.get("error")) or Fields(content).text("status") == "error"
    is_shown = isinstance(content, list) and all(Fields(part).text("type") in _PARTS for part in content)
    if is_shown:
        wire = {"role": "user", "content": content}
        message = read_message(PROVIDER, wire, writer.log, number, opaque=False)
        content = message.parts if message is not None else ()
    parts = list(content if is_shown else shown(content, writer.log.blob))
    if error and not any(isinstance(part, Text) and error in part.text for part in parts):
        parts.append(Text(error))
    outcome: Outcome = "failed" if failed else "ok"
    elapsed = event.get("elapsedMs")
    timed = isinstance(elapsed, (int, float)) and not isinstance(elapsed, bool) and 0 <= elapsed < 1e12
    seconds = round(elapsed / 1000, 6) if timed else 0.0
    writer.add(ToolFinished(call_id, writer.log.call_record(call_id), outcome, seconds))
    name = event.text("name")
    writer.result(call_id, tuple(parts), number, name=name, outcome=outcome, source=_source(event, number))


def _opened(writer: SessionWriter, event: Fields, number: int) -> None:
    writer.id = writer.id or word(event.value.get("sessionId"))
    writer.model = word(event.value.get("model")) or writer.model
    writer.turn(word(event.value.get("id")) or f"event-{number}")


def _closed(writer: SessionWriter, event: Fields, number: int) -> None:
    status = word(event.value.get("status"))
    writer.end({"aborted": "cancelled", "error": "failed"}.get(status, status or "completed"))


def _piece(writer: SessionWriter, event: Fields, number: int) -> None:
    """Remember a fragment, in case the stream is cut before the message that repeats it."""
    if event.value.get("type") == "assistant_streaming_message":
        writer.state["pieces"].append(word(event.value.get("content")))
    event.skip(*event.value)


_PARTS = frozenset({"text", "image_url"})
_HANDLERS: dict[str, Handler | None] = {
    **dict.fromkeys(("user_message", "environment_input"), _user),
    "assistant_message": _assistant,
    "assistant_thinking_message": _thinking,
    "tool_call": _started,
    "tool_result": _result,
    "agent_run_start": _opened,
    "agent_run_end": _closed,
    **dict.fromkeys([kind for kind in sorted(_KINDS) if "_streaming_" in kind], _piece),
    **dict.fromkeys(("system", "plan_start", "plan_update", "plan_finish", "final_answer")),
}
