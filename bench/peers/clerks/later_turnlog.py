"""The clerk whose approvals wait, with turnlog."""

import sys

from later_tools import FOLDER, SERVER, decide

import turnlog
from turnlog import agent
from turnlog.runners import SdkRunner

STORE = FOLDER / "clerk.db"
server = agent.mcp_server([sys.executable, *SERVER], needs_approval=lambda tool: tool["name"] == "pay")


def run(text: str | None) -> None:
    target = turnlog.target("openai-chat", "gpt-4o")
    with turnlog.open("clerk", store=STORE, target=target) as session:
        result = turnlog.run(session, text, SdkRunner(), tools=[server], approve=agent.LATER, max_steps=20)
    print(result.text or result.stop)


def page() -> None:
    with turnlog.open("clerk", store=STORE, read_only=True) as session:
        for info in session.pending():
            if decide(info.call.name, info.call.arguments, info.reason):
                session.approve(info.call)
            else:
                session.deny(info.call)


match sys.argv[1]:
    case "start":
        run(sys.argv[2])
    case "page":
        page()
    case "go":
        run(None)
