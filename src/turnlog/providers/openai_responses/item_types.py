"""Types of items: which result answers which call, the prefixes of their ids, and which items belong together.

Source: `openai.types.responses.ResponseInputItemParam` (openai 3.54.0) and recorded traffic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ..._platform.lazy import lazy_pattern

ELSEWHERE = ("previous_response_id", "conversation", "prompt")
"""Settings that refer to input stored at the provider."""


class CallType(Struct, frozen=True):
    """How one type of call item is written.

    `name` is the tool's name if items have none, `action` the keys that contain the arguments, `results` the output
    types that may answer the call, the usual type first. `status`: items must have a status.
    """

    kind: str
    results: tuple[str, ...]
    name: str = ""
    action: tuple[str, ...] = ()
    status: bool = False


CALLS: dict[str, CallType] = {
    "function_call": CallType("function", ("function_call_output",)),
    "custom_tool_call": CallType("custom", ("custom_tool_call_output",)),
    # Codex answers a local shell call with a function_call_output.
    "local_shell_call": CallType(
        "shell", ("local_shell_call_output", "function_call_output"), "local_shell", ("action",), True
    ),
    "shell_call": CallType("shell", ("shell_call_output",), "shell", ("action",)),
    "apply_patch_call": CallType("apply_patch", ("apply_patch_call_output",), "apply_patch", ("operation",), True),
    "computer_call": CallType(
        "computer", ("computer_call_output",), "computer", ("action", "actions", "pending_safety_checks"), True
    ),
    # Recorded 200: a client's tool search answered by a function_call_output.
    "tool_search_call": CallType(
        "tool_search", ("tool_search_output", "function_call_output"), "tool_search", ("arguments",)
    ),
}

RESULTS: dict[str, str] = {kind.results[0]: kind.kind for kind in CALLS.values()}
"""Type of an output item -> kind of call that it answers."""

ROLES: dict[str, str] = {
    "additional_tools": "system",
    "configuration_update": "system",
    "compaction_trigger": "user",
    "mcp_approval_response": "user",
}
"""The role of item types that have no `role`; types that are not listed are the model's."""

ID_PREFIX: dict[str, str] = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "web_search_call": "ws",
    "file_search_call": "fs",
    "code_interpreter_call": "ci",
    "image_generation_call": "ig",
    "mcp_call": "mcp",
    "mcp_list_tools": "mcpl",
    "tool_search_call": "tsc",
    "computer_call": "cu",
    "compaction": "cmp",
}
"""`Invalid 'input[1].id': 'toolu_x'. Expected an ID that begins with 'fc'.`"""

ID_MAY_GO = frozenset(
    {
        "message",
        "reasoning",
        "function_call",
        "custom_tool_call",
        "web_search_call",
        "tool_search_call",
        "local_shell_call",
        "shell_call",
        "apply_patch_call",
        "compaction",
    }
)
"""Types of items that the API accepts without an id (Codex sends them so with `store: false`)."""


_ID = lazy_pattern(r"[A-Za-z0-9_-]{1,64}")


def item_type(item: Mapping[str, Any]) -> str:
    """The type of an item. An item without a type is a message, or an item reference if it has only an id."""
    kind = item.get("type")
    if kind is None:
        return "item_reference" if item.keys() <= {"id", "type"} else "message"
    return str(kind)


def id_fits(item: Mapping[str, Any]) -> bool:
    """Whether an item has no id, or an id that the API could have assigned to its type."""
    item_id = item.get("id")
    if not isinstance(item_id, str):
        return True
    return _ID.fullmatch(item_id) is not None and item_id.startswith(ID_PREFIX.get(item_type(item), ""))


def links(items: list[Any]) -> list[tuple[str, ...]]:
    """Form words for each item that name the reasoning it belongs to: `first=ID` if it directly followed that
    reasoning, `after=ID` if other items were between.

    A stored item is refused without its reasoning, and reasoning without its item, so rendering uses these words before
    it sends an id. The words refer only to earlier items, so the items of a truncated answer have the same words as
    those of the whole answer.
    """
    words: list[tuple[str, ...]] = []
    after, word = "", ""
    for item in items:
        kind, item_id = item.get("type") or "message", item.get("id")
        if kind == "message" and item.get("role") != "assistant":
            after = ""
        linked = after and kind not in RESULTS and (word == "first" or isinstance(item_id, str))
        words.append((f"{word}={after}",) if linked else ())
        word = "after"
        if kind == "reasoning":
            after, word = item_id if _is_word(item_id) else "", "first"
    return words


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and not any(character.isspace() for character in value)
