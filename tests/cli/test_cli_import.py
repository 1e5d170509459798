"""`turnlog import`, and the law behind it: nothing is overwritten and nothing comes twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.cli import imports
from turnlog.errors import InputError, SessionIdError, StoreGone
from turnlog.importers import Imported
from turnlog.importers.sync.session import Synced, sync_session, without_secrets
from turnlog.log.messages import Message, Text, sha256_hex
from turnlog.log.records import FileChange, MessageRecord, Note, UsageRecord
from turnlog.log.store import Draft, Store
from turnlog.log.usage import Usage
from turnlog.redaction import Redactor
from turnlog.redaction.scrub import scrub
from turnlog.stores import MemoryStore

TIME = "2025-01-01T00:00:00.000Z"
BODIES = st.lists(
    st.builds(lambda text: MessageRecord(Message("user", (Text(text),))), st.text(max_size=3))
    | st.builds(lambda value: Note("n", data=value), st.floats() | st.none()),
    max_size=6,
)


def imported(bodies: list[Any], session_id: str = "s") -> Imported:
    """A transcript that says `bodies`."""
    return Imported(session_id=session_id, format="test", drafts=tuple(Draft(body, TIME) for body in bodies))


def raws(store: Store, session_id: str) -> list[bytes | None]:
    """The bytes of a session's records."""
    return [record.raw for record in store.read(session_id)]


def test_an_imported_session_keeps_its_parent() -> None:
    """A subagent whose parent is forgotten, or a session that is its own parent and cannot be made."""
    store = MemoryStore()
    for session, parent in (("agent", "main"), ("main", ""), ("loop", "Loop")):
        made = Imported(session_id=session, format="test", parent=parent, drafts=(Draft(Note("x"), TIME),))
        assert sync_session(store, made).session == session
    assert {info.id: info.parent for info in store.sessions()} == {"agent": "main", "main": "", "loop": ""}


@pytest.mark.slow
@given(BODIES, st.integers(0, 6))
def test_a_transcript_that_grew_is_continued(bodies: list[Any], cut: int) -> None:
    """Importing in two steps what could be imported in one gives the same session, else this fails."""
    at_once, in_steps = MemoryStore(), MemoryStore()
    sync_session(at_once, imported(bodies))
    first = sync_session(in_steps, imported(bodies[:cut]))
    second = sync_session(in_steps, imported(bodies))
    assert raws(in_steps, "s") == raws(at_once, "s")
    assert first.added + second.added == len(bodies)
    assert sync_session(in_steps, imported(bodies)) == Synced("s", "unchanged", 0)


@given(BODIES, BODIES)
def test_what_was_said_stays(one: list[Any], other: list[Any]) -> None:
    """An import that loses what is there, or that makes a new copy each time, fails here."""
    store = MemoryStore()
    sync_session(store, imported(one))
    before = list(store.read("s"))
    kept = sync_session(store, imported(other))
    after = iter([record.message for record in store.read("s")])
    assert all(record.message in after for record in before if record.message is not None)
    if kept.status == "diverged":
        assert [record.raw for record in before] == raws(store, "s")
    held = {repr(record.body) for record in store.read(kept.session)}  # no NaN equals another
    assert all(repr(body) in held for body in other)
    count = len(store.sessions())
    assert sync_session(store, imported(other)).session == kept.session
    assert len(store.sessions()) == count


def test_ids_that_differ_by_case_stay_two() -> None:
    """Two transcripts whose ids differ by case must not become one session on any disk."""
    store = MemoryStore()
    sync_session(store, imported([Note("a")], "Session"))
    kept = sync_session(store, imported([Note("b")], "session"))
    assert kept == Synced("session.2", "diverged", 1)


def test_a_record_that_could_not_be_read_is_not_kept() -> None:
    """A session that every command fails on for good, as an importer took a value of another type for granted."""
    wrong: Any = True
    store = MemoryStore()
    for bodies in ([], [Note("first")]):
        if bodies:
            sync_session(store, imported(bodies))
        where = f"record {len(bodies) + 1} made from the transcript"
        with pytest.raises(InputError, match=f"{where}: .*UsageRecord: Expected `int`"):
            sync_session(store, imported([*bodies, UsageRecord("google", "m", Usage(reasoning=wrong))]))
        assert [info.records for info in store.sessions()] == [1][: len(bodies)]


