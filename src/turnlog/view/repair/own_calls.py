"""Calls that a provider runs and answers itself (server tools). Both calls and answers are recorded as opaque parts.

A call and its answer are in one assistant turn. The provider refuses either one without the other, except a call in the
turn that is still open. System text after an assistant message ends the turn; if the turn has such calls, the system
text is shown as a user message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...log.messages import Media, Message, Opaque, Part, ToolResult
from ..rules import Rules
from ..types import Edit, Shown
from .arrange import with_parts


def is_paused(last: Message, rules: Rules) -> bool:
    """Whether the provider continues from this last message by itself: the answer ended with a call that the provider
    runs (Anthropic's `pause_turn`). Such an answer is sent back as it is, as a user message after it would discard the
    work begun."""
    end = last.parts[-1] if last.role == "assistant" and last.parts else None
    return isinstance(end, Opaque) and end.provider == rules.provider and end.kind in rules.own_calls


def own_calls(view: Sequence[Shown], rules: Rules, edits: list[Edit], *, more: bool) -> list[Shown]:
    """The view without calls of the provider's own tools that lost their answer, and without answers that lost their
    call. `more`: the conversation continues after this view."""
    if not rules.own_calls:
        return list(view)
    out: list[Shown] = []
    i = 0
    while i < len(view):
        start = i
        while i < len(view) and view[i].message.role == "assistant":
            i += 1
        if i == start:
            out.append(view[i])
            i += 1
        else:
            out += _turn(view[start:i], rules, edits, still_open=not more and _is_open(view[i - 1], view[i:], rules))
    return out


def _is_open(last: Shown, rest: Sequence[Shown], rules: Rules) -> bool:
    """Whether the provider continues the turn: only tool results came after its `last` message, and no user message has
    to be added after it."""
    if not rest:
        return rules.last == "any" or is_paused(last.message, rules)
    parts = [part for shown in rest for part in shown.message.parts]
    return all(isinstance(part, ToolResult) and not _spills(part) for part in parts)


def _spills(result: ToolResult) -> bool:
    """Whether a failed result has media, which are shown after it as a user's content: this closes the turn."""
    return result.outcome != "ok" and any(isinstance(part, Media) for part in result.parts)


def _turn(turn: Sequence[Shown], rules: Rules, edits: list[Edit], *, still_open: bool) -> list[Shown]:
    called: set[str] = set()
    paired: set[str] = set()
    for own in (part for shown in turn for part in shown.message.parts if isinstance(part, Opaque)):
        if own.kind in rules.own_calls:
            called.add(_value(own, "id"))
        elif _is_answer(own, rules) and _value(own, rules.own_answer_key) in called:
            paired.add(_value(own, rules.own_answer_key))
    out: list[Shown] = []
    for shown in turn:
        kept: list[Part] = []
        for part in shown.message.parts:
            if not isinstance(part, Opaque) or _stays(part, rules, paired, still_open):
                kept.append(part)
                continue
            edits.append(Edit("server_tool", f"{part.kind} left out: its counterpart is missing", shown.records))
        if kept or not shown.message.parts:
            out.append(with_parts(shown, tuple(kept)))
    return out


def _stays(part: Opaque, rules: Rules, paired: set[str], still_open: bool) -> bool:
    if part.kind in rules.own_calls:
        return still_open or _value(part, "id") in paired
    return not _is_answer(part, rules) or _value(part, rules.own_answer_key) in paired


def _is_answer(part: Opaque, rules: Rules) -> bool:
    return re.fullmatch(rules.own_answer, part.kind) is not None


def _value(part: Opaque, key: str) -> str:
    return str(part.data.get(key, "")) if isinstance(part.data, dict) else ""
