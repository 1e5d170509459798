"""What every import promises: safe ids, readable damage, times as records hold them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcripts import claude

from turnlog.errors import ImportFailed
from turnlog.export import FORMATS
from turnlog.importers import detect, read_file
from turnlog.importers.drafting import as_utc
from turnlog.importers.protocol import Damage, session_id_of
from turnlog.importers.repeats import without_repeats
from turnlog.importers.transcript import Line, Transcript
from turnlog.log.messages import Message, Text
from turnlog.log.records import MessageRecord
from turnlog.log.store import Draft, check_session_id, is_reference
from turnlog.stores import MemoryStore


@given(st.text())
def test_any_foreign_id_becomes_a_safe_one(own: str) -> None:
    """An id with a slash in it would write outside the store."""
    made = session_id_of(own)
    assert not is_reference(made)  # `latest` would stand for this session for good
    assert check_session_id(made) == made
    assert session_id_of(made) == made


@given(st.text(), st.text())
def test_two_foreign_ids_stay_two(one: str, other: str) -> None:
    """Two sessions under one id would be appended to each other."""
    assert (session_id_of(one) == session_id_of(other)) == (one == other) or one in session_id_of(other)


def read_lines(data: bytes) -> tuple[list[Line], list[Damage]]:
    """The values and the damage of JSON lines."""
    file = Transcript(data)
    return list(file.lines()), file.warnings


def test_marks_and_line_ends_are_no_damage() -> None:
    """A file that went through Windows would lose its first line, or all."""
    expected = [Line(1, {"a": 1}), Line(2, {"b": 2})]
    assert read_lines(b'\xef\xbb\xbf{"a":1}\r\n{"b":2}\r\n') == (expected, [])
    assert read_lines('{"a":1}\n{"b":2}\n'.encode("utf-16")) == (expected, [])


def test_values_that_lost_their_newline_are_all_read() -> None:
    """A writer that appends after a crash glues records together; the second would be lost."""
    assert read_lines(b'{"a":1}{"b":2}\n') == ([Line(1, {"a": 1}), Line(1, {"b": 2})], [])


def test_damage_names_its_line_and_leaves_the_rest() -> None:
    """One bad line must cost one line, and be found again."""
    data = b'{"a":1}\n{"b":\n\0\0\0{"c":3}\n\xff\xfe\n{"d":"\xff"}\n{"e":'
    values, warnings = read_lines(data)
    assert values == [Line(1, {"a": 1}), Line(3, {"c": 3}), Line(5, {"d": "\ufffd"})]
    assert [warning.line for warning in warnings] == [2, 3, 4, 4, 5, 6]


def test_a_value_too_deep_to_walk_is_damage() -> None:
    """Python's recursion limit would end the import otherwise."""
    values, warnings = read_lines(b"[" * 5000 + b"]" * 5000 + b'\n{"a":1}\n' + b"[" * 300 + b"]" * 300)
    assert values == [Line(2, {"a": 1})]
    assert [warning.line for warning in warnings] == [1, 3]


@pytest.mark.parametrize(
    ("given_time", "expected"),
    [
        ("2030-01-01T15:00:00Z", "2030-01-01T15:00:00.000Z"),
        ("2030-01-01T15:00:00.1234+02:00", "2030-01-01T13:00:00.123Z"),
        (1_777_056_757, "2026-04-24T18:52:37.000Z"),
        (1_777_056_757_123, "2026-04-24T18:52:37.123Z"),
        ("yesterday", ""),
        (True, ""),
        (float("nan"), ""),
        (None, ""),
    ],
)
def test_times_become_utc(given_time: object, expected: str) -> None:
    """Records sort and compare by their time text."""
    assert as_utc(given_time) == expected


@given(st.recursive(st.none() | st.floats() | st.text() | st.booleans(), st.lists, max_leaves=8))
def test_any_json_as_a_time_is_a_time_or_nothing(value: object) -> None:
    """A damaged timestamp must not end an import."""
    assert as_utc(value) == "" or as_utc(value).endswith("Z")


def test_notes_leave_out_what_the_conversation_holds() -> None:
    """Tool results are most of a transcript; each would be kept twice."""
    long = "x" * 50
    value = {"stdout": long, "code": 0, "blank": "", "deep": [{"type": "text", "text": long}], "new": "y" * 50}
    assert without_repeats(value, [f"a {long} b"], {}) == {"code": 0, "new": "y" * 50}
    assert without_repeats({"stdout": long}, [long], {}) is None


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_text_as_windows_writes_it_is_recognised(tmp_path: Path, encoding: str) -> None:
    """A transcript that an editor saved, or a shell redirected, is refused as binary data."""
    store, message = MemoryStore(), {"role": "user", "content": "Grüße"}
    store.create("own")
    store.append("own", [Draft(MessageRecord(Message("user", (Text("Grüße"),))))])
    streamed = {"type": "user", "session_id": "s", "parent_tool_use_id": None, "message": message}
    found = {
        "turnlog": b"".join(FORMATS["jsonl"](store, "own", [])).decode(),
        "bodies": json.dumps({"messages": [message]}),
        "claude-code": json.dumps(claude(1, "user", "Grüße")),
        "claude-stream-json": json.dumps({"messages": [{"direction": "recv", "message": streamed}]}, indent=1),
    }
    for name, text in found.items():
        path = tmp_path / name
        path.write_bytes(text.encode())
        assert detect(path).name == name
        os.utime(path, (0, 0))
        expected = read_file(path)
        path.write_bytes(text.encode(encoding))
        os.utime(path, (0, 0))
        assert read_file(path) == expected


def test_what_is_no_transcript_is_refused_by_name(tmp_path: Path) -> None:
    """Somebody who picked the wrong file has to see which, what it is, and what to do."""
    cases = {"empty.jsonl": b"", "text.md": b"# notes\n", "photo.png": b"\x89PNG\r\n\0\0", "other.json": b'{"a": 1}'}
    for name, data in cases.items():
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(ImportFailed) as caught:
            read_file(path)
        assert str(path) in str(caught.value)
        assert "`turnlog import --formats` lists" in str(caught.value)
    with pytest.raises(ImportFailed, match=r"missing\.jsonl"):
        read_file(tmp_path / "missing.jsonl")
    with pytest.raises(ImportFailed, match="folder"):
        detect(tmp_path)
