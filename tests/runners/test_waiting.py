"""Requests that a server does not take for now: waited with, and sent again, not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import wraps
from typing import Any

import pytest

import turnlog
from turnlog import agent
from turnlog.errors import NotLoggedIn, RateLimited, RequestTooLong, RunnerError, RunnerFailed, RunnerTimedOut
from turnlog.log.messages import Text
from turnlog.log.records import MessageRecord, Note, PartialAnswer
from turnlog.requests.request import Request
from turnlog.runners import RetryingRunner, ScriptedRunner, SdkRunner
from turnlog.runners.waiting import LONGEST, MOST_TRIES, Waits
from turnlog.session import Answer

GPT = turnlog.target("openai-chat", "gpt-4o")
SOON = RateLimited("openai", "slow down", retry_after=2.5)


class Clock:
    """Waits that take no time, and how long they would have been."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        self.slept.append(seconds)


class ChunkRunner:
    """Answers each request with the chunks of Chat Completions of its turn, and raises errors among them."""

    def __init__(self, *answers: Sequence[Any]) -> None:
        self._answers = list(answers)
        self.closed = 0

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        """The chunks of the next answer."""
        try:
            for chunk in self._answers.pop(0):
                if isinstance(chunk, Exception):
                    raise chunk
                yield chunk
        finally:
            self.closed += 1

    async def ask(self, request: Request) -> Any:
        """The next answer at once."""
        [answer] = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def aclose(self) -> None:
        """Nothing is open."""


