"""File changes as diffs: the net change of each file over a range of records, in git's format.

Everything is computed from `FileChange` records. No file is read from disk here.
"""

from __future__ import annotations

from .folding import NetChange, file_diff, net_changes
from .patch import FileDiff, patch_lines

__all__ = ["FileDiff", "NetChange", "file_diff", "net_changes", "patch_lines"]
