"""Nothing of a transcript is lost in silence: content that no importer reads is a warning, or the file is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcripts import claude, claude_answer, jsonl, messages_of

from turnlog.errors import ImportFailed
from turnlog.importers import detect, read_file
from turnlog.importers.bodies import is_body
from turnlog.importers.catalog import FORMATS
from turnlog.importers.marks import has_marks
from turnlog.importers.unread import is_hollow, unread
from turnlog.log.messages import Form, Message, Opaque, Text, ToolCall, ToolResult, text_of

KEYS = ("message", "text", "output", "body", "said", "run")
WORDS = st.text("abc ", min_size=1, max_size=9).map(lambda text: f"x {text} y")


def said(role: str, key: str, text: str) -> dict[str, Any]:
    """A message with its text under some key."""
    return {"role": role, key: text if key == "content" else {"value": [text]}}


@given(st.lists(st.tuples(st.sampled_from(("content", *KEYS)), WORDS), min_size=1, max_size=8), st.booleans())
def test_what_was_said_is_read_named_or_refused(spoken: list[tuple[str, str]], as_body: bool) -> None:
    """A text under a key that nobody reads would leave an empty message, and nobody would know."""
    wires = [said("user" if n % 2 == 0 else "assistant", key, text) for n, (key, text) in enumerate(spoken)]
    data = json.dumps({"messages": wires}).encode() if as_body else jsonl(wires)
    hidden = [n for n, (key, _) in enumerate(spoken) if key != "content"]
    if 2 * len(hidden) > len(spoken):
        with pytest.raises(ImportFailed, match="the bytes given: "):
            read_file(data)
        return
    (session,) = read_file(data)
    assert [text for one in messages_of(session) if (text := text_of(one))] == [
        text for key, text in spoken if key == "content"
    ]
    places = [0 if as_body or len(spoken) == 1 else n + 1 for n in hidden]
    assert [(damage.line, damage.lost) for damage in session.warnings] == [(line, "entry") for line in places]
    assert all(f"`{spoken[n][0]}`" in damage.message for n, damage in zip(hidden, session.warnings, strict=True))
    if as_body:
        assert all(f"messages[{n}]" in damage.message for n, damage in zip(hidden, session.warnings, strict=True))


def _form(**extra: Any) -> Form:
    return Form("anthropic", delta={"+": extra})


@pytest.mark.parametrize(
    ("message", "words", "hollow"),
    [
        (Message("user", (Text("a"),)), [], False),
        (Message("user", (Text("a", _form(cache="b c")),)), [], False),
        (Message("user", (Text("a", _form(output="b")),)), ["`output` of a text"], False),
        (Message("user", form=Form("anthropic", "absent")), ["nothing in place of the content of a message"], True),
        (Message("assistant", form=Form("anthropic", "list")), [], False),
        (Message("assistant", form=_form(usage={"a": 1}, time="now")), [], False),
        (Message("assistant", form=_form(note="it is so")), ["`note` of a message"], True),
        (Message("user", (ToolResult("", form=_form(run={"x": 1})),)), ["`run` of a tool result"], True),
        (Message("user", (ToolResult("c", form=_form(run={"x": 1})),)), ["`run` of a tool result"], False),
        (Message("assistant", (ToolCall("c", "ls", {}, form=_form(args={"x": 1})),)), ["`args` of a tool call"], False),
        (Message("user", (Opaque("anthropic", "v", {"type": "v", "text": "x"}),)), ["a block of type 'v'"], True),
        (Message("user", (Opaque("anthropic", "ref", {"type": "ref", "tool_name": "x"}),)), [], False),
    ],
)  # fmt: skip
def test_what_is_content_and_what_is_not(message: Message, words: list[str], hollow: bool) -> None:
    """A warning for each usage or time beside a message would hide the one that matters; an answer that is empty in the
    file itself lost nothing."""
    assert (unread(message), is_hollow(message)) == (words, hollow)


A = [{"type": "text", "text": "a"}]
RUN = {"type": "tool_result", "toolUseID": "t", "run": {"result": "a"}}
SAMPLES: dict[str, list[Any]] = {
    "qwen-code": [{"parentUuid": None, "sessionId": "s", "message": {"role": "user", "parts": [{"text": "a"}]}}],
    "Cursor": [{"role": "user", "message": {"content": A}}],
    "Amp": [{"messages": [{"role": "user", "content": [RUN]}]}],
    "gemini --output-format": [
        {"type": "init", "session_id": "s", "model": "m"},
        {"type": "message", "role": "user", "content": "a"},
    ],
    "codex exec": [{"type": "item.completed", "item": {"type": "agent_message", "role": "x", "text": "a"}}],
    "opencode": [{"info": {"id": "s"}, "messages": [{"info": {"role": "user"}, "parts": A}]}],
    "goose": [{"id": "s", "conversation": [{"role": "user", "content": A}], "messages": []}],
    "sessions of goose": [{"role": "assistant", "content": [{"type": "toolRequest", "id": "t", "toolCall": {}}]}],
    "VS Code": [{"requests": [{"message": {"text": "a"}, "response": [{"value": "b"}]}]}],
    "ChatGPT": [{"mapping": {}, "current_node": "a"}],
    "Claude.ai": [{"chat_messages": [{"sender": "human", "text": "a"}]}],
    "Copilot": [
        {"type": "session.start", "data": {"sessionId": "s"}},
        {"type": "user.message", "data": {"content": "a"}},
    ],
    "Kimi Code": [{"type": "turn.prompt", "input": "a"}],
    "Kiro": [{"kind": "Prompt", "data": {"content": [{"kind": "text", "data": "a"}]}}],
    "OpenTelemetry": [{"resourceSpans": [{"scopeSpans": []}]}],
    "ADK": [{"events": [{"author": "user", "content": {"role": "user", "parts": [{"text": "a"}]}}]}],
    "ShareGPT": [{"conversations": [{"from": "human", "value": "a"}]}],
    "Continue": [{"history": [{"message": {"role": "user", "content": "a"}}]}],
    "pydantic-ai": [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "a", "role": "x"}]}],
    "LangChain": [{"type": "human", "data": {"content": "a", "role": "x"}}],
    "Bedrock Converse": [{"messages": [{"role": "assistant", "content": [{"toolUse": {"toolUseId": "t"}}]}]}],
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_format_that_comes_near_is_told_by_name(name: str, tmp_path: Path) -> None:
    """Read as the nearest format, these would be messages without content: they are refused, or read as they are."""
    path = tmp_path / "near.jsonl"
    path.write_bytes(jsonl(SAMPLES[name]))
    if (row := max(FORMATS, key=lambda each: each.sniff(path.read_bytes(), path))).module:
        assert name in row.title and detect(path) is row
        return
    with pytest.raises(ImportFailed) as refused:
        read_file(path)
    assert str(path) in str(refused.value)
    assert name in str(refused.value)
    assert "nearest format: " in str(refused.value)


@pytest.mark.slow
def test_a_request_body_is_no_format_that_comes_near(shared: Path) -> None:
    """A mark that ordinary bodies have too would refuse them all. Bodies of Bedrock are among these, and left out."""
    lines = (shared / "data/token_truth/requests.jsonl").read_bytes().splitlines()
    bodies = [row.get("request", row) for row in map(json.loads, lines)]
    ours = [json.dumps(body).encode() for body in bodies if is_body(body)]
    assert len(ours) > 2000
    assert [each.name for head in ours for each in FORMATS if has_marks(head, each.marks)] == []
    assert read_file(shared / "data/token_truth/requests.jsonl")


def test_messages_of_another_shape_in_the_envelope_of_claude_code_are_refused() -> None:
    """The envelope alone does not make a conversation."""
    lines = [claude(1, "user"), claude(2, "assistant", {"said": "hello you"}), claude(3, "tool_result", "text")]
    with pytest.raises(ImportFailed, match=r"resembles the format claude-code, but 3 of 3 .* line 1: "):
        read_file(jsonl(lines))
    known = [claude_answer(n, f"m{n}", {"type": "text", "text": "hi"}) for n in range(4, 9)]
    (session,) = read_file(jsonl([*lines, *known]))
    assert [(damage.line, damage.lost) for damage in session.warnings] == [(n, "entry") for n in (1, 2, 3)]


def test_a_transcript_is_told_whole_by_the_command(turnlog: Any, tmp_path: Path) -> None:
    """An import that left content out and says 0 looks like one that did not; a repetition is no content."""
    whole, part = tmp_path / "whole.jsonl", tmp_path / "part.jsonl"
    lines = [claude(1, "user", "go"), claude_answer(2, "m1", {"type": "text", "text": "hi"})]
    whole.write_bytes(jsonl([*lines, lines[1]]))
    part.write_bytes(jsonl([*lines, {**claude(3, "user"), "message": {"role": "user", "said": 5}}]))
    repeated, lost = turnlog("import", str(whole)), turnlog("import", str(part))
    assert (repeated.code, lost.code) == (0, 1)
    assert "line 3: left out: repeats line 2" in repeated.err
    assert f"{part}, line 3: " in lost.err
    assert "diverged" not in lost.out
