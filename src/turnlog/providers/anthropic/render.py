"""Write a view as a request body of the Messages API."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from ...errors import BlobMissing
from ...log.messages import (
    Media,
    Message,
    Opaque,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
    parse_arguments,
)
from ...log.records import Configuration
from ...models.target import Target
from ...view.repair.media_room import longest_side
from ...view.types import Edit, Shown
from ..edits import Losses
from ..protocol import BlobReader, Rendered, SdkCall
from ..spelling import without
from .form import FORMS, NAME
from .media import media_block, payload_of
from .parts import (
    call_block,
    is_block,
    plain_content,
    reasoning_block,
    result_block,
    result_content,
    text_block,
    tool_block,
)
from .rules import IMAGE_MAX_BASE64, IMAGE_MAX_SIDE

_Blocks = list[dict[str, Any]]

_TOP = 'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter.'


def render(view: Sequence[Shown], configuration: Configuration, target: Target, blob: BlobReader) -> Rendered:
    """The request body for a view, with `configuration.settings` unchanged, for `target.model`."""
    renderer = _Renderer(blob)
    leading = sum(1 for _ in takewhile(lambda shown: shown.message.role == "system", view))
    system, rest = view[:leading], view[leading:]
    request: dict[str, Any] = {"model": target.model, **configuration.settings}
    if system:
        request["system"] = renderer.system(system)
    if configuration.tools:
        request["tools"] = renderer.tools(configuration.tools)
    request["messages"] = renderer.messages(rest)
    delta = FORMS.delta(configuration.form) or {}
    for key, value in delta.get("+", {}).items():
        request.setdefault(key, value)
    request = without(request, *delta.get("-", ()))
    return Rendered(body=request, losses=tuple(renderer.losses.made), edits=tuple(renderer.edits))


def _last_results(view: Sequence[Shown]) -> frozenset[int]:
    """The indexes of the last message with results in each user turn. The API treats consecutive user messages as one
    turn, and requires its results before everything else."""
    last: set[int] = set()
    has_results = False
    for i in reversed(range(len(view))):
        message = view[i].message
        if message.role == "assistant":
            has_results = False
        elif not has_results and any(isinstance(part, ToolResult) for part in message.parts):
            has_results = True
            last.add(i)
    return frozenset(last)


def _is_too_large(source: dict[str, Any]) -> bool:
    return source["type"] == "base64" and len(source["data"]) > IMAGE_MAX_BASE64


class _Renderer:
    """Renders one view. What cannot be expressed is added to `losses`, what must be moved to `edits`."""

    def __init__(self, blob: BlobReader) -> None:
        self.blob = blob
        self.losses = Losses(NAME, apart=True)
        self.edits: list[Edit] = []
        self.moved: _Blocks = []

    def _begin(self, shown: Shown) -> None:
        self.losses.begin(shown)
        self.losses.author(shown.message.name)

    def system(self, leading: Sequence[Shown]) -> str | _Blocks:
        """The top-level system text: a string if it is one plain text and was not read from a list."""
        blocks: _Blocks = []
        listed = False
        for shown in leading:
            self._begin(shown)
            listed = listed or FORMS.says(shown.message.form, "list")
            if FORMS.says(shown.message.form, "inline"):
                self.edits.append(
                    Edit("place", "leading system message made top-level system text", shown.records, _TOP)
                )
            for part in shown.message.parts:
                if isinstance(part, Text):
                    blocks.append(self._text(part))
                else:
                    kind = "media" if isinstance(part, Media) else "opaque"
                    self.losses.add(kind, "only text fits top-level system text")
        return blocks if listed else plain_content(blocks)

    def messages(self, view: Sequence[Shown]) -> _Blocks:
        last = _last_results(view)
        rendered = (self.message(shown, i in last) for i, shown in enumerate(view))
        return [message for message in rendered if message is not None]

    def message(self, shown: Shown, last_results: bool) -> dict[str, Any] | None:
        """The message as sent, or None if nothing remains."""
        message = shown.message
        self._begin(shown)
        words = FORMS.words(message.form)
        blocks = self._ordered(message, last_results, as_seen="mixed" in words)
        if message.parts and not blocks:
            return None
        wire: dict[str, Any] = FORMS.spelled({"role": message.role}, message.form)
        if not blocks and "absent" in words:
            return wire
        listed = "list" in words or "mixed" in words
        content = None if not blocks and "null" in words else blocks if listed else plain_content(blocks)
        return {**wire, "content": content}

    def _ordered(self, message: Message, last_results: bool, *, as_seen: bool) -> _Blocks:
        """The blocks of a message: results first, as the API requires, unless the message had another order. Blocks
        that failed results may not contain follow the last results of the turn."""
        results: _Blocks = []
        others: _Blocks = []
        for part in message.parts:
            if isinstance(part, ToolResult):
                if others and not as_seen:
                    self.losses.add("place", f"result of call {part.call_id!r} put ahead of other content")
                (others if as_seen else results).append(self._result(part))
            else:
                others += self._part(part)
        if not last_results:
            return [*results, *others]
        moved, self.moved = self.moved, []
        return [*others, *moved] if as_seen else [*results, *moved, *others]

    def _part(self, part: Any) -> _Blocks:
        """The block of a part that is not a result; empty if it cannot be sent."""
        match part:
            case Text():
                return [self._text(part)]
            case Media():
                return [self._media(part)]
            case Reasoning():
                self.losses.extras(part.form, "reasoning")
                if part.provider != NAME:
                    self.losses.add("reasoning", f"reasoning of {part.provider} left out")
                    return []
                return [FORMS.spelled(reasoning_block(part), part.form)]
            case ToolCall():
                self.losses.extras(part.form, "call")
                if part.signature:
                    self.losses.add("reasoning", f"{part.provider} signature of call {part.id!r} left out")
                return [FORMS.spelled(call_block(part), part.form)]
            case Opaque() if part.provider == NAME and is_block(part.data):
                return [part.data]
            case Opaque() | Unknown():
                self.losses.add("opaque", f"{part.kind!r} of {getattr(part, 'provider', 'a newer version')} left out")
        return []

    def _text(self, part: Text) -> dict[str, Any]:
        self.losses.extras(part.form, "text")
        return FORMS.spelled(text_block(part), part.form)

    def _media(self, part: Media) -> dict[str, Any]:
        """The block of media, or a text that describes the missing media."""
        self.losses.extras(part.form, part.kind)
        if part.name and part.kind == "image":
            self.losses.add("extra", f"name {part.name!r} of an image left out")
        reason = "this provider takes none such, or its bytes are gone"
        try:
            block = media_block(part, payload_of(part, self.blob))
        except BlobMissing:
            block = None
        except UnicodeDecodeError:
            block, reason = None, "its text is in no encoding that is known"
        if block is not None and block["type"] == "image" and _is_too_large(block["source"]):
            block, reason = None, f"image exceeds {IMAGE_MAX_BASE64:,} characters of base64"
        elif longest_side(part, self.blob) > IMAGE_MAX_SIDE:
            block, reason = None, f"image has a side of more than {IMAGE_MAX_SIDE:,} pixels"
        if block is None:
            label = part.name or part.mime or part.kind
            self.losses.add("media", f"{part.kind} {label} left out: {reason}")
            return {"type": "text", "text": f"[{part.kind} left out: {label}]"}
        declared = block["source"].get("media_type", part.mime)
        if declared != part.mime:
            self.losses.add("media_type", f"{part.kind} declared as {part.mime} sent as {declared}")
        return FORMS.spelled(block, part.form)

    def _result(self, part: ToolResult) -> dict[str, Any]:
        """A result. Blocks that a failed result may not contain are added to `moved`."""
        self.losses.extras(part.form, "result")
        failed = part.outcome != "ok"
        if part.outcome not in ("ok", "failed") and not part.synthetic:  # its text contains the outcome
            self.losses.add("outcome", f"outcome {part.outcome!r} of call {part.call_id!r} is sent as an error")
        blocks = [block for inner in part.parts for block in self._part(inner)]
        if failed:
            blocks = self._texts_only(blocks, part.call_id)
        shape = FORMS.shape(part.form)
        wire = FORMS.spelled(result_block(part), part.form)
        if shape == "list":
            return {**wire, "content": blocks}
        if shape == "object" and isinstance(text := plain_content(blocks), str):
            value, raw = parse_arguments(text)
            return {**wire, "content": value if raw is None and isinstance(value, dict) else text}
        if not blocks and shape in ("absent", "null"):
            return wire if shape == "absent" else {**wire, "content": None}
        if not blocks and shape == "string" and not failed:
            return {**wire, "content": ""}
        if failed and not blocks:
            self.losses.add("outcome", f"failed result of call {part.call_id!r} says nothing: sent with a placeholder")
        return {**wire, **result_content(blocks, failed)}

    def _texts_only(self, blocks: _Blocks, call_id: str) -> _Blocks:
        """The API's rule: "all content must be type "text" if "is_error" is true"."""
        texts: _Blocks = []
        for block in blocks:
            if block.get("type") == "text":
                texts.append(block)
            elif block.get("type") in ("image", "document", "search_result"):
                self.losses.add("place", f"{block['type']} of failed call {call_id!r} shown behind the results")
                self.moved.append(block)
            else:
                self.losses.add("opaque", f"{block.get('type')!r} of failed call {call_id!r} left out: no text")
        return texts

    def tools(self, tools: Sequence[Tool]) -> _Blocks:
        self.losses.records = ()
        return [block for tool in tools for block in self._tool(tool)]

    def _tool(self, tool: Tool) -> _Blocks:
        self.losses.extras(tool.form, "tool")
        if tool.kind == "hosted":
            if tool.provider == NAME and isinstance(tool.data, dict):
                return [tool.data]
            self.losses.add("tool", f"tool {tool.name!r} is run by {tool.provider}: left out")
            return []
        if tool.kind == "custom":
            self.losses.add("tool", f"free-text tool {tool.name!r} offered as a function with a text 'input'")
        return [FORMS.spelled(tool_block(tool), tool.form)]


def sdk_call(body: dict[str, Any], target: Target, streamed: bool) -> SdkCall:
    """The call that sends a body; only the beta client has the argument `betas`."""
    method = "beta.messages.create" if "betas" in body else "messages.create"
    return SdkCall(method, {**body, **({"stream": True} if streamed else {})}, extra_body=True)
