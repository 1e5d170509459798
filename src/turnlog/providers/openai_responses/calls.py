"""Read and write call items and the output items that answer them: seven pairs of types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ...errors import FormatError
from ...log.messages import (
    Media,
    Message,
    Opaque,
    Outcome,
    Part,
    Text,
    ToolCall,
    ToolResult,
    compact_json,
    parse_arguments,
    text_of,
)
from ..protocol import BlobReader
from ..spelling import inner, spell, string
from .form import FORMS, NAME
from .item_types import CALLS, RESULTS
from .parts import read_content, write_content, write_part


def is_client_call(item: Mapping[str, Any]) -> bool:
    """Whether an item is a call that the client must answer (a tool search may run on the server)."""
    kind = item.get("type")
    return isinstance(kind, str) and kind in CALLS and (kind != "tool_search_call" or item.get("execution") == "client")


def is_client_result(item: Mapping[str, Any]) -> bool:
    """Whether an item is the client's answer to a call."""
    kind = item.get("type")
    return (
        isinstance(kind, str)
        and kind in RESULTS
        and (kind != "tool_search_output" or item.get("execution") == "client")
    )


# -- calls ---------------------------------------------------------------------------------------


def read_call(item: Mapping[str, Any], linked: tuple[str, ...], path: str) -> ToolCall:
    """The call of a call item. Raises FormatError if it has no name."""
    kind = item["type"]
    spec = CALLS[kind]
    item_id = string(item, "id")
    call_id = string(item, "call_id") if "call_id" in item or kind != "local_shell_call" else item_id
    name = spec.name or item.get("name")
    if not isinstance(name, str):
        raise FormatError("expected a string", path=f"{path}.name")
    shape = ""
    arguments: Any = None
    raw: str | None = None
    if kind == "function_call":
        arguments = item.get("arguments")
        if isinstance(arguments, str):
            arguments, raw = parse_arguments(arguments)
        else:
            shape = "json"
    elif kind == "custom_tool_call":
        raw = item.get("input")
        if not isinstance(raw, str):
            raw, shape = compact_json(raw), "json"
    elif len(spec.action) == 1:
        arguments = item.get(spec.action[0])
    else:
        arguments = {key: item[key] for key in spec.action if key in item}
    if spec.action:
        shape = kind
    call = ToolCall(call_id, name, arguments, raw, spec.kind, provider=NAME if item_id else "", item_id=item_id)
    return FORMS.formed(call, lambda call: _default_call(call, kind), item, shape, *linked)


def call_type(call: ToolCall, imageless: frozenset[str]) -> str:
    """The item type that a call is rendered as.

    A call of one of this provider's client-side tools keeps its type only if this provider wrote it, because its action
    is in this provider's format. A computer call can be answered only with a screenshot, so it becomes a function call
    if the view answers it without an image (its id is in `imageless`).
    """
    if call.kind == "custom":
        return "custom_tool_call"
    for kind, spec in CALLS.items():
        if spec.action and FORMS.says(call.form, kind) and spec.kind == call.kind:
            return "function_call" if kind == "computer_call" and call.id in imageless else kind
    return "function_call"


def write_call(call: ToolCall, kind: str) -> dict[str, Any]:
    """The item of type `kind` for a call."""
    default = _default_call(call, kind)
    usual = kind == ("custom_tool_call" if call.kind == "custom" else "function_call")
    same_type = FORMS.says(call.form, kind) if CALLS[kind].action else usual and call.kind in ("function", "custom")
    return spell(default, FORMS.delta(call.form) if same_type else None)


