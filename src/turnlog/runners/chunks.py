"""Write an answer as the chunks of a stream, in each provider's format: for models that have no format of their own.

The chunks are what the provider's API would stream, as far as turnlog reads it. `Pieces` are text, reasoning and calls;
reasoning has no signature, so it is shown and recorded, and not sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from ..log.messages import ToolCall
from ..log.usage import Usage

Chunk = dict[str, Any]
Speech = Literal["text", "reasoning"]


class ChunkWriter:
    """Writes one answer of `model`. Subclasses write the parts of it in one format."""

    def __init__(self, model: str, answer_id: str) -> None:
        self.model = model
        self.id = answer_id
        self.begun = False
        self.open: Speech | Literal[""] = ""
        self.said = ""
        """The text of the open part so far."""
        self.index = -1
        """The number of the open part, or of the last one."""
        self.called = False

    def say(self, kind: Speech, text: str) -> list[Chunk]:
        """Add text to the answer or to its reasoning."""
        made = self._started()
        if self.open != kind:
            made += [*self._ended(), *self._next(kind)]
        self.said += text
        return [*made, *self._piece(kind, text)]

    def call(self, call: ToolCall) -> list[Chunk]:
        """Add a tool call."""
        made = [*self._started(), *self._ended()]
        self.index += 1
        self.called = True
        return [*made, *self._call(call)]

    def end(self, usage: Usage | None = None) -> list[Chunk]:
        """End the answer."""
        return [*self._started(), *self._ended(), *self._end(usage or Usage(), usage is not None)]

    def _started(self) -> list[Chunk]:
        if self.begun:
            return []
        self.begun = True
        return self._start()

    def _next(self, kind: Speech) -> list[Chunk]:
        self.open, self.said = kind, ""
        self.index += 1
        return self._begin(kind)

    def _ended(self) -> list[Chunk]:
        kind, self.open = self.open, ""
        return self._close(kind) if kind else []

    def _start(self) -> list[Chunk]:
        return []

    def _begin(self, kind: Speech) -> list[Chunk]:
        return []

    def _piece(self, kind: Speech, text: str) -> list[Chunk]:
        raise NotImplementedError

    def _close(self, kind: Speech) -> list[Chunk]:
        return []

    def _call(self, call: ToolCall) -> list[Chunk]:
        raise NotImplementedError

    def _end(self, usage: Usage, billed: bool) -> list[Chunk]:
        raise NotImplementedError


class _Chat(ChunkWriter):
    def __init__(self, model: str, answer_id: str) -> None:
        super().__init__(model, answer_id)
        self._calls = 0

    def _chunk(self, delta: Chunk, finish: str | None = None) -> Chunk:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": self.id, "object": "chat.completion.chunk", "model": self.model, "choices": [choice]}

    def _piece(self, kind: Speech, text: str) -> list[Chunk]:
        return [self._chunk({"content" if kind == "text" else "reasoning_content": text})]

    def _call(self, call: ToolCall) -> list[Chunk]:
        function = {"name": call.name, "arguments": call.raw_arguments}
        entry = {"index": self._calls, "id": call.id, "type": "function", "function": function}
        self._calls += 1
        return [self._chunk({"tool_calls": [entry]})]

    def _end(self, usage: Usage, billed: bool) -> list[Chunk]:
        last = self._chunk({}, "tool_calls" if self.called else "stop")
        bill = {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cached},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
        }
        return [last, {**self._chunk({}), "choices": [], "usage": bill}] if billed else [last]


class _Responses(ChunkWriter):
    def __init__(self, model: str, answer_id: str) -> None:
        super().__init__(model, answer_id)
        self._items: list[Chunk] = []

    def _response(self, **more: Any) -> Chunk:
        return {"id": self.id, "object": "response", "model": self.model, **more}

    def _at(self, event: str, **more: Any) -> Chunk:
        return {"type": f"response.{event}", "output_index": self.index, **more}

    def _item(self, kind: Speech) -> Chunk:
        own = f"item_{self.id}_{self.index}"
        if kind == "reasoning":
            return {"type": "reasoning", "id": own, "summary": [{"type": "summary_text", "text": self.said}]}
        content = [{"type": "output_text", "text": self.said, "annotations": []}]
        return {"type": "message", "id": own, "role": "assistant", "status": "completed", "content": content}

    def _start(self) -> list[Chunk]:
        return [{"type": "response.created", "response": self._response(status="in_progress", output=[])}]

    def _begin(self, kind: Speech) -> list[Chunk]:
        empty = {"summary": []} if kind == "reasoning" else {"content": [], "status": "in_progress"}
        return [self._at("output_item.added", item={**self._item(kind), **empty})]

    def _piece(self, kind: Speech, text: str) -> list[Chunk]:
        if kind == "reasoning":
            return [self._at("reasoning_summary_text.delta", summary_index=0, delta=text)]
        return [self._at("output_text.delta", content_index=0, delta=text)]

    def _close(self, kind: Speech) -> list[Chunk]:
        return self._done(self._item(kind))

    def _done(self, item: Chunk) -> list[Chunk]:
        self._items.append(item)
        return [self._at("output_item.done", item=item)]

    def _call(self, call: ToolCall) -> list[Chunk]:
        head = {"type": "function_call", "id": f"item_{self.id}_{self.index}", "call_id": call.id, "name": call.name}
        begun = self._at("output_item.added", item={**head, "arguments": "", "status": "in_progress"})
        return [begun, *self._done({**head, "arguments": call.raw_arguments, "status": "completed"})]

    def _end(self, usage: Usage, billed: bool) -> list[Chunk]:
        bill = {
            "input_tokens": usage.input,
            "input_tokens_details": {"cached_tokens": usage.cached},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning},
            "total_tokens": usage.input + usage.output,
        }
        more = {"usage": bill} if billed else {}
        whole = self._response(status="completed", output=self._items, **more)
        return [{"type": "response.completed", "response": whole}]


class _Anthropic(ChunkWriter):
    def _start(self) -> list[Chunk]:
        head = {"id": self.id, "type": "message", "role": "assistant", "model": self.model, "content": []}
        return [{"type": "message_start", "message": {**head, "stop_reason": None, "stop_sequence": None}}]

    def _block(self, block: Chunk) -> Chunk:
        return {"type": "content_block_start", "index": self.index, "content_block": block}

    def _delta(self, delta: Chunk) -> Chunk:
        return {"type": "content_block_delta", "index": self.index, "delta": delta}

    def _begin(self, kind: Speech) -> list[Chunk]:
        empty = (
            {"type": "text", "text": ""} if kind == "text" else {"type": "thinking", "thinking": "", "signature": ""}
        )
        return [self._block(empty)]

    def _piece(self, kind: Speech, text: str) -> list[Chunk]:
        key = "text" if kind == "text" else "thinking"
        return [self._delta({"type": f"{key}_delta", key: text})]

    def _close(self, kind: Speech) -> list[Chunk]:
        return [{"type": "content_block_stop", "index": self.index}]

    def _call(self, call: ToolCall) -> list[Chunk]:
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        pieces = self._delta({"type": "input_json_delta", "partial_json": call.raw_arguments})
        return [self._block(block), pieces, *self._close("text")]

    def _end(self, usage: Usage, billed: bool) -> list[Chunk]:
        bill = {
            "input_tokens": usage.input - usage.cached - usage.cache_write,
            "cache_read_input_tokens": usage.cached,
            "cache_creation_input_tokens": usage.cache_write,
            "output_tokens": usage.output,
        }
        stop = {"stop_reason": "tool_use" if self.called else "end_turn", "stop_sequence": None}
        more = {"usage": bill} if billed else {}
        return [{"type": "message_delta", "delta": stop, **more}, {"type": "message_stop"}]


class _Google(ChunkWriter):
    def _chunk(self, parts: list[Chunk], **more: Any) -> Chunk:
        candidate = {"content": {"parts": parts, "role": "model"}, "index": 0, **more}
        return {"candidates": [candidate], "modelVersion": self.model, "responseId": self.id}

    def _piece(self, kind: Speech, text: str) -> list[Chunk]:
        return [self._chunk([{"text": text, **({"thought": True} if kind == "reasoning" else {})}])]

    def _call(self, call: ToolCall) -> list[Chunk]:
        return [self._chunk([{"functionCall": {"id": call.id, "name": call.name, "args": _object(call)}}])]

    def _end(self, usage: Usage, billed: bool) -> list[Chunk]:
        bill = {
            "promptTokenCount": usage.input,
            "candidatesTokenCount": usage.output - usage.reasoning,
            "thoughtsTokenCount": usage.reasoning,
            "cachedContentTokenCount": usage.cached,
            "totalTokenCount": usage.input + usage.output,
        }
        return [{**self._chunk([], finishReason="STOP"), **({"usageMetadata": bill} if billed else {})}]


class _Interactions(ChunkWriter):
    def _interaction(self, event: str, **more: Any) -> Chunk:
        interaction = {"id": self.id, "object": "interaction", "model": self.model, **more}
        return {"event_type": f"interaction.{event}", "interaction": interaction}

    def _at(self, event: str, **more: Any) -> Chunk:
        return {"event_type": f"step.{event}", "index": self.index, **more}

    def _start(self) -> list[Chunk]:
        return [self._interaction("created", status="in_progress")]

    def _begin(self, kind: Speech) -> list[Chunk]:
        return [self._at("start", step={"type": "model_output" if kind == "text" else "thought"})]

    def _piece(self, kind: Speech, text: str) -> list[Chunk]:
        content = {"type": "text", "text": text}
        return [self._at("delta", delta=content if kind == "text" else {"type": "thought_summary", "content": content})]

    def _close(self, kind: Speech) -> list[Chunk]:
        return [self._at("stop")]

    def _call(self, call: ToolCall) -> list[Chunk]:
        step = {"type": "function_call", "id": call.id, "name": call.name, "arguments": _object(call)}
        return [self._at("start", step=step), self._at("stop")]

    def _end(self, usage: Usage, billed: bool) -> list[Chunk]:
        bill = {
            "total_input_tokens": usage.input,
            "total_cached_tokens": usage.cached,
            "total_output_tokens": usage.output - usage.reasoning,
            "total_thought_tokens": usage.reasoning,
            "total_tokens": usage.input + usage.output,
        }
        status = "requires_action" if self.called else "completed"
        return [self._interaction("completed", status=status, **({"usage": bill} if billed else {}))]


def _object(call: ToolCall) -> Any:
    """The arguments of a call as an object, for formats that have no text of them."""
    return call.arguments if isinstance(call.arguments, dict) else {"input": call.raw_arguments}


_WRITERS: Mapping[str, Callable[[str, str], ChunkWriter]] = {
    "openai-chat": _Chat,
    "openai-responses": _Responses,
    "anthropic": _Anthropic,
    "google": _Google,
    "google-interactions": _Interactions,
}


def chunk_writer(provider: str, model: str, answer_id: str) -> ChunkWriter:
    """A writer of one answer in the format of a provider."""
    return _WRITERS[provider](model, answer_id)


def ran_tool(name: str, arguments: Any) -> Chunk:
    """A chunk that tells of a tool that a program ran by itself. It is no part of the answer: the readers of all
    formats pass it over."""
    return {"type": RAN_TOOL, "event_type": RAN_TOOL, "responseId": "", "tool": {"name": name, "arguments": arguments}}


RAN_TOOL = "turnlog.ran_tool"
"""The type of the chunks of `ran_tool`."""
