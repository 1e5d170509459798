"""Requests that a server does not take for now: waited with, and sent again, not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

import turnlog
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


def test_a_real_sdk_tries_first_and_its_tries_count() -> None:
    """An SDK that tries three times was asked five times: fifteen requests for one."""
    openai, httpx2 = pytest.importorskip("openai"), pytest.importorskip("httpx2")
    seen: list[str] = []

    def busy(request: Any) -> Any:
        seen.append(request.headers["x-stainless-retry-count"])
        date = {"date": "Sun, 29 Nov 2026 00:00:00 GMT", "retry-after": "Sun, 29 Nov 2026 00:00:07 GMT"}
        headers = date if len(seen) == 3 else {"retry-after-ms": "1"}
        return httpx2.Response(429, headers=headers, json={"error": {"message": "slow down"}})

    transport = httpx2.AsyncClient(transport=httpx2.MockTransport(busy))
    client = openai.AsyncOpenAI(api_key="k", base_url="http://x/v1", max_retries=2, http_client=transport)
    session, clock = opened(), Clock()
    retrying = RetryingRunner(SdkRunner(openai=client), session, sleep=clock.sleep)

    async def ask() -> None:
        request = session.request()
        await session.areceive(retrying.stream(request), request)

    with pytest.raises(RateLimited) as caught:
        asyncio.run(ask())
    assert (seen, sum(clock.slept), caught.value.tries) == (["0", "1", "2"] * 2, 7.0, 3)
