"""CPU that whole processes take beside `python -c pass`: an import, an open, a first request, and commands."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median

import turnlog
from harness import Report, bench, watched

_OPEN = "import sys, turnlog\nwith turnlog.open('s', store=sys.argv[1]) as session:\n    "
_MAIN = "import sys; from turnlog.cli import main; sys.exit(main())"


def cases(store: str) -> dict[str, tuple[float | None, tuple[str, ...]]]:
    """The most milliseconds beside the first case, and the arguments of Python."""
    return {
        "python -c pass": (None, ("-c", "pass")),
        "import turnlog": (None, ("-c", "import turnlog")),
        "import and open": (160, ("-c", f"{_OPEN}pass", store)),
        "the same with a request": (430, ("-c", f"{_OPEN}session.request()", store)),
        "turnlog --version": (60, ("-c", _MAIN, "--version")),
        "turnlog --help": (100, ("-c", _MAIN, "--help")),
        "turnlog ls": (150, ("-c", _MAIN, "ls", "--store", store)),
    }


@bench(quick={"times": 3})
def startup(report: Report, *, times: int = 15) -> None:
    """CPU that whole processes take beside `python -c pass`: an import, an open, a first request, and commands."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "t.db"
        with turnlog.open("s", store=store, target=turnlog.target("openai-chat", "gpt-4o")) as session:
            for n in range(50):
                session.user(f"hello number {n}")
                session.request()
        took: dict[str, list[float]] = {name: [] for name in cases("")}
        for _ in range(times):
            for name, (_, words) in cases(str(store)).items():
                took[name].append(watched(*words)["s of CPU"] * 1e3)
    floor = median(next(iter(took.values())))
    for name, (most, _) in cases("").items():
        beside = {"ms of CPU beside pass": median(took[name]) - floor}
        report.row(name, beside, at_most={unit: most for unit in beside} if most else None)