def _default_call(call: ToolCall, kind: str) -> dict[str, Any]:
    spec = CALLS[kind]
    item: dict[str, Any] = {"type": kind}
    if call.item_id and call.provider == NAME and spec.kind == call.kind:
        item["id"] = call.item_id
    if call.id:
        item["call_id"] = call.id
    if not spec.name:
        item["name"] = call.name
    if kind == "function_call":
        item["arguments"] = _function_arguments(call)
    elif kind == "custom_tool_call":
        item["input"] = parse_arguments(call.raw or "")[0] if FORMS.says(call.form, "json") else call.raw_arguments
    elif len(spec.action) == 1:
        item[spec.action[0]] = call.arguments
    else:
        item.update(call.arguments if isinstance(call.arguments, dict) else {})
        item.setdefault("pending_safety_checks", [])
    if kind == "tool_search_call":
        item["execution"] = "client"
    if spec.status:
        item["status"] = "completed"
    return item


def _function_arguments(call: ToolCall) -> Any:
    if call.kind == "function":
        return call.arguments if FORMS.says(call.form, "json") and call.raw is None else call.raw_arguments
    if call.raw is not None:
        return compact_json({"input": call.raw})
    return compact_json(call.arguments)


# -- results -------------------------------------------------------------------------------------


def read_result(
    item: Mapping[str, Any], called: Mapping[str, ToolCall], path: str, blobs: dict[str, bytes]
) -> ToolResult:
    """The result of an output item; `called` contains the calls before it, by id."""
    kind = item["type"]
    call_id = string(item, "id" if kind == "local_shell_call_output" and "call_id" not in item else "call_id")
    call = called.get(call_id)
    name = call.name if call is not None else string(item, "name")
    result_kind = call.kind if call is not None else RESULTS[kind]
    parts, shape = _read_output(item, kind, f"{path}.output", blobs)
    unusual = "" if RESULTS[kind] == result_kind == "function" else kind
    result = ToolResult(call_id, name, parts, _outcome(item), result_kind)
    default = partial(_default_result, kind=kind, blob=blobs.__getitem__)
    return FORMS.formed(result, lambda result: default(result)[0], item, unusual, shape)


def _outcome(item: Mapping[str, Any]) -> Outcome:
    """The outcome of the tool, if the item contains it."""
    if item["type"] == "apply_patch_call_output" and item.get("status") == "failed":
        return "failed"
    if item["type"] == "shell_call_output":
        if any(inner(entry, "outcome").get("type") == "timeout" for entry in item.get("output") or ()):
            return "timeout"
    return "ok"


def result_type(result: ToolResult, answered: str) -> str:
    """The item type that a result is rendered as. `answered` is the type of the rendered call, "" if there is no
    call."""
    read_as = read_type(result)
    if read_as and (not answered or read_as in CALLS[answered].results):
        return read_as
    if answered == "tool_search_call":
        shows_tools = any(isinstance(part, Opaque) for part in result.parts)
        return CALLS[answered].results[0 if shows_tools else 1]
    if answered:
        return CALLS[answered].results[0]
    return "custom_tool_call_output" if result.kind == "custom" else "function_call_output"


def read_type(result: ToolResult) -> str:
    """The item type that a result was read from; "" if it was the usual type."""
    return next((word for word in FORMS.words(result.form) if word in RESULTS), "")


def write_result(result: ToolResult, kind: str, blob: BlobReader) -> tuple[dict[str, Any], list[Part]]:
    """The item of type `kind` for a result, and the parts that it cannot contain."""
    default, lost = _default_result(result, kind, blob)
    same_type = kind == (read_type(result) or "function_call_output")
    delta = FORMS.delta(result.form) if same_type else None
    if delta and result.parts and "output" in (*delta.get("+", ()), *delta.get("-", ())):
        # The output was null or absent when it was read, and has a value now.
        delta = {
            **delta,
            "+": {key: value for key, value in delta.get("+", {}).items() if key != "output"},
            "-": [key for key in delta.get("-", ()) if key != "output"],
        }
    return spell(default, delta), lost


