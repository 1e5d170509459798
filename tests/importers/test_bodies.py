"""Request bodies and message lists: which API, how many sessions, what stays of a damaged one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from transcripts import jsonl, messages_of, of_kind

from turnlog.errors import ImportFailed
from turnlog.importers import read_file
from turnlog.importers.bodies import is_body
from turnlog.log.messages import Message, Text, text_of
from turnlog.log.records import Configuration, MessageRecord, Note
from turnlog.providers.recognise import provider_of

CHAT = {"model": "gpt-x", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]}
BODIES: dict[str, dict[str, Any]] = {
    "openai-chat": CHAT,
    "openai-responses": {"model": "gpt-x", "input": "u", "instructions": "s"},
    "anthropic": {"model": "claude-x", "max_tokens": 9, "system": "s", "messages": [{"role": "user", "content": "u"}]},
    "google": {
        "systemInstruction": {"parts": [{"text": "s"}]},
        "contents": [{"role": "user", "parts": [{"text": "u"}]}],
    },
    "google-interactions": {
        "model": "gemini-x",
        "system_instruction": "s",
        "input": [{"type": "user_input", "content": [{"type": "text", "text": "u"}]}],
    },
}


@pytest.mark.parametrize("api", BODIES)
def test_a_body_of_each_api(api: str) -> None:
    """Read as another API's, its system text and tools would be lost as unknown settings."""
    (session,) = read_file(json.dumps(BODIES[api], indent=1).encode())
    assert session.format == api
    assert [(m.role, text_of(m)) for m in messages_of(session)] == [("system", "s"), ("user", "u")]
    (configuration,) = of_kind(session, Configuration) or [Configuration(provider=api)]
    assert configuration.provider == api
    assert configuration.model == BODIES[api].get("model", "")
    assert session.title == "u"


@pytest.mark.parametrize(
    "contents",
    [
        [{"parts": [{"text": "u"}]}],
        {"parts": [{"text": "u"}]},
        [{"role": "", "parts": {"text": "u"}}],
        [{"role": None, "parts": [{"text": "u"}, {"inline_data": {"mime_type": "image/png", "data": "AAAA"}}]}],
    ],
)
def test_a_google_turn_needs_no_role(contents: Any) -> None:
    """Every quickstart of Google's sends one like this; it would be refused as no conversation."""
    body = {"contents": contents, "generationConfig": {"topK": 1}}
    for data in (json.dumps(body).encode(), jsonl([body]), json.dumps({"request": body}).encode()):
        (session,) = read_file(data)
        assert session.format == "google"
        assert [(message.role, text_of(message)) for message in messages_of(session)] == [("user", "u")]
        assert [one.settings for one in of_kind(session, Configuration)] == [{"generationConfig": {"topK": 1}}]


def test_a_list_of_messages_is_one_session_in_json_and_in_lines() -> None:
    """The commonest export of all; a line each, it must not become a session each."""
    messages = CHAT["messages"]
    (document,) = read_file(json.dumps(messages).encode())
    (lines,) = read_file(jsonl(messages))
    assert messages_of(document) == messages_of(lines)
    assert [record.source for record in of_kind(document, MessageRecord)] == ["messages[0]", "messages[1]"]
    assert [record.source for record in of_kind(lines, MessageRecord)] == ["line 1", "line 2"]


def test_many_bodies_are_many_sessions() -> None:
    """Recorded requests come as lines, bare or in a wrapper, which is kept."""
    wrapped = {"id": "req-1", "request": CHAT, "usage": {"input_tokens": 5}}
    found = read_file(jsonl([CHAT, wrapped, {"nothing": 1}]))
    assert len(found) == 2
    assert found[1].session_id == "req-1"
    assert of_kind(found[1], Note) == [Note("around", data={"id": "req-1", "usage": {"input_tokens": 5}})]
    assert [(w.line, w.message) for w in found[0].warnings] == [(3, "line 3 left out: it contains no conversation")]


def test_runs_of_tau_bench_are_sessions() -> None:
    """`traj` holds the messages, the rest says which task it was; two trials stay two sessions."""
    run = {"task_id": 7, "trial": 0, "reward": 1.0, "traj": CHAT["messages"]}
    found = read_file(json.dumps([run, {**run, "trial": 1}, run]).encode())
    assert [s.session_id for s in found] == ["task-7-trial-0", "task-7-trial-1", "task-7-trial-0-2"]
    assert of_kind(found[0], Note)[0].data == {"task_id": 7, "trial": 0, "reward": 1.0}


def test_a_damaged_message_costs_itself_only() -> None:
    """One bad message in a thousand must not refuse the file."""
    bad = {"role": "user", "content": 5}
    (session,) = read_file(json.dumps({**CHAT, "messages": [*CHAT["messages"], bad]}).encode())
    assert messages_of(session)[1:] == [Message("user", (Text("u"),))]
    assert [note.data for note in of_kind(session, Note)] == [bad]
    assert "messages[2]" in session.warnings[-1].message


def test_a_role_that_is_no_word_costs_its_message_only() -> None:
    """A list in the place of a role keeps every other body of the file from being imported."""
    bad = {"role": ["user"], "content": "u"}
    whole = [CHAT["messages"][1]] * 3
    found = read_file(jsonl([{**CHAT, "messages": [*whole, bad]}, CHAT]))
    assert [len(messages_of(session)) for session in found] == [3, 2]
    assert [(damage.line, "messages[3]" in damage.message) for damage in found[0].warnings[1:]] == [(1, True)]


def test_other_json_is_refused_and_says_what_it_is() -> None:
    """Bedrock's Converse has messages too, but blocks without type: half read, it would lose all."""
    converse = {"messages": [{"role": "user", "content": [{"text": "u"}]}]}
    with pytest.raises(ImportFailed, match="keys messages"):
        read_file(json.dumps(converse).encode())


@pytest.mark.slow
def test_every_recorded_body_is_told_apart(shared: Any) -> None:
    """Shapes overlap; a wrong guess reads one API's body by another's rules."""
    names = {
        "openai.chat": "openai-chat",
        "openai.responses": "openai-responses",
        "anthropic.messages": "anthropic",
        "google.generateContent": "google",
    }
    wrong = []
    for line in (shared / "data/token_truth/requests.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["api"] in names and not (is_body(row["request"]) and provider_of(row["request"]) == names[row["api"]]):
            wrong.append(row["id"])
    assert wrong == []
