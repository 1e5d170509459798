"""A session that was given the messages of a body sends what `turnlog.repair` makes of that body.

What is necessarily different, and compared accordingly:

- A session numbers records, of which the first is its configuration; `repair` numbers messages.
- `repair` lists two changes that correct a mistake in a body and none in a log: see `_is_told_by_sessions`.
- A session makes the whole request: if no tools are given, it declares those that were called, with an edit for each.
  `repair` leaves the tools to the caller, unless the API requires them.

Bodies are compared as JSON: the order of keys says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

import turnlog
from draws import draws
from recorded_bodies import RecordedBody, recorded_bodies
from turnlog.errors import FormatError
from turnlog.log.messages import Message
from turnlog.log.store import Draft
from turnlog.models.target import Target
from turnlog.providers import provider
from turnlog.requests.request import Request
from turnlog.requests.standalone import aimed
from turnlog.stores import MemoryStore
from turnlog.view.types import Edit, Loss

FEWER = draws(5, 1)
"""Of how many recorded bodies one is taken: of each API there are hundreds."""
CONFIGURATION = 1
"""The number of the record with the tools and settings of a body. Its messages follow."""


def opened(one: RecordedBody) -> tuple[turnlog.Session, Target, Sequence[Message]]:
    """A session with the tools and settings of a body, and without a budget; its target; and the body's messages."""
    parsed = provider(one.provider).parse(one.body)
    target, store = aimed(parsed, one.provider, one.model), MemoryStore()
    for data in parsed.blobs.values():
        store.put_blob(data)
    store.create("s")
    strategy = turnlog.Strategy(cache_marks=False)
    store.append("s", [Draft(replace(parsed.configuration, model=target.model, strategy=strategy))])
    return turnlog.open("s", store=store, settings=turnlog.Settings(redact=False)), target, parsed.messages


def difference(made: Request, repaired: Request, body: dict[str, Any]) -> list[str]:
    """What differs between the request of a session and what `repair` made of a body."""
    assert json.loads(made.json()) == made.body
    required = provider(repaired.target.provider).required_settings(repaired.target).keys() - body.keys()
    edits = [edit for edit in repaired.edits if _is_told_by_sessions(edit, required)]
    sent, told = made.body, made.edits
    if not body.get("tools") and not any(map(_declares, edits)):
        told = tuple(edit for edit in made.edits if not _declares(edit))
        if told != made.edits:
            sent = {key: value for key, value in {**sent, "tools": body.get("tools")}.items() if value is not None}
    pairs = {
        "body": (sent, repaired.body),
        "edits": (_numbered(told), edits),
        "losses": (_numbered(made.losses), [*repaired.losses]),
    }
    return [what for what, (one, other) in pairs.items() if one != other]


def _declares(edit: Edit) -> bool:
    """Whether this edit declared a tool because it was called."""
    return edit.kind == "tool" and edit.detail.endswith("declared for any arguments")


def _is_told_by_sessions(edit: Edit, required: Iterable[str]) -> bool:
    """Whether a session lists this edit of `repair` as well. It does not where results of parallel calls are in several
    records, as tools record them one by one, nor where it fills in a setting that the API requires, nor where an answer
    has an empty text beside its calls."""
    if edit.kind == "empty" and edit.detail == "empty text left out":
        return False
    return edit.kind != "joined" and not (edit.kind == "setting" and edit.path in required)


def _numbered(changes: Sequence[Edit] | Sequence[Loss]) -> list[Edit | Loss]:
    return [replace(one, records=tuple(n - CONFIGURATION for n in one.records)) for one in changes]


def beginnings(one: RecordedBody) -> Iterator[tuple[RecordedBody, int]]:
    """A body cut behind each of its messages, and the number of messages that the whole has in the log up to there."""
    speaker, key = provider(one.provider), provider(one.provider).conversation
    given = one.body[key]
    before = len(speaker.parse(one.body).messages) - len(speaker.parse({key: given}).messages)
    step = 1 if len(given) <= 20 else 5
    for end in range(1, len(given) + 1, step):
        cut = replace(one, body={**one.body, key: given[:end]})
        yield cut, before + len(speaker.parse({key: given[:end]}).messages)


