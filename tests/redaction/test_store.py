"""No secret reaches a disk: not in a log, an index, a write-ahead log, a card or a file beside it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from planted import EXACT, SECRETS, bodies

import turnlog
from turnlog import Media, Message, Reasoning, Redactor, Session, Text, ToolCall
from turnlog.cli import main
from turnlog.errors import InputError
from turnlog.log.messages import sha256_hex
from turnlog.log.records import Decision, FileChange, MessageRecord, PartialAnswer, Record
from turnlog.log.store import Draft, Store
from turnlog.redaction import RedactingStore
from turnlog.redaction.drafts import redacted_drafts
from turnlog.stores import open_store
from turnlog.stores.records import blob_names
from turnlog.testing import check_store
from turnlog.view.repair.clean import Edit

TARGET = turnlog.target("openai-chat", "gpt-4o")
ALL = turnlog.Settings(redact="all")
NPM, HUB = SECRETS["npm"][0], SECRETS["github classic"][0]


@pytest.fixture(params=["store.db", "files:folder"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store of each kind on disk can be made."""
    kind, _, name = request.param.rpartition(":")
    return f"{kind}:{tmp_path / name}" if kind else str(tmp_path / name)


def left(folder: Path) -> list[tuple[str, str]]:
    """The secrets that stand in the files of a folder, and where."""
    held = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert held, "there is nothing to look through"
    wanted = [piece for _, secret in SECRETS.values() for piece in secret.split("\n")]
    return [(path.name, secret) for path, data in held.items() for secret in wanted if secret.encode() in data]


def said(session: Session) -> str:
    """Everything on record, as bytes would have it."""
    return " ".join((record.raw or b"").decode() for record in session.history())


@pytest.mark.slow
def test_nothing_planted_is_on_disk(place: str, tmp_path: Path) -> None:
    """A key in the log, the search index or the write-ahead log, while the store is open and after."""
    texts = [text for text, _ in SECRETS.values()]
    with turnlog.open("s", store=place, settings=turnlog.Settings(title=f"about {NPM}")) as session:
        store = session._store
        given = [Draft(body) for shift in range(len(texts)) for body in bodies(texts[shift:] + texts[:shift])]
        store.append("s", given)
        store.search("it")  # type: ignore[attr-defined]
        session.media(NPM.encode(), "text/plain")
        assert left(tmp_path) == []
        kept = said(session)
        assert all(exact in kept for exact in EXACT.values())
        counts = session.log.redacted
        assert sum(counts.values()) >= len(given) and counts["npm-token"] > 8
    assert left(tmp_path) == []
    assert main(["verify", "--store", place]) == 1  # media of no bytes, which `bodies` names, and nothing else
    assert main(["scan", "--store", place]) == 0


def test_a_session_is_redacted_unless_told_otherwise(place: str, tmp_path: Path) -> None:
    """A default that lets keys through, or a choice that does nothing."""
    with turnlog.open("on", store=place) as session:
        record = session.user(f"my key is {NPM}")
        assert record.redacted == {"npm-token": 1}
    assert left(tmp_path) == []
    with turnlog.open("off", store=place, settings=turnlog.Settings(redact=False)) as session:
        session.user(f"my key is {NPM}")
        assert session.log.redacted == {}
    assert {secret for _, secret in left(tmp_path)} == {NPM}
    with pytest.raises(InputError, match="redact"):
        turnlog.open("x", store=place, settings=turnlog.Settings(redact="yes"))  # type: ignore[arg-type]


def test_a_call_with_a_secret_can_be_run_and_answered(place: str, tmp_path: Path) -> None:
    """A tool that is handed a mark instead of a password, or a call that is not found in the log again."""
    wire = {
        "id": "c1",
        "type": "function",
        "function": {"name": "login", "arguments": '{"password": "hunter2hunter2"}'},
    }
    message = {"role": "assistant", "content": None, "tool_calls": [wire]}
    answer = {"model": "gpt-4o", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}
    with turnlog.open("s", store=place, target=TARGET, settings=ALL) as session:
        session.user("log in")
        call = session.receive(answer).tool_calls[0]
        assert call.arguments == {"password": "hunter2hunter2"}
        session.tool_started(call)
        session.tool_finished(call)
        session.tool_result(call, f"token: {HUB}")
        body = str(session.request().body)
        assert "hunter2hunter2" not in body and "[redacted:password]" in body and "[redacted:github-token:" in body
        with pytest.raises(InputError):
            session.tool_started(ToolCall("c2", "login", {"password": "hunter2hunter2"}))
    assert left(tmp_path) == []


