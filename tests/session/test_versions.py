"""A session that an earlier version recorded: what this version shows otherwise is on record from the first opening."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import turnlog
from turnlog.log.records import Decision, Record
from turnlog.log.texts import texts_in
from turnlog.session.session import Session

HERE = Path(__file__).parent
SENT = (HERE / "made_by_7638d49e.request.json").read_bytes()
"""What commit 7638d49e sent, with an empty message for the output of `get_logs`."""


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store made by commit 7638d49e, which shortened outputs when they came."""
    shutil.copytree(HERE / "made_by_7638d49e", tmp_path / "old")
    return f"files:{tmp_path / 'old'}"


def decisions(session: Session) -> list[Record]:
    """The decisions on record."""
    return [record for record in session.history() if isinstance(record.body, Decision)]


def test_the_first_opening_says_from_where_on_other_bytes_are_sent(store: str) -> None:
    """A prompt cache missed, and nobody knew why; or worse, the decision named a byte behind the first that moved."""
    with turnlog.open("s", store=store) as session:
        request = session.request()
        [record] = decisions(session)
        made = record.body
        assert isinstance(made, Decision)
        assert (made.action, made.first, made.last) == ("version", 6, 8)
        assert made.detail == {
            "records": [6, 8], "changes_from": 6, "place": "message.parts[0].parts[0].text", "byte": 0,
        }  # fmt: skip
        assert made.why.startswith("an earlier version shortened tool outputs when they came")
        old, new = (json.loads(body)["messages"] for body in (SENT, request.json()))
        moved = next(i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b)
        assert request.view[moved].records == (6,) and old[:moved] == new[:moved]
        whole = next(text for path, _, text in texts_in(session.history()[5].body) if path == made.detail["place"])
        assert new[moved]["content"] == whole
        at = made.detail["byte"]
        assert old[moved]["content"][:at] == whole[:at]


def test_it_is_said_once_and_bytes_stay_from_then_on(store: str) -> None:
    """Each opening would say again that everything moved."""
    with turnlog.open("s", store=store) as session:
        sent, said = session.request().json(), decisions(session)
    with turnlog.open("s", store=store, override=True, budget=90_000) as session:
        assert decisions(session) == said
        assert session.request().json() == sent
    with turnlog.open("s", store=store, read_only=True) as session:
        assert session.request().json() == sent


def test_another_target_at_the_first_opening_does_not_hide_it(store: str) -> None:
    """The configuration of this version replaced that of the earlier one before anybody looked."""
    target = turnlog.target("anthropic", "claude-sonnet-4-5")
    with turnlog.open("s", store=store, target=target, override=True) as session:
        assert [record.body.action for record in decisions(session) if isinstance(record.body, Decision)] == ["version"]


def test_a_session_of_this_version_says_nothing(tmp_path: Path) -> None:
    """A decision that nothing needs would move nothing and cost trust."""
    place = tmp_path / "new.db"
    for _ in range(3):
        with turnlog.open("s", store=place, target=turnlog.target("openai-chat", "gpt-4o")) as session:
            call = turnlog.ToolCall(f"call_{len(session.history())}", "grep", {})
            session.add(turnlog.Message("assistant", (call,)))
            session.tool_result(call, "\n".join(f"src/a.py:{n}:    value = compute({n})" for n in range(200)))
            assert decisions(session) == []
