"""What all benches share: how they are named and given options, how they time, what they print, where material lies.

A bench is a function with `@bench` in a file of speed/, quality/ or peers/. Its first parameter is the Report to which
it prints; its keyword parameters are its options. Its name is that of its file, or `file.function`.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import json
import multiprocessing
import resource
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any, Literal, NamedTuple, get_args, get_origin

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
TESTS = ROOT / "tests"
FOLDERS = ("speed", "quality", "peers")
SHOWN = 40
"""The most lines of findings that are printed."""

_shared = ROOT.parent / "shared"
_each = 1
_OK, _MISSED, _SKIPPED = 0, 1, 3

Figure = int | float | str


class Skipped(Exception):
    """A bench cannot run here; the message says why."""


# -- material --------------------------------------------------------------------------------------


def shared(*parts: str) -> Path:
    """A path in the shared material. Raises Skipped if it is absent."""
    path = _shared.joinpath(*parts).resolve()
    if not path.exists():
        raise Skipped(f"{path} is absent: name the folder of shared material with --shared")
    return path


def module(name: str, *folders: Path) -> ModuleType:
    """A module of the tests or of the shared material, whose modules import their neighbours by plain name."""
    sys.path[:0] = [str(folder) for folder in folders if str(folder) not in sys.path]
    return importlib.import_module(name)


def transcripts(*folders: str) -> Iterator[tuple[Path, Any]]:
    """Each session of the shared transcripts, with its file; of a quick run one in twenty."""
    every = module("real_transcripts", TESTS).imported(shared(), *([list(folders)] if folders else []))
    yield from islice(every, 0, None, _each)


# -- time and memory -------------------------------------------------------------------------------


def seconds(work: Callable[[], object], times: int = 1, clock: Callable[[], float] = time.process_time) -> float:
    """Seconds of CPU that a call takes, on average over so many."""
    begun = clock()
    for _ in range(times):
        work()
    return (clock() - begun) / times


class Times(dict[str, list[float]]):
    """Seconds of several kinds of work."""

    def median(self, name: str) -> float:
        """The median of one kind."""
        return median(self[name])

    def ratio(self, name: str, floor: str) -> float:
        """The median of one kind, in medians of another."""
        return self.median(name) / self.median(floor)


def by_turns(
    works: Mapping[str, Callable[[], object]],
    rounds: int,
    *,
    times: int = 1,
    clock: Callable[[], float] = time.process_time,
) -> Times:
    """Time each kind of work so many times, one after the other: a busy machine slows all of them alike."""
    taken = Times({name: [] for name in works})
    for _ in range(rounds):
        for name, work in works.items():
            taken[name].append(seconds(work, times, clock))
    return taken


def quantile(values: Iterable[float], at: float) -> float:
    """The value below which a share `at` of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * at))]


_WATCH = """
import resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
took = time.perf_counter() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(took, used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def watched(*command: str) -> dict[str, float]:
    """Seconds by the clock, seconds of CPU and the most memory of a Python command, in a process of its own."""
    watcher = [sys.executable, "-c", _WATCH, sys.executable, *command]
    done = subprocess.run(watcher, stdout=subprocess.PIPE, text=True, check=True)
    took, cpu, held = map(float, done.stdout.split())
    return {"s": took, "s of CPU": cpu, "MB": held / (1e6 if sys.platform == "darwin" else 1e3)}


def memory() -> float:
    """The most memory that this process has held so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def apart(work: Callable[..., Any], *given: Any) -> Any:
    """What a function returns, called in a process of its own that is made anew: for figures of memory."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *given).result()


# -- output ----------------------------------------------------------------------------------------


class Report:
    """What a bench found: rows of figures, some with bars, and lines of detail."""

    def __init__(self, name: str, *, as_json: bool = False) -> None:
        self.name, self.rows, self.missed = name, dict[str, dict[str, Figure]](), list[str]()
        self._out = sys.stderr if as_json else sys.stdout

    def say(self, text: str) -> None:
        """Print a line of detail. With --json it goes to standard error."""
        print(text, file=self._out, flush=True)

    def row(
        self,
        name: str,
        figures: Mapping[str, Figure],
        *,
        at_most: Mapping[str, float] | None = None,
        at_least: Mapping[str, float] | None = None,
    ) -> None:
        """Print the figures of one thing, each before its unit, with the bars that some of them have."""
        most, least, told = at_most or {}, at_least or {}, []
        for unit, value in figures.items():
            bars = [
                f"at {word} {written(bar[unit])}" for word, bar in (("most", most), ("least", least)) if unit in bar
            ]
            is_kept = not value > most.get(unit, value) and not value < least.get(unit, value)  # type: ignore[operator]
            if not is_kept:
                self.missed.append(f"{name}: {written(value)} {unit}")
            told.append(f"{written(value)} {unit}" + f" ({', '.join(bars)})" * bool(bars) + " MISSED" * (not is_kept))
        self.rows[name] = dict(figures)
        self.say(f"{name}: {'; '.join(told)}")

    def findings(self, what: str, lines: Sequence[str]) -> None:
        """Print what is wrong, the first lines of it. Anything at all misses the bar."""
        for line in lines[:SHOWN]:
            self.say(f"  {line[:400]}")
        self.row(what, {"findings": len(lines)}, at_most={"findings": 0})


def written(value: Figure) -> str:
    """A figure with about three digits that count."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or abs(value) >= 100 or value == 0:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 1 else f"{value:.3g}"


# -- names and options -----------------------------------------------------------------------------


