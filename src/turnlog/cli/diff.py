"""`diff`: show how a session changed files."""

from __future__ import annotations

import base64
import sys
import unicodedata
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from typing import Any

from .._platform.units import counted
from ..errors import InputError
from ..export.escapes import visible
from ..log.records import FileChange
from ..log.store import Store
from ..view.turns import turn_spans
from ..workspace.diff import FileDiff, NetChange, net_changes, patch_lines
from ..workspace.diff.folding import differences, root_of
from ..workspace.diff.paths import place_of
from .arguments import ANY_ID, add_command
from .decisions import rewinds_of
from .stores import opened
from .terminal import is_terminal, out, out_bytes, out_coloured, out_json, say

_Found = tuple[NetChange, FileDiff | str]
"""A change, and its diff or the reason for its absence."""

_OUTSIDE = "it is outside the folder that the session worked in"


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    diff = add_command(commands, store, "diff")
    diff.add_argument("id", metavar="ID", help=ANY_ID)
    diff.add_argument("--turn", metavar="N", type=_turn, help="only changes of the Nth turn; -1 is the last")
    diff.add_argument("--rewound", action="store_true", help="only changes that a rewind took back")
    diff.add_argument("--stat", action="store_true", help="the files and numbers of lines, without the lines")
    text = "the folder that paths are relative to (default: the one that the session worked in)"
    diff.add_argument("--root", metavar="PATH", default="", help=text)
    diff.add_argument("--json", action="store_true", help="one JSON object a file, one a line")
    diff.set_defaults(run=_diff)


def _turn(text: str) -> int:
    if not text.removeprefix("-").isdecimal() or int(text) == 0:
        raise ArgumentTypeError(f"{text!r} is not the number of a turn; 1 is the first turn, -1 the last")
    return int(text)


def _diff(arguments: Namespace) -> int:
    with opened(arguments) as store:
        changes = differences(_changes(store, arguments), store.get_blob)
        if arguments.json:
            return _as_json(changes, patches=not arguments.stat)
        return _stat(changes) if arguments.stat else _patch(changes)


def _changes(store: Store, arguments: Namespace) -> list[NetChange]:
    """The net change of each file. With --turn: in that turn, whether or not it was taken back. Otherwise: in the
    records that were not taken back, or with --rewound in those that were."""
    info = store.info(arguments.id)
    records = [*store.of_kinds(info.id, ("file_change",))]
    rewinds = rewinds_of(store, info.id)
    first, last = 1, info.records
    if arguments.turn is not None:
        first, last = _span(store, info.id, arguments.turn, info.records)
    chosen = [record for record in records if first <= record.n <= last]
    if arguments.rewound or arguments.turn is None:
        gone = [record for record in chosen if rewinds.by(record.n)]
        if gone and not arguments.rewound:
            say(f"left out: {counted(len(gone), 'file change')} that a rewind took back, see --rewound")
        chosen = gone if arguments.rewound else [record for record in chosen if not rewinds.by(record.n)]
    # Paths of a turn are relative to the same folder as those of the whole session.
    root = root_of(record.body for record in records if isinstance(record.body, FileChange))
    return net_changes(chosen, root=place_of(arguments.root, root))


def _span(store: Store, session_id: str, turn: int, last: int) -> tuple[int, int]:
    """The first and last record of a turn. Raises InputError if the session has no turn of that number."""
    spans = turn_spans(store.of_kinds(session_id, ("message", "turn_opened", "turn_closed", "turn_resumed")), last)
    if abs(turn) > len(spans):
        raise InputError(f"--turn: session {session_id!r} has {counted(len(spans), 'turn')}, none with number {turn}")
    return spans[turn - 1 if turn > 0 else turn]


def _as_json(changes: Iterator[_Found], *, patches: bool) -> int:
    left_out = 0
    for change, diff in changes:
        row: dict[str, Any] = {"path": change.path, "action": change.action, "old_path": change.old_path}
        row |= {"records": change.records, "applies": change.applies and not isinstance(diff, str)}
        if isinstance(diff, str):
            left_out += 1
            row["why"] = diff
        else:
            row |= {"additions": diff.additions, "deletions": diff.deletions, "binary": diff.is_binary}
            if patches:
                row |= _text_of(b"".join(patch_lines(diff)))
        out_json(row)
    return 1 if left_out else 0


def _text_of(patch: bytes) -> dict[str, str]:
    """A patch in JSON: as text, or as base64 if it is not UTF-8."""
    try:
        return {"patch": patch.decode("utf-8")}
    except UnicodeDecodeError:
        return {"patch_base64": base64.b64encode(patch).decode("ascii")}


def _patch(changes: Iterator[_Found]) -> int:
    """Print everything as one patch; report changes that a patch cannot contain on stderr."""
    left_out = 0
    for change, diff in changes:
        if isinstance(diff, str) or not change.applies:
            left_out += 1
            say(f"left out: {change.path} ({change.action}): {diff if isinstance(diff, str) else _OUTSIDE}")
        elif is_terminal(sys.stdout):
            _show(diff)
        else:
            out_bytes(patch_lines(diff))
    return 1 if left_out else 0


_STYLES = {b"+": "green", b"-": "red", b"@": "cyan", b" ": "", b"\\": ""}


def _show(diff: FileDiff) -> None:
    """Print a diff on a terminal: each line escaped, then coloured."""
    head = True
    for line in patch_lines(diff):
        head = head and not line.startswith((b"@@ ", b"literal "))
        style = "bold" if head else "" if diff.is_binary else _STYLES.get(line[:1], "")
        text = visible(line.rstrip(b"\n").decode("utf-8", "replace"))
        out_coloured(text, style) if style else out(text)


def _stat(changes: Iterator[_Found]) -> int:
    """Print the box of changed files."""
    rows: list[tuple[str, str, str]] = []
    additions = deletions = missing = 0
    for change, diff in changes:
        name = f"{change.old_path} → {change.path}" if change.old_path else change.path
        if isinstance(diff, str):
            missing += 1
            figures = "(?)"
            say(f"{change.path}: {diff}")
        else:
            additions, deletions = additions + diff.additions, deletions + diff.deletions
            figures = _binary(diff) if diff.is_binary else f"(+{diff.additions:,}, -{diff.deletions:,})"
        rows.append((change.action.capitalize(), visible(name, one_line=True), figures))
    if not rows:
        say("no file changes are on record")
        return 0
    total = f"{counted(len(rows), 'file')} (+{additions:,}, -{deletions:,})"
    for line in _box(rows, total):
        out(line)
    return 1 if missing else 0


def _binary(diff: FileDiff) -> str:
    before, after = diff.contents or (b"", b"")
    return f"(binary, {len(before):,} → {len(after):,} bytes)"


def _box(rows: list[tuple[str, str, str]], total: str) -> Iterator[str]:
    wide = max(_width(name) for _, name, _ in rows)
    lines = [f"{action:<8}  {name}{' ' * (wide - _width(name))}  {figures}" for action, name, figures in rows]
    inner = max(map(_width, [*lines, total]))
    yield f"┌{'─' * (inner + 2)}┐"
    for line in lines:
        yield f"│ {line}{' ' * (inner - _width(line))} │"
    yield f"├{'─' * (inner + 2)}┤"
    yield f"│ {total}{' ' * (inner - _width(total))} │"
    yield f"└{'─' * (inner + 2)}┘"


def _width(text: str) -> int:
    """The number of terminal columns that a text takes."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )
