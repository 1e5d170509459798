"""Redaction is for the disk: a living session shows what was given; whoever opens it again shows marks, on record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from planted import SECRETS

import turnlog
from turnlog import Media, Message, Redactor, Session, Text, ToolCall, ToolResult
from turnlog.export import FORMATS, save
from turnlog.log.records import Decision, MessageRecord
from turnlog.log.store import Draft
from turnlog.redaction import RedactingStore
from turnlog.redaction.redactor import EXAMPLES
from turnlog.stores import MemoryStore

CHAT = turnlog.target("openai-chat", "gpt-4o")
CLAUDE = turnlog.target("anthropic", "claude-sonnet-4-5")
NPM, HUB = SECRETS["npm"][0], SECRETS["github classic"][0]


def opened(place: Any, redact: Any = True, target: Any = CHAT, *, shared: bool = False) -> Session:
    """The session `s`."""
    return turnlog.open("s", store=place, target=target, settings=turnlog.Settings(redact=redact), shared=shared)


def decisions(session: Session) -> list[Decision]:
    """The decisions about marks."""
    found = (record.body for record in session.history())
    return [body for body in found if isinstance(body, Decision) and body.action == "redact"]


@pytest.mark.parametrize("place", ["s.db", "files:s"])
def test_a_living_session_shows_what_was_given(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is told a mark instead of a key; a key on the disk; a session opened again that does not say so."""
    monkeypatch.chdir(tmp_path)
    with opened(place) as session:
        session.user("Hello.")
        session.user(f"My key is {NPM}.")
        call = ToolCall("c", "login", {"token": HUB})
        session.add(Message("assistant", (call,)))
        session.tool_result(call, f"welcome, {HUB}")
        living = session.request()
        assert str(living.body).count(HUB) == 2 and NPM in str(living.body)
        assert not any(edit.kind == "redacted" for edit in living.edits) and decisions(session) == []
    held = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert HUB.encode() not in held and NPM.encode() not in held
    with opened(place) as session:
        [made] = decisions(session)
        first = next(r for r in session.history() if r.redacted)
        assert (made.first, made.detail["records"]) == (first.n, [first.n, first.n + 1, first.n + 2])
        text = first.message.parts[0].text.encode()  # type: ignore[union-attr]
        assert made.detail["changes_from"] == first.n and made.detail["place"] == "message.parts[0].text"
        assert text[made.detail["byte"] :].startswith(b"[redacted:npm-token:") and text.startswith(b"My key is ")
        request = session.request()
        edits = [edit for edit in request.edits if edit.kind == "redacted"]
        assert [edit.records[0] for edit in edits] == made.detail["records"] and "1 npm-token" in str(edits[0])
        assert HUB not in str(request.body) and str(request.body).count("[redacted:github-token:") == 2
        same = session.preview().body["messages"][:2]
        assert same == living.body["messages"][:1] + same[1:]
    with opened(place) as session:
        assert len(decisions(session)) == 1 and session.request().body == request.body
        session.user(f"And {HUB}.")
        assert HUB in str(session.request().body)
    with opened(place) as session:
        assert len(decisions(session)) == 2 and decisions(session)[1].detail["records"][0] > decisions(session)[0].last


def test_redacting_for_the_model_too_is_a_choice() -> None:
    """With `all`, a request that shows a secret, or a decision about a change that never was."""
    home = MemoryStore()
    with opened(home, "all") as session:
        session.user(f"My key is {NPM}.")
        before = session.request().body
        assert NPM not in str(before)
    with opened(home, "all") as session:
        assert session.request().body == before and decisions(session) == []
        assert not any(edit.kind == "redacted" for edit in session.request().edits)


def test_who_lives_on_shows_marks_after_another_opening() -> None:
    """Two processes whose requests differ for the same log, after the record that says what they show."""
    home = MemoryStore()
    first = opened(home, shared=True)
    first.user(f"My key is {NPM}.")
    assert NPM in str(first.request().body)
    second = opened(home, shared=True)
    assert len(decisions(second)) == 1
    assert first.request().body == second.request().body and NPM not in str(first.request().body)
    first.user(f"Again: {HUB}.")
    assert HUB in str(first.request().body) and HUB not in str(second.request().body)
    assert any(edit.kind == "redacted" and edit.records == (first.history()[-1].n,) for edit in second.request().edits)