def test_a_secret_that_is_known_since_makes_no_other_session() -> None:
    """A newer turnlog, and a pattern of one's own, knows more secrets: without this each transcript that holds one
    became a second session, `ID.2`, at the next import, billed once more in all sums. What is there stays until it is
    scrubbed, and that it has to be is said; the note of that is nobody's word, so the transcript may go on."""
    data = b"badge EMP-123456 in a file"
    change = FileChange("a.txt", "created", after=sha256_hex(data), mode="100644")
    bodies = [
        Note("n", data={"badge": "EMP-123456"}),
        MessageRecord(Message("user", (Text("I am EMP-123456."),))),
        change,
    ]
    made = msgspec.structs.replace(imported(bodies), blobs={sha256_hex(data): data})
    redactor = Redactor({"staff-id": "EMP-[0-9]{6}"})
    store, anew = MemoryStore(), MemoryStore()
    sync_session(store, made)
    before = raws(store, "s")
    clean = without_secrets(made, redactor)
    assert sync_session(store, clean, redactor) == Synced("s", "unchanged", 0, exposed=True)
    assert raws(store, "s") == before
    grown = msgspec.structs.replace(made, drafts=(*made.drafts, Draft(Note("n", "EMP-777777"), TIME)))
    assert sync_session(store, without_secrets(grown, redactor), redactor) == Synced("s", "continued", 1, exposed=True)
    assert raws(store, "s")[:3] == before
    scrub(store, "s", redactor)
    assert sync_session(store, without_secrets(grown, redactor), redactor) == Synced("s", "unchanged", 0)
    longer = msgspec.structs.replace(grown, drafts=(*grown.drafts, Draft(Note("n", "more"), TIME)))
    for status, added in (("continued", 1), ("unchanged", 0)):
        assert sync_session(store, without_secrets(longer, redactor), redactor) == Synced("s", status, added)  # type: ignore[arg-type]
    sync_session(anew, without_secrets(longer, redactor), redactor)
    said = [record.body for record in store.read("s") if getattr(record.body, "topic", "") != "scrubbed"]
    assert said == [record.body for record in anew.read("s")]
    other = msgspec.structs.replace(made, drafts=(Draft(Note("n", data={"badge": "none"}), TIME), *made.drafts[1:]))
    assert sync_session(store, without_secrets(other, redactor), redactor).status == "diverged"


def test_an_unsafe_id_is_refused() -> None:
    """An importer that lets any bytes through as an id must not get them into a store."""
    with pytest.raises(SessionIdError):
        sync_session(MemoryStore(), imported([Note("a")], "a\nb"))


def test_a_session_as_json(turnlog: Any, transcript: Path) -> None:
    """What scripts read of an import: a changed key or count fails here."""
    ended = turnlog("import", "--json", "transcript.jsonl")
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out) == {
        "session": "demo-invoice-rounding",
        "format": "claude-code-jsonl",
        "messages": 12,
        "tool_calls": 5,
        "warnings": [],
        "status": "new",
        "records": 21,
        "added": 21,
        "title": "Invoices are sometimes off by one cent. Find out why and fix it.",
        "parent": "",
        "redacted": {},
        "files": ["transcript.jsonl"],
    }


