"""Secrets of many kinds planted in whole sessions: where they are on disk, in requests, and after reopening.

Each session has one secret in a user's message, a call, a result, a note, a title and a text file, lives through a
stream with checkpoints, a compaction and a summary that a model wrote of them, is exported, forked and opened again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from planted import SECRETS

import turnlog
from draws import LONG
from turnlog import Message, ToolCall
from turnlog.export import FORMATS, save
from turnlog.summarize import Material

CHAT = turnlog.target("openai-chat", "gpt-4o")


class Quoting:
    """A summarizer that quotes whatever it is given."""

    id = "quoting/1"

    def summarize(self, material: Material, /) -> str:
        """The beginning of every message."""
        said = "\n".join(str(one.message.parts)[:300] for one in material.messages)
        return f"The user works on a login.\n{said}"[:4_000]


def live(place: str, text: str, secret: str, folder: Path) -> None:
    """One session with a secret in every place, which the living session still sends."""
    settings = turnlog.Settings(title=f"about {text}"[:300], checkpoint=0.0, summarizer=Quoting())
    with turnlog.open("s", store=place, target=CHAT, settings=settings) as session:
        events: list[Any] = []
        session.on_event(events.append)
        session.user(f"Log in with {text}\nplease.")
        call = ToolCall("c", "login", {"text": text})
        session.add(Message("assistant", (call,)))
        session.tool_result(call, f"sent: {text}")
        session.note("login", text)
        session.add(Message("user", (session.media(f"file: {text}\n".encode(), "text/plain"),)))
        session.receive(stream(text), CHAT)
        assert texts_of(session.request().body).count(whole(secret)) >= 4
        for n in range(6):
            session.user(f"Word {n}. " + "And so on. " * 40)
            session.assistant("Yes.")
        session.compact(keep=2)
        session._store.fork("s", "fork")
        for form in FORMATS:
            save(session._store, "s", form, folder / f"s.{form}")
        assert any(event.kind == "redacted" for event in events)
        assert not any(whole(secret) in f"{event.text} {event.record}" for event in events)


def stream(text: str) -> Iterator[dict[str, Any]]:
    """An answer that quotes the secret, in small pieces."""
    for at in range(0, len(text), 7):
        yield {"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"content": text[at : at + 7]}}]}
    yield {"id": "x", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def texts_of(value: Any) -> str:
    """Every text in a body, arguments as the model wrote them."""
    if isinstance(value, dict):
        return "\n".join(map(texts_of, value.values()))
    if isinstance(value, (list, tuple)):
        return "\n".join(map(texts_of, value))
    return str(value)


def whole(secret: str) -> str:
    """The longest line of a secret."""
    return max(secret.split("\n"), key=len)


@pytest.mark.parametrize("store", ["s.db", "files:s"])
@pytest.mark.parametrize("name", list(SECRETS)[:: 1 if LONG else 12])
def test_a_secret_is_in_no_file_and_in_every_living_request(name: str, store: str, tmp_path: Path) -> None:
    """A key on the disk, in an export or an event; a session that no longer knows the key that it was given; or one
    that, opened again, shows a hole without an edit."""
    text, secret = SECRETS[name]
    place = f"files:{tmp_path / 's'}" if store.startswith("files:") else str(tmp_path / store)
    live(place, text, secret, tmp_path)
    held = {file.name: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert [file for file, data in held.items() if whole(secret).encode() in data] == []
    with turnlog.open("s", store=place, target=CHAT, settings=turnlog.Settings()) as session:
        session.undo("compaction")
        request = session.request()
        assert whole(secret) not in texts_of(request.body) and "[redacted:" in str(request.body)
        assert len({edit.records for edit in request.edits if edit.kind == "redacted"}) >= 4
        made = [record for record in session.history() if getattr(record.body, "action", "") == "redact"]
        assert len(made) == 1
