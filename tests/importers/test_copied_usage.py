"""Tokens that a transcript has twice, or not to the end: copied histories, resumed sessions, figures of a stream."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from transcripts import SESSION, claude, claude_answer, jsonl, messages_of, of_kind

from turnlog.importers import read_file
from turnlog.importers.sync.session import sync_session
from turnlog.log.bills import total_usage
from turnlog.log.messages import Text, ToolCall, ToolResult, text_of
from turnlog.log.records import Note, TurnOpened, UsageRecord
from turnlog.stores import MemoryStore

START = datetime(2026, 11, 1, 10, tzinfo=UTC)
SOURCES = (
    {"forked_from_id": "parent"},
    {"parent_thread_id": "parent"},
    {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "parent", "depth": 1}}}},
)


def line(at: timedelta, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    """A line of a rollout, this long after the fork."""
    return {"timestamp": (START + at).isoformat(timespec="milliseconds"), "type": kind, "payload": payload}


def spent(tokens: int, total: int) -> dict[str, Any]:
    """Codex's event with the usage of one request."""
    counts = {"last_token_usage": {"input_tokens": tokens}, "total_token_usage": {"input_tokens": total}}
    return {"type": "token_count", "info": counts}


@given(
    st.lists(st.integers(1, 999), max_size=5),
    st.lists(st.integers(1, 999), max_size=5),
    st.sampled_from(SOURCES),
    st.booleans(),
    st.booleans(),
    st.integers(0, 200),
)
def test_a_rollout_counts_its_own_requests(
    copied: list[int], own: list[int], source: dict[str, Any], old_times: bool, with_header: bool, gap: int
) -> None:
    """A subagent's file begins with its parent's history, written anew or with its old times; ten subagents would be
    billed eleven times what was billed."""
    lines = [line(timedelta(), "session_meta", {"id": "child", **source})]
    if with_header:
        lines.append(line(timedelta(), "session_meta", {"id": "parent"}))
    total = 0
    for n, tokens in enumerate(copied):
        total += tokens
        at = timedelta(hours=n - 9) if old_times else timedelta(milliseconds=n * gap)
        lines.append(line(at, "event_msg", spent(tokens, total)))
    now = timedelta(milliseconds=len(copied) * gap)
    for tokens in own:
        total += tokens
        now += timedelta(seconds=1)
        lines.append(line(now, "event_msg", spent(tokens, total)))
    (session,) = read_file(jsonl(lines))
    assert [bill.usage.input for bill in of_kind(session, UsageRecord)] == own
    notes = [note.data["info"] for note in of_kind(session, Note) if note.topic == "copied_usage"]
    assert [info["last_token_usage"]["input_tokens"] for info in notes] == copied


def test_a_rollout_of_its_own_counts_all() -> None:
    """The same lines without a parent are requests of this session, however fast they came."""
    lines = [line(timedelta(), "session_meta", {"id": "own"}), line(timedelta(), "event_msg", spent(5, 5))]
    (session,) = read_file(jsonl(lines))
    assert [bill.usage.input for bill in of_kind(session, UsageRecord)] == [5]


def answer(n: int, own: str, outputs: list[int], stop: str | None) -> list[dict[str, Any]]:
    """An answer in as many records as it has figures for its output."""
    records = [claude_answer(n + i, own, {"type": "text", "text": f"part {i}"}) for i in range(len(outputs))]
    for record, output in zip(records, outputs, strict=True):
        record["message"]["usage"]["output_tokens"] = output
    records[-1]["message"]["stop_reason"] = stop
    return records


@pytest.mark.parametrize(
    ("outputs", "stop", "incomplete"),
    [([1, 1], None, True), ([3], None, True), ([1, 1], "end_turn", False), ([1, 340], None, False)],
)
def test_figures_from_before_the_end_are_a_minimum(outputs: list[int], stop: str | None, incomplete: bool) -> None:
    """Claude Code writes the figures of the beginning of a stream with each block: 1 token for a page of text."""
    (session,) = read_file(jsonl([claude(1, "user", "go"), *answer(2, "m1", outputs, stop)]))
    (bill,) = of_kind(session, UsageRecord)
    assert (bill.usage.output, bill.usage.incomplete) == (outputs[-1], incomplete)


@pytest.mark.parametrize(
    ("characters", "output", "incomplete"),
    [(2_000, 3, True), (2_000, 240, True), (2_000, 260, False), (2_000, 500, False), (200, 3, False)],
)
@pytest.mark.parametrize("kind", ["text", "thinking", "tool_use"])
def test_an_answer_longer_than_its_figures_is_a_minimum(
    kind: str, characters: int, output: int, incomplete: bool
) -> None:
    """A file that says how an answer ended, but has the figures of its beginning: 3 tokens for a page, at an exact
    price."""
    block = {"type": kind, "text": "x" * characters}
    if kind == "thinking":
        block = {"type": kind, "thinking": "x" * characters, "signature": "s"}
    elif kind == "tool_use":
        block = {"type": kind, "id": "t", "name": "Write", "input": {"content": "x" * characters}}  # type: ignore[dict-item]
    record = claude_answer(2, "m1", block)
    record["message"]["usage"]["output_tokens"] = output
    record["message"]["stop_reason"] = "end_turn"
    (session,) = read_file(jsonl([claude(1, "user", "go"), record]))
    (bill,) = of_kind(session, UsageRecord)
    assert (bill.usage.output, bill.usage.incomplete) == (output, incomplete)


