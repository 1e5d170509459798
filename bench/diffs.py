"""Patches of generated edit sequences, judged by git; and those of real transcripts.

    python bench/diffs.py --sequences 2000
    python bench/diffs.py --records 100000
    python bench/diffs.py --transcripts FOLDER

Of each sequence: does `git apply --check` take the patch, does applying it give the files byte for byte,
does its reverse bring the old ones back? Every second sequence records patches instead of contents.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from turnlog.errors import ImportFailed
from turnlog.importers import Imported, read_file
from turnlog.log.messages import Message, Text
from turnlog.log.records import FileChange, MessageRecord, Record
from turnlog.log.store import Draft
from turnlog.stores import open_store
from turnlog.testing.edits import File, edit_sequence, git_judges
from turnlog.workspace.diff import (
    FileDiff,
    NetChange,
    apply_hunks,
    file_diff,
    net_changes,
    patch_lines,
    reverse_hunks,
    root_of,
)


def sequences(number: int, first: int) -> int:
    """Judge so many sequences; how many failed."""
    counts: Counter[str] = Counter()
    failed = untold = 0
    spent = 0.0
    for seed in range(first, first + number):
        edits = edit_sequence(seed, patches=bool(seed % 2))
        begun = time.perf_counter()
        changes = net_changes(edits.records)
        found = [file_diff(change, edits.blobs.__getitem__) for change in changes]
        diffs = [diff for diff in found if diff is not None and not diff.is_nothing]
        patch = b"".join(line for diff in diffs for line in patch_lines(diff))
        spent += time.perf_counter() - begun
        counts.update(change.action for change in changes)
        counts["binary"] += sum(diff.is_binary for diff in diffs)
        counts["edits"] += len(edits.records)
        if None in found:
            untold += 1
            continue
        wrong = git_judges(edits.before, edits.after, patch)
        if wrong:
            failed += 1
            print(f"seed {seed}: {wrong}")
    print(f"{number} sequences: {number - failed - untold} applied and reversed byte for byte, {failed} failed")
    print(f"  {untold} not judged: their records do not tell all (patches only, on paths that are used again)")
    print("  " + ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
    print(f"  {1000 * spent / max(number, 1):.2f} ms a sequence to fold, diff and write")
    return failed


def transcripts(folder: Path) -> int:
    """Judge what is recovered of the edits in real transcripts, each alone and each session's net; how many
    of those that are told failed."""
    counts: dict[str, Counter[str]] = {}
    for path in sorted(folder.rglob("*.json*")):
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
                judge([record], root, session, "edit", count)
            if changed:
                judge(changed, root, session, "net change", count)
    for name, count in sorted(counts.items()):
        if count:
            print(name + ": " + ", ".join(f"{what} {number}" for what, number in sorted(count.items())))
    return sum(number for count in counts.values() for what, number in count.items() if "failed" in what)


def judge(records: list[Record], root: str, session: Imported, what: str, count: Counter[str]) -> None:
    """Ask git about the patch of each file that these records change."""
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
            print(f"{session.files[0]}: {change.path}: {wrong}")


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


def one_session(records: int) -> None:
    """How long the changes of a long session take to be found and counted, beside reading all of it."""
    for name in ("log.db", "files:log"):
        with tempfile.TemporaryDirectory() as folder:
            prefix, _, last = name.rpartition(":")
            store = open_store(f"{prefix}:{folder}/{last}" if prefix else f"{folder}/{last}")
            store.create("long")
            blobs = [
                store.put_blob(b"".join(b"%d of %d\n" % (n, version) for n in range(200))) for version in range(50)
            ]
            words = "word " * 80
            for start in range(0, records, 5000):
                numbers = range(start, min(start + 5000, records))
                store.append("long", [draft_of(n, blobs, words) for n in numbers])
            begun = time.perf_counter()
            changes = net_changes(store.of_kinds("long", ("file_change",)))
            additions = sum(diff.additions for change in changes if (diff := file_diff(change, store.get_blob)))
            found = time.perf_counter() - begun
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            begun = time.perf_counter()
            read = sum(1 for _ in store.read("long"))
            whole = time.perf_counter() - begun
            store.close()
            print(
                f"{name}: {len(changes)} files, +{additions:,} lines of {read:,} records in {found:.2f} s, "
                f"{whole / found:.1f} times as fast as reading all; {peak:.0f} MB at most so far"
            )


def draft_of(n: int, blobs: list[str], words: str) -> Draft:
    """Record `n` of the long session: every fortieth is a file change."""
    if n % 40 == 7:
        return Draft(FileChange(f"src/f{n % 300}.py", "modified", before=blobs[n % 50], after=blobs[(n + 1) % 50]))
    role: Literal["user", "assistant"] = "user" if n % 2 else "assistant"
    return Draft(MessageRecord(Message(role, (Text(f"{words}{n}"),))))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=0, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the seed of the first sequence")
    parser.add_argument("--records", type=int, default=0, metavar="N", help="one session of so many records")
    parser.add_argument("--transcripts", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    failed = sequences(arguments.sequences, arguments.first) if arguments.sequences else 0
    if arguments.records:
        one_session(arguments.records)
    if arguments.transcripts is not None:
        failed += transcripts(arguments.transcripts)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
