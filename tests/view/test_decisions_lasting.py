"""Decisions that a later one hides wholly: views are the same without them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import turnlog
from turnlog.log.messages import Message, Text
from turnlog.log.records import Decision
from turnlog.stores import MemoryStore
from turnlog.view.decisions import Effects, lasting
from turnlog.view.fold import as_decided
from turnlog.view.types import Shown

LAST = 12
numbers = st.integers(1, LAST)


@st.composite
def decisions(draw: st.DrawFn) -> dict[int, Decision]:
    """Some decisions after `LAST` records, of all kinds that change a view, in any order and with any ranges."""
    made: dict[int, Decision] = {}
    for n in range(LAST + 1, LAST + 1 + draw(st.integers(1, 6))):
        first = draw(numbers)
        last = draw(st.integers(first, LAST))
        action = draw(
            st.sampled_from(("slide", "compact", "clear", "rewind", "priority", "mask", "cap", "pin", "system"))
        )
        detail: dict[str, object] = {}
        if action in ("mask", "system"):
            detail["texts"] = [[draw(st.integers(first, last)), [0], f"stub {n}"]]
        elif action == "cap":
            detail["cuts"] = [[draw(st.integers(first, last)), [0], 1, 1]]
        elif action == "compact":
            standing = draw(st.sets(st.sampled_from([*made] or [0])))
            detail |= {"at": draw(numbers), "standing": sorted(standing)}
            detail["replacement"] = [{"role": "user", "parts": [{"type": "text", "text": f"summary {n}"}]}]
        if action in ("compact", "slide", "priority") and draw(st.booleans()):
            begin = draw(st.integers(first, last))
            detail["kept"] = [[begin, draw(st.integers(begin, last))]]
        made[n] = Decision(action, first, last, detail=detail)
    return made


@given(decisions(), st.sets(numbers))
def test_a_view_is_the_same_without_what_does_not_last(made: dict[int, Decision], system: set[int]) -> None:
    """Else a session in memory, which lets go of such decisions, would send something else than one opened anew."""
    said = [Shown(Message("system" if n in system else "user", (Text(f"text {n}"),)), (n,)) for n in range(1, LAST + 1)]
    left = lasting(made, system)
    assert [*as_decided(said, left)] == [*as_decided(said, made)]
    assert list(left) == [n for n in made if n in left]
    assert Effects.of(left).shown_ranges(LAST) == Effects.of(made).shown_ranges(LAST)


def test_a_long_session_keeps_one_summary_in_memory() -> None:
    """Every compaction would add its summary to what an open session holds, read again at each later one."""
    store = MemoryStore()
    session = turnlog.Session(store, store.create("s"))
    session.switch(turnlog.target("openai-chat", "gpt-4o"))
    views = []
    for turn in range(6):
        session.user(f"Question {turn} about file_{turn}.py")
        session.assistant(f"Answer {turn}: see src/file_{turn}.py. " + "It says this and that. " * 200)
        session.compact(keep=1)
        views.append(session.request().body)
    made = [record.n for record in store.read("s") if isinstance(record.body, Decision)]
    held = session._context.decisions
    assert len(made) > len(held) > 1
    assert [n for n, decision in held.items() if "replacement" in decision.detail] == [made[-1]]
    assert turnlog.Session(store, store.info("s")).request().body == views[-1]
    session.undo("compaction")
    assert session.request().body == turnlog.Session(store, store.info("s")).request().body
    assert "replacement" in session._context.decisions[max(session._context.decisions)].detail


def test_what_is_undone_shows_again_what_was_shortened() -> None:
    """A mask whose messages a later decision hid would be lost when that is taken back, if its outline held less."""
    store = MemoryStore()
    session = turnlog.Session(store, store.create("s"))
    session.switch(turnlog.target("openai-chat", "gpt-4o"))
    session.user("Read the file.")
    session.assistant([turnlog.ToolCall("c1", "read_file", {"path": "a.py"})])
    session.tool_result("c1", "x = 1\n" * 2000)
    session.assistant("It sets x.")
    session.compact(strategy="mask")
    masked = session.request().body["messages"]
    for turn in range(4):
        session.user(f"Go on with {turn}.")
        session.assistant("It says this and that. " * 200)
    session.compact(keep=1)
    assert [d.action for d in session._context.decisions.values()] == ["mask", "compact"]
    session.undo("compaction")
    assert session.request().body["messages"][: len(masked)] == masked
