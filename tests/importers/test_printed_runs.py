"""The log of a build may have several runs of a program."""

from __future__ import annotations

from typing import Any

import pytest
from transcripts import jsonl, messages_of, of_kind

from turnlog.importers import read_file
from turnlog.log.messages import text_of
from turnlog.log.records import Note, UsageRecord


def _copilot(session: str, asked: str) -> list[dict[str, Any]]:
    ready = {"type": "session.tools_updated", "data": {"model": "gpt-5"}, "id": f"r{asked}"}
    prompt = {"type": "user.message", "data": {"content": asked}, "id": f"p{asked}", "parentId": f"r{asked}"}
    answer = {"content": "Sogne", "model": "gpt-5", "outputTokens": 40}
    end = {"type": "result", "sessionId": session, "exitCode": 0}
    return [ready, prompt, {"type": "assistant.message", "data": answer, "id": f"a{asked}"}, end]


def _goose(number: int, asked: str) -> list[dict[str, Any]]:
    def said(role: str, text: str) -> dict[str, Any]:
        content = [{"type": "text", "text": text}]
        return {"type": "message", "message": {"id": f"m{number}-{role}", "role": role, "content": content}}

    end = {"type": "complete", "total_tokens": 50, "input_tokens": 10, "output_tokens": 40}
    return [said("user", asked), said("assistant", "Sogne"), said("assistant", " it is"), end]


def test_each_run_of_copilot_cli_is_a_session() -> None:
    """Two jobs of a build would be one conversation, and a model would be told what another was asked."""
    runs = [_copilot("s-1", "one"), _copilot("s-2", "two"), _copilot("s-1", "three")]
    data = b"building\n".join(map(jsonl, runs))
    first, second = read_file(data)
    assert [(each.session_id, each.title) for each in (first, second)] == [("s-1", "one"), ("s-2", "two")]
    assert [text_of(message) for message in messages_of(first)] == ["one", "Sogne", "three", "Sogne"]
    assert [text_of(message) for message in messages_of(second)] == ["two", "Sogne"]
    assert [record.usage.output for record in of_kind(first, UsageRecord)] == [40, 40]
    assert [(len(first.warnings), first.warnings[0].count), len(second.warnings)] == [(1, 2), 0]


def test_a_run_of_copilot_cli_that_was_broken_off_ends_with_the_log_or_at_the_next() -> None:
    """What comes behind the last result would be told as part of the run before."""
    first, second = read_file(jsonl([*_copilot("s-1", "one"), *_copilot("s-2", "two")[:2]]))
    assert (first.session_id, [text_of(message) for message in messages_of(second)]) == ("s-1", ["two"])
    started = [{"type": "session.start", "data": {"sessionId": each}, "id": each} for each in ("s-3", "s-4")]
    runs = [started[0], *_copilot("", "one")[:2], started[1], *_copilot("s-4", "two")]
    assert [(each.session_id, each.title) for each in read_file(jsonl(runs))] == [("s-3", "one"), ("s-4", "two")]


def test_each_run_of_goose_is_a_session() -> None:
    """As for Copilot CLI; a run of goose names no session."""
    notice = {"type": "notification", "extension_id": "developer", "message": "the shell has ended"}
    first, second = read_file(jsonl([*_goose(1, "one"), notice, *_goose(2, "two"), notice]))
    assert first.session_id != second.session_id
    assert [text_of(message) for message in messages_of(first)] == ["one", "Sogne it is"]
    assert [text_of(message) for message in messages_of(second)] == ["two", "Sogne it is"]
    assert [[record.usage.output for record in of_kind(each, UsageRecord)] for each in (first, second)] == [[40], [40]]
    assert read_file(jsonl(_goose(1, "one")))[0].session_id == first.session_id


def test_runs_of_goose_that_are_alike_are_both_there() -> None:
    """The second run of the same job would take the place of the first."""
    first, second = read_file(jsonl(_goose(1, "one") * 2))
    assert first.session_id != second.session_id
    assert [text_of(message) for message in messages_of(second)] == ["one", "Sogne it is"]


def test_events_beside_the_runs_of_copilot_cli_make_no_session() -> None:
    """A session without a word was listed for what came before the first run; what follows one went to another."""
    notice = {"type": "session.info", "data": {"infoType": "x", "message": "the policy was read"}, "id": "n"}
    runs = [_copilot("s-1", "one"), _copilot("s-2", "two"), _copilot("s-1", "three")]
    lines = [notice, {"type": "result", "exitCode": 1}, *(line for run in runs for line in run), notice]
    first, second = read_file(jsonl(lines))
    told = [[note.data for note in of_kind(each, Note) if note.topic == "session.info"] for each in (first, second)]
    assert (first.session_id, list(map(len, told))) == ("s-1", [2, 0])


@pytest.mark.parametrize("asked", [True, False])
def test_many_beginnings_take_no_longer(asked: bool) -> None:
    """Each beginning looked through all events before it for a name: 20,000 of them took two minutes."""
    events = [{"type": "user.message", "data": {"content": "go"}, "id": f"u{n}"} for n in range(10_000 * asked)]
    name = {"sessionId": "s-1"} if asked else {}
    events += [{"type": "session.start", "data": name, "id": f"b{n}"} for n in range(10_000)]
    assert len(read_file(jsonl([*events, *_copilot("s-1", "one")]))) == 1
