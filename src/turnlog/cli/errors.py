"""`errors`: the calls of a session that failed, what went wrong, and whether it was mended later."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, to_builtins

from .._platform.times import clock, day
from .._platform.units import counted
from ..log.records import PartialAnswer, Record, TurnClosed
from ..memory import FailedCall, Memory
from ..memory.fold import KINDS
from ..summarize.failures import REFUSED
from ..view.file_edits import about_call, without_folder
from .arguments import AN_ID, add_command
from .drawing import clipped, shortened_line, shortened_path
from .stores import opened
from .tables import terminal_width
from .terminal import out_json, out_line, paged, say

_LEAST = 12
"""Columns that the main argument of a call has at least."""


class _Row(Struct):
    """A failure as it is shown; `what` is `call`, `answer` or `turn`."""

    what: str
    record: int
    time: str
    tool: str = ""
    argument: str = ""
    outcome: str = ""
    code: int | None = None
    said: str = ""
    call: int = 0
    fixed: int = 0

    @property
    def status(self) -> str:
        """The exit code or the outcome."""
        return f"exit {self.code}" if self.code else self.outcome

    @property
    def fate(self) -> str:
        """Whether it was mended, and where; nothing for what is no error of a call."""
        if self.fixed:
            return f"fixed at {self.fixed}"
        return "open" if self.is_open else ""

    @property
    def is_open(self) -> bool:
        """Whether a call failed and no later one is known to have worked."""
        return self.is_failed_call and not self.fixed

    @property
    def is_failed_call(self) -> bool:
        """Whether a call failed, not one that the user refused."""
        return self.what == "call" and self.outcome not in ("canceled", "refused")


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, store, "errors")
    parser.add_argument("id", metavar="ID", help=AN_ID)
    parser.add_argument("--open", action="store_true", help="only calls of which no later one is known to have worked")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.set_defaults(run=_errors)


def _errors(arguments: Namespace) -> int:
    with opened(arguments) as store:
        records = list(store.of_kinds(arguments.id, (*KINDS, "turn_closed")))
    memory = Memory.of(records)
    rows = sorted((*_calls(memory, records), *_of_the_session(records)), key=lambda row: row.record)
    open_rows = [row for row in rows if row.is_open]
    shown = open_rows if arguments.open else rows
    if arguments.json:
        for row in shown:
            out_json(to_builtins(row))
    else:
        with paged():
            _print(shown)
    failed = sum(row.is_failed_call for row in rows)
    still = f"{len(open_rows)} open" if open_rows else "none open"
    said = f"{counted(failed, 'failed call')} of {memory.calls:,}, {still}" if failed else "no call failed"
    refused = sum(row.outcome == "refused" for row in rows)
    say(f"{said}, {refused} refused by the user" if refused else said)
    return 0


def _calls(memory: Memory, records: Sequence[Record]) -> list[_Row]:
    times = {record.n: record.time for record in records}
    return [_row(failed, times.get(failed.result, "")) for failed in memory.failed_calls]


def _row(failed: FailedCall, time: str) -> _Row:
    outcome: str = "failed" if failed.outcome == "ok" else failed.outcome
    outcome = "refused" if failed.said.startswith(REFUSED) else outcome
    argument = about_call(failed.call)[0].removesuffix(" 2>&1")
    return _Row(
        *("call", failed.result, time, failed.call.name, argument),
        *(outcome, failed.code, failed.said, failed.record, failed.fixed),
    )


def _of_the_session(records: Sequence[Record]) -> list[_Row]:
    """Answers that were interrupted, and turns that failed."""
    rows = []
    for record in records:
        if isinstance(body := record.body, PartialAnswer):
            rows.append(_Row("answer", record.n, record.time, "an answer", "", "interrupted", None, body.reason))
        elif isinstance(body, TurnClosed) and body.status == "failed":
            rows.append(_Row("turn", record.n, record.time, "a turn", "", "failed", None, body.reason))
    return rows


def _print(rows: Sequence[_Row]) -> None:
    """The rows with what went wrong below each, cut to the width of a terminal."""
    if not rows:
        return
    days = [" ".join(day(row.time).split()[:2]) for row in rows]
    several = len(set(days)) > 1
    times = [f"{date} {clock(row.time)}" if several else clock(row.time) for date, row in zip(days, rows, strict=True)]
    cells = [(str(row.record), time, row.tool, row.status, row.fate) for row, time in zip(rows, times, strict=True)]
    number, when, tool, status, fate = (max(map(len, column)) for column in zip(*cells, strict=True))
    room = terminal_width()
    tool = min(tool, 16) if room else tool
    arguments = [" ".join(row.argument.split()) for row in rows]
    if room:  # which command it was, not where it ran
        arguments = [without_folder(argument) for argument in arguments]
    longest = max(map(len, arguments))
    width = min(longest, max(_LEAST, room - number - when - tool - status - fate - 10))
    for row, argument, (n, time, name, ended, mended) in zip(rows, arguments, cells, strict=True):
        cut = shortened_path(argument, width) if " " not in argument else argument
        argument = clipped(cut, width) if room else argument  # a pipe gets it whole
        name = clipped(name, tool)
        out_line(
            "  ".join((f"{n:>{number}}", f"{time:>{when}}", name, argument, f"{ended:<{status}}", mended)).rstrip()
        )
        if row.said:
            out_line(
                f"{'':{number}}  {shortened_line(' '.join(row.said.split()), room - number - 2) if room else row.said}"
            )