def test_live_secrets_reach_the_model_and_not_the_disk(place: str, tmp_path: Path) -> None:
    """The choice to show the model what was said: kept while the session is open, gone afterwards."""
    with turnlog.open(
        "s", store=place, target=TARGET, settings=turnlog.Settings(redact=Redactor(live=True))
    ) as session:
        session.system(f"use {HUB}")
        session.user(f"my key is {NPM}")
        first = session.request().body["messages"]
        assert NPM in str(first) and HUB in str(first)
        session.clear()  # the log is read anew
        session.user("go on")
        assert HUB in str(session.request().body)
        assert left(tmp_path) == []
    with turnlog.open(
        "s", store=place, target=TARGET, settings=turnlog.Settings(redact=Redactor(live=True))
    ) as session:
        body = str(session.request().body)
        assert HUB not in body and "[redacted:github-token:" in body


def test_without_live_a_session_opened_again_makes_the_same_request(place: str) -> None:
    """A request that changes with the process: the provider's cache is paid for twice."""
    with turnlog.open("s", store=place, target=TARGET, settings=ALL) as session:
        session.user(f"my key is {NPM}, the other {HUB}")
        before = session.request().body
    with turnlog.open("s", store=place) as session:
        assert session.request().body == before
        assert not any(isinstance(record.body, Decision) for record in session.history())


def test_files_of_text_are_redacted_and_others_are_not(place: str, tmp_path: Path) -> None:
    """A `.env` file in the blobs of a file change; or a picture that was taken for text."""
    picture = b"\x89PNG\x00" + NPM.encode()
    with turnlog.open("s", store=place, settings=ALL) as session:
        store = session._store
        before = store.put_blob(f"A=1\nNPM={NPM}\n".encode() * 3000)
        after = store.put_blob(b"A=1\n")
        assert store.get_blob(before).startswith(b"A=1\nNPM=[redacted:npm-token:")
        record = store.append("s", [Draft(FileChange(".env", "modified", before, after))])[0]
        assert isinstance(record.body, FileChange)
        assert (record.body.after, record.redacted) == (after, {"npm-token": 3000})
        session.add(Message("user", (session.media(f"key {HUB}".encode(), "text/plain"),)))
        assert left(tmp_path) == []
        assert store.get_blob(store.put_blob(picture)) == picture
        assert session.log.redacted == {"npm-token": 3000, "github-token": 1}
        assert store.verify() == []


def test_media_say_the_size_that_they_have(place: str) -> None:
    """A size that is that of the bytes before, in a session, in an import and after a scrub."""
    said = f"key {HUB}".encode()
    for name, redact in (("now", True), ("later", False)):
        with turnlog.open(name, store=place, settings=turnlog.Settings(redact=redact)) as session:
            session.add(Message("user", (session.media(said, "text/plain"), session.media(b"plain", "text/plain"))))
    assert main(["scrub", "later", "--yes", "--store", place]) == 0
    for name in ("now", "later"):
        with turnlog.open(name, store=place) as session:
            medium, other = next(r for r in session.history() if isinstance(r.body, MessageRecord)).message.parts
            assert isinstance(medium, Media) and isinstance(other, Media)
            assert medium.size == len(session._store.get_blob(medium.sha256)) != len(said)
            assert other.size == 5
    body = MessageRecord(Message("user", (Media("file", sha256=sha256_hex(said)),)))
    (draft,), _ = redacted_drafts([Draft(body)], {sha256_hex(said): said}, Redactor())
    assert isinstance(draft.body, MessageRecord)
    assert [part.size for part in draft.body.message.parts if isinstance(part, Media)] == [0], "nobody said a size"


