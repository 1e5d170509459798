"""smolagents with turnlog: each model call of the agent is on record and stays within 8,000 tokens.

Needs `pip install 'smolagents[openai]'`; the key is in OPENAI_API_KEY, and another server in OPENAI_BASE_URL.
"""

import sys
from pathlib import Path

from smolagents import OpenAIModel, ToolCallingAgent, tool

from turnlog import transport


@tool
def read_file(path: str) -> str:
    """Read a file of the project.

    Args:
        path: where the file is.
    """
    return Path(path).read_text()


def main(tasks: list[str]) -> None:
    """Do one task after the other, in one conversation."""
    with transport.client("agents.db", budget=8_000) as http:
        agent = ToolCallingAgent(tools=[read_file], model=OpenAIModel("gpt-4o", client_kwargs={"http_client": http}))
        for task in tasks:
            print(agent.run(task, reset=False))


main(sys.argv[1:])
