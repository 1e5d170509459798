"""Strands Agents with turnlog: each model call of the agent is on record and stays within 8,000 tokens.

Needs `pip install 'strands-agents[openai]'`; the key is in OPENAI_API_KEY, and another server in OPENAI_BASE_URL. Its
own trimming is turned off: turnlog does that.
"""

import asyncio
import sys
from pathlib import Path

from openai import AsyncOpenAI
from strands import Agent, tool
from strands.agent.conversation_manager import NullConversationManager
from strands.models.openai import OpenAIModel

from turnlog import transport


@tool
def read_file(path: str) -> str:
    """Read a file of the project."""
    return Path(path).read_text()


async def main(tasks: list[str]) -> None:
    """Do one task after the other, in one conversation."""
    http = transport.async_client("agents.db", budget=8_000)
    model = OpenAIModel(client=AsyncOpenAI(http_client=http), model_id="gpt-4o")
    agent = Agent(
        model,
        tools=[read_file],
        system_prompt="Be brief.",
        callback_handler=None,
        conversation_manager=NullConversationManager(),
    )
    for task in tasks:
        print(await agent.invoke_async(task))
    await http.aclose()


asyncio.run(main(sys.argv[1:]))