def bodies(shared: Path, step: int, first: int = 0) -> Iterator[RecordedBody]:
    """The recorded bodies that can be read, one of every few."""
    for one in islice(recorded_bodies(shared), first, None, step):
        try:
            provider(one.provider).parse(one.body)
        except FormatError:
            continue
        yield one


def test_a_session_sends_what_repair_makes_of_a_recorded_body(shared: Path) -> None:
    """Who moves from plain bodies to a session would be sent other requests, and told false reasons for it."""
    wrong, total = [], 0
    for one in bodies(shared, FEWER):
        session, target, messages = opened(one)
        with session:
            key = provider(one.provider).conversation
            given = one.body.get(key)
            if isinstance(given, list) and given:
                here = provider(one.provider).parse({key: given}).messages
                session.extend(messages[: len(messages) - len(here)])
                session.extend(given, target)
            else:
                session.extend(messages)
            made = session.request()
        found = difference(made, turnlog.repair(one.body, one.provider, model=one.model), one.body)
        wrong += [(one.name, what) for what in found]
        total += 1
    assert wrong == []
    assert total > 2_400 // FEWER


@pytest.mark.slow
def test_a_session_that_grows_sends_what_repair_makes_of_each_beginning(shared: Path) -> None:
    """The pieces that a living session keeps would become another request than the whole: an answer lost its id because
    its reasoning was in the piece before."""
    wrong, total = [], 0
    for one in bodies(shared, FEWER, FEWER // 2):
        if not isinstance(one.body.get(provider(one.provider).conversation), list):
            continue
        session, _, messages = opened(one)
        at = 0
        with session:
            for cut, end in beginnings(one):
                session.extend(messages[at:end])
                at = end
                repaired = turnlog.repair(cut.body, cut.provider, model=cut.model)
                wrong += [(one.name, end, what) for what in difference(session.request(), repaired, cut.body)]
                total += 1
    assert wrong == []
    assert total > 5_000 // FEWER


# -- drawn bodies of the Responses API, whose items depend on each other by their ids ------------------


def items(kinds: str) -> list[dict[str, Any]]:
    """Items of these kinds: a letter each; a small one has no id, or no content beside it."""
    made: list[dict[str, Any]] = []
    waiting: list[str] = []
    for n, kind in enumerate(kinds):
        text = [{"type": "output_text", "text": f"word {n}", "annotations": []}]
        message = {"type": "message", "role": "assistant", "status": "completed", "content": text}
        reasoning = {"type": "reasoning", "id": f"rs_{n}", "summary": []}
        match kind:
            case "U":
                made.append({"role": "user", "content": f"word {n}"})
            case "T":
                made.append({**reasoning, "encrypted_content": "sealed"})
            case "t":
                made.append(reasoning)
            case "C":
                waiting.append(f"call_{n}")
                call = {"type": "function_call", "id": f"fc_{n}", "call_id": waiting[-1], "name": "f"}
                made.append({**call, "arguments": "{}"})
            case "S":
                search = {"type": "web_search_call", "id": f"ws_{n}", "status": "completed"}
                made.append({**search, "action": {"type": "search", "query": "x"}})
            case "O" if waiting:
                made.append({"type": "function_call_output", "call_id": waiting.pop(0), "output": f"word {n}"})
            case "M":
                made.append({**message, "id": f"msg_{n}"})
            case "m":
                made.append(message)
            case "D":
                made += [item for item in made[:: n + 1] if "call_id" not in item]  # an earlier item once more
    return made


@given(kinds=st.text("UTtCOOMmSD", min_size=1, max_size=14), store=st.booleans())
@example(kinds="UTCOM", store=True)  # the reasoning of an answer is in the piece before it
@example(kinds="UTCOMUD", store=True)
def test_ids_are_kept_and_dropped_as_in_the_whole(kinds: str, store: bool) -> None:
    """An id was dropped for reasoning that is in the request, or sent twice, which the API refuses."""
    body: dict[str, Any] = {"model": "gpt-5", "store": store, "input": items(kinds)}
    session, _, messages = opened(RecordedBody("drawn", "openai-responses", "gpt-5", body))
    with session:
        for end, message in enumerate(messages, start=1):
            session.extend([message])
            cut = {**body, "input": body["input"][:end]}
            assert difference(session.request(), turnlog.repair(cut, "openai-responses"), cut) == []
