"""Requests that a server refuses, mended and sent once more through the real SDK clients."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Callable
from typing import Any

import pytest
from asking import AGENTS, TOOLS
from replies import REPLIES
from sdk_clients import sdk_client
from sdk_runners import sdk_runner

import turnlog
from turnlog.errors import RequestTooLong
from turnlog.log.messages import Message, Reasoning, ToolCall
from turnlog.log.records import MessageRecord
from turnlog.models.target import Target
from turnlog.runners import RetryingRunner, RunnerSummarizer
from turnlog.session import Answer
from turnlog.stores import MemoryStore

Start = Callable[..., Any]
every = pytest.mark.parametrize("aim", AGENTS, ids=lambda aim: aim.provider)
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==")


def answered(session: turnlog.Session, url: str) -> Answer:
    """The next answer, mended if it has to be."""

    async def ask() -> Answer:
        request = session.request()
        return await session.areceive(RetryingRunner(sdk_runner(url), session).stream(request), request)

    return asyncio.run(ask())


@every
def test_a_server_with_a_small_window_is_learnt(aim: Target, fake_server: Start) -> None:
    """A window that is smaller than the table says: one refusal is enough to learn it, where the server tells it."""
    server = fake_server(context_limit=3_000)
    session = turnlog.open("s", store=MemoryStore(), target=aim)
    for turn in range(40):
        session.user(f"Turn {turn}: " + "count the rows of it. " * 20)
        assert answered(session, server.url).complete
    refused = [one for one in server.requests if one.status != 200]
    assert [one.errors for one in refused if one.errors != ["context"]] == []
    told = aim.provider != "openai-responses"  # this API says no numbers
    assert len(refused) == 1 if told else 0 < len(refused) <= 20
    tiny = fake_server(context_limit=20)
    session.user("And now?")
    with pytest.raises(RequestTooLong, match="begin afresh"):
        answered(session, tiny.url)


@every
def test_a_refused_image_does_not_block_the_session(aim: Target, fake_server: Start) -> None:
    """An image that the provider cannot read would make every later request fail."""
    error = {"status": 400, "message": "Could not process image"}
    server = fake_server([{"error": error}])
    session = turnlog.open("s", store=MemoryStore(), target=aim)
    session.user(["Look", session.media(PNG, "image/png")])
    assert answered(session, server.url).complete
    first, second = ([base64.b64encode(PNG).decode() in str(one.body)] for one in server.requests)
    assert (first, second) == ([True], [False])


@every
def test_refused_signatures_do_not_block_the_session(aim: Target, fake_server: Start) -> None:
    """Signatures of another account: the server refuses them until they are left out, and everything else stays."""
    session = turnlog.open("s", store=MemoryStore(), target=aim, tools=TOOLS)
    session.user("Think, and look.")
    elsewhere = fake_server([REPLIES["thought and calls"]])
    answer = session.receive(sdk_client(aim.provider, elsewhere.url).stream(session.request().body, aim.model))
    for call in answer.tool_calls:
        session.tool_result(call, "a door")
    signed = [part for part in answer.message.parts if isinstance(part, (Reasoning, ToolCall))]
    before = [one.body for one in session.history() if isinstance(one.body, MessageRecord)]
    server = fake_server(verify_signatures="all")
    signatures = any(part.signature or getattr(part, "encrypted", "") for part in signed)
    if not signatures:
        pytest.skip("this API signs nothing")
    assert answered(session, server.url).complete
    assert [one.status for one in server.requests] == [400, 200], [one.errors for one in server.requests]
    assert [one.body for one in session.history() if isinstance(one.body, MessageRecord)][: len(before)] == before


@every
def test_a_summary_is_read_from_the_cache_of_the_conversation(aim: Target, fake_server: Start) -> None:
    """A summary whose request the provider has to read anew costs ten times as much, and is refused if it is no valid
    one."""
    server = fake_server()
    summarizer = RunnerSummarizer(sdk_runner(server.url), rides=True)
    settings = turnlog.Settings(summarizer=summarizer)
    session = turnlog.open("s", store=MemoryStore(), target=aim, tools=TOOLS, settings=settings, budget=12_000)
    session.system("You count rows. " * 200)
    for turn in range(30):
        session.user(f"Turn {turn}: " + f"count the rows of part{turn}. " * 60)
        assert answered(session, server.url).complete
        for thread in [one for one in threading.enumerate() if one.name == "turnlog-summary"]:
            thread.join(20)
    summarizer.close()
    key = next(key for key in ("messages", "input", "contents") if key in server.requests[0].body)
    asked = [one for one in server.requests if "conversation is about to be shortened" in str(one.body[key][-1])[:200]]
    assert asked and server.rejections() == []
    for one in asked:
        assert one.usage["read"] >= 0.8 * one.usage["input"], one.usage
    assert isinstance(session.view()[0].message, Message)
