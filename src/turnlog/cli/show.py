"""`show`: print a session's records as text."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from .._platform.units import counted
from ..export.description import ContentBlock, Description, describe
from ..export.escapes import visible
from ..export.lines import record_json
from ..export.wording import dollars, in_short
from ..log.bills import Bills
from ..log.messages import compact_json
from ..log.records import Record
from ..log.store import Store
from ..session.reader import SessionLog, source_of
from ..view.decisions import Rewinds
from ..view.tool_calls import ToolUse
from ..view.turns import TurnInfo
from .arguments import ANY_ID, add_command, number
from .costs import bill_json, bill_lines
from .decisions import rewinds_of
from .stores import opened
from .tables import table
from .terminal import out, out_bytes, out_json, out_line, out_lines, say, shorten

# -- turns -----------------------------------------------------------------------------------------
#
# A session's turns and tools as tables: for `show`.

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
    row = {
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
    return row | bill_json(turn.bills)


def _cell(text: str) -> str:
    line = visible(" ".join(text.split()), one_line=True)
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 1]}…"


_Row = tuple[str, str]
"""A label and a text. A label in brackets marks a record that is not sent to a model."""


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    show = add_command(commands, store, "show")
    show.add_argument("id", metavar="ID", help=ANY_ID)
    show.add_argument("--last", metavar="N", type=number("records"), help="only the last N records")
    instead = show.add_mutually_exclusive_group()
    instead.add_argument("--cost", action="store_true", help="instead of records, the tokens and cost of each model")
    instead.add_argument("--tools", action="store_true", help="instead of records, the tool calls and their outcomes")
    instead.add_argument("--turns", action="store_true", help="instead of records, the turns and the status of each")
    show.add_argument("--json", action="store_true", help="the records as they are stored, one JSON object a line")
    show.set_defaults(run=_show)


def _show(arguments: Namespace) -> int:
    with opened(arguments) as store:
        info = store.info(arguments.id)
        if arguments.cost:
            _bill(store.usage(info.id), arguments)
            return 0
        if arguments.tools or arguments.turns:
            log = SessionLog(store, info.id)
            if arguments.tools:
                show_tools(log.tools_used(), json=arguments.json)
            else:
                show_turns(log.turns(), json=arguments.json)
            return 0
        first = 1 if arguments.last is None else max(1, info.records - arguments.last + 1)
        records = store.read(info.id, first=first, last=info.records)
        if arguments.json:
            shown = (visible(record_json(record).decode("utf-8")).encode("utf-8") for record in records)
            out_bytes(line + b"\n" for line in shown)
            return 0
        out(f"{info.id}  {visible(info.title, one_line=True)}".rstrip())
        parent = f", belongs to {info.parent}" if info.parent else ""
        if info.parent_records and info.parent:
            parent = f", from {info.parent} up to record {info.parent_records}"
        source = source_of(store, info.id)
        counts = f"{counted(info.records, 'record')}, {counted(info.messages, 'message')}"
        out(f"{counts}, {info.created} to {info.updated}{parent}{source and f', {source}'}")
        _sum_up(store, info.id)
        for line in lines(records, rewinds_of(store, info.id)):
            out(line)
    return 0


def _sum_up(store: Store, session_id: str) -> None:
    """Print one line with the bill, if there is one."""
    if bills := store.usage(session_id):
        out_line(in_short(bills))


def _bill(bills: Bills, arguments: Namespace) -> None:
    if arguments.json:
        for model, usage in bills.items():
            out_json({"model": model, **bill_json({model: usage})})
    elif bills:
        out_lines(bill_lines(bills))
    else:
        say(f"{arguments.id}: no bill is on record")


def lines(records: Iterable[Record], rewinds: Rewinds = Rewinds()) -> Iterator[str]:
    """Records as text: number, label and text, with long results shortened. A line marks where records were taken
    back."""
    gone = 0
    for record in records:
        before, gone = gone, rewinds.by(record.n)
        if gone and gone != before:
            yield f"{'':5}  {'[rewound]':<12}  from here on taken back by decision {gone}"
        number = f"{record.n:>5}"
        for label, text in _rows(describe(record)):
            first, *others = text.splitlines() or [""]
            yield f"{number}  {label:<12}  {first}".rstrip()
            yield from (f"{'':21}{line}".rstrip() for line in others)
            number = " " * 5


def _rows(description: Description) -> Iterator[_Row]:
    if description.is_said:
        for block in description.blocks:
            yield f"[{block.label}]" if block.kind == "group" else block.label or description.kind, _block_text(block)
        if not description.blocks:
            yield description.kind, "(empty)"
    else:
        text = "; ".join(filter(None, (_block_text(block) for block in description.blocks if not block.is_detail)))
        headline = "".join(map(str, description.headline))
        yield f"[{description.kind}]", f"{headline}: {shorten(text, lines=3)}" if text else headline
    if description.redacted:
        yield "[redacted]", description.redacted


def _block_text(block: ContentBlock) -> str:
    match block.kind:
        case "reasoning":
            return shorten(block.text or "(hidden by its provider)")
        case "call":
            return f"{block.name} {shorten(block.text, characters=200, lines=3)}  ({block.id})"
        case "result":
            content = shorten("\n".join(map(_block_text, block.blocks)))
            return f"{block.outcome}  ({' '.join(filter(None, (block.name, block.id)))})\n{content}".rstrip()
        case "media":
            return ", ".join(filter(None, (block.name, block.text, block.id[:12])))
        case "data":
            return f"{block.name} {shorten(compact_json(block.value), characters=200)}".lstrip()
        case "group" if block.label == "tools":
            return f"tools {', '.join(tool.label for tool in block.blocks)}"
        case "group":
            return shorten("\n".join(map(_block_text, block.blocks)))
        case _:
            return block.text
