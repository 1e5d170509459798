"""Requests that a model refused, mended and sent once more."""

from __future__ import annotations

import asyncio
import base64
import struct
import zlib
from typing import Any

import pytest

import answering
import turnlog
from turnlog.errors import RateLimited, RequestTooLong, RunnerError, RunnerFailed, RunnerTimedOut
from turnlog.log.messages import Media, Message, Reasoning, Text, ToolCall
from turnlog.log.records import Decision, MessageRecord, Note
from turnlog.models.target import Target, target
from turnlog.providers import PROVIDERS
from turnlog.runners import RetryingRunner, ScriptedRunner
from turnlog.session import Answer
from turnlog.stores import MemoryStore

CLAUDE, GPT = target("anthropic", "claude-sonnet-4-5"), target("openai-chat", "gpt-4o")


def png(shade: int) -> bytes:
    """A grey image of one pixel."""
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(bytes([0, shade]))),
        (b"IEND", b""),
    )
    packed = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def long_session(aim: Target = GPT, turns: int = 40) -> turnlog.Session:
    """A session of some 20,000 tokens that waits for an answer."""
    session = turnlog.open("s", store=MemoryStore(), target=aim)
    for turn in range(turns):
        session.user(f"Turn {turn}: " + f"word{turn} and more words, " * 60)
        session.assistant(f"Done with {turn}. " + "It went well. " * 40)
    session.user("What is left?")
    return session


def received(session: turnlog.Session, script: list[Any]) -> tuple[Answer, ScriptedRunner]:
    """The next answer of a model that does what the script says, and the model."""
    runner = ScriptedRunner(script)
    return answering.received(session, RetryingRunner(runner, session)), runner


def messages_of(session: turnlog.Session) -> list[Message]:
    """The messages on record."""
    return [record.body.message for record in session.history() if isinstance(record.body, MessageRecord)]


def test_the_providers_numbers_become_the_budget() -> None:
    """A model with a smaller window than the table says: each later request would be refused, too."""
    session = long_session()
    size = session.request().tokens
    error = RequestTooLong("openai", "too long", tokens=size * 2, limit=size)
    before = messages_of(session)
    answer, runner = received(session, [error, "fine"])
    first, second = runner.requests
    assert answer.text == "fine" and first.tokens == size
    assert second.tokens * 2 <= size, "twice its tokens are billed, and those must fit"
    budget = session.configuration.budget
    assert budget is not None and budget.max_tokens == int(size / 2 * 0.95)
    assert messages_of(session)[: len(before)] == before, "the log was touched"
    [note] = [record.body for record in session.history() if isinstance(record.body, Note)]
    assert note.topic == "runner" and f"{size:,} tokens" in note.text
    session.user("word " * 8_000)
    assert session.request().tokens * 2 <= size, "the next request is too long again"


def test_a_limit_without_the_size_becomes_the_budget() -> None:
    """Kimi, DashScope and GitHub Models say only their limit: the request was halved, be it a tenth of that or more."""
    session = long_session()
    limit = session.request().tokens // 4
    _, runner = received(session, [RequestTooLong("openai", "too long", limit=limit), "fine"])
    assert runner.requests[1].tokens <= limit
    budget = session.configuration.budget
    assert budget is not None and budget.max_tokens == int(limit * 0.95)


def test_without_numbers_the_request_is_halved_and_the_budget_stays() -> None:
    """A provider that says nothing but no: what is sent next must be much smaller, and only that."""
    session = long_session()
    _, runner = received(session, [RequestTooLong("openai", "context_length_exceeded"), "fine"])
    first, second = runner.requests
    assert second.tokens <= first.tokens / 2 and session.configuration.budget is None


def test_a_program_is_told_less_than_its_prompt_was() -> None:
    """A program that refuses a prompt of 3,000 tokens is not helped by a conversation of 10,000."""
    session = long_session()
    error = RequestTooLong("claude", "Prompt is too long")
    error.sent = 3_000
    _, runner = received(session, [error, "fine"])
    assert runner.requests[1].tokens <= 1_500
    session, error = long_session(), RequestTooLong("claude", "too long", tokens=31_000, limit=30_000)
    error.sent = 3_000
    _, runner = received(session, [error, "fine"])
    assert runner.requests[1].tokens <= 2_000 and session.configuration.budget is None


@pytest.mark.parametrize(
    ("error", "turns", "again"),
    [
        (RunnerTimedOut("claude", 120.0), 40, True),
        (RunnerTimedOut("claude", 120.0), 2, False),
        (RunnerTimedOut("openai"), 40, False),
        (RateLimited("openai", exhausted=True), 40, False),
        (RateLimited("openai", retry_after=90.0), 40, False),
        (RunnerFailed("openai", "boom", status=501), 40, False),
        (RunnerFailed("openai", "Unknown parameter: 'x'", status=400), 40, False),
    ],
)
def test_only_what_can_be_mended_is_sent_again(error: RunnerError, turns: int, again: bool) -> None:
    """A small request that is repeated in vain, or a large one that a program chokes on and that nobody shortens."""
    session = long_session(turns=turns)
    if again:
        assert session.request().tokens > 8_000
        assert received(session, [error, "fine"])[0].text == "fine"
        return
    with pytest.raises(type(error)) as caught:
        received(session, [error, "fine"])
    assert caught.value is error and not [one for one in session.history() if isinstance(one.body, Decision)]


