"""Errors as values: what they say and hold goes wherever they go."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest

import turnlog
from turnlog.errors import BudgetError, Conflict, CorruptRecord, FormatError, TurnCancelled, TurnlogError


def a_refusal() -> TurnlogError:
    """What a request that cannot fit is told."""
    with pytest.raises(BudgetError) as raised:
        turnlog.fit({"model": "gpt-4o", "messages": [{"role": "user", "content": "word " * 50}]}, max_tokens=20)
    raised.value.add_note("of the second customer")
    return raised.value


@pytest.mark.parametrize(
    "again", (copy.copy, lambda error: pickle.loads(pickle.dumps(error))), ids=("copied", "pickled")
)
@pytest.mark.parametrize(
    "make",
    (
        a_refusal,
        lambda: Conflict("s", expected=3, actual=5),
        lambda: CorruptRecord("bytes are missing", record=7),
        lambda: FormatError("no list", path="messages[2]"),
        lambda: TurnCancelled("turn-1", "Ctrl-C"),
    ),
    ids=("budget", "conflict", "corrupt", "format", "cancelled"),
)
def test_errors_pass_between_processes(
    make: Callable[[], TurnlogError], again: Callable[[TurnlogError], TurnlogError]
) -> None:
    """A pool of processes that breaks, with all that is under way in it, since one of them could not hand over that a
    request does not fit."""
    error = make()
    other = again(error)
    assert (type(other), str(other), vars(other)) == (type(error), str(error), vars(error))
