"""A long run of an agent that looks at images: the time of its requests, the memory and the size of its page.

So many steps with JPEGs of 500 kB. The first request of a process loads what the others find.
"""

from __future__ import annotations

import importlib
import io
import random
import tempfile
from pathlib import Path
from statistics import median

import turnlog
from harness import Report, bench, seconds, watched
from turnlog.trajectory import Navigation

_COMMAND = "import sys; from turnlog.cli import main; sys.exit(main())"


def jpeg(seed: int) -> bytes:
    """A JPEG of some 500 kB that compresses no further."""
    image = importlib.import_module("PIL.Image")
    out = io.BytesIO()
    image.frombytes("RGB", (1024, 768), random.Random(seed).randbytes(1024 * 768 * 3)).save(out, "JPEG", quality=79)
    return out.getvalue()


@bench(quick={"steps": 10})
def trajectories(report: Report, *, steps: int = 200) -> None:
    """Requests of a run with 200 large images, and the memory and the size of its page."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        aim = turnlog.target("anthropic", "claude-sonnet-4-5", max_tokens=1_000)
        session = turnlog.open("long", store=str(place / "s.db"), target=aim)
        made = Navigation(session, "Where?", jpeg(0), slide_width=100_000, slide_height=80_000)
        for k in range(1, steps + 1):
            region = (k * 100, k * 50, 5_000, 4_000)
            made.add_turn(jpeg(k), f"I look at place {k}. " * 10, {"action_type": "crop"}, region)
        first, *spent = (1000 * seconds(lambda: made.get_messages(max_history_images=5)) for _ in range(6))
        figures = {"ms of CPU": median(spent), "ms of CPU, first time": first}
        report.row("get_messages, newest 5 images", figures, at_most={"ms of CPU": 200})
        made.trajectory.save(place / "s.json")
        session.close()
        for what, words in (("file", [str(place / "s.json")]), ("session", ["long", "--store", str(place / "s.db")])):
            used = watched("-c", _COMMAND, "visualize", *words, "-o", str(place / "s.html"))
            size = (place / "s.html").stat().st_size / 1e6
            figures = {"MB of memory": used["MB"], "MB of page": size}
            report.row(f"visualize a {what}", figures, at_most={"MB of memory": 500, "MB of page": 40})
