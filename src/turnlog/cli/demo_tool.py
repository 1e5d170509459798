"""The process that the demo kills: it runs the loop of an agent, whose tool begins and waits.

Run as `python -m turnlog.cli.demo_tool STORE SESSION`.
"""

from __future__ import annotations

import sys

from ..agent import run
from ..runners import ScriptedRunner
from ..session.open import open as open_session
from .demo import PUBLISH, Bash, call


def main(store: str, session_id: str) -> None:
    """Run the loop until the demo kills this process in the tool."""
    model = ScriptedRunner([["Now the tests, and then I'll publish the fix.", call(7, "pytest -q && ./publish")]])
    with open_session(session_id, store=store) as session:
        run(session, PUBLISH, model, tools=[Bash(hang=True).tool()], approve=lambda _: True)


if __name__ == "__main__":
    main(*sys.argv[1:])
