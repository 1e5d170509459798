"""Read requests to Parrot, and its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from turnlog.errors import FormatError
from turnlog.log.messages import Message, Opaque, Part, Role, Text, Tool, ToolCall, ToolResult
from turnlog.log.records import Configuration
from turnlog.log.usage import Usage
from turnlog.providers.error_bodies import answer_body, error_chunk
from turnlog.providers.protocol import Delta, Parsed, Reply
from turnlog.providers.schema.walk import check_types
from turnlog.providers.spelling import string, without

from .render import block_wire, tool_wire
from .schema import BODY, FORMS, NAME

ROLES: dict[str, Role] = {"keeper": "user", "bird": "assistant", "house": "system"}
ANSWER_KEYS = ("beak",)


def parse(body: Mapping[str, Any]) -> Parsed:
    """Read a request body. Raises FormatError."""
    if not isinstance(body.get("squawks"), list):
        raise FormatError("expected a list of turns", path="squawks")
    check_types(body, BODY, "")
    names: dict[str, str] = {}
    messages = tuple(_message(turn, f"squawks[{i}]", names) for i, turn in enumerate(body["squawks"]))
    model = string(body, "model")
    tools = tuple(_tool(tool) for tool in body.get("tools") or ())
    settings = without(body, "model", "squawks", "tools")
    return Parsed(messages=messages, configuration=Configuration(NAME, model, settings, tools))


def _tool(wire: Mapping[str, Any]) -> Tool:
    return FORMS.formed(Tool(string(wire, "trick"), string(wire, "about"), wire.get("needs")), tool_wire, wire)


def _message(turn: Any, path: str, names: dict[str, str]) -> Message:
    role = turn.get("role") if isinstance(turn, Mapping) else None
    if role not in ROLES:
        raise FormatError(f"expected a turn of {', '.join(ROLES)}", path=path)
    parts = tuple(_part(block, names) for block in turn.get("beak") or ())
    return Message(ROLES[role], parts, form=FORMS.made({"role": role}, without(turn, "beak")))


def _part(block: Mapping[str, Any], names: dict[str, str]) -> Part:
    call_id, said = string(block, "id"), string(block, "words")
    match block.get("type"):
        case "words":
            return FORMS.formed(Text(said), block_wire, block)
        case "ask":
            names[call_id] = string(block, "tool")
            return FORMS.formed(ToolCall(call_id, names[call_id], block.get("args")), block_wire, block)
        case "reply":
            outcome = "failed" if block.get("failed") else "ok"
            parts = tuple(Text(string(one, "words")) for one in block.get("beak") or ())
            result = ToolResult(call_id, names.get(call_id, ""), parts, outcome=outcome)
            return FORMS.formed(result, block_wire, block)
        case kind:
            return Opaque(NAME, str(kind), dict(block))


def parse_response(response: Any) -> Reply:
    """Read a whole answer. Raises FormatError."""
    whole = answer_body(response, ANSWER_KEYS)
    if not isinstance(whole.get("beak"), list):
        raise FormatError("expected a list; is this an answer of Parrot?", path="beak")
    message = _message({"role": "bird", "beak": whole["beak"]}, "response", {})
    eaten = whole.get("eaten")
    usage = Usage(input=eaten["seeds"], output=eaten["nuts"]) if isinstance(eaten, dict) else None
    return Reply(message=message, usage=usage, raw_usage=eaten, model=string(whole, "model"), stop=string(whole, "end"))


class StreamAssembler:
    """Puts a stream together: each chunk has some blocks, the last one what was eaten."""

    def __init__(self) -> None:
        self._whole: dict[str, Any] = {"beak": []}
        self._error = ""

    def feed(self, chunk: Any) -> Sequence[Delta]:
        """Process the next chunk."""
        self._error = error_chunk(chunk, ANSWER_KEYS) or self._error
        blocks = chunk.get("beak") or []
        self._whole |= {key: value for key, value in chunk.items() if key not in ("beak", "error")}
        self._whole["beak"] += blocks
        return [Delta("text", block["words"]) for block in blocks if block["type"] == "words"]

    def reply(self) -> Reply:
        """The answer so far."""
        found = parse_response(self._whole)
        complete = bool(found.stop) and not self._error
        return Reply(
            message=found.message,
            usage=found.usage,
            raw_usage=found.raw_usage,
            model=found.model,
            stop=found.stop,
            complete=complete,
            error=self._error or ("" if complete else "the stream ended early"),
        )
