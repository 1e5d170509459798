"""Patches of the edits in real transcripts, judged by git; and what the changes of a long session cost.

`tests/workspace/test_diff.py` judges generated edits.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from harness import Report, apart, bench, memory, seconds, shared
from turnlog.errors import ImportFailed
from turnlog.importers import Imported, read_file
from turnlog.log.messages import Message, Text
from turnlog.log.records import FileChange, MessageRecord, Record
from turnlog.log.store import Draft
from turnlog.stores import open_store
from turnlog.testing.edits import File, git_judges
from turnlog.workspace.diff import FileDiff, NetChange, file_diff, net_changes, patch_lines
from turnlog.workspace.diff.folding import root_of
from turnlog.workspace.diff.hunks import apply_hunks, reverse_hunks


def judge(records: list[Record], root: str, session: Imported, what: str, count: Counter[str]) -> list[str]:
    """Ask git about the patch of each file that these records change. Returns what it refuses."""
    refused: list[str] = []
    for change in net_changes(records, root=root):
        count[f"{what}s"] += 1
        diff = file_diff(change, session.blobs.__getitem__)
        if diff is None:
            count[f"{what}s that the transcript does not tell"] += 1
            continue
        name = change.path.replace("/", "_") or "_"  # judged in a folder of its own, wherever it is
        was = f"was_{name}" if change.old_path else name
        diff = replace(diff, path=name, old_path=was if change.old_path else "")
        before, after = ends(diff, change, session.blobs)
        old = {} if change.action == "created" else {was: File(before)}
        new = {} if change.action == "deleted" else {name: File(after)}
        wrong = git_judges(old, new, b"".join(patch_lines(diff)))
        count[f"{what}s that failed" if wrong else f"{what}s applied and reversed"] += 1
        if wrong:
            refused.append(f"{session.files[0]}: {change.path}: {wrong}")
    return refused


def ends(diff: FileDiff, change: NetChange, blobs: dict[str, bytes]) -> tuple[bytes, bytes]:
    """Both contents of a file. Where the transcript tells patches only, lines that nobody knows are made up."""
    known = [step for step in change.steps if step.before is not None and step.after is not None]
    if len(known) == len(change.steps) == 1:
        names = [known[0].before, known[0].after]
        before, after = (blobs[name] if name else b"" for name in names)
        return before, after
    if change.action == "created":
        return b"", apply_hunks(b"", diff.hunks)
    if change.action == "deleted":
        return apply_hunks(b"", reverse_hunks(diff.hunks)), b""
    lines: list[bytes] = []
    for hunk in diff.hunks:
        lines += [b"unknown %d\n" % n for n in range(len(lines), hunk.old_start - 1)]
        lines += [line[1:] for line in hunk.lines if line[:1] != b"+"]
    before = b"".join(lines)
    last = diff.hunks[-1].lines[-1] if diff.hunks else b""
    before += b"unknown end\n" if last[:1] == b" " and before.endswith(b"\n") else b""
    return before, apply_hunks(before, diff.hunks)


def draft_of(n: int, blobs: list[str], words: str) -> Draft:
    """Record `n` of the long session: every fortieth is a file change."""
    if n % 40 == 7:
        return Draft(FileChange(f"src/f{n % 300}.py", "modified", before=blobs[n % 50], after=blobs[(n + 1) % 50]))
    role: Literal["user", "assistant"] = "user" if n % 2 else "assistant"
    return Draft(MessageRecord(Message(role, (Text(f"{words}{n}"),))))


def changes_of(place: str, records: int) -> dict[str, float]:
    """How long the changes of a long session take to be found and counted, beside reading all of it."""
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(place.format(folder))
        store.create("long")
        blobs = [store.put_blob(b"".join(b"%d of %d\n" % (n, version) for n in range(200))) for version in range(50)]
        words = "word " * 80
        for start in range(0, records, 5000):
            store.append("long", [draft_of(n, blobs, words) for n in range(start, min(start + 5000, records))])
        diffs: list[FileDiff | None] = []

        def find() -> None:
            changes = net_changes(store.of_kinds("long", ("file_change",)))
            diffs.extend(file_diff(change, store.get_blob) for change in changes)

        found, held = seconds(find, clock=time.perf_counter), memory()
        whole = seconds(lambda: sum(1 for _ in store.read("long")), clock=time.perf_counter)
        store.close()
    added = sum(diff.additions for diff in diffs if diff)
    return {
        "files": len(diffs),
        "lines added": added,
        "s": found,
        "times as fast as reading all": whole / found,
        "MB": held,
    }


@bench(quick={"records": 5_000})
def changes(report: Report, *, records: int = 100_000) -> None:
    """How long the file changes of a session of 100,000 records take to be found and counted."""
    for name, place in (("sqlite", "{}/log.db"), ("files", "files:{}/log")):
        report.row(name, apart(changes_of, place, records))


@bench()
def transcripts(report: Report, *, folder: str = "") -> None:
    """Of the edits in real transcripts (of the shared material, or below --folder): which git takes both ways."""
    counts: dict[str, Counter[str]] = {}
    refused: list[str] = []
    for path in sorted((Path(folder) if folder else shared("data")).rglob("*.json*")):
        try:
            sessions = read_file(path)
        except ImportFailed:
            continue
        for session in sessions:
            records = [Record(n, "", draft.body) for n, draft in enumerate(session.drafts, 1)]
            changed = [record for record in records if isinstance(record.body, FileChange)]
            count = counts.setdefault(session.format, Counter())
            root = root_of(record.body for record in changed if isinstance(record.body, FileChange))
            for record in changed:
                refused += judge([record], root, session, "edit", count)
            refused += judge(changed, root, session, "net change", count) if changed else []
    for name, count in sorted(counts.items()):
        if count:
            report.row(name, dict(sorted(count.items())))
    report.findings("refused by git", refused)