def test_a_session_whose_minimum_was_not_known_stays_one() -> None:
    """What an older version imported as exact would come a second time, and be billed twice."""
    record = claude_answer(2, "m1", {"type": "text", "text": "x" * 2_000})
    record["message"]["stop_reason"] = "end_turn"
    (session,) = read_file(jsonl([claude(1, "user", "go"), record]))
    drafts = []
    for draft in session.drafts:
        body = draft.body
        if isinstance(body, UsageRecord):
            body = replace(body, usage=replace(body.usage, incomplete=False))
        drafts.append(replace(draft, body=body))
    store = MemoryStore()
    sync_session(store, replace(session, drafts=tuple(drafts)))
    assert sync_session(store, session).status == "unchanged"


def test_the_end_of_an_answer_completes_its_figures() -> None:
    """The session would be imported a second time under another id if its figures could only grow."""
    store = MemoryStore()
    begun = [claude(1, "user", "go"), *answer(2, "m1", [2], None)]
    sync_session(store, read_file(jsonl(begun))[0])
    assert total_usage(store.usage(SESSION)).incomplete
    ended = [*begun, *answer(3, "m1", [340], "end_turn")]
    assert sync_session(store, read_file(jsonl(ended))[0]).status == "continued"
    assert (total_usage(store.usage(SESSION)).output, total_usage(store.usage(SESSION)).incomplete) == (340, False)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5))
def test_resumed_sessions_count_an_answer_once(kept: list[int]) -> None:
    """Claude Code writes the lines of the session that it resumes into a new file. `kept` says how many of them."""
    store, lines, total = MemoryStore(), list[dict[str, Any]](), 0
    for n, count in enumerate(kept):
        lines = lines[: 2 * count]
        at = len(lines) + 1
        new = [claude(at, "user", f"go {n}"), *answer(at + 1, f"m{n}", [10], "end_turn")]
        lines = [{**one, "sessionId": f"session-{n}"} for one in [*lines, *new]]
        total += 10
        sync_session(store, read_file(jsonl(lines))[0])
    assert sum(total_usage(bills).output for bills in store.usages().values()) == total
    assert {name: total_usage(store.usage(name)).output for name in store.usages()}.keys() <= {
        f"session-{n}" for n in range(len(kept))
    }


def test_snapshots_of_an_answer_are_one_answer() -> None:
    """iFlow writes an answer again while it grows: calls that still run would have been made twice."""
    first, second = ({"type": "tool_use", "id": own, "name": "ls", "input": {"path": own}} for own in "ab")
    text = {"type": "text", "text": "I look."}
    records = [
        claude(1, "user", "go"),
        claude(2, "assistant", [text, first]),
        claude(3, "assistant", [first, second]),
        claude(4, "user", [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]),
        claude(5, "assistant", [second]),
        claude(6, "user", [{"type": "tool_result", "tool_use_id": "b", "content": "y"}]),
        claude(7, "assistant", [{**first, "input": {"path": "again"}}]),
    ]
    for n in (1, 2, 4, 6):
        records[n]["message"].update(id=f"m{n}", usage={"input_tokens": 5, "output_tokens": n})
    (session,) = read_file(jsonl(records))
    messages = messages_of(session)
    calls = [[part.id for part in one.parts if isinstance(part, ToolCall)] for one in messages]
    assert calls == [[], ["a", "b"], [], [], ["a"]]
    results = [part.call_id for one in messages for part in one.parts if isinstance(part, ToolResult)]
    assert (results, text_of(messages[1])) == (["a", "b"], "I look.")
    assert [bill.usage.output for bill in of_kind(session, UsageRecord)] == [4, 6]


QUEUED: list[tuple[dict[str, Any], bool]] = [
    ({"commandMode": "prompt", "origin": {"kind": "human"}}, False),
    ({}, False),
    ({"commandMode": "prompt", "origin": {"kind": "peer", "from": "a"}}, True),
    ({"commandMode": "task-notification"}, True),
    ({"commandMode": "prompt", "isMeta": True}, True),
]


@pytest.mark.parametrize(("about", "by_program"), QUEUED)
@pytest.mark.parametrize("prompt", ["also do B", [{"type": "text", "text": "also do B"}]])
def test_what_was_typed_while_the_model_worked_is_a_message(
    about: dict[str, Any], by_program: bool, prompt: Any
) -> None:
    """The model did both; without this message nobody would know why. What a program wrote gives no orders."""
    attachment = {"type": "queued_command", "prompt": prompt, **about}
    lines = [
        claude(1, "user", "go"),
        claude_answer(2, "m1", {"type": "tool_use", "id": "t", "name": "ls", "input": {}}),
        claude(3, "user", [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]),
        claude(4, "attachment", attachment=attachment),
        claude_answer(5, "m2", {"type": "text", "text": "did both"}),
    ]
    (session,) = read_file(jsonl(lines))
    said = messages_of(session)[3]
    assert (said.role, said.by_program) == ("user", by_program)
    assert [part.text for part in said.parts if isinstance(part, Text)] == ["also do B"]
    assert len(of_kind(session, TurnOpened)) == 1
    assert session.warnings == ()


def test_a_queued_prompt_that_cannot_be_read_is_named() -> None:
    """A prompt of another shape would vanish."""
    lines = [claude(1, "user", "go"), claude(2, "attachment", attachment={"type": "queued_command", "prompt": 5})]
    (session,) = read_file(jsonl(lines))
    assert [(damage.line, damage.lost) for damage in session.warnings] == [(2, "part")]
