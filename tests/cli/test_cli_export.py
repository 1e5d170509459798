"""`turnlog export`: what goes out comes back equal, and cannot do harm where it is shown."""

from __future__ import annotations

import base64
import json
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import turnlog
from real_transcripts import imported
from turnlog._platform.units import size_text
from turnlog.errors import ImportFailed, InputError
from turnlog.export import FORMATS, save
from turnlog.importers import Imported, read_file
from turnlog.importers.sync.session import sync_session
from turnlog.log.messages import Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult, Unknown, sha256_hex
from turnlog.log.records import (
    Body,
    Configuration,
    Decision,
    FileChange,
    MessageRecord,
    Note,
    PartialAnswer,
    UnknownRecord,
    UsageRecord,
)
from turnlog.log.store import Draft, Problem, Store
from turnlog.log.usage import Usage as Billed
from turnlog.models.target import target
from turnlog.providers import PROVIDERS
from turnlog.requests.standalone import check
from turnlog.session.open import open as new_session
from turnlog.stores import MemoryStore, open_store
from turnlog.stores.records import blob_names
from turnlog.testing.histories import History
from turnlog.testing.hostile import hostile_session
from turnlog.testing.strategies import damaged_histories
from turnlog.view.consistency import inconsistencies
from turnlog.view.tool_calls import calls_of
from turnlog.view.turns import turns_of
from turnlog.workspace.diff import net_changes

PICTURE = b"\x89PNG picture"
NEWER = b'{"v":9,"n":1,"t":"2030-01-01T00:00:00.000Z","body":{"kind":"dream","of":["sheep",1e3],"\\ud800":null}}'


def exported(store: Store, session_id: str, form: str) -> tuple[str, list[Problem]]:
    """A session in a format, and what could not be read of it."""
    problems: list[Problem] = []
    return b"".join(FORMATS[form](store, session_id, problems)).decode("utf-8"), problems


def read_back(text: str) -> Imported:
    """What importing an export gives."""
    (found,) = read_file(text.encode("utf-8"))
    return found


def a_store() -> MemoryStore:
    """A session with a record of many kinds, one of them from a newer version."""
    store = MemoryStore()
    picture = Media("image", mime="image/png", sha256=store.put_blob(PICTURE), size=len(PICTURE))
    call = ToolCall("c1", "look", {"at": float("nan")})
    bodies = [
        Configuration(provider="anthropic", model="claude-sonnet-4-5", settings={"max_tokens": 5}),
        MessageRecord(Message("system", (Text("Be brief.\nAlways."),))),
        MessageRecord(Message("user", (Text("half a pair \ud83d"), picture))),
        MessageRecord(Message("assistant", (Reasoning("anthropic", "hm"), call)), model="claude-sonnet-4-5"),
        MessageRecord(Message("user", (ToolResult("c1", "look", (Text("a cat"), picture), "failed"),))),
        PartialAnswer(Message("assistant", (Text("It is"),)), "the line broke", (ToolCall("c2", "look", raw='{"a'),)),
        UsageRecord("anthropic", "claude-sonnet-4-5", Billed(input=10, output=2)),
        FileChange("cat.txt", "created", after=store.put_blob(b"meow")),
        Decision("clear", first=1, last=2, why="enough"),
        Note("idea", "keep it", {"n": [1, None]}),
        MessageRecord(Message("user", (Opaque("google", "thing", {"x": 1}), Unknown("smell", {"type": "smell"})))),
    ]
    drafts = [Draft(body, f"2025-01-01T00:00:{n:02d}.000Z") for n, body in enumerate(bodies, 2)]
    store.create("cats", title="Cats & <b>dogs</b>", created="2025-01-01T00:00:00.000Z")
    store.append("cats", [Draft(Note("unused"), raw=NEWER), *drafts])
    return store


def assert_same(store: Store, session_id: str) -> None:
    """Exported and imported, a session has the same bytes in every record, and the same media."""
    for form in ("jsonl", "json"):
        text, problems = exported(store, session_id, form)
        assert problems == []
        back, other = read_back(text), MemoryStore()
        assert back.warnings == ()
        kept = sync_session(other, back)
        if form == "jsonl":
            assert [record.raw for record in other.read(kept.session)] == [r.raw for r in store.read(session_id)]
        assert whole(other, kept.session) == whole(store, session_id)
        assert other.verify() == []


