"""A turn that is watched while it runs: what it does, what the model says, which files change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import turnlog
from agents import CHAT, says, session_in
from turnlog.errors import InputError, LogInconsistent
from turnlog.log.messages import Message, Text, ToolResult
from turnlog.log.records import FileChange, SessionOpened, TurnClosed
from turnlog.session.active import ActiveTurn
from turnlog.session.session import Session
from turnlog.stores import MemoryStore, open_store

THINKER = turnlog.target("anthropic", "claude-sonnet-4-5")


def pieces(*deltas: dict[str, Any]) -> list[dict[str, Any]]:
    """A streamed answer of Anthropic, up to its last piece."""
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [],
             "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for index, delta in enumerate(deltas):
        kind = "thinking" if "thinking" in delta else "text"
        events += [
            {"type": "content_block_start", "index": index, "content_block": {"type": kind, kind: ""}},
            {"type": "content_block_delta", "index": index, "delta": {"type": f"{kind}_delta", **delta}},
        ]
    return events


def test_the_open_turn_is_shown_as_far_as_it_has_come() -> None:
    """A display that is opened in the midst of a turn has missed its events, and shows nothing of it."""
    with turnlog.open("s", store=MemoryStore(), target=THINKER) as session:
        assert session.active_turn is None
        seen: list[ActiveTurn | None] = []

        async def stream() -> AsyncIterator[Any]:
            for piece in pieces({"thinking": "Hm. "}, {"text": "It is "}):
                yield piece
                seen.append(session.active_turn)
            turn.cancel("enough")
            seen.append(session.active_turn)

        async def main() -> None:
            await turn.areceive(stream())

        with session.turn("Is it warm?") as turn:
            started = turn.info.started
            assert session.active_turn == ActiveTurn(turn.id, started, "Is it warm?", "processing")
            asyncio.run(main())
        assert [now and (now.text, now.reasoning) for now in seen] == [
            ("", ""), ("", ""), ("", "Hm. "), ("", "Hm. "), ("It is ", "Hm. "), ("It is ", "Hm. ")
        ]  # fmt: skip
        assert [now and now.status for now in seen[-2:]] == ["processing", "cancelled"]
        assert session.active_turn is None


def test_calls_of_the_open_turn_are_shown() -> None:
    """What an agent waits for is what its user has to know."""
    with session_in(MemoryStore()) as session, session.turn("go") as turn:
        (call,) = turn.receive(says("", "c1")).tool_calls
        turn.ask_approval(call)
        now = session.active_turn
        assert now is not None and (now.status, now.calls) == ("awaiting_approval", turn.info.calls)
        turn.deny(call)


@pytest.mark.parametrize("shared", [True, False])
def test_the_turn_of_another_owner_is_shown_from_the_log(shared: bool, tmp_path: Path) -> None:
    """Who looks on from another process sees the turn, and the answer up to its last checkpoint."""
    place, settings = f"{tmp_path}/log.db", turnlog.Settings(checkpoint=0)
    with turnlog.open("s", store=place, target=THINKER, settings=settings, shared=shared) as session:
        other = turnlog.open("s", store=place, shared=shared, read_only=not shared)
        seen = []
        with closing(other), session.turn("go") as turn:
            for _ in turn._until_cancelled([1]):
                seen.append(other.active_turn)
            with pytest.raises(RuntimeError), session._journal.receiving(THINKER) as receiving:  # noqa: PT012 - the stream breaks off
                for piece in pieces({"thinking": "Hm, well "}, {"text": "It is warm"}):
                    receiving.feed(piece)
                seen.append(other.active_turn)
                raise RuntimeError
        with closing(turnlog.open("s", store=place, read_only=True)) as later:
            assert later.active_turn is None
    assert [now and (now.id, now.input, now.text, now.reasoning) for now in seen] == [
        (turn.id, "go", "", ""), (turn.id, "go", "It is ", "Hm, well ")
    ]  # fmt: skip


def changed(session: Session) -> list[str]:
    """The paths whose changes are on record."""
    return [record.body.path for record in session.history() if isinstance(record.body, FileChange)]


def test_files_are_seen_while_the_turn_runs(tmp_path: Path) -> None:
    """A turn of an hour shows nothing of its work until its end."""
    with session_in(MemoryStore()) as session:
        with session.turn("write", watch=tmp_path) as turn:
            one, two = turn.receive(says("", "c1", "c2")).tool_calls
            with turn.tool(one) as run:
                (tmp_path / "a").write_text("a")
                run.result("did")
            assert changed(session) == ["a"]
            (tmp_path / "b").write_text("b")
            turn.tool_result(two, "did")
            assert changed(session) == ["a", "b"]
            (tmp_path / "c").write_text("c")
            turn.receive(says("done"))
            assert changed(session) == ["a", "b", "c"]
            (tmp_path / "d").write_text("d")
            turn.look()
            (tmp_path / "e").write_text("e")
            assert changed(session) == ["a", "b", "c", "d"]
        assert changed(session) == ["a", "b", "c", "d", "e"]
        assert [change.path for change in turn.changes] == ["a", "b", "c", "d", "e"]
        with session.turn("rest") as turn:
            turn.look()  # nothing is watched


def test_files_that_cannot_be_looked_at_do_not_lose_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error after an answer was recorded would have the program ask, and pay, again."""
    with session_in(MemoryStore()) as session:
        feed = session.events()

        def full(*_: object, **__: object) -> str:
            raise OSError("no space")

        with session.turn("write", watch=tmp_path) as turn:
            (tmp_path / "a").write_text("a")
            with monkeypatch.context() as patched:
                patched.setattr("turnlog.workspace.snapshot.Folder.look", full)
                assert turn.receive(says("done")).text == "done"
        texts = [event.text for event in feed.waiting() if event.kind in ("warning", "diff")]
        assert texts == ["changes of files are not on record yet: OSError: no space", "a created"]


