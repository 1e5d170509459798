"""Strands Agents, without its own trimming. FORM: `chat`, `anthropic` or `google`; it always streams."""

from __future__ import annotations

from typing import Any

import given
from strands import Agent, tool
from strands.agent.conversation_manager import NullConversationManager


def model() -> Any:
    """The model of this form."""
    if given.FORM == "chat":
        import openai
        from strands.models.openai import OpenAIModel

        client = openai.AsyncOpenAI(max_retries=0, **given.async_client("http_client", "httpx"))
        return OpenAIModel(client=client, model_id="gpt-4o")
    if given.FORM == "anthropic":
        from strands.models.anthropic import AnthropicModel

        thinking = {"thinking": {"type": "enabled", "budget_tokens": 1_024}, "cache_control": {"type": "ephemeral"}}
        arguments = {"max_retries": 0, **given.async_client("http_client", "httpx")}
        return AnthropicModel(client_args=arguments, model_id="claude-sonnet-4-6", max_tokens=4_000, params=thinking)
    from google import genai
    from strands.models.gemini import GeminiModel

    http = {"base_url": given.URL, **given.async_client("httpx_async_client", "httpx")}
    return GeminiModel(client=genai.Client(http_options=http), model_id="gemini-2.5-flash")


AGENT = Agent(
    model(), tools=[tool(given.read_file)], system_prompt=given.SYSTEM, callback_handler=None,
    conversation_manager=NullConversationManager(), retry_strategy=None,
)  # fmt: skip


async def say(task: str) -> str:
    """One turn."""
    return str(await AGENT.invoke_async(task)).strip()


given.talk(say)