def _read_output(item: Mapping[str, Any], kind: str, path: str, blobs: dict[str, bytes]) -> tuple[Any, str]:
    """The parts and the form word of an output."""
    if kind == "tool_search_output":
        return (Opaque(NAME, "tools", item.get("tools")),), ""
    output = item.get("output")
    if kind == "shell_call_output":
        if output is None:
            raise FormatError("expected an array", path=path)
        return tuple(part for i, entry in enumerate(output) for part in _read_stream(entry, f"{path}[{i}]")), ""
    if kind == "computer_call_output":
        if output is None:
            raise FormatError("expected an object", path=path)
        return read_content([output], "user", path, blobs)[0], ""
    if output is not None and not isinstance(output, (str, list)):
        return (Text(compact_json(output)),), "json"
    return read_content(output, "user", path, blobs)


def _read_stream(entry: Mapping[str, Any], path: str) -> tuple[Text, Text]:
    """One chunk of a shell's output: its stdout and its stderr."""
    out, err = entry.get("stdout"), entry.get("stderr")
    if out is None or err is None:
        raise FormatError("expected strings in stdout and stderr", path=path)
    default = {"stdout": out, "stderr": err, "outcome": {"type": "exit", "exit_code": 0}}
    return Text(out, FORMS.made(default, entry, "stdout")), Text(err, FORMS.shaped("stderr"))


def _default_result(result: ToolResult, kind: str, blob: BlobReader) -> tuple[dict[str, Any], list[Part]]:
    item: dict[str, Any] = {"type": kind}
    if result.call_id:
        item["id" if kind == "local_shell_call_output" else "call_id"] = result.call_id
    parts: tuple[Part, ...] = result.parts
    texts = [part for part in parts if isinstance(part, Text)]
    lost: list[Part] = [part for part in parts if not isinstance(part, Text)]
    plain = text_of(Message("user", tuple(texts)))
    if kind in ("function_call_output", "custom_tool_call_output"):
        if FORMS.says(result.form, "json") and len(texts) == len(parts) == 1:
            item["output"], lost = parse_arguments(plain)[0], []
        else:
            item["output"], lost = write_content(parts, "user", blob, FORMS.says(result.form, "list"))
    elif kind == "local_shell_call_output":
        item["output"] = plain
    elif kind == "apply_patch_call_output":
        item["status"] = "completed" if result.outcome == "ok" else "failed"
        item["output"] = plain
    elif kind == "shell_call_output":
        item["output"] = _write_streams(texts, result)
    elif kind == "tool_search_output":
        tools = next((part for part in parts if isinstance(part, Opaque) and part.provider == NAME), None)
        item.update({"tools": tools.data if tools else [], "execution": "client"})
        lost = [part for part in parts if part is not tools]
    elif kind == "computer_call_output":
        shot = next((part for part in parts if isinstance(part, Media) and part.kind == "image"), None)
        written = (write_part(shot, "user", blob) if shot else None) or {}
        if not FORMS.says(shot.form if shot else None, "screenshot"):
            written = {key: written[key] for key in ("image_url", "file_id") if key in written}
        item["output"] = {"type": "computer_screenshot", **written}
        lost = [part for part in parts if part is not shot]
    return item, lost


def _write_streams(texts: list[Text], result: ToolResult) -> list[dict[str, Any]]:
    """The chunks of a shell's output: a text marked as stderr belongs to the text before it."""
    usual = {"type": "timeout"} if result.outcome == "timeout" else {"type": "exit", "exit_code": 0}
    if result.outcome not in ("ok", "timeout"):
        usual = {"type": "exit", "exit_code": 1}
    chunks: list[dict[str, Any]] = []
    for text in texts:
        if FORMS.says(text.form, "stderr") and chunks and not chunks[-1]["stderr"]:
            chunks[-1]["stderr"] = text.text
        elif FORMS.says(text.form, "stderr"):
            chunks.append({"stdout": "", "stderr": text.text, "outcome": usual})
        else:
            is_stdout = FORMS.says(text.form, "stdout")
            outcome = {"type": "exit", "exit_code": 0} if is_stdout else usual
            chunk = {"stdout": text.text, "stderr": "", "outcome": outcome}
            chunks.append(spell(chunk, FORMS.delta(text.form) if is_stdout else None))
    return chunks
