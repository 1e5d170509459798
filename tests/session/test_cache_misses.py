"""What providers say about missed caches, beside what turnlog knows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from turnlog import target
from turnlog.log.records import Note
from turnlog.models.target import Target
from turnlog.providers import provider
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

CLAUDE = target("anthropic", "claude-sonnet-4-5", max_tokens=500)
NEWER = target("openai-responses", "gpt-5.6-sol")
TOOLS = [{"name": "ls", "parameters": {"type": "object"}}]


def answer(aim: Target, diagnostics: Any) -> dict[str, Any]:
    """An answer of 2,000 tokens of input with what its provider says about the cache."""
    if aim is CLAUDE:
        usage = {"input_tokens": 10, "cache_creation_input_tokens": 1_990, "output_tokens": 2}
        content = [{"type": "text", "text": "Yes."}]
        said = {"type": "message", "id": "msg_1", "role": "assistant", "model": aim.model, "content": content}
        return {**said, "stop_reason": "end_turn", "usage": usage, "diagnostics": diagnostics}
    item = {"type": "message", "role": "assistant", "id": "m1", "status": "completed"}
    output = [{**item, "content": [{"type": "output_text", "text": "Yes.", "annotations": []}]}]
    said = {"id": "r1", "model": aim.model, "status": "completed", "output": output}
    return {**said, "usage": {"input_tokens": 2_000, "output_tokens": 2}, "prompt_cache_diagnostics": diagnostics}


def miss(aim: Target, reason: str | None) -> dict[str, Any]:
    if aim is CLAUDE:
        return {"cache_miss_reason": reason and {"type": reason, "cache_missed_input_tokens": 1_500}}
    if reason in ("comparison_response_not_found", "unavailable"):
        return {"type": reason}
    return {"type": "cache_miss", "reason": reason, "cache_missed_tokens": 1_500} if reason else {"type": "cache_hit"}


def told(aim: Target, reason: str | None, change: str) -> tuple[Session, list[str]]:
    """A session in which something changed before its second request, whose answer gives that reason; and warnings."""
    session = turnlog.open("s", store=MemoryStore(), target=aim)
    warnings: list[str] = []
    session.on_event(lambda event: warnings.append(event.text) if event.kind == "warning" else None)
    session.system("Rules. " * 2_000)
    session.user("Which tests fail?")
    session.request()
    session.receive(answer(aim, None))
    if change == "tools":
        session.configure(tools=TOOLS)
    if change == "messages":
        session.rewind(turns=1)
    session.user("And now?")
    session.request()
    session.receive(answer(aim, miss(aim, reason)))
    return session, warnings


@pytest.mark.parametrize(
    ("aim", "reason", "change"),
    [
        (CLAUDE, "tools_changed", "tools"),
        (CLAUDE, "messages_changed", "messages"),
        (CLAUDE, None, ""),
        (CLAUDE, "previous_message_not_found", "tools"),
        (CLAUDE, "unavailable", ""),
        (CLAUDE, "something_new", ""),
        (NEWER, "tools_changed", "tools"),
        (NEWER, "input_changed", "messages"),
        (NEWER, None, ""),
        (NEWER, "comparison_response_not_found", "messages"),
    ],
)
def test_where_both_agree_nothing_is_said(aim: Target, reason: str | None, change: str) -> None:
    """A warning at every decision would soon be read by nobody."""
    session, warnings = told(aim, reason, change)
    last = session.cache.last
    assert warnings == [] and last is not None
    assert (last.reason, last.changed) == (reason or "", change)


@pytest.mark.parametrize(
    ("aim", "reason", "change", "said"),
    [
        (CLAUDE, "tools_changed", "", "the provider says 'tools_changed'; turnlog changed nothing that it sent"),
        (CLAUDE, "system_changed", "tools", "the provider says 'system_changed'; turnlog changed tools: the tools"),
        (CLAUDE, None, "messages", "the provider found no change; turnlog changed messages: 1 turn taken back"),
        (
            NEWER,
            "prompt_cache_key_changed",
            "",
            "the provider says 'prompt_cache_key_changed'; turnlog changed nothing",
        ),
        (NEWER, "input_changed", "", "the provider says 'input_changed'; turnlog changed nothing that it sent"),
    ],
)
def test_a_disagreement_is_a_warning(aim: Target, reason: str | None, change: str, said: str) -> None:
    """Something between turnlog and the provider changes requests: a proxy, an SDK, the caller. Each costs money."""
    session, [warning] = told(aim, reason, change)
    assert warning.startswith(f"of the request's prompt cache, {said}")
    assert session.cache.last is not None and session.cache.last.reason == (reason or "")


def test_what_was_not_asked_for_is_not_known() -> None:
    """None is not the same as nothing changed."""
    session, warnings = told(CLAUDE, None, "")
    assert [one.reason for one in session.cache] == [None, ""] and warnings == []


def test_openais_diagnostics_are_kept() -> None:
    """The tokens that were missed, for people."""
    session, _ = told(NEWER, "tools_changed", "tools")
    [note] = [record.body for record in session.history() if isinstance(record.body, Note)]
    assert note.data == {"prompt_cache_diagnostics": miss(NEWER, "tools_changed")}


ANY = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=3), st.lists)
WORDS = st.sampled_from(["type", "reason", "cache_miss_reason"])


@pytest.mark.parametrize("aim", (CLAUDE, NEWER), ids=str)
@given(st.one_of(ANY, st.dictionaries(WORDS, ANY | st.dictionaries(WORDS, ANY))))
def test_no_diagnosis_makes_an_answer_unreadable(aim: Target, value: Any) -> None:
    """A beta feature may answer anything; the answer itself was paid for."""
    found = provider(aim.provider).parse_response(answer(aim, value)).cache_miss
    assert found is None or isinstance(found.reason, str)
