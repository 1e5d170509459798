"""Read and write items: messages, reasoning, calls, results, and opaque ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import FormatError
from ...log.messages import Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from ...log.records import Configuration
from ..protocol import BlobReader, Parsed
from ..schema.shapes import ANY, STRING
from ..schema.walk import check_types
from ..spelling import spell, string
from .calls import is_client_call, is_client_result, read_call, read_result
from .form import FORMS, NAME
from .item_types import ROLES, item_type, links
from .parts import read_content, text_part, write_content
from .schema import BODY, ITEM
from .tools import read_tools

_CANONICAL_ROLE: dict[str, Role] = {
    "assistant": "assistant",
    "user": "user",
    "system": "system",
    "developer": "system",
}


# -- reading -------------------------------------------------------------------------------------


def check_item(item: Any, path: str) -> dict[str, Any]:
    """The item. Raises FormatError if it is not an object, or if a value has a wrong JSON type."""
    if not isinstance(item, dict):
        raise FormatError("expected an item, an object", path=path)
    check_types(item.get("type"), STRING, f"{path}.type")
    check_types(item, ITEM.shapes.get(item_type(item), ANY), path)
    return item


def read_items(items: list[Any], blobs: dict[str, bytes], key: str = "input") -> list[Message]:
    """One message for each item of the list at `key`. Raises FormatError with the path of the item."""
    for i, item in enumerate(items):
        check_item(item, f"{key}[{i}]")
    called: dict[str, ToolCall] = {}
    messages: list[Message] = []
    for i, (item, linked) in enumerate(zip(items, links(items), strict=True)):
        path = f"{key}[{i}]"
        if item_type(item) == "message":
            messages.append(_read_message(item, linked, path, blobs))
            continue
        part = _read_part_item(item, linked, path, called, blobs)
        role: Role = "user" if isinstance(part, ToolResult) else "assistant"
        if isinstance(part, Opaque):
            role = _CANONICAL_ROLE[ROLES.get(part.kind, "assistant")]
        messages.append(Message(role, (part,)))
    return messages


def read_output(items: list[Any], blobs: dict[str, bytes]) -> list[Part]:
    """The parts of a response's items, in order. Raises FormatError with the path of the item.

    A call that the response itself answers ran on the server, so call and result stay opaque.
    """
    for i, item in enumerate(items):
        check_item(item, f"output[{i}]")
    answered = {item.get("call_id") for item in items if is_client_result(item)}
    parts: list[Part] = []
    for i, (item, linked) in enumerate(zip(items, links(items), strict=True)):
        path = f"output[{i}]"
        if item_type(item) == "message":
            parts.extend(_read_output_message(item, linked, path, blobs))
        elif is_client_result(item) or (is_client_call(item) and item.get("call_id") in answered):
            parts.append(_opaque(item, linked))
        else:
            parts.append(_read_part_item(item, linked, path, {}, blobs))
    return parts


def _read_message(item: Mapping[str, Any], linked: tuple[str, ...], path: str, blobs: dict[str, bytes]) -> Message:
    role, content = item.get("role"), item.get("content")
    if not isinstance(role, str):
        raise FormatError("expected a message with a 'role' of assistant, system, developer or user", path=path)
    canonical = _CANONICAL_ROLE.get(role.lower(), "user")
    parts, shape = read_content(content, canonical, f"{path}.content", blobs)
    if content in ("", []):  # accepted, and different from no content
        parts, shape = (Text(""),), "" if content == "" else "empty"
    message = Message(canonical, parts)
    blob = blobs.__getitem__
    return FORMS.formed(message, lambda message: _default_message(message, blob)[0], item, shape, *linked)


def _read_output_message(
    item: Mapping[str, Any], linked: tuple[str, ...], path: str, blobs: dict[str, bytes]
) -> list[Part]:
    """The parts of one output message. An answer may contain several messages: the form of the first text of each
    message marks its beginning and stores its keys."""
    content = item.get("content")
    if item.get("role") not in (None, "assistant"):
        raise FormatError("expected the role 'assistant'", path=f"{path}.role")
    if isinstance(content, str):
        content = [text_part(content, "assistant")]
    parts: list[Part] = list(read_content(content, "assistant", f"{path}.content", blobs)[0])
    if not parts or not isinstance(parts[0], Text):
        return parts
    first = parts[0]
    seen = {**{key: value for key, value in item.items() if key != "content"}, "role": "assistant"}
    spelled = {"part": dict(content[0]), "item": seen}  # type: ignore[index]
    refusal = FORMS.says(first.form, "refusal")
    default = {"part": text_part(first.text, "assistant", refusal=refusal), "item": _item_head()}
    form = FORMS.made(default, spelled, f"item={len(parts)}", "refusal" if refusal else "", *linked)
    return [Text(first.text, form), *parts[1:]]


def _item_head() -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "status": "completed"}


def _read_part_item(
    item: Mapping[str, Any],
    linked: tuple[str, ...],
    path: str,
    called: dict[str, ToolCall],
    blobs: dict[str, bytes],
) -> Part:
    """The part of an item that is not a message; calls are added to `called`."""
    if item.get("type") == "reasoning":
        return _read_reasoning(item, linked) or _opaque(item, linked)
    if is_client_call(item):
        call = read_call(item, linked, path)
        called[call.id] = call
        return call
    if is_client_result(item):
        return read_result(item, called, path, blobs)
    return _opaque(item, linked)


def _opaque(item: Mapping[str, Any], linked: tuple[str, ...]) -> Opaque:
    return Opaque(NAME, string(item, "type") or "item_reference", dict(item), FORMS.shaped(*linked))


def _read_reasoning(item: Mapping[str, Any], linked: tuple[str, ...]) -> Reasoning | None:
    """The reasoning of an item, or None if a `Reasoning` cannot represent its texts: the item is then kept whole."""
    summary = _texts(item.get("summary"), "summary_text")
    content = _texts(item.get("content"), "reasoning_text")
    if summary is None or content is None:
        return None
    lengths = ",".join(str(len(text)) for text in content)
    reasoning = Reasoning(
        provider=NAME,
        text="".join(content),
        summary=tuple(summary),
        encrypted=string(item, "encrypted_content"),
        id=string(item, "id"),
    )
    return FORMS.formed(reasoning, _default_reasoning, item, f"content={lengths}" if content else "", *linked)


def _texts(entries: Any, kind: str) -> list[str] | None:
    if entries is None:
        return []
    if not isinstance(entries, list):
        return None
    usual = [
        entry["text"]
        for entry in entries
        if isinstance(entry, dict) and entry.keys() == {"type", "text"} and entry["type"] == kind
    ]
    return usual if len(usual) == len(entries) and all(isinstance(text, str) for text in usual) else None


# -- writing -------------------------------------------------------------------------------------


def write_message(message: Message, blob: BlobReader) -> tuple[dict[str, Any] | None, list[Part]]:
    """The item of a message of content parts, and the parts that cannot be sent. The item is None if no part can be
    sent."""
    default, lost = _default_message(message, blob)
    if lost and not default["content"]:
        return None, lost
    delta = FORMS.delta(message.form)
    first = message.parts[0] if message.parts else None
    if isinstance(first, Text) and FORMS.value(first.form, "item"):
        delta = (FORMS.delta(first.form) or {}).get("~", {}).get("item")
    elif delta and message.parts:
        # The content was null or absent when it was read, and has a value now.
        additions = {key: value for key, value in delta.get("+", {}).items() if key != "content"}
        delta = {**delta, "+": additions, "-": [key for key in delta.get("-", ()) if key != "content"]}
    return spell(default, delta), lost


def _default_message(message: Message, blob: BlobReader) -> tuple[dict[str, Any], list[Part]]:
    first = message.parts[0] if message.parts else None
    opens = isinstance(first, Text) and bool(FORMS.value(first.form, "item"))
    content, lost = write_content(message.parts, message.role, blob, opens or FORMS.says(message.form, "list"))
    if content == "" and FORMS.says(message.form, "empty"):
        content = []
    head = _item_head() if opens else {"role": message.role}
    return {**head, "content": content}, lost


def write_reasoning(reasoning: Reasoning) -> dict[str, Any]:
    """The item of this provider's reasoning."""
    return spell(_default_reasoning(reasoning), FORMS.delta(reasoning.form))


