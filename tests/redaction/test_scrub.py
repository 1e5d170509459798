"""Secrets in logs that are there already: found, taken out for good, and everything else as it was."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from planted import EXACT, SECRETS, bodies

import turnlog
from turnlog import Message, Text
from turnlog.cli import main
from turnlog.errors import BlobMissing, CorruptRecord, SessionBusy, SessionNotFound, StoreError
from turnlog.log.records import FileChange, MessageRecord, Note, SummaryRecord, UnknownRecord
from turnlog.log.store import Draft, Store
from turnlog.redaction import Redactor
from turnlog.redaction.scrub import Leak, scan, scrub
from turnlog.redaction.store import cut_title
from turnlog.stores import FilesStore, SqliteStore, open_store
from turnlog.stores.jsonl.rewrite import finish_rewrite
from turnlog.testing import crash
from vanishing import Meanwhile

NPM, HUB = SECRETS["npm"][0], SECRETS["github classic"][0]


@pytest.fixture(params=["store.db", "files:folder"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store of each kind on disk can be made."""
    kind, _, name = request.param.rpartition(":")
    return f"{kind}:{tmp_path / name}" if kind else str(tmp_path / name)


def said(text: str) -> Draft:
    """A user's message, straight into the store."""
    return Draft(MessageRecord(Message("user", (Text(text),))))


def left(folder: Path, *secrets: str) -> list[tuple[str, str]]:
    """Where the files of a folder hold secrets, or words of them as an index has them."""
    held = {path: path.read_bytes().lower() for path in folder.rglob("*") if path.is_file()}
    assert held, "there is nothing to look through"
    words = {word.lower() for secret in secrets for word in re.split(r"[^A-Za-z0-9]+", secret) if len(word) > 8}
    return [(path.name, word) for path, data in held.items() for word in words if word.encode() in data]


def leaky(place: str) -> Store:
    """A store in which two sessions, a fork of one and a blob hold secrets, indexed and in the log's log."""
    store = open_store(place)
    store.create("s", title=f"about {NPM}")
    blob, other = store.put_blob(f"TOKEN={HUB}\n".encode()), store.put_blob(f"{NPM}\n".encode() * 9000)
    store.append("s", [said("hello"), said(f"key {NPM} and {HUB}"), said("thanks")])
    store.append(
        "s", [Draft(FileChange(".env", "modified", blob, other)), Draft(Note("n", data={"password": "hunter2hunter2"}))]
    )
    store.fork("s", "fork", at=4)
    store.append("fork", [said(f"again {HUB}")])
    store.create("else")
    store.append("else", [said("nothing here"), said(f"but {NPM}")])
    store.search("key", session="s")  # type: ignore[attr-defined]
    return store


