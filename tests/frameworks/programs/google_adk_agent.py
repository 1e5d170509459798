"""Google's ADK. FORM: `google`, with `-stream`."""

from __future__ import annotations

import given
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import Client, types

HTTP = types.HttpOptions(base_url=given.URL, **given.async_client("httpx_async_client", "httpx"))
MODEL = Gemini(model="gemini-2.5-flash", client=Client(http_options=HTTP))
AGENT = LlmAgent(name="reader", model=MODEL, instruction=given.SYSTEM, tools=[given.read_file])
RUNNER = InMemoryRunner(AGENT, app_name="files")
HOW = RunConfig(streaming_mode=StreamingMode.SSE if given.FORM.endswith("-stream") else StreamingMode.NONE)


async def say(task: str) -> str:
    """One turn."""
    sessions = RUNNER.session_service
    found = await sessions.get_session(app_name="files", user_id="me", session_id="files")
    if found is None:
        await sessions.create_session(app_name="files", user_id="me", session_id="files")
    content, answer = types.Content(role="user", parts=[types.Part(text=task)]), ""
    async for event in RUNNER.run_async(user_id="me", session_id="files", new_message=content, run_config=HOW):
        if event.error_message:
            raise RuntimeError(event.error_message)
        if event.is_final_response() and event.content and not event.partial:
            answer = "".join(part.text or "" for part in event.content.parts or [] if not part.thought)
    return answer


given.talk(say)
