"""Session folders of Strands: their order, growth and damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transcripts import of_kind

from turnlog.importers import detect, read_file
from turnlog.log.messages import text_of
from turnlog.log.records import MessageRecord


def _said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"text": text}]}


def _session(folder: Path, agents: dict[str, list[dict[str, Any]]]) -> Path:
    """A session folder with these messages of each agent."""
    session = folder / "session_s-1"
    for agent, messages in agents.items():
        place = session / "agents" / f"agent_{agent}" / "messages"
        place.mkdir(parents=True)
        about = {"agent_id": agent, "state": {}, "conversation_manager_state": {"removed_message_count": 0}}
        (place.parent / "agent.json").write_text(json.dumps({**about, "created_at": "2026-11-29T22:01:00+00:00"}))
        for number, message in enumerate(messages):
            entry = {
                "message": message,
                "message_id": number,
                "redact_message": None,
                "created_at": "2026-11-29T22:02:00Z",
            }
            (place / f"message_{number}.json").write_text(json.dumps({**entry, **message.pop("beside", {})}))
    (session / "session.json").write_text(json.dumps({"session_id": "s-1", "session_type": "AGENT"}))
    return session


@pytest.mark.parametrize(
    "given", ["session.json", "agents/agent_a/agent.json", "agents/agent_a/messages/message_1.json"]
)
def test_a_session_folder_is_read_in_the_order_of_its_numbers(given: str, tmp_path: Path) -> None:
    """By the order of their names, message 10 would come before message 2, and answers would lose their questions."""
    messages = [_said("assistant" if number % 2 else "user", f"text {number}") for number in range(12)]
    folder = _session(tmp_path, {"a": messages, "b": [_said("user", "Hello")]})
    assert detect(folder / given).name == "bedrock-converse"
    first, second = read_file(folder / given)
    texts = [text_of(record.message) for record in of_kind(first, MessageRecord)]
    assert texts == [f"text {number}" for number in range(12)]
    assert (first.session_id, second.session_id, second.parent) == ("s-1", "s-1-b", "s-1")
    assert {Path(file).name for file in first.files} >= {"message_11.json", "agent.json", "session.json"}


def test_a_folder_that_grew_begins_with_the_same_records(tmp_path: Path) -> None:
    """The next import would make a second copy of the session."""
    messages = [_said("user", "Hello"), _said("assistant", "Hello to you")]
    folder = _session(tmp_path, {"a": messages})
    (before,) = read_file(folder / "session.json")
    place = folder / "agents" / "agent_a"
    (place / "messages" / "message_2.json").write_text(json.dumps({"message": _said("user", "More"), "message_id": 2}))
    about = {"agent_id": "a", "created_at": "2026-11-29T22:01:00+00:00"}
    (place / "agent.json").write_text(json.dumps({**about, "conversation_manager_state": {"removed_message_count": 2}}))
    (after,) = read_file(folder / "session.json")
    assert after.drafts[: len(before.drafts)] == before.drafts
    assert ["`removed_message_count` of agent.json" in warning.message for warning in after.warnings] == [True]


def test_what_was_redacted_is_not_what_was_said(tmp_path: Path) -> None:
    """A model would be shown what its guardrail took out of the conversation."""
    redacted = {"beside": {"redact_message": _said("user", "[redacted]")}}
    folder = _session(tmp_path, {"a": [{**_said("user", "a secret of mine"), **redacted}]})
    (session,) = read_file(folder / "session.json")
    assert [text_of(record.message) for record in of_kind(session, MessageRecord)] == ["[redacted]"]
    assert "a secret of mine" in str(session.drafts)


def test_a_damaged_file_of_a_folder_costs_its_message(tmp_path: Path) -> None:
    """One file that is cut would hide a whole session."""
    folder = _session(tmp_path, {"a": [_said("user", "Hello"), _said("assistant", "Hello to you")]})
    (folder / "agents" / "agent_a" / "messages" / "message_1.json").write_text('{"message": {')
    (session,) = read_file(folder / "session.json")
    assert len(of_kind(session, MessageRecord)) == 1
    assert [Path(warning.file).name for warning in session.warnings] == ["message_1.json"]