def test_an_original_is_written_nowhere_else(tmp_path: Path) -> None:
    """A secret in an export, an event, a page, a title, a note, a fork or a text file that a living session writes."""
    seen: list[Any] = []
    with opened(tmp_path / "s.db") as session:
        session.on_event(seen.append)
        session.note("login", f"with {HUB}", {"token": NPM})
        session.add(Message("user", (session.media(f"key: {HUB}".encode(), "text/plain"), Text(f"see {NPM}"))))
        request = session.request()
        assert HUB in str(request.body) and NPM in str(request.body)
        home: Any = session._store
        home.rename("s", f"About {HUB}")
        home.fork("s", "t")
        for form in FORMATS:
            save(home, "s", form, tmp_path / f"out.{form}")
        records = [record for event in seen for record in [event.record] if record is not None]
        assert HUB not in str(records) and NPM not in str(records) and len(seen) >= 3
        assert HUB not in str(list(session.log.on_disk.records()))
    held = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert HUB.encode() not in held and NPM.encode() not in held
    with opened(tmp_path / "s.db") as session:
        assert HUB not in str(session.request().body) and decisions(session)


def test_an_import_is_no_change_of_what_was_sent(tmp_path: Path) -> None:
    """An imported transcript, of which turnlog never sent a request, with a decision that its requests changed."""
    home = MemoryStore()
    store = RedactingStore(home, Redactor(live=False))
    store.create("s")
    store.append("s", [Draft(MessageRecord(Message("user", (Text(f"key {NPM}"),))))])
    with opened(home) as session:
        assert decisions(session) == [] and not session.request().edits


@pytest.mark.parametrize("key", sorted(EXAMPLES))
def test_keys_of_documentation_are_left_alone(key: str) -> None:
    """A tutorial that a model cannot read, because an example that opens nothing is taken for a secret."""
    for text in (key, f"aws_secret_access_key = {key}", f'{{"api_key": "{key}"}}', f"password: {key}"):
        assert Redactor().text(text) == (text, {})
    assert Redactor().value({"secret": key, "token": [key]}, counts := {}) == {"secret": key, "token": [key]}
    assert counts == {}
    assert Redactor({"mine": key.replace("+", r"\+")}).text(key)[1] == {"mine": 1}
    assert Redactor().text(key[:-4] + "q7Rx")[0] != key


def test_bound_thinking_leaves_where_a_mark_changes_what_it_is_bound_to() -> None:
    """Thinking sent after text that is no longer the text that it was bound to: the API refuses the request."""
    home = MemoryStore()
    model = turnlog.target("anthropic", "claude-opus-5-5")

    def answer(text: str) -> dict[str, Any]:
        thought = {"type": "thinking", "thinking": "Hm.", "signature": f"sig-{text}" * 9}
        content = [thought, {"type": "text", "text": text}]
        return {
            "id": "r",
            "model": "claude-opus-5-5",
            "role": "assistant",
            "content": content,
            "stop_reason": "end_turn",
        }

    with opened(home, target=model) as session:
        session.user("Hello.")
        session.receive(answer("one"), session.request())
        session.user(f"My key is {NPM}.")
        session.receive(answer("two"), session.request())
        session.user("Go on.")
        assert str(session.request().body).count("'thinking': 'Hm.'") == 2
    with opened(home, target=model) as session:
        body = str(session.request().body)
        assert "sig-one" in body and "sig-two" not in body


def test_a_log_can_be_read_as_it_is_on_disk() -> None:
    """A reader that cannot tell what others will see."""
    with opened(MemoryStore()) as session:
        session.user(f"My key is {NPM}.")
        assert NPM not in str(list(session.log.on_disk.records())) and NPM in str(session.history())


def test_a_living_picture_is_what_was_given() -> None:
    """A text file that the model is shown with marks, though the conversation is shown without."""
    with opened(MemoryStore(), target=CLAUDE) as session:
        part = session.media(f"key: {HUB}".encode(), "text/plain")
        assert isinstance(part, Media)
        call = ToolCall("c", "read", {})
        session.user("Read it.")
        session.add(Message("assistant", (call,)))
        session.add(Message("user", (ToolResult("c", "read", (part,)),)))
        assert session.log.blob(part.sha256) == f"key: {HUB}".encode()
        assert HUB in str(session.request().body)
