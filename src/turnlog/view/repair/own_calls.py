"""Calls that a provider runs and answers itself (server tools). Both calls and answers are recorded as opaque parts.

A call and its answer are in one assistant turn, which results of the client's own tools do not end. The provider
refuses either one without the other, except a call in the turn that is still open. System text after an assistant
message ends the turn; if the turn has such calls, the system text is shown as a user message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...log.messages import Media, Message, Opaque, Part, ToolResult
from ..rules import Rules
from ..types import Edit, Shown
from .arrange import has_results_alone, with_parts
from .pairing import At


def is_paused(last: Message, rules: Rules) -> bool:
    """Whether the provider itself continues from this last message: the answer ended with a call that the provider runs
    (Anthropic's `pause_turn`). Such an answer is sent back unchanged, as a user message after it would discard the work
    begun."""
    end = last.parts[-1] if last.role == "assistant" and last.parts else None
    return isinstance(end, Opaque) and end.provider == rules.provider and end.kind in rules.own_calls


def own_calls(view: Sequence[Shown], rules: Rules, edits: list[Edit], *, more: bool) -> list[Shown]:
    """The view without calls of the provider's own tools whose answer is missing, and without answers whose call is
    missing. The answer may be in a later message of the same turn, behind results of the client's tools. `more`: the
    conversation continues after this view."""
    if not rules.own_calls:
        return list(view)
    out: list[Shown] = []
    i = 0
    while i < len(view):
        end, last = _answers_from(view, i)
        if end == i:
            out.append(view[i])
            i += 1
        else:
            still_open = not more and _is_open(view[end - 1], view[end:], rules)
            out += _turn(view[i:end], rules, edits, open_from=last - i if still_open else end)
            i = end
    return out


def _answers_from(view: Sequence[Shown], start: int) -> tuple[int, int]:
    """The end of the answers that begin at an index, with messages of only results between them, and the index of the
    last run of answers."""
    end = last = start
    while True:
        while end < len(view) and view[end].message.role == "assistant":
            end += 1
        further = end
        while further < len(view) and has_results_alone(view[further].message):
            further += 1
        if end in (start, further) or further == len(view) or view[further].message.role != "assistant":
            return end, last
        end = last = further


def has_own_strays(view: Sequence[Shown], rules: Rules) -> bool:
    """Whether the first answer of a view has results of the provider's own tools without their calls: these may come
    before the view."""
    first = next((i for i, shown in enumerate(view) if shown.message.role == "assistant"), None)
    if not rules.own_calls or first is None:
        return False
    turn = view[first : _answers_from(view, first)[0]]
    paired = _paired(turn, rules)
    return any(
        isinstance(part, Opaque) and (i, j) not in paired and re.fullmatch(rules.own_answer, part.kind) is not None
        for i, shown in enumerate(turn)
        for j, part in enumerate(shown.message.parts)
    )


def _is_open(last: Shown, rest: Sequence[Shown], rules: Rules) -> bool:
    """Whether the provider continues the turn: only tool results follow its `last` message, and no user message has to
    be added after it."""
    if not rest:
        return rules.last == "any" or is_paused(last.message, rules)
    parts = [part for shown in rest for part in shown.message.parts]
    return all(isinstance(part, ToolResult) and not _spills(part) for part in parts)


def _spills(result: ToolResult) -> bool:
    """Whether a failed result has media. Media are shown after a failed result as a user's content, which closes the
    turn."""
    return result.outcome != "ok" and any(isinstance(part, Media) for part in result.parts)


def _turn(turn: Sequence[Shown], rules: Rules, edits: list[Edit], *, open_from: int) -> list[Shown]:
    """The answers of a turn. Calls in messages from the index `open_from` on may still be answered."""
    paired = _paired(turn, rules)
    out: list[Shown] = []
    for i, shown in enumerate(turn):
        remaining: list[Part] = []
        for j, part in enumerate(shown.message.parts):
            if (
                not isinstance(part, Opaque)
                or (i, j) in paired
                or _stands_alone(part, rules, still_open=i >= open_from)
            ):
                remaining.append(part)
                continue
            edits.append(Edit("server_tool", f"{part.kind} left out: its counterpart is missing", shown.records))
        if remaining or not shown.message.parts:
            out.append(with_parts(shown, tuple(remaining)))
    return out


def _paired(turn: Sequence[Shown], rules: Rules) -> set[At]:
    """The places of the calls that have an answer, and of these answers. The matching follows the rules for other calls
    and results (see `pairing`)."""
    calls: dict[str, list[tuple[At, Opaque]]] = {}
    paired: set[At] = set()
    for i, shown in enumerate(turn):
        for j, part in enumerate(shown.message.parts):
            if not isinstance(part, Opaque):
                continue
            if part.kind in rules.own_calls:
                calls.setdefault(_value(part, "id"), []).append(((i, j), part))
            elif answer := re.fullmatch(rules.own_answer, part.kind):
                calls_with_id = calls.get(_value(part, rules.own_answer_key), ())
                fitting = [place for place, call in calls_with_id if _is_of(call, answer[1])]
                free = [place for place in fitting if place[0] == fitting[-1][0] and place not in paired]
                paired.update([free[0], (i, j)] if free else ())
    return paired


def _is_of(call: Opaque, tool: str) -> bool:
    """Whether a call is of this tool. The name may be longer than the tool's, such as `tool_search_tool_bm25`."""
    return _value(call, "name").startswith(tool) or call.kind.startswith(tool)


def _stands_alone(part: Opaque, rules: Rules, *, still_open: bool) -> bool:
    """Whether a part without its counterpart may stay."""
    if part.kind in rules.own_calls:
        return still_open
    return re.fullmatch(rules.own_answer, part.kind) is None


def _value(part: Opaque, key: str) -> str:
    return str(part.data.get(key, "")) if isinstance(part.data, dict) else ""
