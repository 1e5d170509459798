"""A session's turns and tools as tables: for `show`."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..export import dollars, visible
from ..view.tool_calls import ToolUse
from ..view.turns import TurnInfo
from .costs import bill_json
from .tables import table
from .terminal import out_json, out_lines

_WIDEST = 60
"""Maximum number of characters in a table cell."""


def show_turns(turns: Sequence[TurnInfo], *, json: bool) -> None:
    """One line for each turn: status, duration, tokens, cost, and the input that began it."""
    if json:
        for number, turn in enumerate(turns, 1):
            out_json(_turn_json(number, turn))
        return
    rows = [
        (
            str(number),
            f"{turn.first}-{turn.last}",
            "" if turn.seconds is None else f"{turn.seconds:,.1f}",
            str(len(turn.calls)),
            f"{turn.usage.input + turn.usage.output:,}",
            dollars(turn.cost) if turn.bills else "-",
            _cell(turn.standing),
            _cell(turn.input),
        )
        for number, turn in enumerate(turns, 1)
    ]
    figures = ("TURN", "RECORDS", "SECONDS", "CALLS", "TOKENS", "COST")
    out_lines(table((*figures, "STATUS", "INPUT"), rows, right=figures))


def show_tools(tools: Sequence[ToolUse], *, json: bool) -> None:
    """One line for each tool: calls, seconds of its timed calls, tokens of its results, and outcomes."""
    if json:
        for tool in tools:
            out_json(msgspec.to_builtins(tool))
        return
    rows = [
        (
            _cell(tool.name),
            str(tool.calls),
            f"{tool.seconds:,.1f}" if tool.timed else "-",
            f"{tool.longest:,.1f}" if tool.timed else "-",
            f"{tool.result_tokens:,}" if tool.result_tokens else "-",
            ", ".join(f"{number} {outcome}" for outcome, number in sorted(tool.outcomes.items())),
        )
        for tool in tools
    ]
    figures = ("CALLS", "SECONDS", "LONGEST", "TOKENS")
    out_lines(table(("TOOL", *figures, "OUTCOMES"), rows, right=figures))


def _turn_json(number: int, turn: TurnInfo) -> dict[str, object]:
    said = {
        "turn": number,
        "id": turn.id,
        "records": [turn.first, turn.last],
        "status": turn.status,
        "reason": turn.reason,
        "started": turn.started,
        "seconds": turn.seconds,
        "input": turn.input,
        "answer": turn.answer,
        "calls": len(turn.calls),
        "awaiting": [
            {"call_id": info.call.id, "name": info.call.name, "record": info.record, "awaits": info.awaits}
            for info in turn.awaiting
        ],
    }
    return said | bill_json(turn.bills)


def _cell(text: str) -> str:
    said = visible(" ".join(text.split()), one_line=True)
    return said if len(said) <= _WIDEST else f"{said[: _WIDEST - 1]}…"
