"""The command `turnlog`: one file for each noun; `entry` puts them together.

Thin: everything a command does is in the library. Nothing imports this room.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (None: the process's own) and return its exit code. Never raises.

    Opening the modules takes most of what a short command does, and is when people change their minds: so it happens
    in here, where an interruption has its sentence.
    """
    try:
        code: int = import_module(f"{__name__}.entry").main(argv)
    except KeyboardInterrupt:
        print("turnlog: interrupted", file=sys.stderr)
        return 130
    return code