def whole(store: Store, session_id: str) -> list[Any]:
    """A session as every fold over it sees it: what it is called, whose it is, its records and its files."""
    info = store.info(session_id)
    records = list(store.read(session_id))
    written = [json.loads(record.raw or b"") for record in records]
    said = [replace(record, raw=None) for record in records]
    blobs = {name: store.get_blob(name) for record in records for name in blob_names(record)}
    folds = [inconsistencies(said), calls_of(said), turns_of(said), net_changes(said)]
    facts = [said, written, blobs, *folds, store.usage(session_id)]
    return [info.id, info.title, info.parent, info.created, info.records, info.messages, *map(repr, facts)]


def test_every_kind_comes_back() -> None:
    """A kind of record, a field or a medium that the export loses or changes fails here."""
    assert_same(a_store(), "cats")


@pytest.mark.slow
@given(damaged_histories())
def test_any_history_comes_back(history: History) -> None:
    """The same, for whatever conversations hold."""
    store = MemoryStore()
    for data in history.blobs.values():
        store.put_blob(data)
    store.create("any")
    store.append("any", [Draft(MessageRecord(message)) for message in history.messages])
    assert_same(store, "any")


def test_every_kind_there_is_comes_back() -> None:
    """The same for a session with all kinds of record and part, hostile texts in each, that belongs to another and had
    secrets replaced."""
    store = MemoryStore()
    hostile_session(store, "every", 20_000)
    kinds = {type(record.body) for record in store.read("every")}
    assert {*get_args(Body)} - kinds == {UnknownRecord}
    store.create("child", title="Its child", parent="every")
    drafts = [Draft(record.body, record.time, redacted={"aws": 2}) for record in store.read("every")]
    store.append("child", drafts)
    assert_same(store, "every")
    assert_same(store, "child")
    assert [record.redacted for record in store.read("child")][:1] == [{"aws": 2}]


def test_what_sessions_really_hold_comes_back() -> None:
    """A session that was lived: turns, a decision that compacted it, files, bills."""
    with turnlog.open("lived", store=MemoryStore(), target=turnlog.target("openai-chat", "gpt-4o")) as session:
        for n in range(4):
            with session.turn(f"Do part {n}. " * 50):
                session.assistant(f"Part {n} is done. " * 50)
                session.files("/src").record("a.py", b"one\n" * n, b"one\n" * n + b"two\n")
        assert session.compact(keep=1).decisions
        assert_same(session._store, "lived")


@pytest.mark.slow
def test_real_sessions_come_back(shared: Path) -> None:
    """The same for what agents really wrote."""
    seen = 0
    for n, (_, session) in enumerate(imported(shared)):
        if n % 10 == 0 and sum(len(str(draft.body)) for draft in session.drafts) < 300_000:
            store = MemoryStore()
            assert_same(store, sync_session(store, session).session)
            seen += 1
    assert seen > 20


def test_json_that_was_laid_out_anew_is_the_same() -> None:
    """Another program may have read and written the JSON: what it says is imported all the same."""
    text = exported(a_store(), "cats", "json")[0]
    plain = read_back(text)
    for indent in (None, 2):
        again = read_back(json.dumps(json.loads(text), indent=indent))
        assert [repr(draft.body) for draft in again.drafts] == [repr(draft.body) for draft in plain.drafts]
        assert (again.blobs, again.title, again.warnings) == (plain.blobs, plain.title, ())


def test_json_with_its_keys_in_another_order_is_the_same() -> None:
    """JSON says nothing by the order of keys, and tools sort them: the export would be refused."""
    text = exported(a_store(), "cats", "json")[0]
    plain = read_back(text)
    for again in (json.dumps(json.loads(text), sort_keys=True), json.dumps(json.loads(text), sort_keys=True, indent=2)):
        back = read_back(again)
        assert [repr(draft.body) for draft in back.drafts] == [repr(draft.body) for draft in plain.drafts]
        assert (back.blobs, back.warnings) == (plain.blobs, ())
    bare = json.dumps(json.loads(text) | {"blobs": {}}, sort_keys=True)
    assert len(read_back(bare).drafts) == len(plain.drafts)
    with pytest.raises(ImportFailed, match="the turnlog export is incomplete"):
        read_back('{"blobs": {}, "records": []}')


def test_json_cut_off_is_refused() -> None:
    """Half a JSON object is none; the error says so and what to do."""
    with pytest.raises(
        ImportFailed, match="the turnlog export is incomplete, it may be cut off; export the session again"
    ):
        read_back(exported(a_store(), "cats", "json")[0][:-200])


