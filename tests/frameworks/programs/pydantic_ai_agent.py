"""pydantic-ai. FORM is the API: `chat`, `responses`, `anthropic` or `google`, with `-stream`."""

from __future__ import annotations

from typing import Any

import given
from pydantic_ai import Agent

API, _, VARIANT = given.FORM.partition("-")


def model() -> Any:
    """The model of this form, with its provider given turnlog's client."""
    if API in ("chat", "responses"):
        from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        provider: Any = OpenAIProvider(**given.async_client("http_client"))
        return (
            OpenAIChatModel("gpt-4o", provider=provider)
            if API == "chat"
            else OpenAIResponsesModel("gpt-5", provider=provider)
        )
    if API == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return AnthropicModel(
            "claude-sonnet-4-6",
            provider=AnthropicProvider(api_key="k", base_url=given.URL, **given.async_client("http_client")),
            settings={
                "anthropic_thinking": {"type": "enabled", "budget_tokens": 1_024},
                "max_tokens": 4_000,
                "anthropic_cache": True,
            },
        )
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    provider = GoogleProvider(api_key="k", base_url=given.URL, **given.async_client("http_client"))
    return GoogleModel("gemini-2.5-flash", provider=provider)


AGENT = Agent(model(), instructions=given.SYSTEM, tools=[given.read_file])
HISTORY: list[Any] = []


async def say(task: str) -> str:
    """One turn."""
    handler = _drain if VARIANT == "stream" else None  # with one, it streams
    result = await AGENT.run(task, message_history=HISTORY, event_stream_handler=handler)
    HISTORY[:] = result.all_messages()
    return result.output


async def _drain(_: Any, events: Any) -> None:
    async for _ in events:
        pass


given.talk(say)
