"""Folders that only their owner can look into."""

from __future__ import annotations

from pathlib import Path

__all__ = ["make_private"]


def make_private(path: Path) -> None:
    """Make a folder, and those above it that are missing, for its owner alone. One that is there stays
    as it is. (`mkdir` with `parents` would give those above the mode that everybody can read.)"""
    missing = [path]
    while not missing[-1].exists() and missing[-1].parent != missing[-1]:
        missing.append(missing[-1].parent)
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
