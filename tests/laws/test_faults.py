"""A session that is killed anywhere is opened again with nothing lost, nothing doubled and nothing kept quiet.

`bench/faults.py` kills it at every append and at hundreds of random instants.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from types import ModuleType

import pytest

from faulting import PLACES, Heard, Kill, heard, judge, start

KILLS = (
    *(Kill("before", n) for n in (1, 2, 5, 19, 41, 77, 113)),
    *(Kill("after", n) for n in (3, 8, 12, 30, 58, 96, 129, 150)),
    *(Kill("inside", n) for n in (900, 9_000, 26_000)),
    *(Kill("line", n) for n in (3_000, 90_000)),
    *(Kill("paid", n) for n in (1, 2)),
)
TORN = tuple(Kill("torn", n) for n in (4, 33, 101))
PLACED = [("sqlite", kill) for kill in KILLS[::2]] + [("files", kill) for kill in (*KILLS[1::2], *TORN)]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a life is killed in a process that is forked")


def killed(store: str, folder: Path, kill: Kill) -> tuple[str, Heard]:
    """A life up to its end: where its log is, and what was heard of it."""
    path = PLACES[store].format(folder)
    child, pipe = start(path, folder, kill)
    with open(pipe, encoding="utf-8") as lines:
        said = heard(lines.read())
    os.waitpid(child, 0)
    return path, said


@pytest.mark.parametrize("store, kill", PLACED, ids=lambda one: one if isinstance(one, str) else f"{one.kind}-{one.at}")
def test_whatever_is_killed_is_recovered(
    store: str, kill: Kill, tmp_path: Path, oracle: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    """A lost record, a request that is refused, a call or an effect or half an answer that nobody is told of, a second
    opening that tells something new, a summary paid twice: each fails here."""
    with caplog.at_level(logging.CRITICAL, "turnlog"):
        path, said = killed(store, tmp_path, kill)
        assert said.totals == {}
        assert list(judge(path, tmp_path, said, oracle)) == []


def test_the_judge_sees_what_is_wrong(tmp_path: Path, oracle: ModuleType) -> None:
    """A judge that lets everything pass would make of the tests above nothing."""
    path, said = killed("files", tmp_path, Kill("after", 60))
    (tmp_path / "effects" / "flood").write_text("done")
    (tmp_path / "effects" / "sweep").unlink()
    (tmp_path / "paid" / "a-1-0").write_text("paid")
    (tmp_path / "paid" / "a-2-1").write_text("paid")
    log = next((tmp_path / "log" / "sessions").glob("*.jsonl"))
    lines = log.read_bytes().splitlines(keepends=True)
    told = said._replace(kept=[*said.kept, (1, "another hash"), (len(lines) + 7, "never there")])
    wrong = list(judge(path, tmp_path, told, oracle))
    assert [one for one in wrong if "verify" not in one] == [
        "acknowledged record 1 is not the same",
        f"acknowledged record {len(lines) + 7} is lost",
        "flood had its effect, and nothing tells of it",
        "sweep has a result and had no effect",
        "summary a was paid 2 times",
    ]
