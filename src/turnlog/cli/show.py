"""`show`: print a session's talk, or its records, turns, tools or bill."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NoReturn

import msgspec

from .._platform.texts import shorten
from .._platform.times import TIMES, since
from .._platform.units import counted
from .._platform.visible import visible
from ..display.description import ContentBlock, Description, describe
from ..display.wording import in_short
from ..errors import InputError
from ..export.lines import record_json
from ..log.bills import Bills
from ..log.messages import compact_json
from ..log.records import Record
from ..log.store import SessionInfo, Store
from ..models.pricing import dollars
from ..session.reader import SessionLog, source_of, tools_over
from ..stores.billing import with_subagents
from ..view.decisions import Rewinds
from ..view.tool_calls import ToolUse
from ..view.turns import TurnInfo
from .arguments import AN_ID, add_command, checked, filled, number, turn_number
from .costs import bill_json, bill_lines
from .decisions import rewinds_of, turn_span
from .stores import is_writable, opened
from .tables import table, terminal_width
from .talk import show_talk
from .terminal import out, out_bytes, out_json, out_line, out_lines, paged, say

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
            _cell(turn.standing.partition(":")[0] if terminal_width() else turn.standing),
            _cell(turn.input),
        )
        for number, turn in enumerate(turns, 1)
    ]
    figures = ("TURN", "RECORDS", "SECONDS", "CALLS", "TOKENS", "COST")
    out_lines(table((*figures, "STATUS", "INPUT"), rows, right=figures))


def show_tools(tools: Sequence[ToolUse], *, json: bool) -> None:
    """One line for each tool: calls, failures, seconds of its timed calls, tokens of its results, and outcomes."""
    if json:
        for tool in tools:
            out_json({**msgspec.to_builtins(tool), "failed": tool.failed})
        return
    rows = [
        (
            _cell(tool.name),
            f"{tool.calls:,}",
            f"{tool.failed:,}" if tool.failed else "-",
            f"{tool.seconds:,.1f}" if tool.timed else "-",
            f"{tool.longest:,.1f}" if tool.timed else "-",
            f"{tool.result_tokens:,}" if tool.result_tokens else "-",
            ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(tool.outcomes.items())),
        )
        for tool in tools
    ]
    figures = ("CALLS", "FAILED", "SECONDS", "LONGEST", "TOKENS")
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
    show.add_argument("id", metavar="ID", nargs="?", default="", help=f"{AN_ID}; with --tools --all, none")
    part = show.add_mutually_exclusive_group()
    part.add_argument("--turn", metavar="N", type=turn_number, help="only the Nth turn; -1 is the last")
    part.add_argument("--last", metavar="N", type=number("turns"), help="only the last N turns (or records)")
    part.add_argument("--at", metavar="RECORD", type=number("a record"), help="only the turn of this record, marked")
    show.add_argument("--full", action="store_true", help="fold nothing: results, reasoning and prompts as a whole")
    instead = show.add_mutually_exclusive_group()
    instead.add_argument("--records", action="store_true", help="instead of the talk, every record, shortened")
    instead.add_argument("--cost", action="store_true", help="instead of the talk, the tokens and cost of each model")
    instead.add_argument("--tools", action="store_true", help="instead of the talk, the tool calls and their outcomes")
    instead.add_argument("--turns", action="store_true", help="instead of the talk, the turns and the status of each")
    show.add_argument("--all", action="store_true", help="with --tools: over all sessions, each call once")
    text = f"with --all: only calls since {TIMES.removeprefix('a time: ')}"
    show.add_argument("--since", metavar="TIME", type=checked(since, TIMES), help=text)
    text = "with --all: only sessions of this agent program: the beginning of its name, such as claude"
    show.add_argument("--agent", metavar="NAME", type=filled, help=text)
    show.add_argument("--json", action="store_true", help="the records as they are stored, one JSON object a line")
    show.set_defaults(run=partial(_show, refuse=show.error))


def _tools_over_all(arguments: Namespace) -> int:
    """The tools of all sessions, those called most first."""
    # By agent, sessions are found in the index of labels, which is brought up to date if the store allows.
    with opened(arguments, write=bool(arguments.agent) and is_writable(arguments), past_damage=True) as store:
        infos = [info for info in store.sessions() if info.updated >= (arguments.since or "")]
        if arguments.agent:
            facts = store.facts()
            infos = [info for info in infos if info.id in facts and facts[info.id].is_of(arguments.agent)]
        tools = tools_over(store, infos, since=arguments.since or "")
        with paged():
            show_tools(sorted(tools, key=lambda tool: (-tool.calls, tool.name)), json=arguments.json)
        if not arguments.json:
            calls = counted(sum(tool.calls for tool in tools), "call")
            say(f"{calls} of {counted(len(tools), 'tool')} in {counted(len(infos), 'session')}")
    return 0


def _check_parts(arguments: Namespace, refuse: Callable[[str], NoReturn]) -> None:
    """Refuse a part of the session where all of it is told."""
    whole = next((name for name in ("cost", "tools", "turns") if getattr(arguments, name)), "")
    parts = {"turn": arguments.turn, "last": arguments.last, "at": arguments.at, "full": arguments.full or None}
    given = next((name for name, value in parts.items() if value is not None), "")
    if whole and given:
        refuse(f"--{given} goes with the talk or --records, not with --{whole}")


def _show(arguments: Namespace, refuse: Callable[[str], NoReturn]) -> int:
    if arguments.all:
        if arguments.id or not arguments.tools:
            refuse("--all goes with --tools, without ID")
        _check_parts(arguments, refuse)
        return _tools_over_all(arguments)
    if arguments.since or arguments.agent:
        refuse("--since and --agent go with --tools --all")
    if not arguments.id:
        refuse("the following arguments are required: ID")
    _check_parts(arguments, refuse)
    with opened(arguments) as store:
        info = store.info(arguments.id)
        if arguments.at is not None and not 1 <= arguments.at <= info.records:
            had = counted(info.records, "record")
            raise InputError(f"--at: session {info.id!r} has {had}, none with number {arguments.at}")
        if arguments.cost:
            _bill(store.usage(info.id), *with_subagents(store, info.id), arguments)
            return 0
        if arguments.tools or arguments.turns:
            log = SessionLog(store, info.id)
            with paged():
                if arguments.tools:
                    show_tools(log.tools_used(), json=arguments.json)
                else:
                    show_turns(log.turns(), json=arguments.json)
            return 0
        if not (arguments.records or arguments.json):
            show_talk(store, arguments)
            return 0
        first, last = 1, info.records
        if arguments.last is not None:
            first = max(1, last - arguments.last + 1)
        elif arguments.turn is not None:
            first, last = turn_span(store, info.id, arguments.turn, last)
        elif arguments.at is not None:
            first = last = arguments.at
        records = store.read(info.id, first=first, last=last)
        if arguments.json:
            shown = (visible(record_json(record).decode("utf-8")).encode("utf-8") for record in records)
            out_bytes(line + b"\n" for line in shown)
            return 0
        with paged():
            _head(store, info)
            for line in lines(records, rewinds_of(store, info.id)):
                out(line)
    return 0


def _head(store: Store, info: SessionInfo) -> None:
    """Print what is known of a session before its records, with its bill if there is one."""
    out(f"{info.id}  {visible(info.title, one_line=True)}".rstrip())
    parent = f", belongs to {info.parent}" if info.parent else ""
    if info.parent_records and info.parent:
        parent = f", from {info.parent} up to record {info.parent_records}"
    source = source_of(store, info.id)
    counts = f"{counted(info.records, 'record')}, {counted(info.messages, 'message')}"
    out(f"{counts}, {info.created} to {info.updated}{parent}{source and f', {source}'}")
    if bills := store.usage(info.id):
        out_line(in_short(bills))


def _bill(bills: Bills, every_bill: Bills, subagents: int, arguments: Namespace) -> None:
    """Print the bill of a session; for people also that with its subagents."""
    if arguments.json:
        for model, usage in bills.items():
            out_json({"model": model, **bill_json({model: usage})})
        return
    if bills:
        out_lines(bill_lines(bills))
    if subagents:
        out_line(f"with {counted(subagents, 'subagent')}: {in_short(every_bill)}")
    elif not bills:
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
