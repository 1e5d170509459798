"""turnlog refuses exactly the requests that cannot fit: those of the shared context bench, judged by messages alone.

A request cannot fit if its system text, the first user message (and, if an agent wrote that one, the first that the
user wrote), and the last group (a call with its results, each cut to its ends, 60 tokens) exceed the budget.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from draws import draws
from turnlog.errors import BudgetError
from turnlog.requests.fit import Fitter
from turnlog.view.program_prefaces import is_of_program

LEAST_CUT = 60
Messages = Sequence[dict[str, Any]]


def must_stay(messages: Messages) -> list[dict[str, Any]]:
    """The messages that no strategy may leave out."""
    said = [one for one in messages if one["role"] == "user"]
    own = [one for one in said if not _is_preface(one["content"])]
    last = len(messages) - 1
    while messages[last]["role"] == "tool":
        last -= 1
    stays = [one for one in messages if one["role"] == "system"] + said[:1] + own[:1] + list(messages[last:])
    return list({id(one): one for one in stays}.values())


def _is_preface(text: str) -> bool:
    return is_of_program(text) or text.startswith(("# AGENTS.md instructions for ", "<user_instructions>"))


def least(messages: Messages, size: Any) -> int:
    """The fewest tokens of a request for these messages."""
    found = 0
    for one in must_stay(messages):
        whole = size(one)
        frame = size({**one, "content": ""}) if one["role"] == "tool" else whole
        found += min(whole, frame + LEAST_CUT)
    return found


def refused(fitter: Fitter, history: Messages) -> dict[str, int]:
    """The floor of the error with which a history is refused; {} if it is not."""
    try:
        fitter.fit({"messages": history})
    except BudgetError as error:
        return error.floor
    return {}


@pytest.mark.slow
def test_what_cannot_fit_is_refused_and_nothing_else(shared: Path) -> None:
    """A session that is stuck although there is room, or a request without what must stay."""
    folder = shared / "bench" / "context"
    if not folder.is_dir():
        pytest.skip(f"the context bench is absent: expected the folder {folder}")
    sys.path[:0] = [str(folder)]
    common, recall = importlib.import_module("common"), importlib.import_module("recall")
    differ, calls = [], 0
    for session in recall.get_data("dev")[: draws(1, 1_000)]:
        budget = session.budget(0.1)
        fitter = Fitter(max_tokens=budget, model="gpt-4o", provider="openai-chat", counter=common.total)
        for t in session.calls():
            calls += 1
            floor, refusal = least(session.messages[:t], common.ntok), refused(fitter, session.messages[:t])
            if bool(refusal) != (floor > budget):
                differ.append((session.id, t, budget, floor, refusal))
    assert differ == [] and calls