def test_the_end_of_a_turn_tells_what_it_changed() -> None:
    """Counts that leave out a file, or a box that does not say what is counted, mislead who reviews the work."""
    with session_in(MemoryStore()) as session:
        feed = session.events()
        with session.turn("write") as turn:
            files = turn.files(".")
            files.record("new.txt", None, b"1\n2\n")
            files.record("old.txt", b"1\n2\n3\n", b"1\n3\n4\n")
            files.record("gone.txt", b"1\n", None)
            files.record("kept.txt", b"1\n", b"2\n")
            files.record("kept.txt", b"2\n", b"1\n")
            turn.receive(says("done"))
        told = [event for event in feed.waiting() if event.record and isinstance(event.record.body, TurnClosed)]
        assert [event.kind for event in told] == ["turn_diff", "turn_completed"]
        diff: Any = told[0].found
        counts = (diff.additions, diff.deletions, diff.created, diff.modified, diff.deleted)
        assert counts == (3, 2, ("new.txt",), ("old.txt",), ("gone.txt",))
        assert told[0].text == f"turn {turn.id}: 3 files changed, +3 -2"
        assert diff.box.splitlines()[1:4] == [
            "│ Deleted   gone.txt  (+0, -1) │",
            "│ Created   new.txt   (+2, -0) │",
            "│ Modified  old.txt   (+1, -1) │",
        ]
        assert told[1].found == turn.info
        assert "100 tokens in, 10 out, $0.0004" in told[1].text


def test_a_turn_ends_whatever_the_prices_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in the user's own file of prices must not come out of a turn whose end is on record."""

    def broken(cost: object) -> str:
        raise InputError("models.json: no such price")

    monkeypatch.setattr("turnlog.session.telling.dollars", broken)
    with session_in(MemoryStore()) as session:
        feed = session.events()
        with session.turn("go") as turn:
            turn.receive(says("done"))
        assert feed.waiting()[-1].text.endswith(" s, 100 tokens in, 10 out")


def test_services_have_names() -> None:
    """A tool that needs a client has the session at hand, not the program that attached the client."""

    class Client:
        def close(self) -> None: ...

        def __enter__(self) -> Client:
            return self

        def __exit__(self, *_: object) -> None: ...

    with session_in(MemoryStore()) as session:
        client, other = Client(), Client()
        assert session.attach(client, "model") is client
        asyncio.run(session.aattach(other, name="mail"))
        session.attach(Client())
        assert dict(session.services) == {"model": client, "mail": other}
        with pytest.raises(InputError, match="has a service with the name 'mail' already; give another name"):
            session.attach(Client(), "mail")
        with pytest.raises(InputError, match="name must be a string"):
            session.attach(Client(), 7)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            session.services["x"] = client  # type: ignore[index]
    assert dict(session.services) == {}


