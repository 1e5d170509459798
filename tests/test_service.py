"""The service of docs/service.md, called as a server calls it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import turnlog
from page_programs import loaded_from
from turnlog.log.records import PartialAnswer

pytest.importorskip("starlette", reason="starlette is not installed: the service of the documentation is not run")
PAGE = Path(__file__).resolve().parent.parent / "docs" / "service.md"


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The program of the page, with a store of its own."""
    monkeypatch.setenv("STORE", str(tmp_path / "chats.db"))
    monkeypatch.setenv("PAUSE", "0")
    module = loaded_from(PAGE, "service.py", tmp_path, monkeypatch)
    yield module
    module.store.close()


async def call(service: ModuleType, path: str, text: str | None = None, *, user: str = "ann", cut: int = 0) -> str:
    """The body of an answer; with `cut`, the browser goes away after so many pieces of it."""
    body = b"" if text is None else json.dumps({"text": text}).encode()
    path, _, query = path.partition("?")
    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1",
        "method": "GET" if text is None else "POST", "path": path, "raw_path": path.encode(),
        "query_string": query.encode(), "root_path": "", "scheme": "http", "headers": [(b"x-user", user.encode())],
    }  # fmt: skip
    told, pieces, gone = False, list[bytes](), asyncio.Event()

    async def receive() -> dict[str, Any]:
        nonlocal told
        if not told:
            told = True
            return {"type": "http.request", "body": body, "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body" and message["body"]:
            pieces.append(message["body"])
            if len(pieces) == cut:
                gone.set()
            await asyncio.sleep(0)

    await service.app(scope, receive, send)
    return b"".join(pieces).decode()


def said(stream: str) -> str:
    """The text of a stream of events that came to its end."""
    assert stream.endswith('event: done\ndata: "end"\n\n')
    return "".join(json.loads(line) for line in re.findall(r"^data: (.*)$", stream, re.M)[:-1])


def test_the_program_is_short() -> None:
    """A page that promises sixty lines and shows twice as many."""
    code = PAGE.read_text("utf-8").partition("```python\n")[2].partition("```")[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 60


def test_users_have_chats_of_their_own(service: ModuleType) -> None:
    """Somebody reads what another user said, or is answered in another's chat."""

    async def main() -> None:
        assert said(await call(service, "/chats/trip", "Hello!")) == "You said: Hello!"
        assert said(await call(service, "/chats/trip", "Hi!", user="bob")) == "You said: Hi!"
        shown = json.loads(await call(service, "/chats/trip"))
        assert shown == [{"role": "user", "text": "Hello!"}, {"role": "assistant", "text": "You said: Hello!"}]
        assert json.loads(await call(service, "/chats")) == ["trip"]
        assert json.loads(await call(service, "/chats", user="eve")) == []

    asyncio.run(main())


def test_a_name_that_differs_by_case_is_answered(service: ModuleType) -> None:
    """A stream that breaks off, and an error of the server, because somebody wrote `Trip`."""

    async def main() -> None:
        assert said(await call(service, "/chats/trip", "Hello!")) == "You said: Hello!"
        answer = await call(service, "/chats/Trip", "Hello!")
        assert answer.startswith("event: failed\n") and "'ann/Trip'" in answer and "'ann/trip'" in answer

    asyncio.run(main())


def test_messages_at_once_are_answered_in_order(service: ModuleType) -> None:
    """A double click mixes two answers, or turns their order round."""

    async def main() -> None:
        texts = [f"message {n}" for n in range(5)]
        found = await asyncio.gather(*(call(service, "/chats/trip", text) for text in texts))
        assert [said(one) for one in found] == [f"You said: {text}" for text in texts]
        with turnlog.open("ann/trip", store=service.store, read_only=True) as session:
            assert [turn.input for turn in session.log.turns()] == texts

    asyncio.run(main())


def test_a_browser_that_goes_away_cancels_its_answer(service: ModuleType) -> None:
    """The answer so far is lost, the model goes on writing, or the chat stays in use."""

    async def main() -> None:
        await call(service, "/chats/trip", "one two three four five six seven", cut=2)
        while left := asyncio.all_tasks() - {asyncio.current_task()}:  # type: ignore[arg-type]
            await asyncio.wait(left)
        with turnlog.open("ann/trip", store=service.store, read_only=True) as session:
            (kept,) = (r.body for r in session.history() if isinstance(r.body, PartialAnswer))
            assert "You said: one two three".startswith(kept.message.parts[0].text.strip())  # type: ignore[union-attr]
            assert [turn.status for turn in session.log.turns()] == ["cancelled"]
        assert said(await call(service, "/chats/trip", "again")) == "You said: again"

    asyncio.run(main())


def test_nobody_finds_what_another_said(service: ModuleType) -> None:
    """A search of the page that shows one user what another told the service."""
    asyncio.run(call(service, "/chats/trip", "I have a cough.", user="ann"))
    asyncio.run(call(service, "/chats/trip", "My doctor heard a cough.", user="bob"))
    found = {user: asyncio.run(call(service, "/find?q=cough", user=user)) for user in ("ann", "bob", "cy")}
    assert "I have a cough." in found["ann"] and "doctor" not in found["ann"]
    assert "doctor" in found["bob"] and "I have a cough." not in found["bob"] and found["cy"] == "[]"
