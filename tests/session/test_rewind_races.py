"""Others append while somebody goes back: what is not about that stands in nobody's way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

import turnlog
from turnlog import Session
from turnlog.errors import Conflict, InputError
from turnlog.log.records import Body, Decision, MessageRecord, Note, Record, TurnOpened
from turnlog.log.store import Draft
from turnlog.stores import MemoryStore


class Busy(MemoryStore):
    """Another process appends what `says` gives just before each decision, however fast one is."""

    def __init__(self, says: Callable[[], Sequence[Body]]) -> None:
        super().__init__()
        self.says = says
        self.calm = True

    def append(self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        """See `RecordStore.append`."""
        undone = any(isinstance(draft.body, Decision) and draft.body.action == "undo" for draft in drafts)
        if not self.calm and any(isinstance(draft.body, Decision) for draft in drafts) and not undone:
            super().append(session_id, [Draft(body) for body in self.says()])
        return super().append(session_id, drafts, expected=expected)


def conversation(store: Busy) -> Session:
    """Three turns, before others come."""
    session = turnlog.open("s", store=store)
    for word in ("one", "two", "three"):
        session.user(word)
        session.assistant(f"{word}!")
    store.calm = False
    return session


def said(session: Session) -> list[str]:
    """What the conversation says."""
    return [part.text for shown in session.view() for part in shown.message.parts if isinstance(part, turnlog.Text)]


def test_who_appends_all_the_time_keeps_nobody_from_going_back() -> None:
    """Each try was lost to a note that has nothing to do with it, until there was none left."""
    session = conversation(Busy(lambda: [Note("elsewhere")]))
    whole = said(session)
    done = session.rewind(turns=1)
    assert said(session) == whole[:-2]
    assert isinstance(session.history()[done.n - 1].body, Decision)
    session.undo("rewind")
    assert said(session) == whole


def test_an_undoing_is_not_kept_from_it_either() -> None:
    """Taking back is the way out of a rewind too many, and must not depend on others being quiet."""
    store = Busy(lambda: [Note("elsewhere")])
    session = conversation(store)
    whole = said(session)
    session.rewind(turns=2)
    taken = store.append

    def noted(session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        taken(session_id, [Draft(Note("again"))])
        return taken(session_id, drafts, expected=expected)

    store.append = noted  # type: ignore[method-assign]
    session.undo("rewind")
    assert said(session) == whole


def test_what_others_say_meanwhile_stands() -> None:
    """A word of somebody else that came while the last turn was taken back is not that turn."""
    words = iter("abcdefgh")
    store = Busy(lambda: [MessageRecord(turnlog.Message("user", (turnlog.Text(next(words)),)))])
    session = conversation(store)
    session.rewind(to=4)
    assert said(session) == ["one", "one!", "two", "two!", "c"]  # a and b came before the last look, and were looked at


def test_who_opens_a_turn_meanwhile_is_not_cut_off() -> None:
    """What is under way would go on in a conversation that is no longer there: the rewind is taken back."""
    others: list[list[Body]] = [[Note("a")], [Note("b")], [TurnOpened("9")]]
    session = conversation(Busy(lambda: others.pop(0) if others else [Note("c")]))
    whole = said(session)
    with pytest.raises(InputError, match="turn '9' is open"):
        session.rewind(turns=1)
    assert said(session) == whole


def test_who_goes_back_meanwhile_has_gone_back() -> None:
    """Two rewinds of the same turn for two: the second has to take back the turn before."""
    others: list[list[Body]] = [[Note("a")], [Note("b")], [Decision("rewind", 5, 6)]]
    session = conversation(Busy(lambda: others.pop(0) if others else []))
    done = session.rewind(turns=1)
    assert (done.to, said(session)) == (2, ["one", "one!"])


def test_who_decides_all_the_time_is_told() -> None:
    """An endless loop, or a rewind that was made without regard to what others decided."""
    session = conversation(Busy(lambda: [Decision("pin", 1)]))
    whole = said(session)
    with pytest.raises(Conflict) as raised:
        session.rewind(turns=1)
    assert raised.value.expected < raised.value.actual
    assert said(session) == whole