def test_a_second_failure_says_what_to_do() -> None:
    """A third request, or an error that sends the user round in circles."""
    with pytest.raises(RunnerTimedOut, match=r"compact or clear .* another model"):
        received(long_session(), [RunnerTimedOut("claude", 120.0), RunnerTimedOut("claude", 120.0), "fine"])
    with pytest.raises(RequestTooLong, match=r"compact it.*clear it.*larger window"):
        received(long_session(), [RequestTooLong("x"), RequestTooLong("x"), "fine"])


def test_what_cannot_be_smaller_is_not_sent_again() -> None:
    """A task that fills the window by itself: the error must be the model's, not one of the compaction."""
    session = turnlog.open("s", store=MemoryStore(), target=GPT)
    session.user("word " * 3_000)
    with pytest.raises(RequestTooLong):
        received(session, [RequestTooLong("openai", tokens=3_000, limit=1_000), "fine"])


def test_half_an_answer_is_not_followed_by_another() -> None:
    """Two answers in one: what was shown to somebody cannot be taken back."""

    class Breaking(ScriptedRunner):
        async def stream(self, request: turnlog.Request) -> Any:
            async for chunk in super().stream(request):
                yield chunk
                raise RequestTooLong("x")

    session, runner = long_session(), Breaking(["one two three"] * 2)

    async def ask() -> None:
        request = session.request()
        await session.areceive(RetryingRunner(runner, session).stream(request), request)

    with pytest.raises(RequestTooLong):
        asyncio.run(ask())
    assert len(runner.requests) == 1


def media_in(session: turnlog.Session, aim: Target) -> list[bytes]:
    """The images that a request to a provider would hold."""
    body = session.preview(aim).json()
    return [image for image in (png(1), png(2), png(3)) if base64.b64encode(image) in body]


def test_a_refused_image_leaves_that_providers_requests_only() -> None:
    """One damaged image that makes every later request fail, in this process and the next; or good images that leave
    with it; or an image that other providers lose."""
    store = MemoryStore()
    session = turnlog.open("s", store=store, target=CLAUDE)
    session.user(["Look", session.media(png(1), "image/png")])
    session.assistant("Grey.")
    session.user(["And these", session.media(png(2), "image/png"), session.media(png(3), "image/png")])
    named = RunnerFailed("anthropic", "messages.2.content.1.image.source.base64: Could not process image", status=400)
    before = messages_of(session)
    answer, runner = received(session, [named, "fine"])
    assert answer.text == "fine" and messages_of(session)[:3] == before
    assert media_in(session, CLAUDE) == [png(1), png(3)]
    assert media_in(session, GPT) == [png(1), png(2), png(3)]
    assert b"[image left out]" in runner.requests[1].json()
    session.close()
    session = turnlog.open("s", store=store)
    assert media_in(session, CLAUDE) == [png(1), png(3)]
    session.undo("exclusion")
    assert media_in(session, CLAUDE) == [png(1), png(2), png(3)]


def test_without_a_place_the_newest_images_leave() -> None:
    """An error that does not say which image: those that were sent before were not refused then."""
    session = turnlog.open("s", store=MemoryStore(), target=GPT)
    session.user(["Look", session.media(png(1), "image/png")])
    session.assistant("Grey.")
    session.user(["And this", session.media(png(2), "image/png")])
    error = RunnerFailed("openai", "You uploaded an unsupported image.", status=400)
    received(session, [error, "fine"])
    assert media_in(session, GPT) == [png(1)] and media_in(session, CLAUDE) == [png(1), png(2)]
    received_again = [error, "fine"]
    session.user("Go on.")
    received(session, received_again)
    assert media_in(session, GPT) == []


def test_a_remote_image_that_cannot_be_loaded_leaves() -> None:
    """An address that a provider cannot reach any more blocks the session for ever."""
    session = turnlog.open("s", store=MemoryStore(), target=GPT)
    session.user(["Look", Media("image", "image/png", url="https://example.com/a.png")])
    received(
        session, [RunnerFailed("openai", "Failed to download image from https://example.com/a.png", status=400), "ok"]
    )
    assert b"example.com" not in session.request().json()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_refused_signatures_leave_that_providers_requests(provider: str) -> None:
    """Reasoning of another account, or changed on its way, that makes every later request fail; a call that leaves with
    its signature."""
    model = {"anthropic": "claude-sonnet-4-5", "google": "gemini-2.5-pro", "google-interactions": "gemini-2.5-pro"}
    aim = target(provider, model.get(provider, "gpt-5"))
    session = turnlog.open(
        "s", store=MemoryStore(), target=aim, tools=[{"name": "look", "parameters": {"type": "object"}}]
    )
    session.user("What is there?")
    signed = Reasoning(provider, "hm", ("hm",), signature="U0lHTkVE", encrypted="U0lHTkVE", id="rs_1")
    call = ToolCall("call_1", "look", {}, signature="U0lHTkVE", provider=provider)
    session.add(Message("assistant", (signed, Text("I look."), call)))
    session.tool_result("call_1", "a door")
    before = messages_of(session)
    had = b"U0lHTkVE" in session.request().json()
    assert had == (provider != "openai-chat"), "nothing to refuse"
    error = RunnerFailed("x", "Invalid `signature` in `thinking` block", status=400)
    if not had:
        return
    _, runner = received(session, [error, "fine"])
    assert b"U0lHTkVE" not in runner.requests[1].json() and b"look" in runner.requests[1].json()
    assert turnlog.check(runner.requests[1].body, provider) == []
    assert messages_of(session)[: len(before)] == before
    session.undo("exclusion")
    assert b"U0lHTkVE" in session.request().json()