def test_a_file_that_only_a_decision_shows(place: str, tmp_path: Path) -> None:
    """A compaction's own messages may name a text file that no record names beside it. With its secret it would stay in
    the store whatever is scrubbed; under its new name, the decision would show nothing."""
    said = f"key {HUB}".encode()
    shown = [
        {"role": "user", "parts": [{"type": "media", "kind": "file", "sha256": sha256_hex(said), "size": len(said)}]}
    ]
    draft = Draft(Decision("compact", 1, 1, detail={"replacement": shown, "at": 2}))
    (clean,), blobs = redacted_drafts([draft], {sha256_hex(said): said}, Redactor())
    store = open_store(place)
    store.create("s")
    store.append("s", [Draft(MessageRecord(Message("user", (Text("hi"),)))), draft])
    store.put_blob(said)
    store.close()
    assert main(["scrub", "s", "--yes", "--store", place]) == 0
    assert left(tmp_path) == []
    store = open_store(place, read_only=True)
    blobs |= {name: store.get_blob(name) for name in blob_names(next(store.read("s", first=2)))}
    bodies = [clean.body, next(store.read("s", first=2)).body]
    store.close()
    for body in bodies:
        assert isinstance(body, Decision)
        (medium,) = body.replacement[0].parts
        assert isinstance(medium, Media)
        assert b"key [redacted:" in blobs[medium.sha256]
        assert medium.size == len(blobs[medium.sha256])
        assert body.detail["at"] == 2


def test_an_id_tells_nothing_of_a_secret_in_the_title(place: str, tmp_path: Path) -> None:
    """A password in the name of a file and in the clear: ids are made of titles."""
    title = f"the DB password=hunter2x and {HUB}"
    with turnlog.open(store=place, settings=turnlog.Settings(title=title)) as session:
        assert session.id.startswith("the-db-password-redacted-password")
    with turnlog.open(
        store=place, settings=turnlog.Settings(title="the DB password=hunter2x", redact=Redactor(live=True))
    ) as session:
        assert "hunter2x" not in session.id
    home = RedactingStore(open_store(":memory:"), Redactor())
    assert "hunter2x" not in turnlog.open(store=home, settings=turnlog.Settings(title=title, redact=False)).id
    assert not [path for path in tmp_path.rglob("*") if "hunter2x" in path.name]
    with turnlog.open(store=place, settings=turnlog.Settings(title=title, redact=False)) as session:
        assert session.id.startswith("the-db-password-hunter2x")


def test_an_id_in_an_encrypted_store_tells_nothing_of_the_title(place: str) -> None:
    """What is encrypted as a title and stands in the clear as an id."""
    pytest.importorskip("cryptography")
    key = bytes(range(32))
    for redact in (True, False):
        with turnlog.open(
            store=place, settings=turnlog.Settings(title="sale of acme", key=key, redact=redact)
        ) as session:
            assert session.id.startswith("session-") and session.log.title == "sale of acme"
    with turnlog.open(
        store=place, settings=turnlog.Settings(title="sale of acme", key=key, save_history=False)
    ) as session:
        assert session.id.startswith("sale-of-acme"), "nothing of it is written"


def test_live_secrets_reach_no_log_line_and_no_event(caplog: pytest.LogCaptureFixture) -> None:
    """A log file that holds what the session shows the model alone."""
    caplog.set_level("INFO", logger="turnlog")
    told: list[turnlog.session.Event] = []
    own = Redactor({"door": r"\A[0-9]{4}\Z"}, live=True)

    def broken(event: turnlog.session.Event) -> None:
        told.append(event)
        raise ValueError(f"cannot take {NPM}")

    with turnlog.open("s", store=":memory:", target=TARGET, settings=turnlog.Settings(redact=own)) as session:
        session.on_event(broken)
        session.on_event(told.append)
        session.user("log in")
        call = ToolCall("c1", "login", {"a": 1})
        session.add(Message("assistant", (call,)))
        with suppress(ValueError), session.turn("x") as turn:
            turn.ask_approval(call, reason=f"with {HUB}")
            turn.approve(call, by="kim")
            session.tool_started(call)
            session.tool_finished(call, outcome="failed", reason="4711")
            raise ValueError(HUB)
        assert HUB in str([record.body for record in session.history()])
    lines = caplog.text + " ".join(event.text for event in told)
    assert "[redacted:github-token:" in lines and "[redacted:npm-token:" in lines and "[redacted:door]" in lines
    assert HUB not in lines and NPM not in lines and "4711" not in lines