def _default_reasoning(reasoning: Reasoning) -> dict[str, Any]:
    item: dict[str, Any] = {"type": "reasoning"}
    if reasoning.id:
        item["id"] = reasoning.id
    item["summary"] = [{"type": "summary_text", "text": text} for text in reasoning.summary]
    lengths = FORMS.value(reasoning.form, "content")
    if lengths:
        item["content"] = _cut(reasoning.text, [int(length) for length in lengths.split(",")])
    if reasoning.encrypted:
        item["encrypted_content"] = reasoning.encrypted
    return item


def _cut(text: str, lengths: list[int]) -> list[dict[str, Any]]:
    pieces: list[dict[str, Any]] = []
    start = 0
    for length in lengths:
        pieces.append({"type": "reasoning_text", "text": text[start : start + length]})
        start += length
    return pieces


# -- parse -----------------------------------------------------------------------------------------
#
# Read a request body.


def parse(body: Mapping[str, Any]) -> Parsed:
    """A request body as messages, configuration and media bytes.

    `instructions` becomes a leading system message, `input` one message per item. Empty values (no tools, null
    instructions) stay in the settings. Raises FormatError with the path of the value that cannot be read.
    """
    try:
        return _parsed(body)
    except RecursionError as error:
        raise FormatError("the request body is nested too deeply to be read", path="body") from error


def _parsed(body: Mapping[str, Any]) -> Parsed:
    check_types(body, BODY, "")
    settings = dict(body)
    blobs: dict[str, bytes] = {}
    messages: list[Message] = []
    shape = ""
    model = settings.pop("model") if settings.get("model") else ""
    if settings.get("instructions"):
        messages.append(Message("system", (Text(settings.pop("instructions")),), form=FORMS.shaped("instructions")))
    if isinstance(settings.get("input"), str):
        messages.append(Message("user", (Text(settings.pop("input")),)))
        shape = "input=string"
    elif isinstance(settings.get("input"), list):
        messages.extend(read_items(settings.pop("input"), blobs))
    elif settings.get("input") is not None:
        raise FormatError("expected a string or a list of input items", path="input")
    else:
        shape = "input=null" if "input" in settings else "input=absent"
        settings.pop("input", None)
    tools = settings.pop("tools") if settings.get("tools") else []
    configuration = Configuration(
        provider=NAME,
        model=model,
        settings=settings,
        tools=read_tools(tools),
        form=FORMS.shaped(shape, "" if "model" in body else "model=absent"),
    )
    return Parsed(messages=tuple(messages), configuration=configuration, blobs=blobs)