def bench(*, quick: Mapping[str, Any] | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a function a bench. `quick`: the options with which it takes seconds; None keeps it off the quick list."""

    def marked(function: Callable[..., None]) -> Callable[..., None]:
        function.quick = quick  # type: ignore[attr-defined]
        return function

    return marked


class Found(NamedTuple):
    """A bench as its file tells it, without importing it."""

    name: str
    module: str
    function: str
    summary: str
    is_quick: bool


def benches() -> dict[str, Found]:
    """All benches by name."""
    found = {}
    for path in sorted([*BENCH.glob("*.py"), *(file for folder in FOLDERS for file in BENCH.glob(f"{folder}/*.py"))]):
        for node in ast.parse(path.read_text("utf-8")).body:
            for mark in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
                if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "bench":
                    assert isinstance(node, ast.FunctionDef)
                    name = path.stem if node.name == path.stem else f"{path.stem}.{node.name}"
                    summary = (ast.get_docstring(node) or "").partition("\n\n")[0].replace("\n", " ")
                    own = path.parent.name + "." if path.parent != BENCH else ""
                    found[name] = Found(name, own + path.stem, node.name, summary, bool(mark.keywords))
    return found


def options_of(parser: argparse.ArgumentParser, function: Callable[..., None]) -> list[str]:
    """Add the options of a bench to a parser. Returns their names."""
    names = []
    for option in inspect.signature(function, eval_str=True).parameters.values():
        if option.kind is not option.KEYWORD_ONLY:
            continue
        names.append(option.name)
        flag = f"--{option.name.replace('_', '-')}"
        if option.annotation is bool:
            parser.add_argument(flag, action="store_true", default=argparse.SUPPRESS)
            continue
        kind: Any = option.annotation
        more: dict[str, Any] = {"type": kind, "metavar": kind.__name__.upper()}
        if get_origin(kind) is Literal:
            more = {"choices": get_args(kind)}
        parser.add_argument(flag, default=argparse.SUPPRESS, help=f"default: {option.default}", **more)
    return names


def run_one(found: Found, arguments: Sequence[str], general: argparse.Namespace) -> int:
    """Run a bench in this process. Returns its exit status: 0, 1 where a bar is missed, 3 where it was skipped."""
    report = Report(found.name, as_json=general.json)
    begun, why = time.monotonic(), ""
    try:
        function = getattr(importlib.import_module(found.module), found.function)
        parser = argparse.ArgumentParser(
            prog=f"run.py {found.name}",
            description=inspect.getdoc(function),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        options_of(parser, function)
        given = {**(function.quick or {} if general.quick else {}), **vars(parser.parse_args(arguments))}
        warnings.simplefilter("ignore")
        function(report, **given)
        status = _MISSED if report.missed else _OK
    except Skipped as reason:
        status, why = _SKIPPED, str(reason)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("turnlog", "harness", *FOLDERS):
            raise
        status, why = _SKIPPED, f"the package of the module {error.name} is not installed"
    if general.json:
        words = {_OK: "ok", _MISSED: "missed", _SKIPPED: "skipped"}
        print(json.dumps({
            "bench": found.name, "status": words[status], "why": why, "seconds": round(time.monotonic() - begun, 1),
            "missed": report.missed, "rows": report.rows,
        }))  # fmt: skip
    elif why:
        print(f"skipped: {why}", flush=True)
    return status


def run_each(chosen: Sequence[Found], command: Sequence[str], *, as_json: bool) -> int:
    """Run each bench in a process of its own, to the end even where one fails, and say which failed."""
    told: dict[str, list[str]] = {}
    out = sys.stderr if as_json else sys.stdout
    for found in chosen:
        print(f"== {found.name}: {found.summary}", file=out, flush=True)
        status = subprocess.run([sys.executable, str(BENCH / "run.py"), found.name, *command], check=False).returncode
        word = {_OK: "ok", _MISSED: "missed a bar", _SKIPPED: "skipped"}.get(status, "failed")
        told.setdefault(word, []).append(found.name)
    for word, names in told.items():
        print(f"{word}: {', '.join(names)}", file=out, flush=True)
    return int(any(word.startswith(("missed", "failed")) for word in told))


def main(arguments: Sequence[str]) -> int:
    """`list`, `quick`, or the names of benches with their options."""
    parser = argparse.ArgumentParser(prog="run.py", add_help=False, usage="run.py NAME... [--quick] [--json] [options]")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each bench")
    parser.add_argument("--quick", action="store_true", help="with the options that take seconds")
    parser.add_argument("--shared", type=Path, help="the folder of shared material")
    first = next((i for i, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    names, options = [*arguments[:first]], [*arguments[first:]]
    general, rest = parser.parse_known_args(options)
    known = benches()
    if names == ["list"]:
        for found in known.values():
            print(f"{found.name:20} {found.summary}")
        return 0
    if names == ["quick"]:
        return run_each(
            [found for found in known.values() if found.is_quick], ["--quick", *options], as_json=general.json
        )
    chosen = [found for name in names for found in known.values() if name in (found.name, found.name.partition(".")[0])]
    unknown = [name for name in names if not any(name in (one, one.partition(".")[0]) for one in known)]
    if unknown or not names:
        parser.print_help()
        print(
            f"no bench has the name {unknown[0]!r}" if unknown else "name a bench",
            "(see: run.py list)",
            file=sys.stderr,
        )
        return 2
    if len(chosen) > 1:
        return run_each(chosen, options, as_json=general.json)
    if general.shared is not None:
        globals()["_shared"] = general.shared
    if general.quick:
        globals()["_each"] = 20
    try:
        return run_one(chosen[0], rest, general)
    except Exception:
        traceback.print_exc()
        return 70