def test_again_grown_and_changed(turnlog: Any, transcript: Path) -> None:
    """The four things that can become of a transcript, and what is said of each."""
    lines = transcript.read_text("utf-8").splitlines(keepends=True)
    transcript.write_text("".join(lines[:10]), "utf-8")
    begun = turnlog("import", str(transcript)).out
    assert begun.startswith("new        demo-invoice-rounding  (claude-code-jsonl, 6 messages, 3 tool calls)  Invoices")
    transcript.write_text("".join(lines), "utf-8")
    assert turnlog("import", str(transcript)).out.startswith("continued  demo-invoice-rounding  (")
    assert turnlog("import", str(transcript)).out.startswith("unchanged  demo-invoice-rounding  (")
    transcript.write_text("".join(lines).replace("one cent", "two cents"), "utf-8")
    changed = turnlog("import", str(transcript))
    assert changed.out.startswith("diverged   demo-invoice-rounding.2  (")
    assert changed.err == (
        "demo-invoice-rounding contains another conversation; this one was imported as demo-invoice-rounding.2\n"
    )
    assert turnlog("import", str(transcript)).out.startswith("unchanged  demo-invoice-rounding.2  (")


def test_a_bad_file_does_not_stop_the_others(turnlog: Any, transcript: Path, tmp_path: Path) -> None:
    """The files before and after a bad one are imported, it is named, and the exit code says so."""
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)))
    (tmp_path / "body.json").write_text('{"messages": [{"role": "user", "content": "hi"}]}')
    ended = turnlog("import", "noise.bin", "absent.jsonl", "transcript.jsonl", "noise.bin", "body.json", "--json")
    assert ended.code == 2
    assert [row["messages"] for row in ended.rows] == [12, 1]
    assert "noise.bin: " in ended.err
    assert "absent.jsonl: cannot be read" in ended.err
    assert "Traceback" not in ended.err


def test_a_folder_is_searched(turnlog: Any, transcript: Path, tmp_path: Path) -> None:
    """Transcripts in folders of folders are found; hidden folders, links to folders and other files are not."""
    for name in ("a/b", "a/.hidden"):
        (tmp_path / name).mkdir(parents=True)
    text = transcript.read_text("utf-8")
    (tmp_path / "a/b/one.jsonl").write_text(text, "utf-8")
    (tmp_path / "a/.hidden/two.jsonl").write_text(text.replace("demo-invoice", "hidden"), "utf-8")
    (tmp_path / "a/notes.txt").write_text("nothing")
    (tmp_path / "a/loop").symlink_to(tmp_path / "a", target_is_directory=True)
    ended = turnlog("import", "a", "--json")
    assert [row["files"] for row in ended.rows] == [["a/b/one.jsonl"]]
    assert (ended.code, ended.err) == (0, "not a transcript, skipped: 1 file\n")


def test_subagents_come_with_their_session(turnlog: Any, transcript: Path, tmp_path: Path) -> None:
    """A file that another transcript has brought in already must not be imported by itself as well."""
    text = transcript.read_text("utf-8")
    agents = tmp_path / "a/demo-invoice-rounding/subagents"
    agents.mkdir(parents=True)
    (tmp_path / "a/demo-invoice-rounding.jsonl").write_text(text, "utf-8")
    agent = text.replace('"isSidechain":false', '"isSidechain":true,"agentId":"1"')
    (agents / "agent-1.jsonl").write_text(agent, "utf-8")
    rows = turnlog("import", "a", "--json").rows
    assert [(row["status"], row["parent"]) for row in rows] == [("new", ""), ("new", "demo-invoice-rounding")]


def test_standard_input(turnlog: Any, transcript: Path) -> None:
    """`-` is a transcript too."""
    ended = turnlog("import", "-", stdin=transcript.read_bytes())
    assert (ended.code, ended.out.split()[:2]) == (0, ["new", "demo-invoice-rounding"])


def test_damage_is_reported(turnlog: Any, transcript: Path) -> None:
    """A line that cannot be read is named with its number, and the rest is imported."""
    lines = transcript.read_text("utf-8").splitlines(keepends=True)
    transcript.write_text("".join([*lines[:4], '{"cut off', "\n", *lines[4:]]), "utf-8")
    ended = turnlog("import", "--json", "transcript.jsonl")
    row = json.loads(ended.out)
    assert (ended.code, row["messages"], [damage["line"] for damage in row["warnings"]]) == (1, 12, [5])
    assert ended.err.startswith("transcript.jsonl, line 5: ")


