"""Servers that imitate OpenAI say in their own words that a request is too long, or one too many: the session goes on.

Each through the real client of OpenAI's SDK, before the loopback server that answers in the words and the envelope of
each server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import turnlog
from turnlog import agent
from turnlog.errors import RateLimited, RequestTooLong
from turnlog.log.records import MessageRecord, Note
from turnlog.runners import RetryingRunner, SdkRunner

openai = pytest.importorskip("openai")
pytestmark = pytest.mark.filterwarnings("ignore::turnlog.models.UnknownModelWarning")
Start = Callable[..., Any]

MODELS = {"github-models": "openai/gpt-4o", "copilot": "gpt-4o", "azure": "gpt-4o", "anthropic": "claude-sonnet-4-5"}
"""The models that some servers know; the others take any name."""

LIMIT = 2_000

BOTH, LIMIT_ONLY, NEITHER = (True, True), (False, True), (False, False)
SAID: dict[str, list[tuple[bool, bool]]] = {
    "vllm": [BOTH, BOTH],
    "sglang": [BOTH, BOTH],
    "llama.cpp": [BOTH, BOTH, NEITHER],
    "ollama": [NEITHER, NEITHER],
    "lmstudio": [BOTH, BOTH, NEITHER],
    "mistral": [BOTH, BOTH],
    "deepseek": [BOTH],
    "moonshot": [BOTH, LIMIT_ONLY],
    "zai": [NEITHER, NEITHER],
    "minimax": [NEITHER],
    "dashscope": [LIMIT_ONLY, LIMIT_ONLY],
    "groq": [NEITHER, BOTH],
    "cerebras": [BOTH],
    "xai": [BOTH],
    "together": [BOTH, BOTH],
    "fireworks": [BOTH],
    "openrouter": [BOTH, BOTH, BOTH],
    "azure": [BOTH, BOTH],
    "gemini": [BOTH],
    "anthropic": [BOTH],
    "bedrock": [NEITHER],
    "bedrock-gateway": [NEITHER],
    "github-models": [LIMIT_ONLY],
    "copilot": [BOTH],
}
"""Whether each wording of a server says the request's tokens and the limit, newest first."""


class Clock:
    """Waits that take no time, and how long they would have been."""

    def __init__(self) -> None:
        self.waited = 0.0

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        self.waited += seconds


def opened(server: Any, name: str) -> tuple[turnlog.Session, RetryingRunner, Clock]:
    """A session with a server of that name, and its runner."""
    client = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0)
    aim = turnlog.target("openai-chat", MODELS.get(name, "m"), base_url=f"{server.url}/v1", server=name)
    session, clock = turnlog.open("s", store=":memory:", target=aim), Clock()
    runner = RetryingRunner(SdkRunner(openai=client), session, sleep=clock.sleep, chance=lambda: 0.5)
    return session, runner, clock


def with_history(session: turnlog.Session, turns: int) -> None:
    """Fill the conversation with some 60 tokens a turn."""
    for turn in range(turns):
        session.user(f"Turn {turn}: " + "count the rows of it. " * 8)
        session.assistant(f"Rows of {turn}: none. " * 3)


@pytest.mark.parametrize(("name", "variant"), [(name, i) for name in SAID for i in range(len(SAID[name]))])
def test_a_request_that_is_too_long_is_made_smaller_and_answered(name: str, variant: int, fake_server: Start) -> None:
    """The session was stuck: every later request was refused in words that nobody read."""
    if (name, variant) == ("ollama", 0):
        pytest.skip("a local Ollama says nothing, it drops the beginning")
    server = fake_server(server=name, context_limit=LIMIT, overflow_variant=variant)
    session, runner, _ = opened(server, name)
    with_history(session, 45)  # a half of it fits
    result = agent.run(session, "What is left?", runner)
    assert (result.stop, result.turn.status) == ("end", "completed")
    told = [body for record in session.history() if isinstance(body := record.body, Note) and body.topic == "runner"]
    assert (len(told), len(server.requests), server.requests[-1].status) == (1, 2, 200)


