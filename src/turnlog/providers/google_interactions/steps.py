"""Read steps into messages, and write parts as steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ...errors import FormatError
from ...log.messages import (
    Form,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    compact_json,
    is_finite_json,
    parse_arguments,
)
from ..gemini import arguments_of
from ..protocol import BlobReader
from ..spelling import string
from .form import FORMS, NAME
from .parts import is_plain, read_part, read_parts, write_part
from .schema import CONTENTS

_SPEAKERS = ("user_input", "model_output")
_CONTENT_WORDS = {str: "string", dict: "object", type(None): "null"}


# -- reading -------------------------------------------------------------------------------------


def read_steps(steps: list[dict[str, Any]], blobs: dict[str, bytes]) -> list[Message]:
    """One message for each step, whose types the schema has checked. Raises FormatError with the path of what cannot be
    read."""
    return [_read_message(step, f"input[{i}]", blobs) for i, step in enumerate(steps)]


def read_answer(steps: list[dict[str, Any]], blobs: dict[str, bytes]) -> list[Part]:
    """The parts of an answer's steps, in order. If an output directly follows another output, the form of its first
    part says so. Raises FormatError."""
    parts: list[Part] = []
    spoke = False
    for i, step in enumerate(steps):
        path = f"steps[{i}]"
        kind = _type(step, path)
        is_output = kind == "model_output"
        if is_output:
            contents = read_parts(step.get("content") or (), f"{path}.content", blobs)
            step_parts: list[Part] = [_beginning(contents[0]), *contents[1:]] if spoke and contents else list(contents)
        elif kind == "user_input":
            continue  # the user's input, repeated in the answer
        else:
            step_parts = [_read_part(step, path, blobs)]
        parts += step_parts
        spoke = is_output if step_parts else spoke
    return parts


def _beginning(part: Text | Media | Opaque) -> Part:
    """The part, with a form word that says that another step begins there."""
    words = " ".join(filter(None, (FORMS.shape(part.form), "step")))
    return replace(part, form=Form(NAME, words, FORMS.delta(part.form)))


def _type(step: Mapping[str, Any], path: str) -> str:
    kind = step.get("type")
    if not isinstance(kind, str):
        raise FormatError("expected a step with a 'type'", path=path)
    return kind


def _read_message(step: dict[str, Any], path: str, blobs: dict[str, bytes]) -> Message:
    kind = _type(step, path)
    if kind in CONTENTS:  # content without a step: the API accepts it only among other contents
        return Message("user", (read_part(step, path, blobs),), form=FORMS.shaped("bare"))
    if kind not in _SPEAKERS:
        part = _read_part(step, path, blobs)
        return Message("user" if isinstance(part, ToolResult) else "assistant", (part,))
    content = step.get("content")
    role: Role = "user" if kind == "user_input" else "assistant"
    message = Message(role, read_parts(content or (), f"{path}.content", blobs))
    shape = _CONTENT_WORDS.get(type(content), "") if "content" in step else "absent"
    blob = blobs.__getitem__
    return FORMS.formed(message, lambda message: said_step(message, blob), step, shape)


def _read_part(step: dict[str, Any], path: str, blobs: dict[str, bytes]) -> Part:
    match step["type"]:
        case "thought":
            return _read_thought(step) or Opaque(NAME, "thought", step)
        case "function_call":
            return _read_call(step)
        case "function_result":
            return _read_result(step, path, blobs)
        case kind:
            return Opaque(NAME, kind, step)


def _read_thought(step: dict[str, Any]) -> Reasoning | None:
    """The reasoning of a thought; None if its summary contains anything but texts: it becomes an opaque part."""
    summary = step.get("summary") or []
    texts = tuple(string(content, "text") for content in summary)
    if list(summary) != [{"type": "text", "text": text} for text in texts]:
        return None
    reasoning = Reasoning(NAME, summary=texts, signature=string(step, "signature"))
    return FORMS.formed(reasoning, thought_step, step)


def _read_call(step: dict[str, Any]) -> ToolCall:
    arguments = step.get("arguments")
    finite = is_finite_json(arguments)
    bare = finite and arguments is not None and not isinstance(arguments, dict)
    call = ToolCall(
        id=string(step, "id"),
        name=string(step, "name"),
        arguments={} if arguments is None else arguments if finite else None,
        raw=None if finite else compact_json(arguments),
        provider=NAME,
    )
    if not finite:  # NaN is not JSON: keep the arguments as text and send them wrapped
        step = {**step, "arguments": arguments_of(call, bare=False)}
    return FORMS.formed(call, call_step, step, "bare" if bare else "")


def _read_result(step: dict[str, Any], path: str, blobs: dict[str, bytes]) -> ToolResult:
    given = step.get("result")
    shape = ""
    parts: tuple[Any, ...] = ()
    if "result" not in step or given is None:
        shape = "null" if "result" in step else "absent"
    elif isinstance(given, str):
        parts = (Text(given),) if given else ()
    elif isinstance(given, list):
        parts = read_parts(given, f"{path}.result", blobs)
        shape = "list" if not parts or is_plain(parts) else ""
    elif is_finite_json(given):
        parts = (Text(compact_json(given), FORMS.shaped("json")),)
    else:  # NaN is not JSON: keep the result as text, and send it as text
        step = {**step, "result": compact_json(given)}
        parts = (Text(step["result"]),)
    result = ToolResult(
        string(step, "call_id"), string(step, "name"), parts, "failed" if step.get("is_error") is True else "ok"
    )
    blob = blobs.__getitem__
    return FORMS.formed(result, lambda result: result_step(result, blob), step, shape)


# -- writing -------------------------------------------------------------------------------------


def said_step(message: Message, blob: BlobReader) -> dict[str, Any]:
    """The default step of a message's contents. Raises BlobMissing."""
    step: dict[str, Any] = {"type": "model_output" if message.role == "assistant" else "user_input"}
    content = [out for part in message.parts if (out := write_part(part, blob)) is not None]
    words = FORMS.words(message.form)
    if "string" in words and is_plain(message.parts):
        step["content"] = content[0]["text"]
    elif "object" in words and len(content) == 1:
        step["content"] = content[0]
    elif content or "absent" not in words:
        step["content"] = (
            None if not content and "null" in words else "" if not content and "string" in words else content
        )
    return step


