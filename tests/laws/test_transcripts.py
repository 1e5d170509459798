"""Real transcripts: every API accepts them, whole and cut, and nothing is lost in silence."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from draws import LONG, draws
from real_transcripts import JUDGED, cuts, imported, judge
from turnlog.importers import Imported
from turnlog.models.target import Target

CUTS = draws(2, 25)


@pytest.fixture(scope="module")
def sessions(shared: Path) -> list[tuple[Path, Imported]]:
    """Every session of the transcripts, read once."""
    return [*imported(shared)]


@pytest.mark.parametrize("aim", JUDGED, ids=lambda aim: aim.provider)
def test_transcripts_make_requests_that_are_accepted(
    aim: Target, sessions: list[tuple[Path, Imported]], oracle: ModuleType
) -> None:
    """Generated damage is what we thought of; this is what really happens."""
    wrong: list[tuple[str, str]] = []
    requests = 0
    for n, (path, session) in enumerate(sessions):
        cut = LONG or n % 2 == JUDGED.index(aim) % 2  # in a normal run by two APIs of the four
        for records in cuts(session, CUTS if cut else 0):
            found, _ = judge(records, session, aim, oracle)
            requests += 1
            wrong += [(path.name, what) for what in found]
    assert wrong == []
    assert requests > 300


def test_undamaged_transcripts_need_no_repair(sessions: list[tuple[Path, Imported]], oracle: ModuleType) -> None:
    """The tau-bench conversations are whole: OpenAI's own format takes them as they are, but for the
    `name` that this API does not document on tool messages."""
    kinds: set[str] = set()
    for path, session in sessions:
        if path.parent.name == "tau-bench":
            whole = next(iter(cuts(session, 0)))
            kinds |= judge(whole, session, JUDGED[0], oracle)[1]
    assert kinds <= {"tool", "unknown_key"}
