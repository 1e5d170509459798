"""Tool calls: what became of each, what is left open, and what a late result changes."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from agents import says, session_in
from judging import TARGETS
from turnlog.log.messages import Message, Outcome, Text, Tool, ToolCall, ToolResult
from turnlog.log.records import (
    Approval,
    Body,
    MessageRecord,
    PartialAnswer,
    Record,
    StreamCheckpoint,
    ToolFinished,
    ToolStarted,
)
from turnlog.log.usage import Count
from turnlog.models.makers import PROVIDER_ROWS, default_model
from turnlog.models.target import Target
from turnlog.providers import provider as provider_named
from turnlog.session import answer_unfinished
from turnlog.stores import MemoryStore
from turnlog.testing.histories import HistoryWriter
from turnlog.view.repair.arrange import synthetic_result
from turnlog.view.tool_calls import CallInfo, ToolUse, calls_of, tools_used

CALL = ToolCall("c1", "ls")


def log(*bodies: Body) -> list[Record]:
    """Records of these bodies."""
    return [Record(n, "t", body) for n, body in enumerate(bodies, 1)]


def calling(*calls: ToolCall) -> MessageRecord:
    """A model that calls."""
    return MessageRecord(Message("assistant", calls or (CALL,)))


def result(text: str, call_id: str = "c1", *, tokens: int = 0, outcome: Outcome = "ok") -> MessageRecord:
    """What a tool gave."""
    count = Count(tokens, "x/1") if tokens else None
    return MessageRecord(Message("user", (ToolResult(call_id, "ls", (Text(text),), outcome),)), count)


START, GIVEN = ToolStarted("c1", 1, "ls"), Approval("c1", "given", 1, "kim")


@pytest.mark.parametrize(
    "after, expected, awaits, standing",
    [
        ((), {}, "result", "not on record whether it started"),
        ((Approval("c1", "asked", 1),), {"approval": "asked", "approval_record": 2}, "approval", "waits for approval"),
        ((Approval("c1", "asked"),), {"approval": "asked", "approval_record": 2}, "approval", "waits for approval"),
        (
            (GIVEN,),
            {"approval": "given", "approved_by": "kim", "approval_record": 2}, "result", "approved, not started",
        ),
        (
            (Approval("c1", "denied", 1, reason="no"),),
            {"approval": "denied", "approval_record": 2, "outcome": "canceled", "reason": "no"}, "result", "denied",
        ),
        ((START,), {"started": 2, "outcome": "aborted"}, "result", "started and never ended: it may have run"),
        (
            (START, ToolFinished("c1", 1, "timeout", 1.5, "slow")),
            {"started": 2, "finished": 3, "seconds": 1.5, "outcome": "timeout", "reason": "slow"}, "result",
            "ended (timeout), but its result is not on record",
        ),
        (
            (START, result("x", outcome="failed", tokens=7)),
            {"started": 2, "result": 3, "outcome": "failed", "tokens": 7}, "", "answered in record 3",
        ),
        (
            (START, Approval("c1", "asked", 1)),
            {"started": 2, "approval": "asked", "approval_record": 3, "outcome": "aborted"}, "approval",
            "may have run; waits for approval to run again",
        ),
        (
            (START, Approval("c1", "denied", 1, reason="no")),
            {"started": 2, "approval": "denied", "approval_record": 3, "outcome": "aborted", "reason": "no"},
            "result", "may have run; may not run again",
        ),
        (
            (START, GIVEN, START),
            {"started": 4, "approval": "given", "approved_by": "kim", "approval_record": 3, "outcome": "aborted"},
            "result", "started and never ended: it may have run",
        ),
        ((ToolStarted("c1", 7), result("x", "c9")), {}, "result", "not on record whether it started"),
    ],
)  # fmt: skip
def test_how_a_call_stands(after: tuple[Body, ...], expected: dict[str, object], awaits: str, standing: str) -> None:
    """Each entry of the ledger, and each gap in it, is told apart."""
    (info,) = calls_of(log(calling(), *after))
    assert info == CallInfo(CALL, 1, "t", **expected)  # type: ignore[arg-type]
    assert (info.awaits, info.standing) == (awaits, standing)


def test_a_call_whose_id_comes_twice_is_told_by_its_record() -> None:
    """Ids repeat in real logs: the ledger's entry of one call must not count for the other."""
    records = log(calling(), START, result("x"), calling(), ToolStarted("c1", 4, "ls"))
    assert [(info.record, info.started, info.outcome) for info in calls_of(records)] == [
        (1, 2, "ok"),
        (4, 5, "aborted"),
    ]


