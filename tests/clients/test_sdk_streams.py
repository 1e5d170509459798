"""Streams of the real SDKs, whole and cut after every event."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from asking import AGENTS, asking
from cutting import cut_everywhere
from replies import REPLIES, replies_of
from sdk_clients import sdk_client, sdk_clients

import turnlog
from draws import LONG
from judging import errors_of
from turnlog.log.records import MessageRecord, PartialAnswer
from turnlog.models.target import Target, target
from turnlog.session.answer import Answer
from turnlog.stores import MemoryStore

Start = Callable[..., Any]

CUT = tuple(REPLIES) if LONG else ("thought and calls", "call without arguments", "custom")


def name_of(aim: Target) -> str:
    """An agent's name in test ids."""
    return aim.provider


def kept(answer: Answer) -> tuple[Any, ...]:
    """Everything that an answer left in the log."""
    return answer.message, answer.usage, answer.complete, answer.record.body


@pytest.mark.parametrize("aim", AGENTS, ids=name_of)
def test_a_stream_is_recorded_as_the_whole_answer_is(aim: Target, fake_server: Start) -> None:
    """Streaming that changes what is kept (a text split, a signature or the usage lost) fails here."""
    for name in replies_of(aim.provider):
        answers = []
        for way in ("send", "stream", "helper"):
            # A fresh server mints the same ids again.
            client = sdk_client(aim.provider, fake_server([REPLIES[name]]).url)
            ask = getattr(client, way)
            if ask is not None:
                session = asking(aim)
                answers.append(kept(session.receive(ask(session.request().body, aim.model))))
        assert isinstance(answers[0][-1], MessageRecord)
        assert all(answer == answers[0] for answer in answers[1:]), name


@pytest.mark.parametrize("by_error", [False, True], ids=["dropped", "error"])
@pytest.mark.parametrize("aim", AGENTS, ids=name_of)
def test_a_stream_cut_anywhere_leaves_a_session_that_goes_on(
    aim: Target, by_error: bool, fake_server: Start, oracle: ModuleType
) -> None:
    """Half an answer taken for a whole one, or a request refused after it, fails here: at any event."""
    server = fake_server()
    clients = sdk_clients(server.url)
    for name in CUT[: 1 if by_error and not LONG else None]:
        if name not in replies_of(aim.provider):
            continue
        cuts = cut_everywhere(server, clients, oracle, aim, name, by_error=by_error)
        # These SDKs hand the error out as an event.
        told = by_error and aim.provider in ("openai-responses", "google-interactions")
        assert (cuts.findings, cuts.raised) == ([], 0 if told else cuts.cuts), name
        assert cuts.cuts > 0


def test_stored_responses_survive_a_cut_as_well(fake_server: Start, oracle: ModuleType) -> None:
    """Where the provider keeps the items, one sent back without the item it belongs to is refused."""
    server = fake_server()
    aim = target("openai-responses", "gpt-5")
    cuts = cut_everywhere(server, sdk_clients(server.url), oracle, aim, "thought and calls")
    assert (cuts.findings, cuts.raised) == ([], cuts.cuts)


def recorded(shared: Path) -> list[tuple[str, list[dict[str, Any]]]]:
    """The recorded Google streams, by file and line."""
    found = []
    for path in sorted((shared / "data" / "gemini-cli-responses").glob("*.responses")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
            entry = json.loads(line)
            if entry.get("method") == "generateContentStream" and isinstance(entry.get("response"), list):
                found.append((f"{path.name}:{number}", entry["response"]))
    return found


def test_recorded_google_streams_can_be_cut_anywhere(shared: Path, oracle: ModuleType) -> None:
    """What the real API streamed: chunk by chunk equals the whole, and any beginning can be built on."""
    aim = AGENTS[-1]
    streams = recorded(shared)
    assert len(streams) > 100
    for where, chunks in streams:
        whole = kept(asking(aim).receive(iter(chunks)))
        assert kept(_asked(aim).receive(chunks)) == whole, where
        for at in range(len(chunks)):
            session = asking(aim)
            answer = session.receive(iter(chunks[:at]))
            assert isinstance(answer.record.body, PartialAnswer) or answer.complete
            session.user("Go on.")
            for to in AGENTS:
                assert errors_of(oracle, to, session.request(to).body) == [], (where, at, to.provider)


def _asked(aim: Target) -> turnlog.Session:
    return turnlog.open("again", target=aim, store=MemoryStore())