def test_a_damaged_line_becomes_a_note() -> None:
    """One unreadable line must neither stop the import nor shift the numbers that records name."""
    lines = exported(a_store(), "cats", "jsonl")[0].splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if '"n":7,' in line)
    lines[at] = lines[at][:40] + "\n"
    back = read_back("".join(lines))
    assert [type(draft.body).__name__ for draft in back.drafts[5:8]] == ["MessageRecord", "Note", "UsageRecord"]
    assert [(damage.line, damage.message.partition(":")[0]) for damage in back.warnings] == [
        (at + 1, "record 7 kept as a note")
    ]


@pytest.mark.parametrize(
    "detail",
    [{"kept": 5}, {"texts": 7}, {"texts": [[1, "a", "b"]]}, {"replacement": "x"}, {"cuts": [1]}, {"standing": {}}],
    ids=str,
)
def test_a_decision_that_no_view_could_follow_becomes_a_note(detail: dict[str, Any]) -> None:
    """A log that somebody wrote by hand must not leave a session that no command can open."""
    store = MemoryStore()
    store.create("s")
    store.append("s", [Draft(MessageRecord(Message("user", (Text("hi"),)))), Draft(Decision("mask", 1, 1, "", detail))])
    back = read_back(exported(store, "s", "jsonl")[0])
    assert [type(draft.body).__name__ for draft in back.drafts] == ["MessageRecord", "Note"]
    assert "record 2 kept as a note: the field `detail` of this decision is invalid: " in back.warnings[0].message


def test_an_export_cut_off_says_so() -> None:
    """Half an export must not pass for a whole one."""
    lines = exported(a_store(), "cats", "jsonl")[0].splitlines(keepends=True)
    back = read_back("".join(lines[:-2]))
    assert [damage.message for damage in back.warnings] == ["cut off: the file contains 10 of 12 records"]
    assert len(back.drafts) == 10


def test_a_line_that_is_gone_does_not_shift_the_others() -> None:
    """Records name each other by number: where a line is gone, or two became one, a decision would hide other messages
    than it did, and calls and results would lose each other."""
    lines = exported(a_store(), "cats", "jsonl")[0].splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if '"n":7,' in line)
    plain = read_back("".join(lines)).drafts
    for damaged, told in (
        ([*lines[:at], *lines[at + 2 :]], ["records 7 to 8 are missing; each was replaced by a note"]),
        ([*lines[:at], lines[at].strip(), *lines[at + 1 :]], ["record 7 kept as a note", "records 8 to 8 are missing"]),
    ):
        back = read_back("".join(damaged))
        assert [repr(draft) for draft in back.drafts[8:]] == [repr(draft) for draft in plain[8:]]
        assert [type(draft.body).__name__ for draft in back.drafts[6:8]] == ["Note", "Note"]
        assert len(back.warnings) == len(told)
        assert all(one.message.startswith(start) for one, start in zip(back.warnings, told, strict=True))
    far = lines[-1].replace('"n":12,', '"n":99999999,')
    back = read_back("".join([*lines[:-1], far]))
    assert [damage.message for damage in back.warnings] == ["record 99999999 became record 12"]


def test_media_that_an_export_does_not_hold_are_told() -> None:
    """An export that said on standard error what it left out says so again when it is read: nobody else would, and the
    session's pictures would be gone."""
    lines = exported(a_store(), "cats", "jsonl")[0].splitlines(keepends=True)
    back = read_back("".join(line for line in lines if not line.startswith('{"blob"')))
    told = [(damage.line, damage.message) for damage in back.warnings]
    assert told == [
        (5, f"record 4 refers to media that are not in the file: {sha256_hex(PICTURE)}"),
        (10, f"record 9 refers to media that are not in the file: {sha256_hex(b'meow')}"),
    ]
    whole = json.loads(exported(a_store(), "cats", "json")[0])
    assert len(read_back(json.dumps(whole | {"blobs": {}})).warnings) == 2


