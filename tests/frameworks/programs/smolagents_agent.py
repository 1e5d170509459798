"""smolagents: an agent that calls tools, which keeps its steps from task to task. FORM: `chat`, with `-stream`."""

from __future__ import annotations

import given
from smolagents import OpenAIModel, ToolCallingAgent, tool

MODEL = OpenAIModel("gpt-4o", api_key="k", client_kwargs={"max_retries": 0, **given.client("http_client")})
AGENT = ToolCallingAgent(
    tools=[tool(given.read_file)], model=MODEL, instructions=given.SYSTEM, verbosity_level=0,
    stream_outputs=given.FORM.endswith("-stream"),
)  # fmt: skip


def say(task: str) -> str:
    """One turn."""
    return str(AGENT.run(task, reset=False))


given.talk(say)