@pytest.mark.parametrize(("name", "variant"), [(name, i) for name in SAID for i in range(len(SAID[name]))])
def test_a_request_that_is_too_long_says_the_servers_numbers(name: str, variant: int, fake_server: Start) -> None:
    """Without them the conversation is halved, again and again, or by more than it has to be."""
    if (name, variant) == ("ollama", 0):
        pytest.skip("a local Ollama says nothing, it drops the beginning")
    server = fake_server(server=name, context_limit=50, overflow_variant=variant)
    session, runner, _ = opened(server, name)
    with pytest.raises(RequestTooLong) as caught:
        agent.run(session, "What is left? " * 100, runner)
    says_tokens, says_limit = SAID[name][variant]
    assert (caught.value.tokens > 50, caught.value.limit) == (says_tokens, 50 if says_limit else 0)


@pytest.mark.parametrize("kind", ["rate_limit", "overloaded"])
@pytest.mark.parametrize("name", SAID)
def test_a_limit_is_waited_for_as_told(name: str, kind: str, fake_server: Start) -> None:
    """The run ended at the first limit, and all that its tools had done waited for a person."""
    server = fake_server(server=name, script=[{"error": kind}, {"text": "Nothing."}])
    session, runner, clock = opened(server, name)
    if (name, kind) == ("ollama", "rate_limit"):  # an hour, or money
        with pytest.raises(RateLimited, match="add credit") as caught:
            agent.run(session, "What is left?", runner)
        assert (caught.value.exhausted, clock.waited, len(server.requests)) == (True, 0.0, 1)
        return
    assert agent.run(session, "What is left?", runner).text == "Nothing."
    told = server.requests[0].status in (429, 503, 529)  # the loopback server has the header retry-after then
    assert clock.waited == pytest.approx(0.01 if told else 1.0)
    assert len(server.requests) == 2 and session.log.turns()[-1].status == "completed"


@pytest.mark.parametrize("name", SAID)
def test_a_server_that_breaks_off_before_it_says_anything_is_asked_again(name: str, fake_server: Start) -> None:
    """A stream that begins with 200 and then says that the server is overloaded, in each server's form: it was taken
    for an answer that began, though nobody had seen anything of it."""
    broken = {"text": "No", "cut_after": 1, "stream_error": "The model is overloaded. Please try again later."}
    server = fake_server(server=name, script=[broken, {"text": "Nothing."}])
    session, runner, clock = opened(server, name)
    assert agent.run(session, "What is left?", runner).text == "Nothing."
    assert clock.waited == 1.0 and len(server.requests) == 2
    bodies = [record.body for record in session.history() if isinstance(record.body, MessageRecord)]
    assert len(bodies) == 2  # nothing of the first answer


@pytest.mark.parametrize("name", SAID)
def test_a_server_that_breaks_off_in_the_midst_says_why(name: str, servers: ModuleType, fake_server: Start) -> None:
    """What had come counted as a whole answer, or the error had none of the server's words."""
    broken = {"text": "Half of an answer, and more of it", "cut_after": 4, "stream_error": "The disk is full"}
    server = fake_server(server=name, script=[broken])
    session, runner, clock = opened(server, name)
    if name == "zai":  # it only says network_error
        assert agent.run(session, "What is left?", runner).stop == "interrupted"
        expected = "the provider ended the answer with network_error"
    else:
        with pytest.raises(turnlog.errors.RunnerError, match="The disk is full"):
            agent.run(session, "What is left?", runner)
        expected = "The disk is full"
    [*_, kept] = (record.body for record in session.history() if hasattr(record.body, "message"))
    assert type(kept).__name__ == "PartialAnswer" and expected in kept.reason  # type: ignore[union-attr]
    assert (session.log.turns()[-1].status, clock.waited) == ("failed", 0.0)


def test_a_cancelled_turn_does_not_wait_to_its_end(fake_server: Start) -> None:
    """Whoever cancels while a server is busy would look at nothing for a minute."""
    limited = {"text": "No", "cut_after": 0, "stream_error": "Rate limit reached. Please try again in 9s"}
    server = fake_server(server="groq", script=[limited, {"text": "Nothing."}])
    session, _, clock = opened(server, "groq")

    async def ask() -> None:
        async with session.turn("What is left?") as turn:

            async def sleep(seconds: float) -> None:
                await clock.sleep(seconds)
                turn.cancel("enough")

            runner = RetryingRunner(
                SdkRunner(openai=openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0)),
                session,
                sleep=sleep,
            )
            request = turn.request()
            await turn.areceive(runner.stream(request), request)

    asyncio.run(ask())
    assert (session.log.turns()[-1].standing, clock.waited, len(server.requests)) == ("cancelled: enough", 1.0, 1)
