"""Give a whole view the shape that chat templates require: one system message, roles that alternate, calls as texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...log.messages import Message, Opaque, Part, Text, ToolCall, ToolResult
from ..rules import Rules
from ..types import Edit, Shown, starts_turn
from .arrange import as_one, with_parts

DONE = "Done."
"""The answer between results and a user's message, for servers that require one."""

_RULE = "conversation roles must alternate user/assistant/user/assistant/..."
_JOINED = {
    "system": "system messages joined into one",
    "user": "messages of the user joined into one",
    "assistant": "answers joined into one",
}


def alternating(view: Sequence[Shown], rules: Rules, edits: list[Edit]) -> list[Shown]:
    """The view with the roles in the order that the rules require."""
    out: list[Shown] = []
    for shown in _apart(view) if "results" in rules.alternates else view:
        role, before = shown.message.role, out[-1] if out else None
        after_results = before is not None and _has_results(before.message)
        if after_results and role == "user" and not _has_results(shown.message) and "results" in rules.alternates:
            edits.append(Edit("place", "an answer added between results and the user's message", shown.records, _RULE))
            out.append(Shown(Message("assistant", (Text(DONE),)), shown.records, "synthetic"))
        elif before is not None and before.message.role == role and _joins(before, shown, rules):
            edits.append(Edit("joined", _JOINED[role], (*before.records, *shown.records), _RULE))
            out[-1] = as_one([before, shown])
            continue
        out.append(shown)
    return out


def _joins(before: Shown, shown: Shown, rules: Rules) -> bool:
    """Whether two messages of one role have to be one."""
    role = shown.message.role
    if role == "system":
        return rules.one_system
    return role in rules.alternates and not (_has_results(before.message) or _has_results(shown.message))


def _apart(view: Sequence[Shown]) -> Iterator[Shown]:
    """The messages, with results apart from what a user said beside them."""
    for shown in view:
        parts = shown.message.parts
        results = tuple(part for part in parts if isinstance(part, ToolResult))
        if not results or len(results) == len(parts):
            yield shown
            continue
        yield with_parts(shown, results)
        yield with_parts(shown, tuple(part for part in parts if not isinstance(part, ToolResult)))


def _has_results(message: Message) -> bool:
    return any(isinstance(part, ToolResult) for part in message.parts)


def as_texts(view: Sequence[Shown], edits: list[Edit]) -> list[Shown]:
    """The view with its calls and results as texts, for templates that have no place for them."""
    out: list[Shown] = []
    for shown in view:
        parts: list[Part] = []
        for part in shown.message.parts:
            if isinstance(part, ToolCall):
                parts.append(Text(f"[I call the tool {part.name} with {part.raw_arguments}]"))
            elif isinstance(part, ToolResult):
                parts += (Text(f"[Result of the tool {part.name or part.call_id}]"), *part.parts)
            else:
                parts.append(part)
        changed = with_parts(shown, tuple(parts))
        if changed is not shown:
            what = "calls" if shown.message.role == "assistant" else "results"
            edits.append(Edit("call", f"{what} sent as text", shown.records, "the model's template has no tools"))
        out.append(changed)
    return out


def open_loop_without(view: Sequence[Shown], rules: Rules) -> bool:
    """Whether an answer with calls since the user's last message has no part of the kind that the rules require."""
    for shown in reversed(view):
        if starts_turn(shown):
            return False
        parts = shown.message.parts
        calls = any(isinstance(part, ToolCall) for part in parts)
        if calls and not any(isinstance(part, Opaque) and part.kind == rules.loop_needs_kind for part in parts):
            return True
    return False
