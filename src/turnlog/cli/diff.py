"""`diff`: show how a session changed files."""

from __future__ import annotations

import base64
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any

from .._platform.units import counted
from .._platform.visible import visible
from ..log.records import FileChange
from ..log.store import Store
from ..workspace.diff import FileDiff, NetChange, net_changes, patch_lines
from ..workspace.diff.folding import differences, root_of
from ..workspace.diff.paths import place_of
from ..workspace.diff.stat import diff_stat
from .arguments import AN_ID, add_command, turn_number
from .decisions import rewinds_of, turn_span
from .drawing import shortened_path
from .stores import opened
from .tables import terminal_width
from .terminal import is_terminal, out, out_bytes, out_coloured, out_json, paged, say

_Found = tuple[NetChange, FileDiff | str]
"""A change, and its diff or the reason for its absence."""

_OUTSIDE = "it is outside the folder that the session worked in"


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    diff = add_command(commands, store, "diff")
    diff.add_argument("id", metavar="ID", help=AN_ID)
    diff.add_argument("--turn", metavar="N", type=turn_number, help="only changes of the Nth turn; -1 is the last")
    diff.add_argument("--rewound", action="store_true", help="only changes that a rewind took back")
    diff.add_argument("--stat", action="store_true", help="the files and numbers of lines, without the lines")
    text = "the folder that paths are relative to (default: the one that the session worked in)"
    diff.add_argument("--root", metavar="PATH", default="", help=text)
    diff.add_argument("--json", action="store_true", help="one JSON object a file, one a line")
    diff.set_defaults(run=_diff)


def _diff(arguments: Namespace) -> int:
    with opened(arguments) as store:
        changes = differences(_changes(store, arguments), store.get_blob)
        if arguments.json:
            return _as_json(changes, patches=not arguments.stat)
        with paged():
            return _stat(changes) if arguments.stat else _patch(changes)


def _changes(store: Store, arguments: Namespace) -> list[NetChange]:
    """The net change of each file. With --turn: in that turn, whether or not it was taken back. Otherwise: in the
    records that were not taken back, or with --rewound in those that were."""
    info = store.info(arguments.id)
    records = [*store.of_kinds(info.id, ("file_change",))]
    rewinds = rewinds_of(store, info.id)
    first, last = 1, info.records
    if arguments.turn is not None:
        first, last = turn_span(store, info.id, arguments.turn, info.records)
    chosen = [record for record in records if first <= record.n <= last]
    if arguments.rewound or arguments.turn is None:
        gone = [record for record in chosen if rewinds.by(record.n)]
        if gone and not arguments.rewound:
            say(f"left out: {counted(len(gone), 'file change')} that a rewind took back, see --rewound")
        chosen = gone if arguments.rewound else [record for record in chosen if not rewinds.by(record.n)]
    # Paths of a turn are relative to the same folder as those of the whole session.
    root = root_of(record.body for record in records if isinstance(record.body, FileChange))
    return net_changes(chosen, root=place_of(arguments.root, root))


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
    stat = diff_stat(changes, width=terminal_width(), shortened=shortened_path)
    for path, why in stat.unknown.items():
        say(f"{path}: {why}")
    if not stat.box:
        say("no file changes are on record")
    for line in stat.box.splitlines():
        out(line)
    return 1 if stat.unknown else 0