def thought_step(reasoning: Reasoning) -> dict[str, Any]:
    """The default step of reasoning."""
    step: dict[str, Any] = {"type": "thought"}
    if reasoning.signature:
        step["signature"] = reasoning.signature
    shown = reasoning.summary or ((reasoning.text,) if reasoning.text else ())
    if shown:
        step["summary"] = [{"type": "text", "text": text} for text in shown]
    return step


def call_step(call: ToolCall) -> dict[str, Any]:
    """The default step of a call."""
    step: dict[str, Any] = {"type": "function_call"}
    if call.id:
        step["id"] = call.id
    arguments = arguments_of(call, bare=FORMS.says(call.form, "bare"))
    return {**step, "name": call.name, "arguments": arguments}


def result_step(result: ToolResult, blob: BlobReader) -> dict[str, Any]:
    """The default step of a result. Raises BlobMissing."""
    step: dict[str, Any] = {"type": "function_result", "call_id": result.call_id}
    if result.name:
        step["name"] = result.name
    words = FORMS.words(result.form)
    if result.parts or "absent" not in words:
        step["result"] = _result_of(result, blob, words)
    if result.outcome != "ok":
        step["is_error"] = True
    return step


def _result_of(result: ToolResult, blob: BlobReader, words: list[str]) -> Any:
    first = result.parts[0] if result.parts else None
    if len(result.parts) == 1 and isinstance(first, Text) and FORMS.says(first.form, "json"):
        value, raw = parse_arguments(first.text)
        return first.text if raw is not None else value
    if not result.parts and "null" in words:
        return None
    if "list" not in words and (is_plain(result.parts) or not result.parts):
        return first.text if isinstance(first, Text) else ""
    return [out for part in result.parts if (out := write_part(part, blob)) is not None]