@pytest.mark.slow
def test_scan_says_where_and_never_what(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A leak that is overlooked, or one that the scan itself prints."""
    leaky(place).close()
    store = open_store(place, read_only=True)
    found = set(scan(store, "s"))
    assert found == {
        Leak("s", 0, "npm-token", 1), Leak("s", 2, "npm-token", 1), Leak("s", 2, "github-token", 1),
        Leak("s", 4, "github-token", 1), Leak("s", 4, "npm-token", 9000), Leak("s", 5, "password", 1),
    }  # fmt: skip
    store.close()
    assert main(["scan", "--store", place]) == 1
    printed = capsys.readouterr()
    assert NPM not in printed.out + printed.err and HUB not in printed.out
    assert "else, record 2: 1 npm-token" in printed.out and "s, title: 1 npm-token" in printed.out
    assert main(["scan", "s", "--json", "--store", place]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {Leak(**row) for row in rows} == found
    assert main(["scan", "nobody", "--store", place]) == 4
    assert main(["scan", "--store", place + "-none"]) == 0


@pytest.mark.parametrize("lead", [0, 20, 50, 70, 76])
def test_a_title_holds_no_half_of_a_secret(place: str, lead: int, tmp_path: Path) -> None:
    """Most of a key in the listing, and in the store for good: titles are cut off, and nobody can tell half of a key
    from any word. Neither an import nor a scrub took it out, be it one of a title that was stored before."""
    text = f"{'x' * lead} {HUB} {'and so on ' * 9}".strip()
    file = tmp_path / "in.json"
    file.write_text(json.dumps({"session_id": "new", "request": {"model": "gpt-4o", "messages": [
        {"role": "user", "content": text}, {"role": "user", "content": f"{NPM} is another"}]}}))  # fmt: skip
    assert main(["import", str(file), "--store", place]) == 0
    store = open_store(place)
    store.create("old", title=cut_title(text))
    store.append("old", [said(text), said(f"{NPM} is another")])
    store.create("known", title=cut_title(text))
    store.append("known", [said(Redactor().text(text)[0])])
    store.create("mine", title="https://example.com/" + "y" * 59 + "…")
    store.append("mine", [said("https://example.com/" + "y" * 99), said(f"{NPM} is another")])
    cut = HUB[:2] in cut_title(text)
    assert {leak.session for leak in scan(store) if leak.record == 0} == ({"old", "known"} if cut else set())
    for session in ("old", "known", "mine"):
        scrub(store, session)
    titles = {info.id: info.title for info in store.sessions()}
    assert titles.pop("mine") == "https://example.com/" + "y" * 59 + "…"
    assert all(Redactor().text(text)[0].startswith(title.removesuffix("…")) for title in titles.values()), titles
    assert HUB[:5] not in "".join(titles.values())
    assert list(scan(store)) == [] and store.verify() == []
    store.close()


@pytest.mark.slow
def test_scrub_leaves_nothing_and_changes_nothing_else(place: str, tmp_path: Path) -> None:
    """A secret that is left in a log, an index, free pages or a blob; or a record that had none and changed."""
    store = leaky(place)
    before = {session: [record.raw for record in store.read(session)] for session in ("s", "fork", "else")}
    done = scrub(store, "s")
    assert (done.records, done.redacted) == ((2, 4, 5), {"npm-token": 9002, "github-token": 2, "password": 1})
    assert done.kept_blobs == () and store.verify() == []
    after = list(store.read("s"))
    assert [record.raw for record in after if record.n in (1, 3)] == [before["s"][0], before["s"][2]]
    assert after[1].redacted == {"npm-token": 1, "github-token": 1}
    assert isinstance(note := after[-1].body, Note) and note.topic == "scrubbed"
    assert note.data == {"records": [2, 4, 5], "redacted": done.redacted, "files": sorted(note.data["files"])}
    assert len(note.data["files"]) == 2
    assert [record.raw for record in store.read("else")] == before["else"]
    assert list(scan(store, "s")) == [] and {leak.record for leak in scan(store, "fork")} == {5}
    scrub(store, "fork")
    scrub(store, "else")
    assert left(tmp_path, NPM, HUB, "hunter2hunter2") == []
    assert store.search("thanks")[0].record == 3 and not store.search(f'"{NPM[4:]}"')  # type: ignore[attr-defined]
    assert store.append("s", [said("go on")])[0].n == 7
    store.close()
    store = open_store(place)
    assert left(tmp_path, NPM, HUB, "hunter2hunter2") == [] and store.verify() == []
    store.close()


def test_every_place_of_a_record_is_scrubbed(place: str, tmp_path: Path) -> None:
    """A place that recording redacts and scrubbing does not, or an id that scrubbing changed."""
    store = open_store(place)
    store.create("s")
    texts = [text for text, _ in SECRETS.values()]
    store.append("s", [Draft(body) for body in bodies(texts)])
    exact = {value: sum((r.raw or b"").count(value.encode()) for r in store.read("s")) for value in EXACT.values()}
    scrub(store, "s")
    again = {value: sum((r.raw or b"").count(value.encode()) for r in store.read("s")) for value in EXACT.values()}
    assert again == exact and list(scan(store)) == []
    assert (
        left(tmp_path, *(secret for _, secret in SECRETS.values() if "\n" not in secret and "_key" not in secret)) == []
    )
    store.close()


def test_records_of_a_newer_version_are_scrubbed(place: str, tmp_path: Path) -> None:
    """A kind or a field that this version does not know, with a secret in it."""
    store = open_store(place)
    store.create("s")
    kind = b'{"v":9,"n":1,"t":"2030-01-01T00:00:00.000Z","body":{"kind":"hologram","says":"%s"}}' % NPM.encode()
    field = b'{"v":9,"n":2,"t":"2030-01-01T00:00:00.000Z","body":{"kind":"note","topic":"x"},"new":"%s"}' % HUB.encode()
    store.append("s", [Draft(UnknownRecord("hologram"), raw=kind), Draft(Note("x"), raw=field)])
    scrub(store, "s")
    first, second, _ = store.read("s")
    assert isinstance(first.body, UnknownRecord) and b"[redacted:npm-token:" in (first.raw or b"")
    assert second.body == Note("x") and left(tmp_path, NPM, HUB) == []
    store.close()


@pytest.mark.slow
def test_scrubbing_twice_changes_nothing(place: str) -> None:
    """A note for nothing, or marks that are taken for secrets."""
    store = leaky(place)
    scrub(store, "s")
    before = [record.raw for record in store.read("s")]
    done = scrub(store, "s")
    assert (done.records, done.redacted) == ((), {}) and [record.raw for record in store.read("s")] == before
    with pytest.raises(SessionNotFound):
        scrub(store, "nobody")
    store.close()


@pytest.mark.slow
def test_files_that_others_name_stay(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A blob that is deleted under another session."""
    store = leaky(place)
    blob = store.put_blob(f"TOKEN={HUB}\n".encode())
    store.append("else", [Draft(FileChange("b", "created", after=blob))])
    store.close()
    assert main(["scrub", "s", "--yes", "--store", place]) == 1
    assert f"file {blob[:12]} contains secrets and was kept" in capsys.readouterr().err
    assert main(["scrub", "else", "--yes", "--store", place]) == 0
    store = open_store(place)
    with pytest.raises(BlobMissing):
        store.get_blob(blob)
    store.close()
    assert main(["verify", "--store", place]) == 0


@pytest.mark.slow
def test_the_command_asks(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Records that are rewritten without a word."""
    leaky(place).close()
    assert main(["scrub", "s", "--store", place]) == 2
    assert "--yes" in capsys.readouterr().err
    assert main(["scan", "s", "--store", place]) == 1
    assert main(["scrub", "s", "--yes", "--store", place]) == 0
    assert "scrubbed 3 records of s: 2 github-token, 9002 npm-token, 1 password" in capsys.readouterr().err
    assert main(["scan", "s", "--store", place]) == 0


def test_a_transcript_scrubbed_and_imported_again_is_known(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A transcript that becomes a second session because its first import was scrubbed."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": f"use {NPM}"}]}))
    assert main(["import", str(path), "--unredacted", "--store", place]) == 0
    session = open_store(place).sessions()[0].id
    assert main(["scrub", session, "--yes", "--store", place]) == 0
    capsys.readouterr()
    main(["import", str(path), "--store", place])
    assert "diverged" not in capsys.readouterr().out


def test_damage_is_not_laundered_sqlite(tmp_path: Path) -> None:
    """A damaged record that verifies after a scrub: nobody would ever know."""
    place = tmp_path / "s.db"
    leaky(str(place)).close()
    store = SqliteStore(place)
    with store._database.writing() as db:
        db.execute("update records set record = replace(record, 'thanks', 'thanxx') where record like '%thanks%'")
    with pytest.raises(CorruptRecord):
        store.rewrite("s", {1: next(iter(store.read("s", last=1))).raw or b""})
    assert any("checksum" in problem.what for problem in store.verify())
    store.close()


def test_damage_is_not_laundered_files(tmp_path: Path) -> None:
    """The same in a folder of files."""
    leaky(f"files:{tmp_path / 'f'}").close()
    log = tmp_path / "f" / "sessions" / "s.jsonl"
    log.write_bytes(log.read_bytes().replace(b"thanks", b"thanxx"))
    store = FilesStore(tmp_path / "f")
    with pytest.raises(CorruptRecord):
        store.rewrite("s", {1: next(iter(store.read("s", last=1))).raw or b""})
    assert any("checksum" in problem.what for problem in store.verify())
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("stop", range(6))
def test_a_killed_rewrite_of_files_is_carried_out(stop: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process killed half-way through: logs that no longer hang together."""
    store = leaky(f"files:{tmp_path / 'f'}")
    calls = 0
    real = os.ftruncate

    def dying(handle: int, size: int) -> None:
        nonlocal calls
        calls += 1
        if calls > stop:
            raise KeyboardInterrupt
        real(handle, size)
        if calls == stop:
            raise KeyboardInterrupt

    monkeypatch.setattr("turnlog.stores.jsonl.rewrite.os", SimpleNamespace(**{**vars(os), "ftruncate": dying}))
    try:
        scrub(store, "s")
    except KeyboardInterrupt:
        pass
    monkeypatch.undo()
    again = open_store(f"files:{tmp_path / 'f'}")
    assert again.verify() == [] and not (tmp_path / "f" / "rewrite.json").exists()
    scrub(again, "s")
    assert list(scan(again, "s")) == [] and again.verify() == []
    finish_rewrite(again._folder)  # type: ignore[attr-defined]
    again.close()


class Killed(BaseException):
    """What no code catches: the nearest to a process that is gone."""


@pytest.mark.slow
@pytest.mark.parametrize("end", [Killed, KeyboardInterrupt])
def test_a_file_goes_though_its_scrub_was_ended(
    place: str, end: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file full of secrets that stays for good, where `scan` finds nothing: its record no longer named it, and the
    note that did never came. Or records that are rewritten without a word, where somebody lost patience."""
    store = open_store(place)
    store.create("s")
    name = store.put_blob(f"{NPM}\n".encode() * 3000)
    store.append("s", [Draft(FileChange(".env", "created", after=name))])
    real = store.rewrite

    def ended(*given: Any, **more: Any) -> None:
        real(*given, **more)
        raise end

    monkeypatch.setattr(store, "rewrite", ended)
    with pytest.raises(end):
        scrub(store, "s")
    monkeypatch.undo()
    assert list(scan(store)) == []
    assert isinstance(list(store.read("s"))[-1].body, Note) is (end is KeyboardInterrupt)
    if end is Killed:  # nobody can tell it from one whose record is on its way, but by its age
        os.utime(next(tmp_path.rglob(name)), (0, 0))
    scrub(store, "s")
    with pytest.raises(BlobMissing):
        store.get_blob(name)
    assert left(tmp_path, NPM) == [] and store.verify() == []
    store.close()


@pytest.mark.slow
def test_a_reader_in_the_way_is_said(tmp_path: Path) -> None:
    """Old bytes in the write-ahead log that nobody hears of."""
    place = tmp_path / "s.db"
    store = leaky(str(place))
    other = SqliteStore(place, read_only=True)
    with other._database.reading() as db:
        db.execute("begin")
        db.execute("select count(*) from records").fetchone()
        with pytest.raises(StoreError, match="scrub"):
            scrub(store, "s")
        db.execute("commit")
    assert list(scan(store, "s")) == [] and list(store.read("s"))[-1].body.topic == "scrubbed"  # type: ignore[union-attr]
    scrub(store, "s")
    scrub(store, "fork")
    scrub(store, "else")
    assert left(tmp_path, NPM, HUB) == []
    other.close()
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["s", "fork"])
def test_a_session_that_is_in_use_is_not_scrubbed(place: str, name: str) -> None:
    """Records that change beneath whoever has the session open, or a fork of it: the next one does not fit."""
    store, other = leaky(place), open_store(place)
    session = turnlog.open(name, store=store)
    session.user("before")
    before = [list(other.read(one)) for one in ("s", "fork")]
    with pytest.raises(SessionBusy, match=f"'{name}' is in use: this process has it open already"):
        scrub(other, "s")
    assert [list(other.read(one)) for one in ("s", "fork")] == before
    crash(session)
    assert scrub(other, "s").records
    with turnlog.open(name, store=store) as again:
        again.user("after")
    assert other.verify() == []
    store.close()
    other.close()


def test_a_session_that_is_deleted_meanwhile_is_no_error() -> None:
    """A scan of all sessions, or a scrub that looks which of them name a file, ended by somebody who deletes one."""
    store = Meanwhile()
    store.create("s")
    store.append("s", [Draft(FileChange(".env", "modified", store.put_blob(f"TOKEN={HUB}\n".encode())))])
    store.create("gone")
    assert {leak.session for leak in scan(store)} == {"s"}
    store.create("gone")
    assert scrub(store, "s").redacted == {"github-token": 1}
    assert [info.id for info in store.sessions()] == ["s"]
    store.create("gone")
    with pytest.raises(SessionNotFound):
        list(scan(store, "gone"))


def test_a_session_that_was_forked_back_from_its_fork_is_scrubbed(place: str) -> None:
    """Each is the parent of the other: a scrub that looks for the first of them never ends. Or it passes by what the
    other tells of the secret, which nobody finds there once the whole is gone."""
    store = open_store(place)
    store.create("a")
    store.append("a", [said(f"key {NPM}")])
    store.fork("a", "b")
    store.delete("a")
    store.fork("b", "a")
    store.append("b", [Draft(SummaryRecord("k", "made", f"the key began with {NPM[:20]}"))])
    assert scrub(store, "a").redacted == {"npm-token": 1}
    held = [record.body for name in "ab" for record in store.read(name)]
    assert not any(NPM[:12] in str(body) for body in held)
    assert store.verify() == []
    store.close()
