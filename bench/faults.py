"""Kill a session everywhere, and see what whoever opens it next finds.

    python bench/faults.py [--instants 500] [--seed 1] [--store sqlite files] [--shared ../shared] [--seconds 600]

Lives the session of tests/faulting.py once for every place where it is killed with SIGKILL: right before each append,
right after it but before anybody is told, in the midst of what it writes (files), and at random instants: a third of
them after a random time, a third at a random line of the package, a third at a random line inside of an append. The
session is then opened again, twice, used, and judged, its requests by the oracle. Prints where the kills fell, and one
line for everything that is not as it must be; ends with 1 if there is any. With `--seconds` it stops after so long for
each store; the places come in random order, so that those reached are a fair sample. Needs fork (Linux, macOS).
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import random
import select
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parent.parent
PATIENCE_SECONDS = 60.0


def lived(faulting: ModuleType, oracle: ModuleType, store: str, kill: Any) -> tuple[Any, list[str], float]:
    """One life and its end: what was heard of it, what is wrong after it, and the seconds it took."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        path = faulting.PLACES[store].format(folder)
        child, pipe = faulting.start(path, folder, kill)
        begun = time.perf_counter()
        if kill.kind == "time":
            select.select([pipe], [], [], PATIENCE_SECONDS)  # its first word: from there on the time runs
            begun = time.perf_counter()
            while time.perf_counter() - begun < kill.at / 1e6:
                pass
            os.kill(child, signal.SIGKILL)
        with open(pipe, encoding="utf-8") as lines:
            said = lines.read()
        seconds = time.perf_counter() - begun
        status = os.waitpid(child, 0)[1]
        heard = faulting.heard(said)
        wrong = list(faulting.judge(path, folder, heard, oracle))
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        wrong.append("the life ended with an error")
    return heard, wrong, seconds


def kills(faulting: ModuleType, totals: dict[str, int], micros: int, options: argparse.Namespace) -> Iterator[Any]:
    """Every place where one life is killed."""
    draw = random.Random(options.seed)
    for n in range(1, totals["appends"] + 1, options.every):
        yield faulting.Kill("before", n)
        yield faulting.Kill("after", n)
    yield from (faulting.Kill("paid", n) for n in range(1, totals["paid"] + 1))
    for n in range(options.instants):
        kind, most = (("time", micros), ("line", totals["lines"]), ("inside", totals["inside"]))[n % 3]
        yield faulting.Kill(kind, draw.randint(1, most))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--instants", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="only every so manieth append")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long for each store")
    parser.add_argument("--store", nargs="+", choices=("sqlite", "files"), default=["sqlite", "files"])
    parser.add_argument("--shared", default=str(ROOT.parent / "shared"))
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT / "tests"), str(Path(options.shared) / "oracle")]
    oracle, faulting = importlib.import_module("oracle"), importlib.import_module("faulting")
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    findings = 0
    for store in options.store:
        whole, wrong, _ = lived(faulting, oracle, store, faulting.Kill("never"))
        # the time of a life without being looked at line by line
        _, more, seconds = lived(faulting, oracle, store, faulting.Kill("before", 0))
        table: Counter[tuple[str, str]] = Counter()
        ended = 0
        places = list(kills(faulting, whole.totals, int(seconds * 1e6), options))
        if store == "files":
            places += [faulting.Kill("torn", n) for n in range(1, whole.totals["appends"] + 1, options.every)]
        random.Random(options.seed).shuffle(places)
        told = [("never", one) for one in (*wrong, *more)]
        reached: list[Any] = []
        until = time.monotonic() + options.seconds
        for kill in places:
            if time.monotonic() > until:
                break
            reached.append(kill)
            heard, wrong, _ = lived(faulting, oracle, store, kill)
            while heard.totals and kill.kind == "time":  # it was over before: another instant, a little earlier
                ended += 1
                kill = kill._replace(at=int(kill.at * 0.9))
                heard, wrong, _ = lived(faulting, oracle, store, kill)
            table[heard.phase, "inside" if heard.appending else "between"] += 1
            told += [(f"{kill.kind} {kill.at} ({heard.phase})", one) for one in wrong]
        findings += len(told)
        show(store, whole.totals, seconds, (reached, len(places)), ended, table, told)
    return 1 if findings else 0


def show(
    store: str,
    totals: dict[str, int],
    seconds: float,
    places: tuple[list[Any], int],
    ended: int,
    table: Counter[tuple[str, str]],
    told: list[tuple[str, str]],
) -> None:
    """Where the kills of one store fell, and what was found."""
    kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(kill.kind for kill in places[0]).items())
    print(f"{store}: a life of {totals['appends']} appends, {totals['lines']:,} lines, {seconds:.2f} s")
    print(f"  {len(places[0])} of {places[1]} kills ({kinds}); {ended} more came after its end and were drawn again")
    print(f"  {'where they fell':<22}{'inside an append':>18}{'between':>10}")
    for phase in dict.fromkeys(phase for phase, _ in table):
        print(f"  {phase:<22}{table[phase, 'inside']:>18}{table[phase, 'between']:>10}")
    for (what, where), n in Counter((one, where.partition(" ")[0]) for where, one in told).most_common(40):
        example = next(place for place, one in told if one == what)
        print(f"  {n} x {where}: {what}   [{example}]")
    print(f"  {len(told)} findings", flush=True)


if __name__ == "__main__":
    sys.exit(main())
