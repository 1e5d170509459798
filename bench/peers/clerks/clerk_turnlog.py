"""The clerk with turnlog."""

import sys

from clerk_tools import FOLDER, ask, bill, pay

import turnlog
from turnlog import agent
from turnlog.runners import SdkRunner

target = turnlog.target("openai-chat", "gpt-4o")
with turnlog.open("clerk", store=FOLDER / "clerk.db", target=target) as session:
    result = turnlog.run(
        session,
        sys.argv[1],
        SdkRunner(),
        tools=[bill, agent.tool(needs_approval=True)(pay)],
        approve=lambda question: ask(question.call.name, question.call.arguments, question.reason),
        max_steps=20,
    )
print(result.text)
