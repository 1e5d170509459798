"""`turnlog why`: what the provider itself left out of requests."""

from __future__ import annotations

from pathlib import Path

from commands import Command
from turnlog.log.messages import Message, Text
from turnlog.log.records import MessageRecord, Note
from turnlog.log.store import Draft
from turnlog.stores import SqliteStore


def test_what_the_provider_left_out_is_listed(tmp_path: Path, turnlog: Command) -> None:
    """A user who asks why the model forgot its plan would find no decision, and no other reason."""
    store = SqliteStore(tmp_path / "log.db")
    store.create("s")
    said = MessageRecord(Message("user", (Text("Go on."),)))
    told = Note("response", "the provider left out 2 thoughts (prefix_binding_mismatch)", {})
    store.append("s", [Draft(said), Draft(told), Draft(Note("response", data={"diagnostics": {"a": 1}}))])
    out = turnlog("why", "s").out
    assert "left out by the provider:\n    2  the provider left out 2 thoughts (prefix_binding_mismatch)\n" in out
    rows = [row for row in turnlog("why", "s", "--json").rows if "remark" in row]
    assert rows == [{"record": 2, "remark": told.text}]
