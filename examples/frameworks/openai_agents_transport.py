"""openai-agents with turnlog: each model call of the agent is on record and stays within 8,000 tokens.

Needs `pip install openai-agents`; the key is in OPENAI_API_KEY, and another server in OPENAI_BASE_URL.
"""

import asyncio
import sys
from pathlib import Path

from agents import Agent, OpenAIResponsesModel, Runner, SQLiteSession, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from turnlog import transport


@function_tool
def read_file(path: str) -> str:
    """Read a file of the project."""
    return Path(path).read_text()


async def main(tasks: list[str]) -> None:
    """Do one task after the other, in one conversation."""
    set_tracing_disabled(True)
    http = transport.async_client("agents.db", budget=8_000)
    model = OpenAIResponsesModel("gpt-5", AsyncOpenAI(http_client=http))
    agent = Agent(name="reader", instructions="Be brief.", model=model, tools=[read_file])
    session = SQLiteSession("files")
    for task in tasks:
        result = await Runner.run(agent, task, session=session)
        print(result.final_output)
    await http.aclose()


asyncio.run(main(sys.argv[1:]))