def test_exports_in_one_file_stay_sessions_of_their_own(turnlog: Any, tmp_path: Path) -> None:
    """`>>` after each of several exports makes a file of JSON lines like any other: the second session would be taken
    for more of the first."""
    for name in ("one", "two"):
        body = {"session_id": name, "request": {"model": "gpt-4o", "messages": [{"role": "user", "content": name}]}}
        (tmp_path / f"{name}.json").write_text(json.dumps(body))
        turnlog("import", f"{name}.json")
    one, two = (turnlog("export", name, "--format", "jsonl").out for name in ("one", "two"))
    (tmp_path / "all.jsonl").write_text(one + two + one)
    rows = turnlog("import", "all.jsonl", "--json", "--store", "new.db").rows
    assert [(row["session"], row["status"], row["messages"]) for row in rows] == [
        ("one", "new", 1),
        ("two", "new", 1),
        ("one", "unchanged", 1),
    ]
    for name, text in (("one", one), ("two", two)):
        assert turnlog("export", name, "--format", "jsonl", "--store", "new.db").out == text
    (tmp_path / "all.jsonl").write_text(one + two[:40])
    (row,) = turnlog("import", "all.jsonl", "--json", "--store", "new.db").rows
    assert (row["session"], row["status"]) == ("one", "unchanged")
    assert [(told["line"], "a session was left out" in told["message"]) for told in row["warnings"]] == [
        (one.count("\n") + 1, True)
    ]


def test_damaged_media_are_left_out_of_an_import() -> None:
    """Bytes that are not those that their name promises must not get into a store."""
    text = exported(a_store(), "cats", "jsonl")[0]
    back = read_back(text.replace('"base64":"bWVvdw=="', '"base64":"bWVvaA=="'))
    assert sha256_hex(b"meow") not in back.blobs
    assert [damage.message for damage in back.warnings] == ["media left out: the bytes are damaged"]