def test_telemetry_counts_what_was_done_with_each_tool() -> None:
    """Calls, outcomes, times and tokens by tool; results that no tool made cost nothing."""
    other = ToolCall("c2", "rm")
    both = (ToolResult("c1", "ls", (Text("a" * 8),)), ToolResult("c2", "rm", (Text("b" * 28),), "failed"))
    records = log(
        calling(CALL, other),
        START,
        ToolFinished("c1", 1, "ok", 0.5),
        MessageRecord(Message("user", both), Count(80, "x/1")),
        calling(),
        ToolStarted("c1", 5, "ls"),
        ToolFinished("c1", 5, "ok", 1.5),
        MessageRecord(Message("user", (synthetic_result(CALL, "ok"),)), Count(50, "x/1")),
        calling(),
    )
    assert tools_used(calls_of(records)) == [
        ToolUse("ls", 3, {"ok": 2, "unknown": 1}, 2, 2.0, 1.5, 20),
        ToolUse("rm", 1, {"failed": 1}, 0, 0.0, 0.0, 60),
    ]


@given(seed=st.integers(0, 500))
def test_kinds_of_calls_are_all_alike(seed: int) -> None:
    """Free-form, shell and function calls of any provider: each is found once and answered by its own result."""
    writer = HistoryWriter(random.Random(seed))
    messages = writer.history()
    infos = calls_of(log(*map(MessageRecord, messages)))
    wanted = [part for message in messages for part in message.parts if isinstance(part, ToolCall)]
    assert [info.call for info in infos] == wanted
    for info in infos:
        parts = messages[info.result - 1].parts
        assert info.outcome in [p.outcome for p in parts if isinstance(p, ToolResult) and p.call_id == info.call.id]


FATES: tuple[tuple[Body, ...], ...] = (
    (),
    (ToolStarted("c1", 3, "weather"),),
    (ToolStarted("c1", 3, "weather"), ToolFinished("c1", 3, "failed")),
    (ToolStarted("c1", 3, "weather"), ToolFinished("c1", 3, "ok")),
    (ToolStarted("c1", 3, "weather"), ToolFinished("c1", 3, "timeout")),
    (Approval("c1", "denied", 3),),
)


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
@pytest.mark.parametrize("fate", FATES)
def test_putting_answers_on_record_changes_no_request(aim: Target, fate: tuple[Body, ...]) -> None:
    """What requests say of open calls anyway is what `answer_unfinished` records: the same bytes, and a late real
    result takes the place of either."""
    store = MemoryStore()
    session = session_in(store)
    session.user("go")
    call = session.receive(says("", "c1", "c2")).tool_calls[0]
    session._journal.append(*fate)
    before = session.request(aim)
    assert [edit.kind for edit in before.edits].count("unanswered") == 2
    answered = answer_unfinished(session)
    assert [info.call.id for info in answered] == ["c1", "c2"]
    after = session.request(aim)
    assert [edit.kind for edit in after.edits if edit.kind in ("unanswered", "orphan", "duplicate")] == []
    assert after.body == before.body
    assert (session.log.unfinished(), answer_unfinished(session)) == ([], [])
    session.tool_result(call, "4 degrees after all")
    late = session.request(aim)
    assert "4 degrees after all" in late.json().decode()
    assert (session.log.calls()[0].outcome, session.log.calls()[0].synthetic) == ("ok", False)


def _calling(provider: str, name: str) -> dict[str, Any]:
    """An answer that calls a tool, as each provider's API gives it."""
    if provider == "anthropic":
        call = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}
        return {"type": "message", "role": "assistant", "content": [call], "stop_reason": "tool_use"}
    if provider == "google":
        said = {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}}]}
        return {"candidates": [{"content": said, "finishReason": "STOP"}]}
    if provider == "openai-responses":
        item = {"type": "function_call", "call_id": "call_1", "name": name, "arguments": "{}"}
        return {"id": "resp_1", "status": "completed", "output": [item]}
    function = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": "{}"}}
    return {"choices": [{"finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": [function]}}]}


@pytest.mark.parametrize("provider", ["openai-chat", "openai-responses", "anthropic", "google"])
@pytest.mark.parametrize("name", ["fs.read", "read a file", "Lies €", "x" * 200, "read"])
def test_a_tool_is_called_by_the_name_that_it_was_given(provider: str, name: str) -> None:
    """A server's tools have names that a provider does not take: the model was offered another, called that, and the
    agent knew no such tool; the next provider was shown calls of a tool that it had not."""
    aim = turnlog.target(provider, default_model(provider))
    with turnlog.open("s", store=":memory:", target=aim, tools=[{"name": name}]) as session:
        session.user("Read it.")
        first = session.request().json().decode()
        offered = next(iter(re.findall(r'"name":"([^"]+)"', first)))
        (call,) = session.receive(_calling(provider, offered)).tool_calls
        assert call.name == name
        session.tool_result(call, "It says nothing.")
        session.user("Well?")
        assert set(re.findall(r'"name":"([^"]+)"', session.request().json().decode())) == {offered}
        for other in PROVIDER_ROWS:
            session.switch(turnlog.target(other, default_model(other)))
            assert len(set(re.findall(r'"name":"([^"]+)"', session.request().json().decode()))) == 1