def test_interrupted_answers_are_redacted(place: str, tmp_path: Path) -> None:
    """A key in the piece of an answer that had come."""
    chunks = [
        {"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"content": piece}}]}
        for piece in (NPM[:9], NPM[9:])
    ]

    def stream() -> Iterator[dict[str, object]]:
        yield from chunks
        raise OSError(f"lost {HUB}")

    with turnlog.open("s", store=place, target=TARGET, settings=ALL) as session:
        with pytest.raises(OSError, match="lost"):
            session.receive(stream())
        body = session.history()[-1].body
        assert isinstance(body, PartialAnswer) and "[redacted:npm-token:" in str(body.message)
    assert left(tmp_path) == []


def test_signed_reasoning_that_changed_is_not_sent() -> None:
    """A request that Anthropic refuses: its signature is that of other words."""
    target = turnlog.target("anthropic", "claude-sonnet-4-5")
    with turnlog.open("s", store=":memory:", target=target, settings=ALL) as session:
        session.user("hi")
        thought = Reasoning("anthropic", f"the key is {NPM}", signature="sig" * 20)
        session.add(Message("assistant", (thought, Text("done"))))
        session.user("and?")
        made = session.request()
        assert "sig" * 20 not in str(made.body) and any(edit.kind == "reasoning" for edit in made.edits)
        assert isinstance(made.edits[0], Edit)
        assert "sig" * 20 in said(session)


@pytest.mark.slow
def test_a_store_that_redacts_is_a_store() -> None:
    """A promise of stores that is broken on the way through."""
    check_store(lambda: RedactingStore(open_store(":memory:"), Redactor()))
    check_store(lambda: RedactingStore(open_store(":memory:"), Redactor(live=False)))


def test_counts_are_of_the_redacted_text() -> None:
    """A message's size that is that of another text."""
    with turnlog.open("s", store=":memory:", target=TARGET, settings=ALL) as session:
        record = session.user(f"keys {SECRETS['rsa key'][0]}")
        assert isinstance(record.body, MessageRecord) and record.body.count is None
        assert session.window.tokens < 100


@pytest.mark.parametrize("given", [(), ("--unredacted",)])
def test_imports_are_redacted(
    given: tuple[str, ...], place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A transcript's keys in the store; or an import that is not the same the second time."""
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    path = outside / "a.json"
    path.write_text(json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": f"use {NPM}"}]}))
    assert main(["import", str(path), "--store", place, *given]) == 0
    assert bool(left(tmp_path)) == bool(given)
    assert ("1 secret redacted" in capsys.readouterr().out) == (not given)
    assert main(["import", str(path), "--store", place, *given]) == 0
    assert "unchanged" in capsys.readouterr().out


@pytest.mark.skipif(os.name != "posix", reason="file modes are those of POSIX")
@pytest.mark.parametrize("umask", [0, 0o022])
def test_files_are_their_owners_alone(umask: int, place: str, tmp_path: Path) -> None:
    """A log, a blob, a lock or a write-ahead log that others on the machine can read."""
    before = os.umask(umask)
    try:
        nested = place.replace(str(tmp_path), str(tmp_path / "made"))
        for durability in ("normal", "full"):
            store: Store = open_store(nested, durability=durability)  # type: ignore[arg-type]
            with turnlog.open(durability, store=store) as session:
                session.user("hello")
                session.media(b"\x00" * 100_000, "image/png")
                session.media(b"\x00" * 100, "image/png")
                session.fork(f"{durability}-2").close()
                store.rewrite(durability, {})
                session.user("again")
                paths = list((tmp_path / "made").rglob("*"))
                assert len(paths) > 3
                modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [tmp_path / "made", *paths]}
                wanted = {path.name: 0o700 if path.is_dir() else 0o600 for path in [tmp_path / "made", *paths]}
                assert modes == wanted
            store.close()
    finally:
        os.umask(before)


def test_show_says_what_was_redacted(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A reader who cannot tell a mark of ours from a text that says the same."""
    with turnlog.open("s", store=place) as session:
        session.user(f"{NPM} and {NPM}")
    assert main(["show", "s", "--records", "--store", place]) == 0
    assert "[redacted]    2 npm-token" in capsys.readouterr().out


def test_records_say_it_in_their_bytes() -> None:
    """A count that is lost when a log is copied."""
    record = Record(1, "", MessageRecord(Message("user", (Text("x"),))), redacted={"jwt": 2})
    store = open_store(":memory:")
    store.create("s")
    kept = store.append("s", [Draft(record.body, redacted=record.redacted)])[0]
    copied = store.append("s", [Draft(kept.body, kept.time, kept.raw)])[0]
    assert kept.redacted == record.redacted and next(r.redacted for r in store.read("s")) == {"jwt": 2}
    assert copied.n == 2
