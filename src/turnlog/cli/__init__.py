"""The command `turnlog`: one file for each noun; `entry` puts them together.

The code is thin: the library does the work. No other package imports this one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (None: the arguments of this process) and return its exit code. Never raises.

    Modules are loaded inside this function, so that Ctrl-C while they load is reported in a sentence: loading takes
    most of the time of a short command.
    """
    try:
        code: int = import_module(f"{__name__}.entry").main(argv)
    except KeyboardInterrupt:
        print("turnlog: interrupted", file=sys.stderr)
        return 130
    return code
