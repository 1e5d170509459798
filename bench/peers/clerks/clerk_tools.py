"""The tools of the clerk, the same for every library; the first payment kills the process after it was made."""

from __future__ import annotations

import os
import signal
from pathlib import Path

FOLDER = Path(os.environ["CLERK_FOLDER"])


def bill(number: int) -> str:
    """The amount of a bill, in euros."""
    return "120"


def pay(number: int) -> str:
    """Pay a bill."""
    crash = not (FOLDER / "paid").exists()
    told("paid", str(number))
    if crash:
        os.kill(os.getpid(), signal.SIGKILL)  # the power goes off, in the middle of the call
    return "paid"


def ask(name: str, arguments: object, reason: str) -> bool:
    """Ask somebody whether a call may run; somebody who does not want to pay twice."""
    told("asked", f"{name} {arguments} {reason}".strip())
    return "may have run" not in reason


def told(name: str, line: str) -> None:
    """Add a line to a file."""
    with open(FOLDER / name, "a", encoding="utf-8") as file:
        file.write(line + "\n")
