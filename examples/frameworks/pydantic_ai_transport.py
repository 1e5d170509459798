"""pydantic-ai with turnlog: each model call of the agent is on record and stays within 8,000 tokens.

Needs `pip install 'pydantic-ai-slim[anthropic]'`; the key is in ANTHROPIC_API_KEY, and another server in
ANTHROPIC_BASE_URL. `OpenAIProvider` and `GoogleProvider` take `http_client` in the same way.
"""

import asyncio
import sys
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from turnlog import transport


def read_file(path: str) -> str:
    """Read a file of the project."""
    return Path(path).read_text()


async def main(tasks: list[str]) -> None:
    """Do one task after the other, in one conversation."""
    http = transport.async_client("agents.db", budget=8_000)
    model = AnthropicModel("claude-sonnet-4-6", provider=AnthropicProvider(http_client=http))
    agent = Agent(model, instructions="Be brief.", tools=[read_file])
    history = []
    for task in tasks:
        result = await agent.run(task, message_history=history)
        history = result.all_messages()
        print(result.output)
    await http.aclose()


asyncio.run(main(sys.argv[1:]))