def test_messages_are_counted() -> None:
    """A list of sessions shows how long each is."""
    with session_in(MemoryStore()) as session:
        session.user("one")
        session.note("x")
        session.assistant("two")
        assert session.message_count == session.log.message_count == 2


STRAY = Message("user", (ToolResult("c9", "weather", (Text("4 degrees"),)),))


def checked(how: str, store: Any = None) -> Session:
    """A session that is checked."""
    settings = turnlog.Settings(check=how)  # type: ignore[arg-type]
    return turnlog.open("s", store=MemoryStore() if store is None else store, target=CHAT, settings=settings)


def test_a_checked_session_warns_once() -> None:
    """Who writes an agent learns of its mistake when it is made, not when a request looks odd days later."""
    store = MemoryStore()
    with session_in(store) as before:
        before.add(STRAY)
    with checked("warn", store) as session:
        feed = session.events()
        for _ in range(2):
            with session.turn("go"):
                session.add(STRAY)
        session.add(STRAY)
    texts = [event.text for event in feed.waiting() if event.kind == "warning"]
    assert [text.split("records ")[1][:3].strip(": o") for text in texts] == ["5", "9", "11"]
    assert (
        texts[0]
        == "the log contradicts itself: records 5: orphan: result of 'c9': no call before it has that id and name"
    )


def test_a_checked_session_raises_at_the_end_of_the_turn() -> None:
    """The error comes with the turn that made the mistake, which is closed as failed; it does not hide another one."""
    session = checked("raise")
    wrong = "records of session 's' contradict each other: records 4: orphan"
    with pytest.raises(LogInconsistent, match=wrong), session.turn("go"):
        session.add(STRAY)
    assert session.log.turns()[-1].reason.startswith("LogInconsistent: records of session 's'")
    with pytest.raises(KeyError), session.turn("again"):  # noqa: PT012 - the turn is what is tested
        session.add(STRAY)
        raise KeyError
    with session.turn("sound") as turn:
        turn.receive(says("yes"))
    session.add(STRAY)
    with pytest.raises(LogInconsistent):
        session.close()


def test_a_resumed_session_says_which_it_was() -> None:
    """In a fork, the records of its parent would be taken for its own openings."""
    store, settings = MemoryStore(), turnlog.Settings(source="mcp")
    turnlog.open("s", store=store, target=CHAT, settings=settings).close()
    with turnlog.open("s", store=store, settings=settings) as session:
        fork = session.fork("t")
        openings = [record.body for record in fork.history() if isinstance(record.body, SessionOpened)]
        assert openings == [SessionOpened("mcp"), SessionOpened("mcp", True, "s"), SessionOpened("mcp", True, "s")]
        assert session.resumed is not None and fork.resumed is not None
        assert [session.resumed.session, fork.resumed.session] == ["s", "s"]
        assert str(fork.resumed) == "session s resumed at record 3, mcp"
        told = fork.follow(1).waiting()
        assert [event.text for event in told] == [
            "session opened, mcp", "session s resumed at record 2, mcp", "session s resumed at record 3, mcp"
        ]  # fmt: skip


def test_no_turn_is_open_in_a_session_that_others_closed(tmp_path: Path) -> None:
    """A display that shows a turn where none was ever opened waits for its end."""
    with closing(open_store(f"{tmp_path}/log.db")) as store:
        with session_in(store):  # type: ignore[arg-type]
            pass
        with closing(turnlog.open("s", store=store, read_only=True)) as reader:
            assert reader.active_turn is None


def test_a_large_folder_does_not_hold_up_every_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that takes seconds, after each of a hundred calls, would take longer than the calls."""
    clock, looks = [0.0], list[float]()
    with session_in(MemoryStore()) as session, session.turn("write", watch=tmp_path) as turn:
        monkeypatch.setattr("time.monotonic", lambda: clock[0])

        def slow() -> None:
            looks.append(clock[0])
            clock[0] += 1.0

        monkeypatch.setattr(session._watches, "look", slow)
        for _ in range(30):
            turn.receive(says("done"))
            clock[0] += 1.0
    assert looks == [0.0, 20.0]
