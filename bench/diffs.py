"""Patches of generated edit sequences, judged by git; and those of real transcripts.

    python bench/diffs.py --sequences 2000
    python bench/diffs.py --transcripts ../shared/data

Of each sequence: does `git apply --check` take the patch, does applying it give the files byte for byte,
does its reverse bring the old ones back? Every second sequence records patches instead of contents.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from turnlog.diffs import file_diff, net_changes, patch_lines
from turnlog.testing.edits import edit_sequence, git_judges


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


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=0, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the seed of the first sequence")
    arguments = parser.parse_args()
    return 1 if sequences(arguments.sequences, arguments.first) else 0


if __name__ == "__main__":
    sys.exit(main())
