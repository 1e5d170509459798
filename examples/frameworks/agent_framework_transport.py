"""Microsoft's Agent Framework with turnlog: each model call is on record and stays within 8,000 tokens.

Needs `pip install agent-framework-core agent-framework-openai`; the key is in OPENAI_API_KEY, and another server in
OPENAI_BASE_URL. `store=False`: the conversation is in each request, and not kept by the server.
"""

import asyncio
import sys
from pathlib import Path

from agent_framework import Agent, tool
from agent_framework.openai import OpenAIChatClient
from openai import AsyncOpenAI

from turnlog import transport


@tool
def read_file(path: str) -> str:
    """Read a file of the project."""
    return Path(path).read_text()


async def main(tasks: list[str]) -> None:
    """Do one task after the other, in one conversation."""
    http = transport.async_client("agents.db", budget=8_000)
    model = OpenAIChatClient("gpt-5", async_client=AsyncOpenAI(http_client=http))
    agent = Agent(model, "Be brief.", tools=[read_file], default_options={"store": False})
    session = agent.create_session()
    for task in tasks:
        print((await agent.run(task, session=session)).text)
    await http.aclose()


asyncio.run(main(sys.argv[1:]))
