"""The runner of the SDKs against a server: all formats, streamed and whole, and every way to be refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import openai
import pytest
from asking import AGENTS, TOOLS, asking
from replies import REPLIES, replies_of
from sdk_clients import sdk_client
from sdk_runners import converse, sdk_runner

import turnlog
from answering import heard, received
from draws import draws
from turnlog.errors import (
    InputError,
    NotLoggedIn,
    RateLimited,
    RequestTooLong,
    RunnerFailed,
    RunnerNotFound,
    RunnerTimedOut,
)
from turnlog.log.records import PartialAnswer
from turnlog.models.target import Target
from turnlog.runners import SdkRunner
from turnlog.session import Answer
from turnlog.stores import MemoryStore

Start = Callable[..., Any]
every = pytest.mark.parametrize("aim", AGENTS, ids=lambda aim: aim.provider)


@every
def test_a_runner_records_what_an_sdk_call_by_hand_records(aim: Target, fake_server: Start) -> None:
    """A runner that loses what the SDK gives (a signature, the bill), streamed or whole, fails here; so do events that
    show something else than the answer."""
    for name in replies_of(aim.provider):
        by_hand = asking(aim)
        expected = by_hand.receive(
            sdk_client(aim.provider, fake_server([REPLIES[name]]).url).stream(by_hand.request().body, aim.model)
        )
        server = fake_server([REPLIES[name]])
        found = received(asking(aim), sdk_runner(server.url))
        assert (found.message, found.usage, found.complete) == (expected.message, expected.usage, True), name

        async def whole(name: str = name) -> Answer:
            session = asking(aim)
            request = session.request()
            return session.receive(await sdk_runner(fake_server([REPLIES[name]]).url).ask(request), request)

        assert asyncio.run(whole()).message == expected.message, name
        told = heard(asking(aim), sdk_runner(fake_server([REPLIES[name]]).url))
        assert "".join(event.text for event in told if event.kind == "text") == expected.text, name
        assert [event.call for event in told if event.kind == "tool_call"] == expected.tool_calls, name
        assert told[-1].kind == "done" and told[-1].stop == expected.stop, name


REFUSALS: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"status": 401, "message": "Incorrect API key provided"}, NotLoggedIn),
    ({"status": 429, "message": "Rate limit reached, please try again in 20s"}, RateLimited),
    ({"status": 503, "message": "The model is overloaded"}, RateLimited),
    ({"status": 400, "message": "Unknown parameter: 'x'"}, RunnerFailed),
    ({"status": 500, "message": "boom"}, RunnerFailed),
    ({"status": 504, "message": "Deadline expired"}, RunnerTimedOut),
]


@every
def test_every_refusal_is_its_own_error_and_the_session_goes_on(aim: Target, fake_server: Start) -> None:
    """An SDK's own exception, or a wrong class of error, leaves a caller to read five SDKs' texts."""

    def refused(error: dict[str, Any], kind: type[Exception]) -> None:
        server = fake_server([{"error": error}] * 8)
        session = asking(aim)
        with pytest.raises(kind) as caught:
            received(session, sdk_runner(server.url))
        assert str(error["message"]) in caught.value.message  # type: ignore[attr-defined]
        if isinstance(caught.value, RunnerFailed):
            assert caught.value.status == error["status"]
        if isinstance(caught.value, RateLimited):
            assert caught.value.retry_after is not None
        session.user("Go on.")
        assert received(session, sdk_runner(fake_server().url)).complete

    with ThreadPoolExecutor() as pool:  # side by side, as Google's SDK waits before it tries some of them again
        for one in [pool.submit(refused, error, kind) for error, kind in REFUSALS]:
            one.result()


@every
def test_a_request_that_is_too_long_says_the_providers_numbers(aim: Target, fake_server: Start) -> None:
    """The numbers are what a program has to go by when it makes the request smaller."""
    server = fake_server(context_limit=100)
    session = asking(aim)
    session.user("word " * 200)
    with pytest.raises(RequestTooLong, match="make it smaller") as caught:
        received(session, sdk_runner(server.url))
    sizes = caught.value.tokens > 100, caught.value.limit
    assert sizes == ((False, 0) if aim.provider == "openai-responses" else (True, 100))
    [told] = heard(session, sdk_runner(server.url))
    assert isinstance(told.error, RequestTooLong)


@every
def test_a_stream_that_breaks_is_an_error_and_keeps_what_came(aim: Target, fake_server: Start) -> None:
    """An answer that broke off and looks whole, or an error of a stream that nobody is told of, fails here."""
    for reply in ({"cut_after": 9}, {"cut_after": 9, "stream_error": "overloaded"}):
        session = asking(aim)
        with pytest.raises((RunnerFailed, RateLimited)):
            received(session, sdk_runner(fake_server([{"text": "word " * 50, **reply}]).url))
        kept = [record.body for record in session.history() if isinstance(record.body, PartialAnswer)]
        assert len(kept) == 1 and kept[0].message.parts


def test_no_connection_and_no_time_are_errors(fake_server: Start) -> None:
    """A server that is not there, and one that does not answer in the client's own time limit."""
    server = fake_server([{"text": "late", "delay": 0.5}])
    for aim in AGENTS[:3]:
        with pytest.raises(RunnerFailed):
            received(asking(aim), sdk_runner("http://127.0.0.1:1"))
    with pytest.raises(RunnerTimedOut):
        received(asking(AGENTS[0]), sdk_runner(server.url, timeout=0.05))


