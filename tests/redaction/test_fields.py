"""The census of fields: whatever words reach the disk, in records, in what is kept beside them and in exports, have no
secrets, except in the fields that `UNSEARCHED` lists with a reason."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from fields import KINDS, Planted
from hypothesis import given
from hypothesis import strategies as st
from planted import SECRETS

import turnlog
from turnlog.errors import InputError
from turnlog.export import FORMATS
from turnlog.handoff import handoff
from turnlog.log.codec import decode_record
from turnlog.log.messages import Media, Message, Text, Tool, ToolCall
from turnlog.log.records import Configuration, MessageRecord, Note
from turnlog.log.store import Draft, Store
from turnlog.log.texts import UNSEARCHED
from turnlog.models.catalog import known_models
from turnlog.redaction import RedactingStore, Redactor
from turnlog.redaction.drafts import redacted, redacted_bytes
from turnlog.redaction.store import as_kept
from turnlog.stores import MemoryStore, open_store
from turnlog.trajectory import Trajectory

KEY = "ghp_" + "x7Kq2mNv9LpR4tYw8ZcB1dFgH6jS3aEuT5oP"
OTHER = "glpat-" + "x7Kq2mNv9LpR4tYw8ZcB"
PAGES = ("html", "markdown", "json", "jsonl")
BODIES = tuple(name for name in FORMATS if name not in PAGES)
STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda folder: MemoryStore(),
    "sqlite": lambda folder: open_store(folder / "s.db"),
    "files": lambda folder: open_store(f"files:{folder / 's'}"),
}


def bytes_of(store: Store, folder: Path) -> bytes:
    """Everything that a store has on disk: its files, each value of its tables, its records and their files."""
    found = [str(path).encode() + path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]
    for path in folder.glob("*.db"):
        with closing(sqlite3.connect(path)) as db:
            tables = db.execute("select name from sqlite_master where type = 'table' and sql not like '%virtual%'")
            for (table,) in tables.fetchall():
                found += [repr(row).encode() for row in db.execute(f'select * from "{table}"')]
    for info in store.sessions():
        found += [repr(info).encode(), *(record.raw or b"" for record in store.read(info.id))]
    return b"\n".join(found)


def allowed(field: str) -> bool:
    """Whether a field, as `ToolCall.id`, is one that secrets are not looked for in."""
    told = {name for names in UNSEARCHED for name in names.split()}
    return field in told or field.partition(".")[2] in told


@pytest.mark.slow
@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("place", STORES)
def test_no_field_of_a_record_takes_a_secret_to_the_disk(tmp_path: Path, place: str, live: bool) -> None:
    """A name of a tool, a media type, a word of a provider, or a field of a new kind of record that nobody entered:
    a secret in it is in the store, in its index and in every export, although redaction is on."""
    planted, inner = Planted(), STORES[place](tmp_path)
    with closing(RedactingStore(inner, Redactor(live=live))) as store:
        store.create("all")
        for kind in KINDS:
            store.append("all", [Draft(body) for body in planted.body(kind)])
        store.create("said")
        store.append("said", [Draft(Configuration("openai-chat", "gpt-4o"))])
        store.append("said", [Draft(body) for body in planted.body(MessageRecord)])
        said = {form: ("all", b"".join(FORMATS[form](store, "all", []))) for form in PAGES}
        said |= {form: ("said", b"".join(FORMATS[form](store, "said", []))) for form in BODIES}
        said["handoff"] = ("said", handoff(store, "said", "claude").prompt.encode())
        leaks = {form: {one for one in planted.found_in(data) if not allowed(one)} for form, (_, data) in said.items()}
        assert leaks == {form: set() for form in said}
        found = planted.found_in(bytes_of(inner, tmp_path))
    assert {one for one in found if not allowed(one)} == set()
    told = {name for names in UNSEARCHED for name in names.split()} - {"data", "of", "blobs", "UnknownRecord.name"}
    assert told == {one.partition(".")[2] for one in found}  # no exception that needs none


@pytest.mark.parametrize("place", STORES)
def test_nothing_beside_the_records_takes_a_secret_to_the_disk(tmp_path: Path, place: str) -> None:
    """Titles, times, ids, labels, names of files and of what a newer version recorded: each has its own way to the
    disk, which the table of fields knows nothing of."""
    inner = STORES[place](tmp_path)
    with closing(RedactingStore(inner, Redactor())) as store:
        store.create("a", title=KEY, created=KEY)
        store.rename("a", f"b {OTHER}")
        body = {"kind": "novel", "said": KEY, OTHER: [f"x {KEY}"]}
        raw = {"v": 1, "n": 1, "t": "2026-01-02T03:04:05.678Z", "body": body}
        novel = decode_record(json.dumps(raw).encode())
        store.append("a", [Draft.of(novel)])
        store.append("a", [Draft(Note("labels", "", {"user": KEY, OTHER: "b"}), time=KEY)])
        store.fork("a", "b", title=KEY)
        store.put_blob(f"token {KEY}".encode())
        refusals: list[Callable[[], object]] = [
            lambda: store.create(KEY),
            lambda: store.create("c", parent=KEY),
            lambda: store.fork("a", KEY),
            lambda: store.put_blob(b"x", name=KEY),
            lambda: store.sessions(where={"user": KEY}),
        ]
        for refused in refusals:
            with pytest.raises(InputError) as error:
                refused()
            assert KEY not in str(error.value)
        assert [info.id for info in store.sessions(where={"team": "none"})] == []
        held = bytes_of(inner, tmp_path)
    assert KEY[12:].lower().encode() not in held.lower() and OTHER[12:].lower().encode() not in held.lower()


def test_a_parent_that_is_on_record_stays_one(tmp_path: Path) -> None:
    """A session of an older version, whose id has a key, could have no subagents any more."""
    inner = MemoryStore()
    inner.create(KEY)
    with closing(RedactingStore(inner, Redactor())) as store:
        assert store.create("child", parent=KEY).parent == KEY


def test_names_with_secrets_are_refused_where_they_are_given() -> None:
    """A tool or a model that is named after a key would be asked for under another name in the next process."""
    target = turnlog.target("openai-chat", "gpt-4o")
    with pytest.raises(InputError, match="the name of a tool contains a secret") as refused:
        turnlog.open("a", store=MemoryStore(), target=target, tools=[Tool(f"run_{KEY}")])
    assert KEY not in str(refused.value)
    with pytest.raises(InputError, match="the name of the model contains a secret"):
        turnlog.open("a", store=MemoryStore(), target=turnlog.target("openai-chat", KEY))
    with turnlog.open("a", store=MemoryStore(), target=target, tools=[Tool("run")]) as session:
        before = list(session.log.records())
        with pytest.raises(InputError, match="the name of a tool contains a secret"):
            session.configure(tools=[Tool("run"), Tool(f"run_{KEY}")])
        with pytest.raises(InputError, match="the name of the model contains a secret"):
            session.switch(turnlog.target("openai-chat", KEY))
        assert list(session.log.records()) == before


@given(st.sampled_from(sorted(SECRETS)), st.text("ab_-", max_size=5))
def test_marks_of_names_can_be_names_and_are_no_secrets(kind: str, around: str) -> None:
    """A call that is sent under a name which the provider refuses, or whose name changes with every import."""
    text, secret = SECRETS[kind]
    redactor = Redactor()
    clean, counts = redactor.name(around + text + around)
    if counts:
        assert secret not in clean and "redacted_" in clean and "[redacted" not in clean
        assert redactor.name(clean) == (clean, {}) and Redactor().name(clean) == (clean, {})
    else:
        assert clean == around + text + around
    if any(found.random and found.end - found.start == len(text) for found in redactor.find(text)):
        assert set(redactor.name(text)[0]) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")


def test_no_model_is_taken_for_a_secret() -> None:
    """Requests for a known model would name another one."""
    names = list(known_models())
    assert len(names) > 50 and [name for name in names if Redactor().name(name)[1]] == []


def test_a_call_and_its_result_keep_one_name(tmp_path: Path) -> None:
    """A tool that a model calls by a key: after the session is opened again, the result belongs to no call."""
    place, name = tmp_path / "s.db", f"run_{KEY}"
    answer = {"id": "c1", "type": "function", "function": {"name": name, "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [answer]}
    with turnlog.open("a", store=place, target=turnlog.target("openai-chat", "gpt-4o")) as session:
        session.user("go")
        call = session.receive({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]})
        session.tool_result(call.tool_calls[0], "done")
        assert session.request().body["messages"][1]["tool_calls"][0]["function"]["name"] == name
    with turnlog.open("a", store=place) as session:
        session.user("and?")
        body = json.dumps(session.request().body)
        marks = [record.body for record in session.log.records() if getattr(record.body, "action", "") == "redact"]
    clean = Redactor().name(name)[0]
    assert KEY not in body and clean in body and "done" in body
    assert marks[0].detail["place"] == "message.parts[0].name" and marks[0].detail["byte"] == len("run_")


ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp1252")


@given(st.sampled_from(ENCODINGS), st.text("abc äöü\n", max_size=40), st.booleans())
def test_files_in_any_encoding_are_redacted(encoding: str, around: str, cut: bool) -> None:
    """A key in a file that is not UTF-8: with or without a byte order mark, or broken off inside a character."""
    text = f"ä{around} {KEY} {around}".encode(encoding)
    data = text + b"x" if cut and encoding.startswith(("utf-16", "utf-32")) else text
    clean, counts = redacted_bytes(data, Redactor())
    assert counts == {"github-token": 1} and clean.endswith(data[len(text) :])
    said = clean[: len(clean) - len(data) + len(text)].decode(encoding)
    assert said == f"ä{around} {Redactor().text(KEY)[0]} {around}"


def test_variables_between_nuls_are_redacted() -> None:
    """`env -0`, and `/proc/PID/environ`, which no program takes for binary, would show every key of the user."""
    clean, counts = redacted_bytes(f"A=1\0GITHUB={KEY}\0B=2\0".encode(), Redactor())
    assert counts == {"github-token": 1} and clean.startswith(b"A=1\0GITHUB=[redacted:") and clean.endswith(b"\0B=2\0")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_diffs_and_pages_have_no_secrets_of_files(tmp_path: Path, encoding: str) -> None:
    """A page of the session shows a file as it is in the store: what was not redacted there is on it."""
    with turnlog.open("a", store=tmp_path / "s.db") as session:
        before, after = f"ä A=1\n{KEY}\n", f"ä A=2\n{OTHER}\n"
        recorder = session.files(tmp_path)
        recorder.record(str(tmp_path / "x.env"), before.encode(encoding), after.encode(encoding))
        session.add(Message("user", (session.media(after.encode(encoding), "text/plain", name="x.env"),)))
        store = session._store
        pages = b"".join(b"".join(FORMATS[form](store, "a", [])) for form in PAGES)
        held = (pages + bytes_of(as_kept(store), tmp_path)).replace(b"\0", b"")
    assert KEY[12:].encode() not in held and OTHER[12:].encode() not in held
    assert base64.b64encode(KEY.encode())[6:30] not in held


def _urls(file: bytes) -> list[str]:
    text = base64.b64encode(file).decode()
    return [
        f"data:text/plain;base64,{text}",
        f"data:text/plain;charset=utf-8;base64,{text.rstrip('=')}",
        f"data:application/octet-stream;base64,{base64.urlsafe_b64encode(file).decode()}",
        f"data:;base64,{text}",
        f"data:text/plain,{quote(file)}",
    ]


FILE = f"ÿ?>password: 'hunter2!x'\n{KEY}\n".encode()


@pytest.mark.parametrize("url", _urls(FILE))
def test_files_inside_of_urls_are_redacted(url: str) -> None:
    """A file with a key in a `data:` URL: nobody reads it, and everybody can."""
    redactor = Redactor()
    clean, counts = redactor.text(f'see <a href="{url}">x</a>')
    assert counts == {"github-token": 1, "password": 1}
    expected = redacted_bytes(FILE, redactor)[0]
    made = next(one for one in _urls(expected) if one.partition(",")[0] == url.partition(",")[0])
    assert clean in (f'see <a href="{made}">x</a>', f'see <a href="{made.rstrip("=")}">x</a>')
    assert redactor.text(clean) == (clean, {})
    media = MessageRecord(Message("user", (Media("file", url=url), Text("x"))))
    assert redacted(media, redactor)[0].message.parts[0] == Media("file", url=clean[13:-7])
    call = ToolCall("c", "write", {"url": url}, raw=json.dumps({"url": url}, indent=1))
    kept = redacted(MessageRecord(Message("assistant", (call,))), redactor)[0].message.parts[0]
    assert kept == ToolCall("c", "write", {"url": clean[13:-7]})


@pytest.mark.parametrize("keys", [("media_type", "data"), ("mimeType", "data"), ("mimeType", "blob")])
def test_files_inside_of_json_are_redacted(keys: tuple[str, str]) -> None:
    """A file in the form of an API or of MCP: its Base64 stands under a key, not in a URL."""
    value = {"source": {keys[0]: "text/plain", keys[1]: base64.b64encode(FILE).decode()}}
    counts: dict[str, int] = {}
    clean = Redactor().value(value, counts)
    assert counts == {"github-token": 1, "password": 1}
    assert base64.b64decode(clean["source"][keys[1]]) == redacted_bytes(FILE, Redactor())[0]
    picture = {"source": {keys[0]: "image/png", keys[1]: base64.b64encode(bytes(range(256)) * 9).decode()}}
    assert Redactor().value(picture, counts) is picture


@given(st.binary(max_size=300), st.sampled_from(["image/png", "text/plain", ""]))
def test_urls_without_secrets_stay(data: bytes, mime: str) -> None:
    """A picture that is read as text and written again as something else."""
    text = f"x data:{mime};base64,{base64.b64encode(data).decode()} data:{mime},{quote(data)} y"
    clean, counts = Redactor().text(text)
    assert (clean, counts) == (text, {}) and clean is text


def test_a_saved_trajectory_has_marks(tmp_path: Path) -> None:
    """A session that is open shows the key as it was given; a file of it must not."""
    with turnlog.open("a", store=MemoryStore()) as session:
        session.user(f"Look for {KEY}.")
        Trajectory.from_session(session).save(tmp_path / "t.json")
    assert KEY not in (tmp_path / "t.json").read_text()


def test_the_page_lists_what_is_not_searched() -> None:
    """A user who relies on redaction is told of nothing that it leaves."""
    page = (Path(__file__).parents[2] / "docs" / "secrets.md").read_text()
    listed = page.partition("**Not searched**")[2].partition("\n\nErrors")[0]
    fields = {name.rpartition(".")[2] for names in UNSEARCHED for name in names.split()} - {"name"}
    assert [field for field in sorted(fields) if f"`{field}`" not in listed] == []
