"""What the clerks whose approvals wait share: where they keep things, the server of their tools, and who decides."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(os.environ["CLERK_FOLDER"])
SERVER = [str(Path(__file__).with_name("bills_server.py")), str(FOLDER)]


def decide(name: str, arguments: object, reason: str = "") -> bool:
    """Show somebody a call that waits, and read from standard input whether it may run."""
    print(f"waits: {name} {arguments} {reason}".strip(), flush=True)
    return input() == "yes"
