"""Microsoft's Agent Framework. FORM: `chat` or `responses`, with `-stream`."""

from __future__ import annotations

from typing import Any

import given
from agent_framework import Agent, tool
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from openai import AsyncOpenAI

API, _, VARIANT = given.FORM.partition("-")
CLIENT = AsyncOpenAI(max_retries=0, **given.async_client("http_client"))
MODEL: Any = (
    OpenAIChatCompletionClient("gpt-4o", async_client=CLIENT)
    if API == "chat"
    else OpenAIChatClient("gpt-5", async_client=CLIENT)
)
AGENT = Agent(
    MODEL, given.SYSTEM, name="reader", tools=[tool(given.read_file)],
    default_options={"store": False} if API == "responses" else {},
)  # fmt: skip
SESSION = AGENT.create_session()


async def say(task: str) -> str:
    """One turn."""
    if VARIANT == "stream":
        streamed = AGENT.run(task, session=SESSION, stream=True)
        async for _ in streamed:
            pass
        return (await streamed.get_final_response()).text
    return (await AGENT.run(task, session=SESSION)).text


given.talk(say)
