"""Assemble a streamed answer of the Messages API, event by event.

Events: message_start, content_block_start / _delta / _stop by index, message_delta, message_stop, ping and error
(streaming reference). Unknown events and deltas are ignored, as the API documentation asks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

from msgspec.structs import replace

from ...errors import FormatError
from ...log.messages import Opaque, Part, Reasoning, ToolCall, is_finite_json
from ...log.usage import tokens_billed
from ..error_bodies import error_chunk
from ..protocol import Delta, Reply
from ..schema.walk import check_types
from ..sdk_objects import plain
from ..spelling import inner, string
from .form import NAME
from .response import ANSWER_KEYS, BESIDE, INPUT, read_reply
from .schema import EVENT

_GROWING = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
_TOLD: Mapping[str, Literal["text", "reasoning"]] = {"text_delta": "text", "thinking_delta": "reasoning"}


class _Block:
    """A content block so far. `broken`: its input is not a JSON object."""

    def __init__(self, start: dict[str, Any], index: int) -> None:
        self.fields = start
        self.index = index
        self.pieces: list[str] = []
        self.has_input = False
        self.closed = False
        self.broken = False
        self.text_repeated = False
        self.repeats = 0  # the characters at the beginning that a block before it had already
        self._length = 0

    def repeat(self, before: _Block) -> None:
        """Take the place of a block that this one repeats from its beginning."""
        self.repeats = max(before.repeats, before._length)

    def take(self, delta: Mapping[str, Any]) -> list[Delta]:
        """Add a delta; returns the text that it adds."""
        match delta.get("type"):
            case "text_delta" | "thinking_delta" | "input_json_delta" as kind:
                self.pieces.append(string(delta, _GROWING[kind]))
                self.has_input = self.has_input or kind == "input_json_delta"
                return self._told(_TOLD[kind]) if kind in _TOLD else []
            case "signature_delta":
                self.fields["signature"] = string(delta, "signature")
            case "citations_delta":
                had = self.fields.get("citations")
                self.fields["citations"] = [*(had if isinstance(had, list) else ()), delta.get("citation")]
            case "compaction_delta":
                self.fields.update({key: value for key, value in delta.items() if key != "type"})
        return []

    def _told(self, kind: Literal["text", "reasoning"]) -> list[Delta]:
        """The newest piece, without the beginning that repeats an earlier block."""
        piece = self.pieces[-1]
        self._length += len(piece)
        new = piece[max(0, len(piece) - self._length + self.repeats) :]
        return [Delta(kind, new)] if new else []

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def close(self) -> None:
        self.closed = True
        if not self.has_input or not self.text.strip():
            return
        try:
            value = json.loads(self.text)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and is_finite_json(value):
            self.fields["input"] = value
        else:
            self.broken = True

    def is_repeated_by(self, other: _Block) -> bool:
        """Whether a block that starts with the same index repeats this block. If not, the server uses one index for
        several blocks."""
        again = self.fields.get("id") is not None and self.fields.get("id") == other.fields.get("id")
        return self.text_repeated or again or not (self.closed or self.pieces)

    def end(self) -> None:
        """Close the block if no event did: some servers never close the last block."""
        if not self.closed:
            self.close()
            with suppress(FormatError):
                self.check()

    def check(self) -> None:
        """Raises FormatError for a block that cannot be read, and marks it as broken."""
        try:
            read_reply({"content": [self.block()]})
        except FormatError:
            self.broken = True
            raise

    def block(self) -> dict[str, Any]:
        """The block in the shape of a whole response."""
        kind = self.fields.get("type")
        if kind in ("text", "thinking"):
            return {**self.fields, kind: str(self.fields.get(kind) or "") + self.text}
        return self.fields

    def fragment(self) -> Part:
        """The block as a readable part that is never sent."""
        fields = self.fields
        match fields.get("type"):
            case "tool_use":
                name, call_id = str(fields.get("name") or ""), str(fields.get("id") or "")
                return ToolCall(id=call_id, name=name, raw=self.text)
            case "thinking":
                return Reasoning(provider=NAME, text=self.block()["thinking"])
            case kind:
                data = {**fields, "input": self.text} if self.pieces else fields
                return Opaque(provider=NAME, kind=str(kind), data=data)


class StreamAssembler:
    """Assembles one streamed answer."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {"role": "assistant"}
        self._usage: dict[str, Any] | None = None
        self._blocks: list[_Block] = []
        self._places: dict[int, int] = {}
        self._ended = False
        self._error = ""

    def feed(self, chunk: Any) -> list[Delta]:
        """Process the next event. Raises FormatError for anything that is not an event of this API."""
        told: list[Delta] = []
        event = plain(chunk, "event")
        check_types(event, EVENT, "event")
        match event.get("type"):
            case "message_start":
                self._message = _object(event, "message")
                self._count(self._message.get("usage"))
                for before in self._blocks:
                    before.text_repeated = True
            case "content_block_start":
                start = _object(event, "content_block")
                self._begin(_Block(start, _index(event)))
                if start.get("type") == "fallback":
                    # Names the model that continues the answer; the whole response names it too.
                    self._message["model"] = string(inner(start, "to"), "model")
            case "content_block_delta":
                told = self._block(event).take(_object(event, "delta"))
            case "content_block_stop":
                self._block(event).close()
                self._block(event).check()
            case "message_delta":
                delta = _object(event, "delta")
                self._message.update({key: value for key, value in delta.items() if value is not None})
                self._message.update({key: event[key] for key in BESIDE if event.get(key)})
                self._count(event.get("usage"))
            case "message_stop":
                if not self._blocks and self._message.get("content"):  # it came whole, in `message_start`
                    told = [
                        delta for inner_event in _events_of(self._message)[1:-1] for delta in self.feed(inner_event)
                    ]
                self._ended = True
                for begun in self._blocks:
                    begun.end()
            case "message":  # a server that cannot stream
                told = [delta for inner_event in _events_of(event) for delta in self.feed(inner_event)]
            case kind:
                self._error = error_chunk(event, ANSWER_KEYS) or self._error
                if kind is None and not self._error:
                    raise FormatError("missing; every event of the Messages API has a `type`", path="event.type")
        return told

    def _count(self, usage: Any) -> None:
        """Usage is cumulative: later values replace earlier ones. If a later event omits a value or has 0 (compatible
        servers do this), the earlier value stays, unless the event has input tokens: then a 0 in the input counts."""
        if isinstance(usage, Mapping):
            before = self._usage or {}
            sure = INPUT if any(tokens_billed(usage.get(key)) for key in INPUT) else ()
            later = {k: v for k, v in usage.items() if v is not None and (v != 0 or k in sure or not before.get(k))}
            self._usage = {**before, **later}

    def _begin(self, block: _Block) -> None:
        place = self._places.get(block.index)
        if place is not None and self._blocks[place].is_repeated_by(block):
            block.repeat(self._blocks[place])
            self._blocks[place] = block
        else:
            self._places[block.index] = len(self._blocks)
            self._blocks.append(block)

    def _block(self, event: Mapping[str, Any]) -> _Block:
        index = _index(event)
        if index not in self._places:
            raise FormatError(f"block {index} was never started", path="event.index")
        return self._blocks[self._places[index]]

    def reply(self) -> Reply:
        """The answer so far."""
        complete = self._ended and not self._error
        blocks = sorted(self._blocks, key=lambda block: block.index)
        unanswered = set() if complete else _unanswered(blocks)
        content: list[dict[str, Any]] = []
        fragments: list[Part] = []
        for block in blocks:
            whole = block.block()
            if _is_sendable(block, whole, complete) and whole.get("id") not in unanswered:
                content.append(whole)
            elif whole.get("type") != "text":
                fragments.append(block.fragment())
        reply = read_reply({**self._message, "content": content, "usage": self._usage})
        error = self._error or ("" if complete else "the stream ended before message_stop")
        return replace(reply, complete=complete, error=error, fragments=(*fragments, *reply.fragments))


