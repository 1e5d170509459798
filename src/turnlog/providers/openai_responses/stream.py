"""Assemble a streamed answer.

Items are taken from `response.output_item.done`, which contains them whole (in `output_item.added` the encrypted
content of a reasoning item may be partial); deltas are used only for an item without that event. The others of the 59
event types of openai 3.54.0 add nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ...errors import FormatError
from ...log.messages import Opaque, Part, Reasoning, ToolCall
from ..error_bodies import error_chunk
from ..protocol import Delta, Reply
from ..sdk_objects import plain
from .form import NAME
from .item_types import CALLS
from .items import check_item
from .parts import text_part
from .response import check_output, read_response

_CUT = "the stream ended before the response did"
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
# Event type -> (the place of its text, the key of an index inside the item, the key of the text).
_DELTAS = {
    "response.output_text.delta": ("output_text", "content_index", "delta"),
    "response.refusal.delta": ("refusal", "content_index", "delta"),
    "response.function_call_arguments.delta": ("call", "", "delta"),
    "response.custom_tool_call_input.delta": ("call", "", "delta"),
    "response.mcp_call_arguments.delta": ("call", "", "delta"),
    "response.code_interpreter_call_code.delta": ("call", "", "delta"),
    "response.shell_call_command.delta": ("call", "command_index", "delta"),
    "response.reasoning_summary_text.delta": ("summary", "summary_index", "delta"),
    "response.reasoning_text.delta": ("reasoning", "content_index", "delta"),
}
_WHOLES = {
    "response.output_text.done": ("output_text", "content_index", "text"),
    "response.refusal.done": ("refusal", "content_index", "refusal"),
    "response.function_call_arguments.done": ("call", "", "arguments"),
    "response.custom_tool_call_input.done": ("call", "", "input"),
    "response.mcp_call_arguments.done": ("call", "", "arguments"),
    "response.code_interpreter_call_code.done": ("call", "", "code"),
    "response.shell_call_command.done": ("call", "command_index", "command"),
    "response.reasoning_summary_text.done": ("summary", "summary_index", "text"),
    "response.reasoning_text.done": ("reasoning", "content_index", "text"),
}

_TOLD: Mapping[str, Literal["text", "reasoning"]] = {
    "output_text": "text",
    "refusal": "text",
    "summary": "reasoning",
    "reasoning": "reasoning",
}


class _Open:
    """An item that has begun: from `output_item.added`, with its texts by (place, index)."""

    def __init__(self, item: dict[str, Any]) -> None:
        self.item = item
        self.texts: dict[tuple[str, int], str] = {}

    def all(self, place: str) -> list[str]:
        """The texts of one place, in the order of their index."""
        return [text for key, text in sorted(self.texts.items()) if key[0] == place]


class StreamAssembler:
    """Collects the events of one streamed response; see `Assembler`."""

    def __init__(self) -> None:
        self._response: dict[str, Any] = {}
        self._open: dict[int, _Open] = {}
        self._done: dict[int, dict[str, Any]] = {}
        self._moved: dict[int, int] = {}
        self._again: set[int] = set()
        self._ended = False
        self._error = ""

    def feed(self, chunk: Any) -> list[Delta]:
        """Process the next event. Raises FormatError if it is not an event; unknown types are ignored."""
        event = plain(chunk, "event")
        kind = event.get("type")
        if kind is None and isinstance(event.get("output"), list):  # a server that cannot stream
            kind, event = f"response.{event.get('status') or 'completed'}", {"response": event}
        if told := error_chunk(event, ("output",)):
            self._error = told
            return []
        if not isinstance(kind, str):
            raise FormatError("expected an event with a 'type'", path="event")
        if isinstance(event.get("response"), dict):
            output = event["response"].get("output")
            for i, item in enumerate(output if isinstance(output, list) else ()):
                check_output(item, f"event.response.output[{i}]")
            self._response = event["response"]
            self._ended = kind in _ENDS
            if kind == "response.created":  # everything before this event is repeated after it
                self._again, self._moved = {*self._done, *self._open}, {}
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._take_item(kind, event)
        elif kind in _DELTAS:
            return self._take_text(event, *_DELTAS[kind], append=True)
        elif kind in _WHOLES:
            self._take_text(event, *_WHOLES[kind], append=False)
        return []

    def reply(self) -> Reply:
        """The answer so far."""
        if not self._ended or self._error:
            items, fragments = self._so_far(self._done)
            status = "incomplete" if self._ended else ""
            seen = {**self._response, "status": status, "incomplete_details": None, "error": None, "output": items}
            return read_response(seen, fragments, self._error or _CUT)
        # Some servers omit the items in the last event, some send no `done` for a truncated item, some do both.
        output = self._response.get("output")
        longer = isinstance(output, list) and len(output) > len(self._done)
        items, fragments = self._so_far(dict(enumerate(output or ())) if longer else self._done)
        return read_response({**self._response, "output": items}, fragments)

    def _take_item(self, kind: str, event: dict[str, Any]) -> None:
        item = check_item(event.get("item"), "event.item")
        index = _index(event, "output_index")
        number = self._moved.get(index, index)
        begins = kind == "response.output_item.added"
        if number not in self._again and self._is_taken(number, item, begins):  # the server numbers all items alike
            number = self._moved[index] = 1 + max((*self._done, *self._open))
        self._again.discard(number)
        if begins:
            self._open[number] = _Open(item)
        else:
            self._done[number] = check_output(item, "event.item")
            self._open.pop(number, None)

    def _is_taken(self, number: int, item: dict[str, Any], begins: bool) -> bool:
        """Whether another item has this number. The next item with the number of an open item closes it, whatever its
        id: some servers make a new id for each event."""
        opened, done = self._open.get(number), self._done.get(number)
        if opened is not None:
            return begins and bool(opened.texts) and not _is_same(opened.item, item)
        return done is not None and done != item and not _is_same(done, item)

    def _take_text(
        self, event: dict[str, Any], place: str, index_key: str, text_key: str, *, append: bool
    ) -> list[Delta]:
        index = _index(event, "output_index")
        opened = self._open.get(self._moved.get(index, index))
        text = event.get(text_key)
        if opened is None or not isinstance(text, str):
            return []
        key = (place, _index(event, index_key) if index_key else 0)
        opened.texts[key] = opened.texts.get(key, "") + text if append else text
        return [Delta(_TOLD[place], text)] if text and place in _TOLD else []

    def _so_far(self, whole: Mapping[int, dict[str, Any]]) -> tuple[list[dict[str, Any]], tuple[Part, ...]]:
        """Items that can be read unchanged, and fragments of the others, in order. Items that are not in `whole` are
        made from their deltas."""
        ids = {_id(item) for item in whole.values()} - {None}

        def is_missing(index: int, item: dict[str, Any]) -> bool:
            listed = whole.get(index)  # the same item, or another if the server omitted some
            return _id(item) not in ids and (listed is None or None not in (_id(item), _id(listed)))

        entries: list[tuple[int, dict[str, Any] | _Open]] = list(whole.items())
        entries += [(index, item) for index, item in self._done.items() if is_missing(index, item)]
        entries += [(index, opened) for index, opened in self._open.items() if is_missing(index, opened.item)]
        items: list[dict[str, Any]] = []
        fragments: list[Part] = []
        for _, received in sorted(entries, key=lambda entry: entry[0]):
            if isinstance(received, dict):
                items.append(received)
            elif received.item.get("type") == "message":
                items.extend(_half_message(received))
            else:
                fragments.append(_fragment(received))
        return items, tuple(fragments)


def _index(event: dict[str, Any], key: str) -> int:
    value = event.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _half_message(opened: _Open) -> list[dict[str, Any]]:
    """The message item of the text so far, without an id; empty list if there is no text."""
    content = [
        text_part(text, "assistant", refusal=kind == "refusal")
        for kind in ("output_text", "refusal")
        for text in opened.all(kind)
        if text
    ]
    head = {key: value for key, value in opened.item.items() if key not in ("id", "status", "content")}
    return [{**head, "role": "assistant", "content": content}] if content else []


def _id(item: Mapping[str, Any]) -> str | None:
    item_id = item.get("id")
    return item_id if isinstance(item_id, str) else None


def _is_same(other: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    return _id(item) is not None and _id(item) == _id(other)


def _fragment(opened: _Open) -> Part:
    item = opened.item
    kind = item.get("type")
    if kind == "reasoning":
        return Reasoning(NAME, text="".join(opened.all("reasoning")), summary=tuple(opened.all("summary")))
    if kind in CALLS:
        spec = CALLS[kind]
        call_id, name = item.get("call_id"), item.get("name")
        return ToolCall(
            call_id if isinstance(call_id, str) else "",
            name if isinstance(name, str) else spec.name,
            raw="\n".join(opened.all("call")),
            kind=spec.kind,
        )
    return Opaque(NAME, kind if isinstance(kind, str) else "", item)
