"""File changes as diffs: the net change of each file over a range of records, in git's format.

Everything is computed from `FileChange` records. No file is read from disk here.
"""

from __future__ import annotations

from .folding import FileStep, NetChange, differences, file_diff, net_changes, root_of
from .hunks import Hunk, apply_hunks, make_hunks, read_hunks, reverse_hunks, write_hunks
from .patch import FileDiff, diff_contents, diff_hunks, patch_lines
from .paths import is_inside, place_of, relative_to

__all__ = [
    "FileDiff",
    "FileStep",
    "Hunk",
    "NetChange",
    "apply_hunks",
    "diff_contents",
    "diff_hunks",
    "differences",
    "file_diff",
    "is_inside",
    "make_hunks",
    "net_changes",
    "patch_lines",
    "place_of",
    "read_hunks",
    "relative_to",
    "reverse_hunks",
    "root_of",
    "write_hunks",
]