def _is_sendable(block: _Block, whole: Mapping[str, Any], complete: bool) -> bool:
    """Whether the API accepts this block in a request."""
    if block.broken:
        return False
    match whole.get("type"):
        case "text":
            return bool(whole["text"]) or (complete and block.closed)
        case "thinking":
            # "Invalid `signature` in `thinking` block"; the signature comes last.
            return block.closed and (complete or bool(whole.get("signature")))
        case _:
            return block.closed


def _unanswered(blocks: list[_Block]) -> set[Any]:
    """Ids of calls to server tools without a result yet. The API refuses such a call without its result."""
    answered = {block.fields.get("tool_use_id") for block in blocks if block.closed}
    server = ("server_tool_use", "mcp_tool_use")
    return {block.fields.get("id") for block in blocks if block.fields.get("type") in server} - answered - {None}


def _events_of(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A whole answer as the events of a stream."""
    content = answer.get("content")
    if not isinstance(content, list):
        raise FormatError("expected a list of content blocks", path="event.content")
    begun = [{"type": "content_block_start", "index": i, "content_block": block} for i, block in enumerate(content)]
    ended = [{"type": "content_block_stop", "index": i} for i in range(len(content))]
    return [{"type": "message_start", "message": answer}, *begun, *ended, {"type": "message_stop"}]


def _object(holder: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = holder.get(key)
    if not isinstance(value, Mapping):
        raise FormatError("expected an object", path=f"event.{key}")
    return dict(value)


def _index(event: Mapping[str, Any]) -> int:
    index = event.get("index")
    if index is None:
        raise FormatError("expected a number", path="event.index")
    return int(index)
