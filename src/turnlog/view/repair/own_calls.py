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
from .pairing import At


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
    paired = _paired(turn, rules)
    out: list[Shown] = []
    for i, shown in enumerate(turn):
        kept: list[Part] = []
        for j, part in enumerate(shown.message.parts):
            if not isinstance(part, Opaque) or (i, j) in paired or _stands_alone(part, rules, still_open=still_open):
                kept.append(part)
                continue
            edits.append(Edit("server_tool", f"{part.kind} left out: its counterpart is missing", shown.records))
        if kept or not shown.message.parts:
            out.append(with_parts(shown, tuple(kept)))
    return out


def _paired(turn: Sequence[Shown], rules: Rules) -> set[At]:
    """The places of the calls that have an answer, and of these answers. They are matched as other calls and results
    are (see `pairing`)."""
    calls: dict[str, list[tuple[At, Opaque]]] = {}
    paired: set[At] = set()
    for i, shown in enumerate(turn):
        for j, part in enumerate(shown.message.parts):
            if not isinstance(part, Opaque):
                continue
            if part.kind in rules.own_calls:
                calls.setdefault(_value(part, "id"), []).append(((i, j), part))
            elif answer := re.fullmatch(rules.own_answer, part.kind):
                known = calls.get(_value(part, rules.own_answer_key), ())
                own = [at for at, call in known if _is_of(call, answer[1])]
                free = [at for at in own if at[0] == own[-1][0] and at not in paired]
                paired.update([free[0], (i, j)] if free else ())
    return paired


def _is_of(call: Opaque, tool: str) -> bool:
    """Whether a call is one of this tool. The name may say more than the tool, as `tool_search_tool_bm25`."""
    return _value(call, "name").startswith(tool) or call.kind.startswith(tool)


def _stands_alone(part: Opaque, rules: Rules, *, still_open: bool) -> bool:
    """Whether a part may stay that is paired with no other."""
    if part.kind in rules.own_calls:
        return still_open
    return re.fullmatch(rules.own_answer, part.kind) is None


def _value(part: Opaque, key: str) -> str:
    return str(part.data.get(key, "")) if isinstance(part.data, dict) else ""
