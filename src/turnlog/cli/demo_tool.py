"""The process that the demo kills: it receives an answer, starts the tool, and waits.

Run as `python -m turnlog.cli.demo_tool STORE SESSION`.
"""

from __future__ import annotations

import sys

from ..session.open import open as open_session
from .demo import ANSWER_TESTS


def main(store: str, session_id: str) -> None:
    """Start the tool and wait to be killed."""
    session = open_session(session_id, store=store)
    call = session.receive(ANSWER_TESTS).tool_calls[0]
    session.tool_started(call)
    print(call.arguments["command"], flush=True)
    sys.stdin.read()  # the demo kills the process here; it ends by itself if the demo is gone


if __name__ == "__main__":
    main(*sys.argv[1:])
