"""A session that is killed anywhere is opened again with nothing lost, nothing doubled and nothing kept quiet."""

from __future__ import annotations

import logging
import os
import random
import select
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from draws import long_only
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


INSTANTS = 500


def killed_in_time(path: str, folder: Path, kill: Kill) -> tuple[Heard, float]:
    """A life that its parent kills so many microseconds after its first word, or that ends as it wants to; and the
    seconds that it took."""
    child, pipe = start(path, folder, kill)
    select.select([pipe], [], [], 60)
    begun = time.perf_counter()
    if kill.kind == "time":
        while time.perf_counter() - begun < kill.at / 1e6:
            pass
        os.kill(child, signal.SIGKILL)
    with open(pipe, encoding="utf-8") as lines:
        said = heard(lines.read())
    took, status = time.perf_counter() - begun, os.waitpid(child, 0)[1]
    assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0, "the life ended with an error"
    return said, took


def places(store: str, kind: str, totals: dict[str, int], micros: int) -> list[Kill]:
    """Every place of a kind where a life is killed: random ones for `time`, `line` and `inside`."""
    draw = random.Random(1)
    if kind in ("time", "line", "inside"):
        most = micros if kind == "time" else totals[f"{kind}s" if kind == "line" else kind]
        return [Kill(kind, draw.randint(1, most)) for _ in range(INSTANTS // 3)]
    return [Kill(kind, n) for n in range(1, totals["paid" if kind == "paid" else "appends"] + 1)]


@long_only
@pytest.mark.parametrize("store, kind", [
    *((store, kind) for store in PLACES for kind in ("before", "after", "paid", "time", "line", "inside")),
    ("files", "torn"),
])  # fmt: skip
def test_wherever_it_is_killed_it_is_recovered(
    store: str, kind: str, tmp_path: Path, oracle: ModuleType, caplog: pytest.LogCaptureFixture, record_property: Any
) -> None:
    """The same at every append, in the midst of every write to a file, after every paid summary, and at 500 random
    instants: after a random time, at a random line of the package, at one inside of an append."""
    caplog.set_level(logging.CRITICAL, "turnlog")
    lived = iter(range(10**6))

    def life(kill: Kill) -> tuple[Heard, float, list[str]]:
        folder = tmp_path / str(next(lived))
        folder.mkdir()
        path = PLACES[store].format(folder)
        said, took = killed_in_time(path, folder, kill)
        wrong = [f"{kill.kind} {kill.at} ({said.phase}): {one}" for one in judge(path, folder, said, oracle)]
        shutil.rmtree(folder)
        return said, took, wrong

    whole, _, wrong = life(Kill("never"))
    _, seconds, more = life(Kill("before", 0))  # a life that is not looked at line by line
    where, findings = Counter[str](), [*wrong, *more]
    for kill in places(store, kind, whole.totals, int(seconds * 1e6)):
        said, _, wrong = life(kill)
        while said.totals and kind == "time":  # it was over before: another instant, a little earlier
            kill = kill._replace(at=int(kill.at * 0.9))
            said, _, wrong = life(kill)
        where[f"{said.phase}, {'inside an append' if said.appending else 'between'}"] += 1
        findings += wrong
    record_property("kills", dict(where))
    assert findings == []


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