@pytest.mark.parametrize("ends", [True, False])
def test_a_tool_has_its_own_name_in_half_an_answer_too(ends: bool) -> None:
    """A stream that broke off, or a process that was killed in one, left calls on record under the name that the tool
    was offered under, which neither the agent nor the next provider knows."""
    aim = turnlog.target("openai-chat", "gpt-4o")
    with turnlog.open(
        "s", store=":memory:", target=aim, tools=[{"name": "fs.read"}], settings=turnlog.Settings(checkpoint=0)
    ) as session:
        session.user("Read it.")
        offered = session.request().body["tools"][0]["function"]["name"]
        calls = [
            {"index": i, "id": f"call_{i}", "type": "function", "function": {"name": offered, "arguments": '{"a": '}}
            for i in range(2)
        ]
        rest = [{"index": 0, "function": {"arguments": "1} "}}] if ends else []
        chunks = [{"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]} for call in (*calls, *rest)]
        session.receive(iter(chunks))
        kept = [record for record in session.history() if isinstance(record.body, (PartialAnswer, StreamCheckpoint))]
        assert len(kept) >= 2 and isinstance(kept[-1].body, PartialAnswer)
        for record in kept:
            assert b"fs.read" in (record.raw or b"") and offered.encode() not in (record.raw or b"")


@pytest.mark.parametrize("provider", ["openai-chat", "openai-responses", "anthropic", "google"])
def test_a_choice_names_the_tool_as_it_is_declared(provider: str) -> None:
    """A choice of a tool that is declared under another name is one of no tool: OpenAI refuses it, and for the others
    it was left out."""
    speaker, aim = provider_named(provider), turnlog.target(provider, default_model(provider))
    with turnlog.open("s", store=":memory:", target=aim, tools=[{"name": "read a file"}, {"name": "ls"}]) as session:
        for name in ("read a file", "ls"):
            session.configure(**speaker.with_tool_choice({}, f"tool:{name}"))
            request = session.request().body
            chosen = (speaker.tool_choice(request) or "").removeprefix("tool:")
            assert chosen.startswith(name[:2]) and f'"name": "{chosen}"' in json.dumps(request["tools"])


@pytest.mark.parametrize(
    "provider, choice",
    [
        ("openai-chat", {"type": "custom", "custom": {"name": "read a file"}}),
        (
            "openai-chat",
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [{"type": "custom", "custom": {"name": "read a file"}}]},
            },
        ),
        ("openai-responses", {"type": "custom", "name": "read a file"}),
        (
            "openai-responses",
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "custom", "name": "read a file"}]},
        ),
        ("google", {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["ls", "read a file"]}}),
    ],
)
def test_a_choice_is_the_same_but_for_names(provider: str, choice: dict[str, Any]) -> None:
    """Of several tools that were allowed, the one that is declared under another name was left out, so that a model had
    to call another, or the API refused the request; a choice of a custom tool became that of a function."""
    key = "toolConfig" if provider == "google" else "tool_choice"
    aim = turnlog.target(provider, default_model(provider), **{key: choice})
    tools = [Tool("ls"), Tool("read a file", kind="custom")]
    with turnlog.open("s", store=":memory:", target=aim, tools=tools) as session:
        body = session.request().json().decode()
        (declared,) = set(re.findall(r"read_a_file_\w+", body))
        assert json.loads(body.replace(declared, "read a file"))[key] == choice != json.loads(body)[key]


def test_a_call_whose_id_a_newer_one_has_waits_for_nothing() -> None:
    """Its stand-in result would be a further one of the newer call: whoever closed what is open put another on record
    each time, and a turn that waits for the call would never end."""
    store = MemoryStore()
    session = session_in(store)
    session.add(Message("assistant", (CALL,)))
    session.user("Go on.")
    session.add(Message("assistant", (CALL,)))
    session.tool_result(CALL, "files")
    older, newer = session.log.calls()
    assert (older.superseded, older.awaits, older.result) == (newer.record, "", 0)
    assert (newer.superseded, newer.awaits, newer.result) == (0, "", newer.record + 1)
    assert (session.log.unfinished(), answer_unfinished(session)) == ([], [])
    assert [one.kind for one in session.log.validate()] == ["unanswered"]


@pytest.mark.parametrize("name", ["other", ""])
def test_a_call_of_another_tool_still_waits(name: str) -> None:
    """A call could not be answered any more because another tool's call had its id."""
    bodies = (calling(), result("x", "c2"), calling(ToolCall("c1", name)))
    older, newer = calls_of(log(*bodies))
    assert (older.superseded, newer.superseded) == ((0, 0) if name else (3, 0))