@every
def test_without_a_key_it_says_which_one_is_missing(aim: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ValueError from inside an SDK does not tell a newcomer what to do."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(NotLoggedIn, match="_API_KEY"):
        received(asking(aim), SdkRunner())


def test_without_the_sdk_it_says_which_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """turnlog is used without SDKs: a bare ImportError would not name the extra."""
    monkeypatch.setitem(__import__("sys").modules, "anthropic", None)
    with pytest.raises(RunnerNotFound, match=r"pip install '\.\[anthropic\]' in your clone"):
        received(asking(AGENTS[2]), SdkRunner())


def test_clients_are_made_for_the_address_of_the_target(fake_server: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A target with a `base_url` whose request goes to the maker of the models instead fails here."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    server = fake_server()
    session = turnlog.open(
        "own", target=turnlog.target("openai-chat", "gpt-4o", base_url=server.url + "/v1", top_k=5), store=MemoryStore()
    )
    session.user("hello")

    async def ask() -> Answer:
        runner = SdkRunner()
        request = session.request()
        try:
            return await session.areceive(runner.stream(request), request)
        finally:
            await runner.aclose()

    server.check = False  # top_k is no key of OpenAI's own API
    assert asyncio.run(ask()).text == "ECHO: hello"
    assert server.requests[0].body["top_k"] == 5


def test_a_client_that_would_block_the_event_loop_is_refused() -> None:
    """A synchronous client would stop every other task while it waits."""
    with pytest.raises(InputError, match="AsyncOpenAI"):
        SdkRunner(openai=openai.OpenAI(api_key="k"))
    with pytest.raises(InputError, match="AsyncAnthropic"):
        SdkRunner(anthropic=anthropic.Anthropic(api_key="k"))


@pytest.mark.slow
@pytest.mark.parametrize("budget", [14_000, None])
def test_a_long_conversation_goes_through_all_providers(fake_server: Start, budget: int | None) -> None:
    """Turns with tools, other providers, in a window that they do not fit: a refusal, an overflow that is not mended by
    one compaction, or a loss that the switch did not tell, fails here. Without a budget the session knows nothing of
    the window."""
    server = fake_server(context_limit=16_000, verify_signatures="all")
    session = turnlog.open("long", target=AGENTS[0], store=MemoryStore(), tools=TOOLS, budget=budget)
    turns, each = draws(5, 60), draws(1, 10)
    asyncio.run(converse(session, sdk_runner(server.url), list(AGENTS), turns=turns, each=each))
    assert [one.errors for one in server.requests if one.errors not in ([], ["context"])] == []