def chunk(content: str | None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A chunk of Chat Completions."""
    delta = {"role": "assistant", "content": content}
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def opened() -> turnlog.Session:
    """A session that waits for an answer."""
    session = turnlog.open("s", store=":memory:", target=GPT)
    session.user("hi")
    return session


def answered(session: turnlog.Session, runner: Any) -> tuple[Answer, list[float]]:
    """The next answer, and the waits before it."""
    clock = Clock()
    retrying = RetryingRunner(runner, session, sleep=clock.sleep, chance=lambda: 0.5)

    async def ask() -> Answer:
        request = session.request()
        return await session.areceive(retrying.stream(request), request)

    return asyncio.run(ask()), clock.slept


def notes(session: turnlog.Session) -> list[Note]:
    """What is on record of waits."""
    return [record.body for record in session.history() if isinstance(record.body, Note)]


def test_a_told_wait_is_waited_and_on_record() -> None:
    """The run ended, or the wait was not seen."""
    session = opened()
    told: list[str] = []
    session.on_event(lambda event: told.append(event.text) if event.kind == "warning" else None)
    runner = ScriptedRunner([SOON, "fine"])
    answer, slept = answered(session, runner)
    assert (answer.text, slept) == ("fine", [1.0, 1.0, 0.5])
    assert runner.requests[0].body == runner.requests[1].body
    said = "openai: the request is sent again in 2.5 s"
    assert notes(session) == [Note("runner", said, {"message": "slow down"})] and told == [said]


def test_waits_that_nobody_told_grow_and_end() -> None:
    """A server that stays overloaded was asked for ever, or at once again and again."""
    busy = RateLimited("openai", "busy")
    session = opened()
    with pytest.raises(RateLimited) as caught:
        answered(session, ScriptedRunner([busy] * 20))
    assert caught.value is busy and len(notes(session)) == MOST_TRIES - 1
    waits = Waits(lambda: 0.5)
    assert [waits.after(busy) for _ in range(5)] == [1.0, 2.0, 4.0, 8.0, None]
    first = [Waits(lambda part=part: part).after(busy) for part in (0.0, 0.999)]  # type: ignore[misc]
    assert first == [0.5, pytest.approx(1.499)]


def test_tries_of_an_sdk_count() -> None:
    """With three tries of an SDK for each of five, one request was sent fifteen times."""
    busy = RateLimited("openai", "busy")
    busy.tries = 3
    waits = Waits(lambda: 0.5)
    assert [waits.after(busy), waits.after(busy)] == [1.0, None]


@pytest.mark.parametrize(
    ("error", "waits"),
    [
        (RateLimited("x", retry_after=0.0), True),
        (RateLimited("x", retry_after=LONGEST), True),
        (RateLimited("x", retry_after=LONGEST + 1), False),
        (RateLimited("x", exhausted=True), False),
        (RunnerFailed("x", "boom", status=500), True),
        (RunnerFailed("x", "bad gateway", status=502), True),
        (RunnerFailed("x", "refused", status=400), False),
        (RunnerFailed("x", "no connection"), False),
        (RunnerTimedOut("x"), False),
        (RequestTooLong("x"), False),
        (NotLoggedIn("x", "set a key"), False),
    ],
)
def test_only_what_passes_is_waited_for(error: RunnerError, waits: bool) -> None:
    """Nobody waits for credit, for a key or for an hour."""
    assert (Waits(lambda: 0.5).after(error) is not None) is waits


def test_a_request_may_be_mended_between_waits() -> None:
    """A limit before or after a request was made smaller ended the run."""
    session = opened()
    for n in range(30):
        session.user(f"{n}: " + "look at one more file. " * 40)
        session.assistant("Done.")
    session.user("What is left?")
    size = session.request().tokens
    long = RequestTooLong("openai", tokens=size, limit=size // 2)
    runner = ScriptedRunner([SOON, long, SOON, "fine"])
    answer, slept = answered(session, runner)
    assert (answer.text, sum(slept)) == ("fine", 5.0)
    assert [request.tokens <= size // 2 for request in runner.requests] == [False, False, True, True]


def test_an_answer_that_has_begun_is_not_asked_for_again() -> None:
    """Somebody has seen its beginning: two answers would be one."""
    session = opened()
    with pytest.raises(RateLimited):
        answered(session, ChunkRunner([chunk(""), chunk("It"), SOON], [chunk("So", "stop")]))
    [kept] = [record.body for record in session.history() if isinstance(record.body, PartialAnswer)]
    assert kept.message.parts == (Text("It"),)


def test_an_answer_that_said_nothing_is_asked_for_again() -> None:
    """The chunk with the role counted as the beginning of an answer, and the run ended."""
    session, runner = opened(), ChunkRunner([chunk(""), SOON], [chunk(""), chunk("So", "stop")])
    answer, slept = answered(session, runner)
    assert (answer.text, answer.complete, sum(slept), runner.closed) == ("So", True, 2.5, 2)
    assert len([record for record in session.history() if isinstance(record.body, MessageRecord)]) == 2


def test_what_came_before_the_last_error_is_on_record() -> None:
    """The model, and what was billed, of an answer that never came."""
    session = opened()
    usage = {"prompt_tokens": 7, "completion_tokens": 0}
    with pytest.raises(RunnerFailed):
        answered(session, ChunkRunner([chunk("", usage=usage), RunnerFailed("openai", "boom")]))
    [kept] = [record.body for record in session.history() if isinstance(record.body, PartialAnswer)]
    assert kept.model == "m" and session.usage.input == 7


def test_a_stream_that_ends_at_once_with_a_failure_is_asked_for_again() -> None:
    """Z.ai ends streams with network_error before anything came: the answer was empty."""
    for word in ("network_error", "error", "insufficient_system_resource"):
        answer, slept = answered(opened(), ChunkRunner([chunk("", word)], [chunk("So", "stop")]))
        assert (answer.text, slept) == ("So", [1.0])
    failing = [[chunk("", "network_error")]] * MOST_TRIES
    answer, slept = answered(opened(), ChunkRunner(*failing))
    assert (answer.stop, sum(slept)) == ("interrupted", 15.0)
    for chunks in ([chunk("Half", "network_error")], [chunk("", "MALFORMED_FUNCTION_CALL")], [chunk("", "stop")]):
        assert answered(opened(), ChunkRunner(chunks))[1] == []


def test_a_whole_answer_is_waited_for_too() -> None:
    """`ask` gave up where `stream` waited."""
    session, clock = opened(), Clock()
    whole = {"id": "c", "model": "m", "choices": [{"index": 0, "message": {"content": "So"}, "finish_reason": "stop"}]}
    retrying = RetryingRunner(ChunkRunner([SOON], [whole]), session, sleep=clock.sleep)

    async def ask() -> Any:
        return await retrying.ask(session.request())

    assert session.receive(asyncio.run(ask())).text == "So" and sum(clock.slept) == 2.5


def test_a_cancelled_task_does_not_wait() -> None:
    """A task that is cancelled, as at the time limit of a run, stayed until the wait was over."""
    session = opened()

    async def go() -> None:
        retrying = RetryingRunner(ScriptedRunner([SOON, "fine"]), session)
        request = session.request()
        task = asyncio.create_task(session.areceive(retrying.stream(request), request))
        while not notes(session):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    assert len(notes(session)) == 1


def test_a_run_waits_no_longer_than_its_time_limit() -> None:
    """A run of a second lasted a minute."""
    session = turnlog.open("s", store=":memory:", target=GPT)
    slow = RateLimited("openai", retry_after=30.0)
    result = turnlog.run(session, "hi", ScriptedRunner([slow] * 9), max_seconds=0.05)
    assert (result.stop, result.turn.status) == ("seconds", "cancelled")


def test_a_wait_that_would_outlast_the_run_is_not_begun() -> None:
    """A run with a minute left waited it out, to no purpose; nobody was told that it waited at all."""
    clock = Clock()

    def stopped(seconds: float, **limits: Any) -> tuple[list[str], list[float], Any]:
        clock.slept.clear()
        session = turnlog.open("s", store=":memory:", target=GPT)
        script = ScriptedRunner([RateLimited("openai", "slow down", retry_after=seconds), "fine"])
        runner = RetryingRunner(script, session, sleep=clock.sleep)
        events = list(turnlog.agent.stream(session, "hi", runner, **limits))
        told = [(event.text, event.seconds) for event in events if event.kind == "waiting"]
        assert all(text == f"openai: the request is sent again in {wait:.3g} s" for text, wait in told)
        result = events[-1].result
        assert result is not None
        return [result.stop, result.turn.status], [wait for _, wait in told], result

    assert stopped(2.5)[:2] == (["end", "completed"], [2.5]) and sum(clock.slept) == 2.5
    assert stopped(500.0, max_seconds=900)[:2] == (["end", "completed"], [500.0]) and sum(clock.slept) == 500
    stop, waits, result = stopped(1_000.0, max_seconds=900)
    assert (stop, waits, clock.slept) == (["seconds", "cancelled"], [], [])
    assert result.turn.reason == "stopped at the limit of seconds: 900, openai takes the next request in 1,000 s"
    with pytest.raises(RateLimited) as caught:  # without a limit nobody said how long is too long
        stopped(500.0)
    assert caught.value.retry_after == 500.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "120ms"}, 0.12),
        ({"x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "1h"}, None),
        ({"x-ratelimit-remaining-tokens": "0"}, None),
        ({"retry-after": "2", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1h"}, 2.0),
    ],
)
def test_headers_without_retry_after_say_when_there_is_more(headers: dict[str, str], seconds: float | None) -> None:
    """A server that says only when its limit is reset was asked again after a second, and after two."""
    openai, httpx2 = pytest.importorskip("openai"), pytest.importorskip("httpx2")

    def busy(request: Any) -> Any:
        return httpx2.Response(429, headers=headers, json={"error": {"message": "slow down"}})

    transport = httpx2.AsyncClient(transport=httpx2.MockTransport(busy))
    client = openai.AsyncOpenAI(api_key="k", base_url="http://x/v1", max_retries=0, http_client=transport)
    session = opened()

    async def ask() -> None:
        request = session.request()
        await session.areceive(SdkRunner(openai=client).stream(request), request)

    with pytest.raises(RateLimited) as caught:
        asyncio.run(ask())
    assert caught.value.retry_after == seconds


@pytest.mark.parametrize("retries", [0, 2, 5])
def test_a_run_sends_five_times_whatever_the_sdk_would_do_and_tells_each_wait(retries: int) -> None:
    """An SDK that tried three times by itself made six requests of five, and waited where no event told it."""
    openai, httpx2 = pytest.importorskip("openai"), pytest.importorskip("httpx2")
    seen: list[str] = []

    def busy(request: Any) -> Any:
        seen.append(request.headers["x-stainless-retry-count"])
        date = {"date": "Sun, 29 Nov 2026 00:00:00 GMT", "retry-after": "Sun, 29 Nov 2026 00:00:07 GMT"}
        headers = date if len(seen) == 3 else {"retry-after": "1"}
        return httpx2.Response(429, headers=headers, json={"error": {"message": "slow down"}})

    transport = httpx2.AsyncClient(transport=httpx2.MockTransport(busy))
    client = openai.AsyncOpenAI(api_key="k", base_url="http://x/v1", max_retries=retries, http_client=transport)
    session, clock, waits = turnlog.open("s", store=":memory:", target=GPT), Clock(), list[float]()
    runner = RetryingRunner(SdkRunner(openai=client), session, sleep=clock.sleep)

    async def ask() -> None:
        async for event in agent.astream(session, "hi", runner):
            waits.extend([event.seconds] if event.kind == "waiting" else [])

    with pytest.raises(RateLimited) as caught:
        asyncio.run(ask())
    assert (seen, waits, sum(clock.slept)) == (["0"] * MOST_TRIES, [1, 1, 7, 1], 10)
    assert (caught.value.tries, client.max_retries) == (1, retries)


@pytest.mark.parametrize(("retries", "sent"), [(0, 1), (2, 3), (9, MOST_TRIES)])
@pytest.mark.parametrize("status", [0, 408, 500])
def test_what_only_an_sdk_sends_again_is_sent_as_often_as_it_would(retries: int, sent: int, status: int) -> None:
    """A run whose SDK sends once would give up when a connection breaks for a moment, as no SDK does."""
    openai, httpx2 = pytest.importorskip("openai"), pytest.importorskip("httpx2")
    seen: list[Any] = []

    def away(request: Any) -> Any:
        seen.append(request)
        if not status:
            raise httpx2.ConnectError("nobody there")
        return httpx2.Response(status, json={"error": {"message": "oh"}})

    transport = httpx2.AsyncClient(transport=httpx2.MockTransport(away))
    client = openai.AsyncOpenAI(api_key="k", base_url="http://x/v1", max_retries=retries, http_client=transport)
    with pytest.raises(RunnerError):
        answered(opened(), SdkRunner(openai=client))
    assert len(seen) == (MOST_TRIES if status == 500 else sent)


def test_google_interactions_are_sent_once_by_their_sdk() -> None:
    """Google's SDK sends these five times by itself: with the five of a run it would be twenty-five."""
    genai, httpx2 = pytest.importorskip("google.genai"), pytest.importorskip("httpx2")
    seen: list[Any] = []

    def busy(request: Any) -> Any:
        seen.append(request)
        return httpx2.Response(429, headers={"retry-after": "1"}, json={"error": {"message": "slow down"}})

    transport = httpx2.AsyncClient(transport=httpx2.MockTransport(busy))
    client = genai.Client(api_key="k", http_options={"httpx_async_client": transport, "base_url": "http://x"})
    session = opened()
    session.switch(turnlog.target("google-interactions", "gemini-2.5-flash"))
    with pytest.raises(RateLimited):
        answered(session, SdkRunner(google=client))
    assert len(seen) == MOST_TRIES


def test_a_client_that_somebody_watches_keeps_its_methods() -> None:
    """Tracers replace a method of a client: a client without retries that was made of it would be watched by nobody."""
    openai, httpx2 = pytest.importorskip("openai"), pytest.importorskip("httpx2")
    seen: list[str] = []

    def busy(request: Any) -> Any:
        return httpx2.Response(429, headers={"retry-after-ms": "1"}, json={"error": {"message": "slow down"}})

    transport = httpx2.AsyncClient(transport=httpx2.MockTransport(busy))
    client = openai.AsyncOpenAI(api_key="k", base_url="http://x/v1", max_retries=0, http_client=transport)
    create = client.chat.completions.create

    @wraps(create)
    async def watched(**arguments: Any) -> Any:
        seen.append(arguments["model"])
        return await create(**arguments)

    client.chat.completions.create = watched
    with pytest.raises(RateLimited):
        answered(opened(), SdkRunner(openai=client))
    assert seen == ["gpt-4o"] * MOST_TRIES
