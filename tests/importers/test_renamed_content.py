"""Content in a place where an importer does not look: a key with another name, an unknown kind, an answer beside its
request. Such content is read, told by a warning that makes `import` end with 1, or the file is refused."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcripts import jsonl

from turnlog.errors import ImportFailed
from turnlog.importers import read_file
from turnlog.log.messages import Part, Text, ToolCall, ToolResult
from turnlog.log.records import MessageRecord, UsageRecord
from turnlog.log.texts import strings_in
from turnlog.log.usage import Usage

WORDS = "it is the word that counts"
CONTENT = ("content", "args", "arguments", "result", "history", "messages", "observation", "llm_message", "tool_call")
"""Keys of content in the formats below."""

TIME = "2026-11-01T10:00:0{}Z".format
CHAT_CALL = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": json.dumps({"path": WORDS})}}

GEMINI = {
    "sessionId": "g", "projectHash": "p", "startTime": TIME(0),
    "messages": [
        {"id": "1", "timestamp": TIME(1), "type": "user", "content": WORDS},
        {"id": "2", "timestamp": TIME(2), "type": "gemini", "content": WORDS, "model": "gemini-2.5-pro", "toolCalls": [
            {"id": "t", "name": "ls", "args": {"path": WORDS}, "status": "success", "result": [
                {"functionResponse": {"id": "t", "name": "ls", "response": {"output": WORDS}}}]}]},
    ],
}  # fmt: skip
PI = [
    {"type": "session", "version": 3, "id": "p", "timestamp": TIME(0), "cwd": "/w"},
    {"type": "message", "id": "a", "parentId": None, "message": {"role": "user", "content": WORDS}},
    {"type": "message", "id": "b", "parentId": "a", "message": {"role": "assistant", "stopReason": "stop", "content": [
        {"type": "text", "text": WORDS}, {"type": "toolCall", "id": "t", "name": "ls", "arguments": {"path": WORDS}}]}},
    {"type": "message", "id": "c", "parentId": "b", "message": {
        "role": "toolResult", "toolCallId": "t", "toolName": "ls", "content": [{"type": "text", "text": WORDS}]}},
]  # fmt: skip
CLINE = {
    "sessionId": "s", "agent": "x", "modelInfo": {"id": "m", "provider": "anthropic"},
    "messages": [
        {"id": "1", "role": "user", "content": [{"type": "text", "text": WORDS}], "ts": 1760000000000},
        {"id": "2", "role": "assistant", "ts": 1760000000001, "content": [
            {"type": "tool_use", "id": "t", "name": "ls", "input": {"path": WORDS}}]},
        {"id": "3", "role": "user", "ts": 1760000000002, "content": [
            {"type": "tool_result", "tool_use_id": "t", "content": WORDS}]},
    ],
}  # fmt: skip
TARKO = [
    {"id": "1", "type": "user_message", "timestamp": 1760000000000, "content": WORDS},
    {"id": "2", "type": "assistant_message", "timestamp": 1760000000100, "content": WORDS, "toolCalls": [CHAT_CALL]},
    {"id": "3", "type": "tool_result", "timestamp": 1760000000300, "toolCallId": "c", "name": "ls", "content": WORDS},
]
OPENHANDS = [
    {"id": 0, "timestamp": TIME(0), "source": "user", "action": "message", "args": {"content": WORDS}},
    {"id": 1, "timestamp": TIME(1), "source": "agent", "action": "run", "args": {"command": WORDS}},
    {"id": 2, "timestamp": TIME(2), "source": "agent", "cause": 1, "observation": "run", "content": WORDS},
]
OPENHANDS_SDK = [
    {"kind": "MessageEvent", "id": "b", "timestamp": TIME(1), "source": "user",
     "llm_message": {"role": "user", "content": [{"type": "text", "text": WORDS}]}},
    {"kind": "ActionEvent", "id": "c", "timestamp": TIME(2), "source": "agent", "tool_name": "ls", "tool_call_id": "t",
     "tool_call": {"id": "t", "name": "ls", "arguments": json.dumps({"path": WORDS})}},
    {"kind": "ObservationEvent", "id": "d", "timestamp": TIME(3), "source": "environment", "tool_call_id": "t",
     "observation": {"content": [{"type": "text", "text": WORDS}]}},
]  # fmt: skip
SWE = {
    "environment": "e", "info": {},
    "trajectory": [{"action": "ls", "observation": WORDS, "response": WORDS}],
    "history": [{"role": "user", "content": WORDS, "agent": "main"}, {"role": "assistant", "content": WORDS}],
}  # fmt: skip
MINI = {
    "info": {"mini_version": "1"}, "trajectory_format": "mini-swe-agent-1",
    "messages": [{"role": "user", "content": WORDS}, {"role": "assistant", "content": WORDS}],
}  # fmt: skip
CODEX_META = {"id": "x", "timestamp": TIME(0), "cwd": "/w", "originator": "codex_cli_rs", "cli_version": "0.149.0"}


def item(**payload: Any) -> dict[str, Any]:
    """A line of a Codex rollout with an item."""
    return {"timestamp": TIME(1), "type": "response_item", "payload": payload}


def event(**payload: Any) -> dict[str, Any]:
    """A line of a Codex rollout with an event."""
    return {"timestamp": TIME(2), "type": "event_msg", "payload": payload}


CODEX = [
    {"timestamp": TIME(0), "type": "session_meta", "payload": CODEX_META},
    item(type="message", role="user", content=[{"type": "input_text", "text": WORDS}]),
    item(type="function_call", name="ls", arguments=json.dumps({"path": WORDS}), call_id="c"),
]
FORMATS: dict[str, Any] = {
    "gemini-cli": GEMINI, "pi": PI, "tarko-events": TARKO, "openhands": OPENHANDS, "openhands-sdk": OPENHANDS_SDK,
    "swe-agent": SWE, "mini-swe-agent": MINI, "codex": CODEX, "cline": CLINE,
}  # fmt: skip


def written(value: Any, name: str) -> bytes:
    """A file: JSON lines for formats that have them."""
    return jsonl(value) if isinstance(value, list) and name in ("pi", "codex") else json.dumps(value).encode()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all keys of content in a JSON value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        if key in CONTENT:
            yield (*path, key)
        yield from places(inner, (*path, key))


def renamed(value: Any, path: tuple[Any, ...], name: str) -> Any:
    """The value with the key at the end of `path` renamed."""
    key, *rest = path
    if rest:
        copied: Any = dict(value) if isinstance(value, dict) else list(value)
        copied[key] = renamed(value[key], tuple(rest), name)
        return copied
    return {name if each == key else each: inner for each, inner in value.items()}


def texts_of(parts: Iterable[Part]) -> Iterator[str]:
    """What can be read of the parts of a message."""
    for part in parts:
        match part:
            case Text(text=text):
                yield text
            case ToolCall(arguments=arguments):
                yield from strings_in(arguments)
            case ToolResult(parts=inner):
                yield from texts_of(inner)


def said(data: bytes) -> tuple[int, bool]:
    """How often the words are in messages, and whether a warning says that something was left out."""
    sessions = read_file(data)
    bodies = [draft.body for session in sessions for draft in session.drafts]
    texts = [text for body in bodies if isinstance(body, MessageRecord) for text in texts_of(body.message.parts)]
    told = any(damage.lost != "nothing" for session in sessions for damage in session.warnings)
    return sum(WORDS in text for text in texts), told


@pytest.mark.parametrize("name", FORMATS)
def test_a_whole_file_gives_no_warning(name: str) -> None:
    """A false alarm in each import would teach people to ignore warnings."""
    count, told = said(written(FORMATS[name], name))
    assert count >= 2
    assert not told


@given(st.sampled_from(sorted(FORMATS)), st.data())
def test_content_under_another_key_never_leaves_in_silence(name: str, data: st.DataObject) -> None:
    """A version of an agent that renames a field would import sessions without answers, calls or results, with exit
    code 0."""
    path = data.draw(st.sampled_from(sorted(places(FORMATS[name]), key=str)))
    key = data.draw(st.sampled_from(("body", "text", "output", "value", "payload_text")))
    before, _ = said(written(FORMATS[name], name))
    try:
        after, told = said(written(renamed(FORMATS[name], path, key), name))
    except ImportFailed:
        return
    assert told or after >= before


UNKNOWN: list[tuple[str, Any]] = [
    ("gemini-cli", {**GEMINI, "messages": [*GEMINI["messages"], {"id": "3", "type": "operator", "content": "Hi"}]}),
    ("pi", [*PI, {"type": "hologram", "id": "d", "parentId": "c", "content": "Hi"}]),
    ("tarko-events", [*TARKO, {"id": "5", "type": "hologram", "timestamp": 1760000000400, "content": "Hi"}]),
    ("openhands-sdk", [*OPENHANDS_SDK, {"kind": "HologramEvent", "id": "e", "source": "agent", "content": "Hi"}]),
    ("swe-agent", {**SWE, "history": [*SWE["history"], {"role": "operator", "content": "Hi"}]}),
    ("mini-swe-agent", {**MINI, "messages": [*MINI["messages"], {"role": "operator", "content": "Hi"}]}),
    ("mini-swe-agent", {**MINI, "messages": [*MINI["messages"], {"type": "function_call_output", "output": "Hi"}]}),
    ("codex", [*CODEX, {"timestamp": TIME(3), "type": "hologram", "payload": {"text": "Hi"}}]),
    ("codex", [*CODEX, event(type="agent_message", message="Only the event has it.")]),
    ("codex", [*CODEX, {"timestamp": TIME(3), "type": "compacted", "payload": {"summary": "What was said."}}]),
    ("cline", {**CLINE, "messages": [*CLINE["messages"], {"role": "assistant", "text": "Hi"}]}),
]


@pytest.mark.parametrize(("name", "value"), UNKNOWN)
def test_an_entry_of_an_unknown_kind_with_content_is_told(name: str, value: Any) -> None:
    """It becomes a note, and the next request would lack it."""
    assert said(written(value, name))[1]


def test_the_exit_message_of_mini_swe_agent_is_no_loss() -> None:
    """It says how the run ended, and no model saw it: each imported run would end with exit code 1."""
    value = {**MINI, "messages": [*MINI["messages"], {"role": "exit", "content": "Submitted", "extra": {}}]}
    assert not said(json.dumps(value).encode())[1]


def test_an_answer_that_is_only_in_the_result_of_claude_is_told() -> None:
    """`claude -p --output-format json` prints nothing else: the session would be empty, and nobody would know."""
    result = {"type": "result", "subtype": "success", "is_error": False, "result": "Bergen.", "session_id": "s"}
    (session,) = read_file(jsonl([{"type": "system", "subtype": "init", "session_id": "s"}, result]))
    assert [(one.line, one.message) for one in session.warnings] == [(2, "not read: `result` of a run")]


# -- bodies --------------------------------------------------------------------------------------

HELLO = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
GOOGLE = {"contents": [{"parts": [{"text": "Hello"}]}]}
ANSWER = {"choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    ("value", "keys"),
    [
        ({"request": HELLO, "response": ANSWER}, "`response`"),
        ({"body": HELLO, "response": json.dumps(ANSWER)}, "`response`"),
        ({**HELLO, "response": ANSWER, "litellm_params": {}}, "`response`"),
        ({**HELLO, **ANSWER}, "`choices`"),
        ({**HELLO, "output": "Hi", "outputs": ["Hi"]}, "`output`, `outputs`"),
        ({**HELLO, "input": "another conversation"}, "`input`"),
        ({"request": GOOGLE, "response": {"candidates": [{"x": "y"}]}}, "`response`"),
    ],
)  # fmt: skip
def test_an_answer_beside_its_request_is_told(value: Any, keys: str) -> None:
    """Logs of proxies have request and answer: without the answer a session looks as if the model never spoke."""
    (session,) = read_file(json.dumps(value).encode())
    assert [(one.lost, one.message) for one in session.warnings] == [
        ("part", f"not read: {keys} beside the conversation")
    ]


@pytest.mark.parametrize(
    "beside", [{"response": None}, {"response": ""}, {"response": {"status": 200}}, {"input": HELLO["messages"]}]
)
def test_what_holds_no_answer_gives_no_warning(beside: Any) -> None:
    """A request that failed has no answer, and some logs have the messages twice."""
    (session,) = read_file(json.dumps({**HELLO, **beside}).encode())
    assert session.warnings == ()


@pytest.mark.parametrize("kind", ["tool_use", "tool-result", "sticker"])
def test_a_block_that_chat_completions_does_not_have_is_told(kind: str) -> None:
    """Servers may be sent any block, so it was taken for known: a call of another format was no call, in silence."""
    block = {"type": kind, "name": "ls", "input": {"path": "/w"}}
    wires = [*HELLO["messages"], {"role": "assistant", "content": [block]}]  # type: ignore[misc]
    (session,) = read_file(json.dumps({**HELLO, "messages": wires}).encode())
    assert [one.message for one in session.warnings] == [f"messages[1]: not read: a block of type {kind!r}"]


@pytest.mark.parametrize("kind", ["video_url", "document_url", "thinking"])
def test_blocks_of_servers_like_openai_give_no_warning(kind: str) -> None:
    """They go back to the server as they came."""
    wires = [{"role": "user", "content": [{"type": kind, kind: "https://x.example/a"}]}]
    (session,) = read_file(json.dumps({**HELLO, "messages": wires}).encode())
    assert session.warnings == ()


@pytest.mark.parametrize(
    "value",
    [
        {"model": "m", "input": [{"role": "bot", "content": "Hi"}]},
        {"model": "m", "input": [{"role": "user", "content": "Hello"}, {"role": "model", "content": "Hi"}]},
        {"contents": [{"role": "bot", "parts": [{"text": "Hi"}]}]},
    ],
)
def test_a_role_that_nobody_knows_is_told(value: dict[str, Any]) -> None:
    """What a model said would stand as what the user said, in silence."""
    wires = value.get("input") or value["contents"]
    (session,) = read_file(json.dumps(value).encode())
    said = f"not read: the role {wires[-1]['role']!r}: the message is taken for the user's"
    assert [one.message.partition(": ")[2] for one in session.warnings] == [said]


@pytest.mark.parametrize("role", ["user", "User", "developer", "system", "assistant"])
def test_known_roles_give_no_warning(role: str) -> None:
    """Roles are written in several ways."""
    (session,) = read_file(json.dumps({"model": "m", "input": [{"role": role, "content": "Hi"}]}).encode())
    assert session.warnings == ()


# -- counted once --------------------------------------------------------------------------------


def counts(**totals: int) -> dict[str, Any]:
    """An event with the total usage of a Codex session so far."""
    return event(type="token_count", info={"total_token_usage": totals})


def usages(data: bytes | Path) -> list[Usage]:
    """The usage records of a file."""
    return [draft.body.usage for one in read_file(data) for draft in one.drafts if isinstance(draft.body, UsageRecord)]


def test_codex_usage_that_was_written_twice_counts_once() -> None:
    """Items of a file that was written twice are read once; their usage was counted twice."""
    last = {"input_tokens": 5, "output_tokens": 2}
    bill = event(type="token_count", info={"total_token_usage": last, "last_token_usage": last})
    totals = {"input_tokens": 10, "output_tokens": 4}
    more = event(type="token_count", info={"total_token_usage": totals, "last_token_usage": last})
    lines = [*CODEX, bill, more]
    assert usages(jsonl([*lines, *lines])) == [Usage(input=5, output=2), Usage(input=5, output=2)]


def test_codex_usage_without_that_of_the_last_request_is_the_difference() -> None:
    """It was left out: a session cost less than its own file says."""
    lines = [*CODEX, counts(input_tokens=5, output_tokens=2), counts(input_tokens=9, output_tokens=4)]
    assert usages(jsonl(lines)) == [Usage(input=5, output=2), Usage(input=4, output=2)]


@pytest.mark.parametrize("figure", [-1, "2", 2.5, True, 1 << 60])
def test_a_figure_that_says_nothing_makes_a_sum_a_minimum(figure: Any) -> None:
    """Read as 0, it made a total that is too small, and nothing showed it."""
    last = {"input_tokens": 5, "output_tokens": figure}
    lines = [*CODEX, event(type="token_count", info={"total_token_usage": last, "last_token_usage": last})]
    assert usages(jsonl(lines)) == [Usage(input=5, incomplete=True)]


def test_entries_of_pi_that_were_written_twice_are_read_once() -> None:
    """A file that was copied into itself would have everything twice, its usage too."""
    answer = {**PI[2], "message": {**PI[2]["message"], "usage": {"input": 5, "output": 2}}}  # type: ignore[dict-item]
    lines = [*PI[:2], answer, PI[3]]
    (session,) = read_file(jsonl([*lines, *lines[1:]]))
    assert session.drafts == read_file(jsonl(lines))[0].drafts
    assert [(one.line, one.lost) for one in session.warnings] == [(5, "nothing"), (6, "nothing"), (7, "nothing")]
    assert usages(jsonl([*lines, *lines[1:]])) == [Usage(input=5, output=2)]


@pytest.mark.parametrize("usage", [{"input_tokens": 5}, {"input_tokens": 5, "output_tokens": None}])
def test_a_bill_of_claude_code_without_a_figure_is_a_minimum(usage: dict[str, Any]) -> None:
    """The Messages API always says both figures; read as 0, a missing one made a total that is too small."""
    answer = {"id": "m", "role": "assistant", "model": "claude-sonnet-4-5", "stop_reason": "end_turn"}
    message = {**answer, "content": [{"type": "text", "text": "Bergen."}], "usage": usage}
    line = {"type": "assistant", "uuid": "a", "parentUuid": None, "isSidechain": False, "sessionId": "s"}
    assert usages(jsonl([{**line, "message": message}])) == [Usage(input=5, incomplete=True)]
