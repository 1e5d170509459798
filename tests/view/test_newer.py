"""What a newer turnlog wrote of budgets and decisions: an older one goes on with what it knows of it."""

from __future__ import annotations

import json
from typing import Any

import turnlog
from turnlog.log.codec import decode_record
from turnlog.log.messages import Text, text_of
from turnlog.log.store import Draft
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

CLAUDE = turnlog.target("anthropic", "claude-sonnet-4-5", max_tokens=1000)


def recorded(store: MemoryStore, **body: Any) -> None:
    """Put a body on record as it was written elsewhere."""
    raw = {"v": 1, "n": store.info("s").records + 1, "t": "2026-01-02T03:04:05.678Z", "body": body}
    record = decode_record(json.dumps(raw).encode())
    store.append("s", [Draft(record.body, record.time, record.raw)])


def conversation(store: MemoryStore) -> None:
    with turnlog.open("s", store=store, target=CLAUDE) as session:
        for n in range(40):
            session.user(f"question {n} " + "word " * 100)
            session.receive({"type": "message", "role": "assistant", "content": [{"type": "text", "text": f"a{n}"}]})


def test_a_step_that_only_a_newer_version_knows_is_passed_over() -> None:
    """No request of that session any more, once it is over its budget: a KeyError that names the step."""
    store = MemoryStore()
    conversation(store)
    strategy = {"name": "mine", "steps": ["mask", "teleport"]}
    aim = {"provider": CLAUDE.provider, "model": CLAUDE.model}
    recorded(store, kind="configuration", **aim, budget={"max_tokens": 3000}, strategy=strategy)
    with turnlog.open("s", store=store) as session:
        made = session.request()
        assert session.window.tokens <= 3000
        assert [edit.kind for edit in made.edits] == ["slide"]
        assert text_of(made.view[-1].message) == "a39"


def test_what_stands_in_may_hold_what_only_a_newer_version_knows() -> None:
    """No request, and no account of what became of a message, behind a compaction of a newer version."""
    store = MemoryStore()
    conversation(store)
    said = {"role": "user", "parts": [{"type": "smell", "of": "roses"}, {"type": "text", "text": "All that was said."}]}
    recorded(store, kind="decision", action="compact", first=2, last=70, detail={"replacement": [said], "at": 2})
    session = Session(store, store.info("s"))
    first = session.request().body["messages"][0]
    assert first == {"role": "user", "content": "All that was said."}
    assert session.explain().accounts[4].fate == "summarised"
    assert Text("All that was said.") in [part for shown in session.preview().view for part in shown.message.parts]
