"""Single parts of messages taken out of the view, on record, and brought back."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import turnlog
from judging import TARGETS, errors_of
from turnlog.errors import InputError
from turnlog.log.messages import Media, Message, Reasoning, Text, ToolCall, ToolResult
from turnlog.models.target import Target
from turnlog.stores import MemoryStore
from turnlog.testing.histories import PIXEL


def opened(aim: Target) -> tuple[turnlog.Session, MemoryStore]:
    """A session with two images: one of the user (record 2), one in a tool result (record 4)."""
    store = MemoryStore()
    session = turnlog.open("s", store=store, target=aim)
    session.user([Text("What is this?"), session.media(PIXEL, "image/png", name="a.png")])
    session.add(Message("assistant", (Reasoning("anthropic", "hm"), Text("I look."), ToolCall("c1", "look", {}))))
    shot = session.media(PIXEL + b"2", "image/png")
    session.add(Message("user", (ToolResult("c1", "look", (Text("seen"), shot)),)))
    return session, store


def numbers(session: turnlog.Session) -> list[int]:
    """The numbers of the message records."""
    return [record.n for record in session.history() if record.message is not None]


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: aim.model)
def test_an_image_is_left_out_and_comes_back(aim: Target, oracle: ModuleType) -> None:
    """An image that the provider refuses would stop the session at every further request."""
    session, store = opened(aim)
    before = session.request()
    asked, _, result = numbers(session)
    excluded = session.exclude(asked)
    made = session.request()
    assert b"[image a.png left out]" in made.json()
    assert made.json().count(b"iVBORw0KGgo") == max(0, before.json().count(b"iVBORw0KGgo") - 1)
    assert errors_of(oracle, aim, made.body) == []
    assert "exclude" in {edit.kind for edit in made.edits}
    assert turnlog.Session(store, store.info("s")).request().json() == made.json()
    account = session.explain().accounts[asked]
    assert (account.fate, account.by) == ("placeholder", (excluded.n,))
    session.exclude(result, part=(0, 1), reason="refused")
    assert b"iVBORw0KGgo" not in session.request().json()
    session.undo()
    session.undo("exclusion")
    assert session.request().json() == before.json()
    with pytest.raises(InputError, match="no exclusion is in force"):
        session.undo("exclusion")


def test_the_log_still_has_it() -> None:
    """An exclusion that changed the record would lose what was said."""
    session, _ = opened(TARGETS[0])
    asked = numbers(session)[0]
    session.exclude(asked, part=0)
    assert "[left out]" in str(session.request().body)
    assert session.history()[asked - 1].message is not None
    assert "What is this?" in session.read_back(asked)


def test_a_rewind_takes_an_exclusion_back() -> None:
    """Decisions after the point that a rewind goes back to are no longer in force."""
    session, _ = opened(TARGETS[0])
    before = session.request().json()
    session.exclude(numbers(session)[0])
    session.rewind(to=numbers(session)[-1])
    assert session.request().json() == before


def test_the_last_decision_is_undone_first() -> None:
    """`undo` without an argument would take back another decision than the one that came last."""
    session, _ = opened(TARGETS[0])
    session.assistant("An image.")
    session.exclude(numbers(session)[0])
    session.rewind(to=numbers(session)[-2])
    session.undo()
    assert b"[image a.png left out]" in session.request().json()
    session.undo()
    assert b"[image a.png left out]" not in session.request().json()


@pytest.mark.parametrize(
    ("record", "part", "says"),
    [
        (0, 7, "part=7: record .* has no such part; it has 0, 1"),
        (0, (0, 1), "has no such part"),
        (0, "image", "has no such part"),
        (0, [1], "has no such part"),
        (1, None, "has no images and files: say with part= what to exclude"),
        (1, 0, "reasoning, which cannot be excluded alone"),
        (1, 2, "a tool call, which cannot be excluded alone"),
    ],
)
def test_what_cannot_be_excluded_is_refused(record: int, part: Any, says: str) -> None:
    """A wrong place would leave out something else, or nothing, without a word."""
    session, _ = opened(TARGETS[0])
    with pytest.raises(InputError, match=says):
        session.exclude(numbers(session)[record], part=part)


@pytest.mark.parametrize("n", [0, -1, 99, True, "2", None])
def test_only_messages_have_parts(n: Any) -> None:
    """A note or a record that does not exist has nothing that could be left out."""
    session, _ = opened(TARGETS[0])
    with pytest.raises(InputError, match=r"is not a message, so it cannot be excluded"):
        session.exclude(n)


def test_of_two_images_one_has_to_be_named() -> None:
    """The wrong one of two images would be left out."""
    session, _ = opened(TARGETS[0])
    two = (Media("image", "image/png", url="https://x.test/1"), Media("image", "image/png", url="https://x.test/2"))
    record = session.add(Message("user", two))
    with pytest.raises(InputError, match="has 2 images and files: give part=0 or part=1"):
        session.exclude(record.n)
    session.exclude(record.n, part=1)
    assert b"https://x.test/1" in session.request().json()
    assert b"https://x.test/2" not in session.request().json()
