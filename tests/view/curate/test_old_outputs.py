"""Old outputs are curated in batches, by decisions: nothing that was sent changes in silence, and nothing twice."""

from __future__ import annotations

import turnlog
from turnlog.log.budget import Strategy
from turnlog.log.messages import Message, ToolCall, ToolResult, text_of
from turnlog.log.records import Decision
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

SEARCH = "\n".join(f"src/module_{n // 40}.py:{n}:    value = compute({n}, other_argument)" for n in range(400))
FILE = "\n".join(f"{n:6}→line {n} of the file" for n in range(1, 101))
CURATE = Strategy("curate", ("curate",))


def session_with_old_outputs(store: MemoryStore, repeats: int = 2) -> tuple[Session, list[int]]:
    """A session without curation, and the records of its outputs: `repeats` searches and reads of a file."""
    session = turnlog.open("s", store=store, target=turnlog.target("anthropic", "claude-sonnet-4-5"))
    session.configure(strategy="mask")
    session.user("Find the error.")
    numbers = []
    for name, arguments, text in [("grep", {}, SEARCH), ("Read", {"file_path": "a.py"}, FILE)] * repeats:
        made = ToolCall(f"call_{len(numbers)}", name, arguments)
        session.add(Message("assistant", (made,)))
        numbers.append(session.tool_result(made, text).n)
    for word in ("Found.", "Yes.", "Done."):
        session.assistant(word)
        session.user("Sure?")
    return session, numbers


def decisions(session: Session) -> list[Decision]:
    """All decisions on record."""
    return [record.body for record in session.history() if isinstance(record.body, Decision)]


def outputs(session: Session) -> dict[int, str]:
    """What a request shows of each output, by record."""
    return {
        one.records[0]: text_of(Message("user", part.parts))
        for one in session.view()
        for part in one.message.parts
        if isinstance(part, ToolResult)
    }


def test_old_outputs_are_curated_when_room_is_needed_and_all_at_once() -> None:
    """Otherwise a user who switches curation on would lose whole messages of a long session while its searches stay."""
    session, numbers = session_with_old_outputs(MemoryStore())
    sent = session.request().json()
    session.configure(strategy="auto")
    assert session.request().json() == sent and decisions(session) == []
    session.configure(budget=session.window.tokens - 1_000)
    session.request()
    [made] = decisions(session)
    assert (made.action, made.first, made.detail["outputs"]) == ("curate", numbers[0], [numbers[0], *numbers[2:]])
    assert made.detail["changes_from"] == numbers[0]
    assert made.detail["after"] == session.window.tokens < made.detail["before"] // 2
    shown = outputs(session)
    assert shown[numbers[1]] == FILE  # the first read of a file is shown whole
    assert shown[numbers[3]] == f"[... lines 1-100 of a.py unchanged since record {numbers[1]} ...]"
    assert all(f"record {n} " in shown[n] for n in (numbers[0], numbers[2]))


def test_the_next_process_shows_the_same() -> None:
    """The batch is on record: after a crash the same bytes are sent, and nothing is decided again."""
    store = MemoryStore()
    session, _ = session_with_old_outputs(store)
    session.compact(strategy=CURATE)
    sent, made = session.request().json(), decisions(session)
    session.close()
    with turnlog.open("s", store=store) as again:
        assert (again.request().json(), decisions(again)) == (sent, made)
        assert again.read_back(made[0].first) == SEARCH


def test_nothing_is_curated_twice() -> None:
    """What was compressed once and compressed again says nothing of what is missing."""
    session, _ = session_with_old_outputs(MemoryStore())
    assert [one.action for one in session.compact(strategy=CURATE).decisions.values()] == ["curate"]
    shown = outputs(session)
    assert session.compact(strategy=CURATE).decisions == {} and outputs(session) == shown


def test_undo_shows_the_outputs_whole_again() -> None:
    """A user who needs what was left out takes the batch back."""
    session, _ = session_with_old_outputs(MemoryStore())
    before = outputs(session)
    session.compact(strategy=CURATE)
    session.undo("compaction")
    assert outputs(session) == before


def test_pinned_and_masked_outputs_stay_as_they_are() -> None:
    """A pin keeps a message; what another decision shortened points to its record already."""
    session, numbers = session_with_old_outputs(MemoryStore(), repeats=4)
    session.pin(numbers[0])
    session.compact(strategy=Strategy("some", ("mask",), protect=0.02, goal=0.8), budget=16_000)
    masked = {n for made in decisions(session) if made.action == "mask" for n, *_ in made.detail["texts"]}
    session.compact(strategy=CURATE)
    made = decisions(session)[-1]
    assert masked and made.action == "curate"
    assert not {numbers[0], *masked} & {*made.detail["outputs"]}
    assert outputs(session)[numbers[0]] == SEARCH


def test_why_names_the_decision_and_the_curator() -> None:
    """Who asks why an output is short is told what shortened it, and when."""
    session, numbers = session_with_old_outputs(MemoryStore())
    session.compact(strategy=CURATE)
    account = session.explain().accounts[numbers[0]]
    ruling = session.explain().rulings[-1]
    assert (account.fate, account.by, account.curator) == ("curated", (ruling.n,), "search")
    assert account.saved > 0 and ruling.decision.why == "3 old tool outputs shortened by what the tool is"


def test_a_foreign_decision_that_names_no_records_is_left_alone() -> None:
    """A log of another program must not stop a session from opening: what cannot be read is told, not followed."""
    store = MemoryStore()
    session, numbers = session_with_old_outputs(store)
    before = outputs(session)
    session._journal.append(Decision("curate", numbers[0], numbers[0], "", {"outputs": [1, 10**6]}))
    session.close()
    with turnlog.open("s", store=store) as again:
        assert outputs(again) == before