def many(folder: Path, transcript: Path) -> None:
    """Six sessions in a folder: five with a damaged line, one with a secret, and a file that is no transcript."""
    text = transcript.read_text("utf-8")
    folder.mkdir()
    for n in range(5):
        (folder / f"s{n}.jsonl").write_text(text.replace("demo-invoice-rounding", f"s{n}") + '{"cut off\n', "utf-8")
    secret = text.replace("one cent", "one cent, with ghp_" + "a1B2" * 9)
    (folder / "t.jsonl").write_text(secret.replace("demo-invoice-rounding", "t"), "utf-8")
    (folder / "u.json").write_text('{"id": "u", "request": {"messages": [{"role": "user", "content": "hi"}]}}')
    (folder / "bad.jsonl").write_text('{"type": "user", "sessionId": "x", "parentUuid": null}\n' * 3)


def test_many_sessions_take_a_line_for_each_program(turnlog: Any, transcript: Path, tmp_path: Path) -> None:
    """2,688 sessions were 5,972 lines on the screen, and the one error was above them."""
    many(tmp_path / "all", transcript)
    ended = turnlog("import", "all")
    program, bodies, total = ended.out.splitlines()
    assert program == "claude-code  6 files  6 new, 2 secrets redacted"
    assert bodies == "openai-chat  1 file   1 new"
    assert total.startswith("7 new in ") and total.endswith("B)")
    assert f" -> {tmp_path / 'log.db'} (" in total
    hint, *told = ended.err.splitlines()
    assert hint == "next: turnlog ls · turnlog search WORDS      (-v lists every session)"
    failed, damaged = sorted(told, reverse=True)
    assert failed.startswith("turnlog: all/bad.jsonl: ")
    assert damaged.startswith("all/s0.jsonl, line 18: left out: not JSON")
    assert damaged.endswith("(and 4 alike; -v shows each)")
    assert ended.code == 2


def test_verbose_lists_each_session_and_each_warning(turnlog: Any, transcript: Path, tmp_path: Path) -> None:
    """What is summed up must be there to be seen."""
    many(tmp_path / "all", transcript)
    ended = turnlog("import", "all", "-v")
    lines = ended.out.splitlines()
    assert [line.split()[:2] for line in lines[:7]] == [
        ["new", name] for name in ("s0", "s1", "s2", "s3", "s4", "t", "u")
    ]
    assert lines[7] == "claude-code  6 files  6 new, 2 secrets redacted"
    told = ended.err.splitlines()
    assert told[0] == "next: turnlog ls · turnlog search WORDS"
    assert len(told) == 7 and sum("line 18: left out" in line for line in told) == 5


def test_what_was_told_is_told_when_an_import_stops(turnlog: Any, transcript: Path, tmp_path: Path) -> None:
    """An error of the store ends the import; the warnings so far must not go with it."""
    many(tmp_path / "all", transcript)
    real, imported_so_far = imports.sync_session, list[str]()

    def breaks(store: Any, session: Imported, redactor: Any) -> Any:
        if len(imported_so_far) == 2:
            raise StoreGone("the disk is gone")
        imported_so_far.append(session.session_id)
        return real(store, session, redactor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(imports, "sync_session", breaks)
        ended = turnlog("import", "all")
    assert "all/s0.jsonl, line 18" in ended.err and "the disk is gone" in ended.err
    assert ended.out == ""


def test_a_line_fits_the_terminal(
    turnlog: Any, transcript: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 80 columns each session wrapped in the middle of a word, its title last."""
    many(tmp_path / "all", transcript)
    monkeypatch.setattr("turnlog.cli.tables.is_terminal", lambda stream: True)
    monkeypatch.setenv("COLUMNS", "60")
    one = turnlog("import", "all/s1.jsonl").out.splitlines()
    assert one == [
        "new        s1  Invoices are sometimes off by one cent. Find…",
        "           (claude-code-jsonl, 12 messages, 5 tool calls)",
    ]
    lines = turnlog("import", "all").out.splitlines()
    assert lines[2].startswith("6 new, 1 unchanged in ") and lines[3].startswith("-> ")