def test_what_a_decision_shows_is_exported_with_its_bytes(turnlog: Any, tmp_path: Path) -> None:
    """An image may stand only in what a compaction put in the place of older messages, as Codex writes it: an export
    without its bytes would come back as a session that has lost it, and nobody would say so."""
    bytes_of_it = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAD0lEQVR4nGNgBAMGJjAAAAB3ABPJ6vs7AAAAAElFTkSuQmCC"
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{bytes_of_it}"}
    shown = [{"type": "message", "role": "user", "content": [image]}]
    rows = [
        ("session_meta", {"id": "c", "timestamp": "2026-01-01T00:00:00.000Z"}),
        ("response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look"}]}),
        ("compacted", {"message": "", "replacement_history": shown}),
    ]
    lines = [{"timestamp": "2026-01-01T00:00:01.000Z", "type": kind, "payload": payload} for kind, payload in rows]
    (tmp_path / "rollout-c.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert turnlog("import", "rollout-c.jsonl").code == 0
    sent = turnlog("request", "c", "--to", "openai-responses").out
    assert bytes_of_it in sent
    for form in ("json", "jsonl"):
        turnlog("export", "c", "--format", form, "--output", form)
        assert turnlog("import", form, "--store", f"{form}.db").code == 0
        assert turnlog("request", "c", "--to", "openai-responses", "--store", f"{form}.db").out == sent
        forget_blobs(tmp_path / f"{form}.db")
        assert "record 3: it needs blobs that are not in the store" in turnlog("verify", "--store", f"{form}.db").out


def test_what_is_alike_in_an_export_is_said_once(turnlog: Any, tmp_path: Path) -> None:
    """A session of another program loses the same few things at every record: a line for each hides the one that
    matters. What there is only a few of stands in lines of its own."""
    with new_session("many", store=tmp_path / "log.db", target=target("openai-chat", "gpt-4o")) as session:
        session.user("go")
        for n in range(9):
            call = ToolCall(f"call_{n}", f"tool{'AB'[n % 2]}")
            session.add(Message("assistant", (Reasoning("anthropic", "hm"), call)))
            session.tool_result(call, "no", outcome="failed")
    with closing(open_store("log.db")) as store:
        assert len(save(store, "many", "openai-chat", tmp_path / "many.json")) == 20
    ended = turnlog("export", "many", "--format", "openai-chat")
    assert (ended.code, ended.err.splitlines()) == (
        1,
        [
            "many, record 3: tool 'toolA' is called but not declared: declared for any arguments",
            "many, record 5: tool 'toolB' is called but not declared: declared for any arguments",
            "many, records 3, 5, 7, 9, 11 and 4 more: reasoning of anthropic left out",
            "many, records 4, 6, 8, 10, 12 and 4 more: call call_0 failed: only its text can say so (and 8 alike)",
        ],
    )


def test_missing_media_are_left_out_of_an_export(turnlog: Any, tmp_path: Path) -> None:
    """A session whose picture is gone can still be exported; the exit code and stderr say what is missing."""
    body = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    (tmp_path / "body.json").write_text(json.dumps({"messages": [{"role": "user", "content": [body]}]}))
    session = json.loads(turnlog("import", "body.json", "--json").out)["session"]
    whole = turnlog("export", session, "--format", "jsonl")
    forget_blobs(tmp_path / "log.db")
    ended = turnlog("export", session, "--format", "jsonl")
    assert (whole.code, ended.code) == (0, 1)
    assert ended.out.splitlines() == [line for line in whole.out.splitlines() if not line.startswith('{"blob":')]
    assert ended.err.startswith(f"{session}, record 2: left out of the export: there is no blob ")


def forget_blobs(path: Path) -> None:
    """Take all media out of a store behind its back."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("delete from blobs")


def test_json_is_one_object() -> None:
    """The JSON export holds what a listing says, every record as it is stored, and the bytes they name."""
    store = a_store()
    value = json.loads(exported(store, "cats", "json")[0])
    assert value["session"]["id"] == "cats"
    assert value["records"] == [json.loads(record.raw or b"") for record in store.read("cats")]
    assert value["blobs"] == {sha256_hex(data): base64.b64encode(data).decode() for data in (PICTURE, b"meow")}


@pytest.mark.slow
@given(damaged_histories())
def test_a_body_holds_the_whole_conversation(history: History) -> None:
    """For each provider: valid, nothing of it left out to save room, and what had to change is said."""
    store = MemoryStore()
    for data in history.blobs.values():
        store.put_blob(data)
    store.create("any")
    store.append("any", [Draft(MessageRecord(message)) for message in history.messages])
    covering = Decision("compact", 1, len(history.messages), "to save room")
    store.append("any", [Draft(covering)])
    for provider in PROVIDERS:
        text, problems = exported(store, "any", provider)
        assert check(json.loads(text), provider) == []
        said = [part.text for m in history.messages for part in m.parts if isinstance(part, Text) and m.role == "user"]
        assert [words for words in said if words.strip() and spelled(words) not in text and not problems] == []


def spelled(words: str) -> str:
    """A text as JSON in ASCII spells it."""
    return json.dumps(words)[1:-1]


def test_a_file_is_there_whole_or_not_at_all(turnlog: Any, tmp_path: Path, transcript: Path) -> None:
    """`--output`: a private file with what standard output would have got; a failure leaves what was there."""
    session = turnlog("import", transcript.name, "--json").rows[0]["session"]
    for form in FORMATS:
        told = turnlog("export", session, "--format", form)
        kept = turnlog("export", session, "--format", form, "--output", "out")
        size = size_text((tmp_path / "out").stat().st_size)
        assert (kept.code, kept.out, kept.err) == (told.code, "", f"wrote out ({size})\n{told.err}")
        assert (tmp_path / "out").read_text("utf-8") == told.out
        assert (tmp_path / "out").stat().st_mode & 0o777 == 0o600
    before = (tmp_path / "out").read_bytes()
    assert turnlog("export", "nobody", "--format", "html", "--output", "out").code == 4
    assert (tmp_path / "out").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".out")] == []
    assert turnlog("export", session, "--format", "html", "--output", "no/such/out").code == 3


@pytest.mark.parametrize("kind", ["", "files:"])
def test_no_export_takes_the_place_of_its_store(turnlog: Any, tmp_path: Path, transcript: Path, kind: str) -> None:
    """A slip of the tab key in `--output` would replace every session there is by the export of one."""
    store = f"{kind}kept.db"
    session = turnlog("import", transcript.name, "--json", "--store", store).rows[0]["session"]
    (tmp_path / "link.db").symlink_to("kept.db")
    names = ["kept.db", "./kept.db", str(tmp_path / "kept.db"), "link.db/turnlog.json" if kind else "kept.db-wal"]
    for place in (store, f"{kind}link.db"):
        for name in (*names, place.removeprefix("files:")):
            ended = turnlog("export", session, "--format", "json", "--output", name, "--store", place)
            assert (ended.code, ended.out) == (2, "")
            assert "a file of the store itself" in ended.err
        assert turnlog("verify", "--store", place).code == 0
    assert turnlog("export", session, "--format", "json", "--output", "kept.db-of-today", "--store", store).code == 0
    assert turnlog("ls", "--json", "--store", store).rows[0]["id"] == session


def test_only_a_file_is_replaced(turnlog: Any, tmp_path: Path, transcript: Path) -> None:
    """An export to `/dev/null` by an administrator would leave a file in the place of the device, one to a named pipe
    would leave its reader waiting, and one to `/dev/stdout` would replace that link."""
    session = turnlog("import", transcript.name, "--json").rows[0]["session"]
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "kept").write_text("kept")
    (tmp_path / "link").symlink_to("kept")
    (tmp_path / "nowhere").symlink_to("gone")

    def seen(name: str) -> tuple[int, ...]:
        found = (tmp_path / name).lstat()  # but for when it was looked at, which looking at it changes
        return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns

    for name in ("pipe", "folder", "link", "nowhere"):
        before = seen(name)
        ended = turnlog("export", session, "--format", "json", "--output", name)
        assert (ended.code, ended.out, f"{name} is a " in ended.err) == (2, "", True)
        assert seen(name) == before
    assert (tmp_path / "kept").read_text() == "kept"
    with pytest.raises(InputError, match="pipe is a device or a pipe; name a file, or send standard output there"):
        save(a_store(), "cats", "json", tmp_path / "pipe")


def test_a_format_that_there_is_not() -> None:
    """A wrong name of a format gets the right ones."""
    with pytest.raises(
        InputError, match="unknown format 'pdf'; use one of html, markdown, markdown-messages, markdown-records, json"
    ):
        save(a_store(), "cats", "pdf", "x")


TRICKS = ["```\n<script>", "````text\n# no", "~~~\n![x](http://x)", "    # no", "`<b>`", "\\`<b>"]


@given(st.text(st.characters(codec=None)) | st.sampled_from(TRICKS))
def test_markdown_stays_in_its_fences(text: str) -> None:
    """A text that ends its own fence could put headings, links or HTML into the page: fails here."""
    store = MemoryStore()
    store.create("m", title=text)
    parts = (Text(text), ToolCall(text, text, raw=text), ToolResult(text, text, (Text(text), Opaque(text, text, text))))
    bodies = [
        MessageRecord(Message("user", parts), model=text),
        Note(text, text, [text]),
        Decision(text, why=text or "x"),
    ]
    store.append("m", [Draft(body) for body in bodies])
    outside = outside_fences(exported(store, "m", "markdown-records")[0])
    assert [line for line in outside if re.search(r"(?<!\\)(<|!\[|\]\()", without_spans(line))] == []
    headings = [line.split()[:2] for line in outside if line.startswith("#")]
    assert headings[1:] == [["##", "1."], ["##", "2."], ["##", "3."]]


def outside_fences(page: str) -> list[str]:
    """The lines of a Markdown page that are in no fenced block (CommonMark 0.31, section 4.5)."""
    lines, fence = [], ""
    for line in page.split("\n"):
        if fence:
            if re.fullmatch(f" {{0,3}}{fence}`*\\s*", line):
                fence = ""
        elif match := re.match("```+", line):
            fence = match.group()
        else:
            lines.append(line)
    assert not fence
    return lines


def without_spans(line: str) -> str:
    """A line without its code spans (CommonMark 0.31, section 6.1)."""
    return re.sub(r"(?<![`\\])(`+)(?!`).*?(?<!`)\1(?!`)", "", line)


def test_a_page_of_markdown() -> None:
    """How a session reads; any change of the page is seen here."""
    store = MemoryStore()
    store.create("m", title="Fix *it*", created="2025-01-01T00:00:00.000Z")
    bodies = [
        MessageRecord(Message("user", (Text("Look."),))),
        MessageRecord(Message("assistant", (ToolCall("c1", "look", {"at": 1}),)), model="m-1"),
        Note("idea", "later"),
        UsageRecord("p", "m-1", Billed()),
    ]
    store.append("m", [Draft(body, "2025-01-01T00:00:01.000Z") for body in bodies])
    assert (
        exported(store, "m", "markdown-records")[0]
        == """# Fix \\*it\\*

Session `m`, 4 records, 2 messages, 2025-01-01T00:00:00.000Z to 2025-01-01T00:00:01.000Z

## 1. User

```text
Look.
```

## 2. Assistant (m\\-1)

*calls* `look` *as* `c1`

```text
{"at":1}
```

## 3. Note: idea

```text
later
```

*4. usage: p m\\-1\\: 0 tokens in \\(0 cached\\), 0 out, \\$0\\.0000*
"""
    )


def test_a_full_disk_is_told_by_the_name_of_the_output(tmp_path: Path) -> None:
    """`No space left on device`, of the store's disk or of another one; half a page, or what is left of it."""
    resource = pytest.importorskip("resource")
    store, out = MemoryStore(), tmp_path / "page.html"
    store.create("s")
    out.write_text("before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError, match=re.escape(str(out))):
            save(store, "s", "html", out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("page.html", "before")]
