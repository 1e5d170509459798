"""What leads to an answer and is none: every SDK has some of it, and people hand it over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest
from google import genai

import turnlog

AIMS = {
    "openai-chat": turnlog.target("openai-chat", "gpt-4o"),
    "openai-responses": turnlog.target("openai-responses", "gpt-5"),
    "anthropic": turnlog.target("anthropic", "claude-sonnet-4-6"),
    "google": turnlog.target("google", "gemini-2.5-pro"),
}
ASK = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}]}
ITEMS = {"model": "gpt-5", "input": [{"role": "user", "content": "Hi"}]}
CLAUDE = {**ASK, "model": "claude-sonnet-4-6", "max_tokens": 100}


def _openai(url: str, kind: Any = openai.OpenAI) -> Any:
    return kind(base_url=url + "/v1", api_key="k", max_retries=0)


def _anthropic(url: str, kind: Any = anthropic.Anthropic) -> Any:
    return kind(base_url=url, api_key="k", max_retries=0)


async def _through_google(url: str) -> Any:
    client: Any = genai.Client(api_key="k", http_options={"base_url": url})
    return client.aio.models.generate_content(model="gemini-2.5-pro", contents="Hi")


AWAIT, PARSE, ENTER, AENTER = "await it", r"\.parse\(\)", "with `with`", "with `async with`"
WRAPPERS: list[tuple[str, str, Callable[[str], Any]]] = [
    ("openai-chat", AWAIT, lambda url: _openai(url, openai.AsyncOpenAI).chat.completions.create(**ASK)),
    ("openai-chat", PARSE, lambda url: _openai(url).chat.completions.with_raw_response.create(**ASK)),
    ("openai-chat", ENTER, lambda url: _openai(url).chat.completions.with_streaming_response.create(**ASK)),
    ("openai-chat", ENTER, lambda url: _openai(url).chat.completions.stream(**ASK)),
    ("openai-chat", AENTER, lambda url: _openai(url, openai.AsyncOpenAI).chat.completions.stream(**ASK)),
    ("openai-responses", PARSE, lambda url: _openai(url).responses.with_raw_response.create(**ITEMS)),
    ("openai-responses", ENTER, lambda url: _openai(url).responses.stream(**ITEMS)),
    ("anthropic", AWAIT, lambda url: _anthropic(url, anthropic.AsyncAnthropic).messages.create(**CLAUDE)),
    ("anthropic", PARSE, lambda url: _anthropic(url).messages.with_raw_response.create(**CLAUDE)),
    ("anthropic", ENTER, lambda url: _anthropic(url).messages.stream(**CLAUDE)),
    ("anthropic", AENTER, lambda url: _anthropic(url, anthropic.AsyncAnthropic).messages.stream(**CLAUDE)),
    ("google", AWAIT, _through_google),
]


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize(("provider", "what", "make"), WRAPPERS)
def test_what_leads_to_an_answer_is_told_how(
    provider: str, what: str, make: Callable[[str], Any], fake_server: Callable[..., Any]
) -> None:
    """`expected an object of the SDK` is what people believe to have handed over."""
    with turnlog.open("s", target=AIMS[provider], store=":memory:") as session:
        session.user("Hi")
        wrapper = make(fake_server().url)
        with pytest.raises(turnlog.InputError, match=what):
            session.receive(wrapper)
        with pytest.raises(turnlog.InputError, match=what):
            asyncio.run(session.areceive(wrapper))
        assert session.log.message_count == 1
        if hasattr(wrapper, "close"):
            wrapper.close()
