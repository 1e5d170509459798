"""The command `turnlog`: one file for each noun; `entry` puts them together.

Thin: everything a command does is in the library. No other package imports this one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (None: the process's own) and return its exit code. Never raises.

    Loading modules takes most of the time of a short command, so it happens in here, where an interruption (Ctrl-C)
    is reported in a sentence.
    """
    try:
        code: int = import_module(f"{__name__}.entry").main(argv)
    except KeyboardInterrupt:
        print("turnlog: interrupted", file=sys.stderr)
        return 130
    return code
