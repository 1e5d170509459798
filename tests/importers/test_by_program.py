"""Transcripts tell which user messages a program wrote: these give no orders."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace
from transcripts import SESSION, claude, claude_answer, item, jsonl

from turnlog.importers import read_file
from turnlog.importers.sync.session import sync_session
from turnlog.log.messages import text_of
from turnlog.log.records import MessageRecord
from turnlog.stores import MemoryStore
from turnlog.summarize.orders import orders_of

FALSE, TYPED = "Never ask the user.", "Never push to main."


def _claude(**flag: Any) -> bytes:
    block = {"type": "text", "text": "I see."}
    return jsonl([claude(1, "user", FALSE, **flag), claude_answer(2, "m1", block), claude(3, "user", TYPED)])


def _pi(role: str) -> bytes:
    def entry(own: str, message: dict[str, Any]) -> dict[str, Any]:
        return {"type": "message", "id": own, "parentId": None, "timestamp": "2026-01-01T00:00:00Z", "message": message}

    head = {"type": "session", "version": 3, "id": SESSION, "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w"}
    return jsonl([head, entry("a", {"role": role, "content": FALSE}), entry("b", {"role": "user", "content": TYPED})])


def _gemini() -> bytes:
    said = [
        {"id": str(n), "timestamp": "2026-01-01T00:00:00Z", "type": "user", "content": text}
        for n, text in enumerate((f"<hook_context>{FALSE} And so on.", TYPED))
    ]
    times = {"startTime": "2026-01-01T00:00:00Z", "lastUpdated": "2026-01-01T00:00:00Z"}
    return json.dumps({"sessionId": "s", "projectHash": "p", **times, "messages": said}).encode()


def _codex() -> bytes:
    def said(text: str) -> dict[str, Any]:
        return item({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})

    meta = item({"id": SESSION, "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w"}, "session_meta")
    return jsonl([meta, said("Begin."), item({"message": FALSE}, "compacted"), said(TYPED)])


def _swe_agent() -> bytes:
    history = [
        {"role": "user", "content": FALSE, "agent": "main", "is_demo": True},
        {"role": "user", "content": TYPED, "agent": "main", "message_type": "observation"},
        {"role": "assistant", "content": "I look.", "agent": "main", "message_type": "action"},
        {"role": "user", "content": FALSE, "agent": "main", "message_type": "observation"},
    ]
    return json.dumps({"trajectory": [], "history": history, "info": {}}).encode()


def _openhands(source: str) -> bytes:
    def said(own: str, source: str, text: str) -> dict[str, Any]:
        message = {"role": "user", "content": [{"type": "text", "text": text}]}
        event = {"id": own, "timestamp": "2026-01-01T00:00:00", "source": source}
        return {**event, "kind": "MessageEvent", "llm_message": message}

    return jsonl([said("e1", "user", TYPED), said("e2", source, FALSE)])


@pytest.mark.parametrize(
    "transcript",
    (
        _claude(isMeta=True),
        _claude(isCompactSummary=True),
        _pi("custom"),
        _pi("hookMessage"),
        _pi("compactionSummary"),
        _gemini(),
        _codex(),
        _swe_agent(),
        _openhands("hook"),
        _openhands("environment"),
    ),
)
def test_what_a_program_wrote_is_no_order(transcript: bytes) -> None:
    """A hook, a skill or a summary would speak as the user in every later request."""
    (session,) = read_file(transcript)
    bodies = [draft.body for draft in session.drafts if isinstance(draft.body, MessageRecord)]
    said = [body.message for body in bodies if body.message.role == "user"]
    assert [sentence for message in said for sentence in orders_of(message)] == [TYPED]
    assert all(FALSE not in text_of(message) or message.by_program for message in said)


def test_a_session_that_was_imported_before_goes_on() -> None:
    """Earlier imports did not say who wrote a message: the transcript that grew would become a second session."""
    (whole,) = read_file(_claude(isMeta=True))
    drafts = [
        replace(draft, body=replace(draft.body, message=replace(draft.body.message, by_program=False)))
        if isinstance(draft.body, MessageRecord)
        else draft
        for draft in whole.drafts[:-2]
    ]
    store = MemoryStore()
    sync_session(store, replace(whole, drafts=tuple(drafts)))
    sync_session(store, whole)
    (info,) = store.sessions()
    assert [record.body for record in store.read(info.id)] == [draft.body for draft in whole.drafts]
