"""Google's ADK with turnlog: each model call of the agent is on record and stays within 8,000 tokens.

Needs `pip install google-adk`; the key is in GEMINI_API_KEY, and another server in GOOGLE_GEMINI_BASE_URL.
"""

import asyncio
import sys
from pathlib import Path

from google.adk.agents import LlmAgent
from google.adk.models import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import Client, types

from turnlog import transport


def read_file(path: str) -> str:
    """Read a file of the project."""
    return Path(path).read_text()


async def main(tasks: list[str]) -> None:
    """Do one task after the other, in one conversation."""
    http = transport.async_client("agents.db", budget=8_000)
    model = Gemini(model="gemini-2.5-flash", client=Client(http_options={"httpx_async_client": http}))
    agent = LlmAgent(name="reader", model=model, instruction="Be brief.", tools=[read_file])
    runner = InMemoryRunner(agent, app_name="reader")
    session = await runner.session_service.create_session(app_name="reader", user_id="me")
    for task in tasks:
        said = types.Content(role="user", parts=[types.Part(text=task)])
        async for event in runner.run_async(user_id="me", session_id=session.id, new_message=said):
            if event.is_final_response() and event.content:
                print("".join(part.text or "" for part in event.content.parts if not part.thought))
    await http.aclose()


asyncio.run(main(sys.argv[1:]))
