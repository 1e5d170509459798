"""A view as a Messages API request body."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from ...errors import BlobMissing
from ...log.messages import (
    Form,
    Media,
    Message,
    Opaque,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
    extra_keys,
    free_text,
)
from ...log.records import Configuration
from ...models.target import Target
from ...view.repair.media_room import longest_side
from ...view.types import Edit, Loss, Shown
from ..protocol import BlobReader, Rendered
from .blocks import (
    NAME,
    call_block,
    content_shape,
    document_text,
    is_inline,
    media_block,
    own_shape,
    plain_content,
    reasoning_block,
    result_block,
    result_content,
    spelled,
    text_block,
)
from .known import is_block
from .rules import IMAGE_MAX_BASE64, IMAGE_MAX_SIDE

_Blocks = list[dict[str, Any]]

_TOP = 'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter.'


def render(view: Sequence[Shown], configuration: Configuration, target: Target, blob: BlobReader) -> Rendered:
    """The request body for a view: `configuration.settings` as they are, for `target.model`."""
    renderer = _Renderer(blob)
    system, rest = _split(view)
    request: dict[str, Any] = {"model": target.model, **configuration.settings}
    if system:
        request["system"] = renderer.system(system)
    if configuration.tools:
        request["tools"] = renderer.tools(configuration.tools)
    request["messages"] = renderer.messages(rest)
    form = configuration.form
    if form is not None and form.provider == NAME and form.delta is not None:
        for key, value in form.delta.get("+", {}).items():
            request.setdefault(key, value)
        for key in form.delta.get("-", ()):
            request.pop(key, None)
    return Rendered(body=request, losses=tuple(renderer.losses), edits=tuple(renderer.edits))


def _split(view: Sequence[Shown]) -> tuple[Sequence[Shown], Sequence[Shown]]:
    """Leading system messages, and the rest."""
    leading = 0
    while leading < len(view) and view[leading].message.role == "system":
        leading += 1
    return view[:leading], view[leading:]


def _last_results(view: Sequence[Shown]) -> frozenset[int]:
    """The last message with results of each user turn: the API takes consecutive user messages as one
    turn, and wants all its results ahead of everything else."""
    last: set[int] = set()
    found = False
    for i in reversed(range(len(view))):
        message = view[i].message
        if message.role == "assistant":
            found = False
        elif not found and any(isinstance(part, ToolResult) for part in message.parts):
            found = True
            last.add(i)
    return frozenset(last)


def _is_too_large(source: dict[str, Any]) -> bool:
    return source["type"] == "base64" and len(source["data"]) > IMAGE_MAX_BASE64


class _Renderer:
    """Renders one view; collects what it cannot express in `losses`, what it must move in `edits`."""

    def __init__(self, blob: BlobReader) -> None:
        self.blob = blob
        self.losses: list[Loss] = []
        self.edits: list[Edit] = []
        self.records: tuple[int, ...] = ()
        self.moved: _Blocks = []

    def _lose(self, kind: str, detail: str) -> None:
        self.losses.append(Loss(kind, detail, self.records))

    def _extras(self, form: Form | None, what: str) -> None:
        if form is not None and form.provider != NAME:
            for key in extra_keys(form):
                self._lose("extra", f"{key!r} of a {what} as {form.provider} had it left out")

    def _begin(self, shown: Shown) -> None:
        """Declares what has no place here of a message as a whole."""
        message, self.records = shown.message, shown.records
        self._extras(message.form, f"{message.role} message")
        if message.name:
            self._lose("extra", f"author's name {message.name!r} left out: this provider has no place for it")

    def system(self, leading: Sequence[Shown]) -> str | _Blocks:
        """Top-level system text: a string if it is one plain text that was not seen as a list."""
        blocks: _Blocks = []
        listed = False
        for shown in leading:
            self._begin(shown)
            listed = listed or content_shape(shown.message.form) == "list"
            if is_inline(shown.message.form):
                self.edits.append(
                    Edit("place", "leading system message made top-level system text", shown.records, _TOP)
                )
            for part in shown.message.parts:
                if isinstance(part, Text):
                    blocks.append(self._text(part))
                else:
                    self._lose("media" if isinstance(part, Media) else "opaque", "only text fits top-level system text")
        return blocks if listed else plain_content(blocks)

    def messages(self, view: Sequence[Shown]) -> _Blocks:
        last = _last_results(view)
        rendered = (self.message(shown, i in last) for i, shown in enumerate(view))
        return [message for message in rendered if message is not None]

    def message(self, shown: Shown, last_results: bool) -> dict[str, Any] | None:
        """A message, or None if nothing of it could be expressed."""
        message = shown.message
        self._begin(shown)
        shape = content_shape(message.form)
        blocks = self._ordered(message, shape, last_results)
        if message.parts and not blocks:
            return None
        wire: dict[str, Any] = spelled({"role": message.role}, message.form)
        if blocks or shape not in ("absent", "null"):
            wire["content"] = blocks if shape in ("list", "mixed") else plain_content(blocks)
        elif shape == "null":
            wire["content"] = None
        return wire

    def _ordered(self, message: Message, shape: str, last_results: bool) -> _Blocks:
        """The blocks of a message, results first (the API's rule) unless another order was seen. What
        failed results may not hold follows the last results of the turn."""
        results: _Blocks = []
        others: _Blocks = []
        as_seen = shape == "mixed"
        for part in message.parts:
            if isinstance(part, ToolResult):
                if others and not as_seen:
                    self._lose("place", f"result of call {part.call_id!r} put ahead of the message's other content")
                (others if as_seen else results).append(self._result(part))
            else:
                others += self._part(part)
        if not last_results:
            return [*results, *others]
        moved, self.moved = self.moved, []
        return [*others, *moved] if as_seen else [*results, *moved, *others]

    def _part(self, part: Any) -> _Blocks:
        """The block of a part that is no result, or none."""
        match part:
            case Text():
                return [self._text(part)]
            case Media():
                return [self._media(part)]
            case Reasoning():
                self._extras(part.form, "reasoning")
                if part.provider != NAME:
                    self._lose("reasoning", f"reasoning of {part.provider} left out")
                    return []
                return [spelled(reasoning_block(part), part.form)]
            case ToolCall():
                self._extras(part.form, "call")
                if part.signature:
                    self._lose("reasoning", f"{part.provider} signature of call {part.id!r} left out")
                return [spelled(call_block(part), part.form)]
            case Opaque() if part.provider == NAME and is_block(part.data):
                return [part.data]
            case Opaque() | Unknown():
                self._lose("opaque", f"{part.kind!r} of {getattr(part, 'provider', 'a newer version')} left out")
        return []

    def _text(self, part: Text) -> dict[str, Any]:
        self._extras(part.form, "text")
        return spelled(text_block(part), part.form)

    def _media(self, part: Media) -> dict[str, Any]:
        """The block of a medium, or a text that says what is missing."""
        self._extras(part.form, part.kind)
        if part.name and part.kind == "image":
            self._lose("extra", f"name {part.name!r} of an image left out")
        why = "this provider takes none such, or its bytes are gone"
        try:
            block = media_block(part, self._payload(part))
        except BlobMissing:
            block = None
        except UnicodeDecodeError:
            block, why = None, "its text is in no encoding that is known"
        if block is not None and block["type"] == "image" and _is_too_large(block["source"]):
            block, why = None, f"image exceeds {IMAGE_MAX_BASE64:,} characters of base64"
        elif longest_side(part, self.blob) > IMAGE_MAX_SIDE:
            block, why = None, f"image has a side of more than {IMAGE_MAX_SIDE:,} pixels"
        if block is None:
            label = part.name or part.mime or part.kind
            self._lose("media", f"{part.kind} {label} left out: {why}")
            return {"type": "text", "text": f"[{part.kind} left out: {label}]"}
        declared = block["source"].get("media_type", part.mime)
        if declared != part.mime:
            self._lose("media_type", f"{part.kind} declared as {part.mime} sent as {declared}")
        return spelled(block, part.form)

    def _payload(self, part: Media) -> str:
        """What the source of a medium holds: text, base64, or base64 as it was seen."""
        if not part.sha256 or media_block(part, "") is None:
            return ""
        literal = own_shape(part.form).partition(":")[2]
        if literal:
            return self.blob(literal).decode("utf-8", "surrogatepass")
        data = self.blob(part.sha256)
        source = (media_block(part, "") or {})["source"]
        return document_text(data) if source["type"] in ("text", "content") else base64.b64encode(data).decode("ascii")

    def _result(self, part: ToolResult) -> dict[str, Any]:
        """A result. What a failed one may not hold is put aside in `moved`."""
        self._extras(part.form, "result")
        failed = part.outcome != "ok"
        if part.outcome not in ("ok", "failed") and not part.synthetic:  # that one says so itself
            self._lose("outcome", f"outcome {part.outcome!r} of call {part.call_id!r} is sent as an error")
        blocks = [block for inner in part.parts for block in self._part(inner)]
        if failed:
            blocks = self._texts_only(blocks, part.call_id)
        shape = own_shape(part.form)
        wire = spelled(result_block(part), part.form)
        if shape == "list":
            return {**wire, "content": blocks}
        if not blocks and shape in ("absent", "null"):
            return wire if shape == "absent" else {**wire, "content": None}
        if not blocks and shape == "string" and not failed:
            return {**wire, "content": ""}
        if failed and not blocks:
            self._lose("outcome", f"failed result of call {part.call_id!r} says nothing: sent with a placeholder")
        return {**wire, **result_content(blocks, failed)}

    def _texts_only(self, blocks: _Blocks, call_id: str) -> _Blocks:
        """The API's rule: "all content must be type "text" if "is_error" is true"."""
        texts: _Blocks = []
        for block in blocks:
            if block.get("type") == "text":
                texts.append(block)
            elif block.get("type") in ("image", "document", "search_result"):
                self._lose("place", f"{block['type']} of failed call {call_id!r} shown behind the results")
                self.moved.append(block)
            else:
                self._lose("opaque", f"{block.get('type')!r} of failed call {call_id!r} left out: no text")
        return texts

    def tools(self, tools: Sequence[Tool]) -> _Blocks:
        self.records = ()
        return [block for tool in tools for block in self._tool(tool)]

    def _tool(self, tool: Tool) -> _Blocks:
        self._extras(tool.form, "tool")
        if tool.kind == "hosted":
            if tool.provider == NAME and isinstance(tool.data, dict):
                return [tool.data]
            self._lose("tool", f"tool {tool.name!r} is run by {tool.provider}: left out")
            return []
        schema = tool.parameters or {"type": "object", "properties": {}}
        if tool.kind == "custom":
            self._lose("tool", f"free-text tool {tool.name!r} offered as a function with a text 'input'")
            schema = free_text()
        default: dict[str, Any] = {"name": tool.name, "input_schema": schema}
        if tool.description:
            default["description"] = tool.description
        return [spelled(default, tool.form)]
