"""`--key`, `pack`, `copy` and `rekey`: what they say, and that they do it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import turnlog as library
from navigating import png
from turnlog.providers import PROVIDERS
from turnlog.stores import new_key


@pytest.fixture
def keys(tmp_path: Path) -> tuple[str, str]:
    """Two keys in files, as `--key` names them."""
    for name in ("one", "two"):
        (tmp_path / name).write_text(new_key())
    return "file:one", "file:two"


def test_pack(turnlog: Any, transcript: Path) -> None:
    """A session that is not packed, packed though it is young, or packed twice."""
    turnlog("import", str(transcript))
    before = turnlog("export", turnlog("ls", "--json").rows[0]["id"], "--format", "jsonl").out
    session = turnlog("ls", "--json").rows[0]["id"]
    assert (turnlog("pack", "--older-than", "99999w").err, turnlog("pack").code) == ("nothing to pack\n", 2)
    assert "is not an age" in turnlog("pack", "--older-than", "soon").err
    assert turnlog("pack", session, "--older-than", "1d").code == 2
    assert turnlog("pack", "nobody").code == 4
    ended = turnlog("pack", session)
    assert (ended.code, ended.err.startswith("packed ")) == (0, True)
    assert turnlog("pack", session).err == "nothing to pack\n"
    assert turnlog("export", session, "--format", "jsonl").out == before
    assert turnlog("verify").code == 0


def test_pack_the_old(turnlog: Any, transcript: Path) -> None:
    """Sessions that were written to just now and are packed, or old ones that are not."""
    turnlog("import", str(transcript))
    assert turnlog("pack", "--older-than", "1h").err.startswith("packed ")  # the demo's records are of another year


@pytest.mark.parametrize("key", ["none", "file:one"])
def test_lost_records_stay_known(turnlog: Any, transcript: Path, keys: tuple[str, str], key: str) -> None:
    """Records that were acknowledged and are gone from the end of a log: the next command that may write set the rest
    aside, `salvage` said that nothing was missing, and `verify` found nothing any more."""
    where = ("--store", "files:kept", "--key", key)
    turnlog("import", str(transcript), *where)
    session, last = turnlog("ls", "--json", *where).rows[0]["id"], turnlog("ls", "--json", *where).rows[0]["records"]
    log = Path("kept", "sessions", f"{session}.jsonl")
    log.write_bytes(log.read_bytes()[:-10])
    assert turnlog("ls", *where).code == 0
    shown = turnlog("show", session, *where, "--records")
    assert (shown.code, f"{session}, record {last}: " in shown.err) == (5, True)
    gone = f"{session}, record {last}: record {last} was written and is missing; "
    for words in (("search", "the"), ("search", "the"), ("rename", session, "t")):
        assert turnlog(*words, *where).err.startswith(gone)
    ended = turnlog("salvage", session, "new", *where)
    assert (ended.code, ended.err.splitlines()[-1]) == (
        *(0, f"session new has {last - 1} of {last} records of {session}"),
    )
    assert gone in turnlog("verify", *where).out
    with pytest.raises(library.StoreError, match=f"{session}.*record {last}.*turnlog salvage {session} NEW"):
        library.open(session, store=where[1], settings=library.load_settings(key=key))
    with library.open("new", store=where[1], settings=library.load_settings(key=key)) as opened:
        assert opened.user("goes on").n == last + 1
    assert turnlog("rm", session, "--yes", *where).code == 0
    assert (turnlog("verify", *where).code, turnlog("verify", *where).out) == (0, "")


@pytest.mark.parametrize("key", ["none", "file:one"])
def test_what_is_set_aside_is_said(turnlog: Any, transcript: Path, keys: tuple[str, str], key: str) -> None:
    """An unfinished append that the next command that may write moves out of the log, and tells nobody."""
    where = ("--store", "files:kept", "--key", key)
    turnlog("import", str(transcript), *where)
    session = turnlog("ls", "--json", *where).rows[0]["id"]
    with Path("kept", "sessions", f"{session}.jsonl").open("ab") as log:
        log.write(b'{"sum":"123')
    for looked in (turnlog("ls", *where), turnlog("show", session, *where, "--records")):
        assert (looked.code, looked.err) == (0, "")
    assert "11 bytes of an unfinished append" in turnlog("verify", *where).out
    assert "11 bytes of an unfinished append" in turnlog("search", "the", *where).err
    assert turnlog("verify", *where).code == 0


def test_keys(turnlog: Any, transcript: Path, keys: tuple[str, str], tmp_path: Path, monkeypatch: Any) -> None:
    """A key that is not asked for, not used, or from the one place and not the other."""
    one, two = keys
    assert turnlog("import", str(transcript), "--key", one).code == 0
    listed = turnlog("ls", "--key", one).out
    for words, said in (
        (("ls",), "--key"),
        (("--key", two, "ls"), "does not open"),
        (("ls", "--key", "x"), "file:PATH"),
    ):
        ended = turnlog(*words)
        assert (ended.code in (2, 3), ended.out, said in ended.err) == (True, "", True)
    assert "standard input is not a terminal" in turnlog("ls", "--key", "ask").err
    monkeypatch.setenv("TURNLOG_KEY", one)
    assert turnlog("ls").out == listed
    assert turnlog("search", "the", "--json").rows
    assert turnlog("rekey", "--new-key", two).code == 0
    assert turnlog("ls").code == 3
    monkeypatch.setenv("TURNLOG_KEY", two)
    assert (turnlog("ls").out, turnlog("verify").code) == (listed, 0)


@pytest.mark.parametrize(
    "words",
    [
        *(["rm", "s", "--yes"], ["rename", "s", "new"], ["fork", "s", "t"], ["keep", "s"], ["gc", "--max-sessions=1"]),
        *(["rewind", "s"], ["compact", "s"], ["undo", "s"], ["scrub", "s", "--yes"], ["doctor", "s", "--fix"]),
        *(["pack", "--older-than", "1d"], ["pack", "s"], ["copy", "other.db"], ["rekey", "--new-key", "env:NEW"]),
    ],
    ids=" ".join,
)
def test_a_store_that_is_not_there_is_made_by_imports_alone(turnlog: Any, tmp_path: Path, words: list[str]) -> None:
    """A mistyped name of a store would be answered by "there is no session", and leave an empty store behind."""
    key = ("--key", "env:OLD") if words[0] == "rekey" else ()
    for store in ("typo/log.db", "files:typo"):
        ended = turnlog(*words, "--store", store, *key)
        assert "there is no store at" in ended.err
        assert ended.code == (0 if words[0] == "gc" else 3)
    assert [*tmp_path.iterdir()] == []


def test_copy(turnlog: Any, transcript: Path, keys: tuple[str, str], tmp_path: Path) -> None:
    """A copy that is not encrypted, or not the same."""
    turnlog("import", str(transcript))
    session = turnlog("ls", "--json").rows[0]["id"]
    whole = turnlog("export", session, "--format", "jsonl").out
    assert turnlog("copy", "files:locked", "--new-key", keys[0]).code == 0
    refused = turnlog("ls", "--store", "files:locked")
    assert refused.code == 3 and "on the command line with --key WHERE or TURNLOG_KEY" in refused.err
    there = ("--store", "files:locked", "--key", keys[0])
    assert turnlog("export", session, "--format", "jsonl", *there).out == whole
    assert turnlog("copy", "back.db", *there).code == 0
    assert turnlog("export", session, "--format", "jsonl", "--store", "back.db").out == whole
    assert "is not encrypted" in turnlog("ls", "--store", "back.db", "--key", keys[0]).err
    assert turnlog("rekey", "--new-key", keys[1], "--store", "back.db").code == 2


def test_commands_go_on_past_damage(turnlog: Any) -> None:
    """A damaged record that stops a command, passes in silence or is blamed on another; a healthy session missed."""
    for name in ("a", "b"):
        with library.open(name, store="log.db") as session:
            for n in range(1, 6):
                session.user(f"{name} says {n}")
    with closing(sqlite3.connect("log.db", isolation_level=None)) as db:
        db.execute("update records set record = replace(record, 'a says 3', 'a says 9')")
    told, advice = "a, record 3: it does not match its checksum", "`turnlog salvage a NEW`"
    for words, seen in (
        (("show", "a"), ["a says 2", "a says 4"]),
        (("export", "a", "--format", "markdown"), ["a says 2", "a says 4"]),
        (("scan",), []),
        (("copy", "copy.db"), []),
        (("doctor", "a"), []),
    ):
        ended = turnlog(*words)
        assert ended.code in (1, 5) and told in ended.err and advice in ended.err, (words, ended)
        assert all(text in ended.out for text in seen) and "a says 9" not in ended.out, (words, ended)
    assert "b says 5" in turnlog("show", "b", "--store", "copy.db", "--records").out
    assert turnlog("verify").code == 1
    assert turnlog("search", "says", "--json").rows != []
    ended = turnlog("salvage", "a", "c")
    assert (ended.code, ended.err.splitlines()) == (0, [told, "session c has 4 of 5 records of a"])
    assert turnlog("show", "c", "--records").code == 0


def test_commands_go_on_past_damaged_media(turnlog: Any, tmp_path: Path) -> None:
    """One damaged image that makes a session unusable, or that a copy drops in silence; advice to salvage a session
    whose records are whole."""
    with library.open("s", store="log.db", target=library.target("openai-chat", "gpt-4o")) as session:
        media = session.media(png(1) + bytes(70_000), "image/png")
        session.extend([library.Message("user", (media,)), library.Message("assistant", (library.Text("a dot"),))])
        session.user("And now?")
    file = tmp_path / "log.db-blobs" / media.sha256
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    for words in ("context s", "why s", "rewind s --turns 1", "rewind s --undo", "compact s", "salvage s new"):
        assert turnlog(*words.split()).code == 0, words
    for session_id in ("s", "new"):
        for provider in PROVIDERS:
            ended = turnlog("request", session_id, "--to", provider)
            assert (ended.code, "its bytes are missing" in ended.out) == (0, True), ended
            assert f"blob {media.sha256} in " in ended.err and "(record 2)" in ended.err
    ended = turnlog("verify", "s", "--json")
    assert (ended.code, [(row["session"], row["record"], row["blobs"]) for row in ended.rows]) == (
        *(1, [("s", 2, [media.sha256])]),
    )
    ended = turnlog("copy", "copy.db")
    assert (ended.code, "salvage" in ended.err) == (5, False)
    for session_id in ("s", "new"):
        assert f"{session_id}, record 2: not all of its media was copied: blob {media.sha256} in " in ended.err
