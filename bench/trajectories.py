"""Trajectories: real sessions before every API and a browser, the cost of long ones, and damaged files.

    python bench/trajectories.py --shared ../shared [--damaged 5000] [--steps 200] [--shots FOLDER]

1. Every session with images of the shared material, with max_history_images 0, 1, 3 and all: valid for the oracle of
   every API, the thumbnail and the newest images kept; and its page in a browser (Playwright on the system's Chromium,
   left out with a word where there is none): no console errors, no requests, the same number of steps, nothing wider
   than the window at 400 and 1600 pixels. `--shots` keeps screenshots.
2. So many steps with JPEGs of 500 kB: get_messages with the newest 5 under 200 ms (of CPU, median of 5), `visualize` of
   the file and of the session under 500 MB of memory, the page under 40 MB.
3. So many damaged files: a clear error or a declared loss.

Prints its figures; exits 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import importlib
import io
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import turnlog
from turnlog.export import as_trajectory
from turnlog.importers.sync import sync_session
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.trajectory import Navigation, Trajectory, walk

ROOT = Path(__file__).parent.parent
CAPS = (0, 1, 3, None)


def judged(shared: Path, shots: Path | None) -> bool:
    """The sessions of the shared material."""
    images, judging = importlib.import_module("image_sessions"), importlib.import_module("judging")
    oracle, browsing = importlib.import_module("oracle"), importlib.import_module("browsing")
    aims = (*images.JUDGED, turnlog.target("google-interactions", "gemini-3-pro"))
    requests, wrong, pages = 0, [], []
    for path, imported in images.with_images(shared):
        store = MemoryStore()
        session = Session(store, store.info(sync_session(store, imported).session))
        made = Navigation(session)
        for aim in aims:
            for most in CAPS:
                request = made.request(aim, most)
                requests += 1
                errors = [*judging.errors_of(oracle, aim, request.body), *browsing.wrong_images(session, request, most)]
                wrong += [f"{path.name} {aim.provider} {most}: {error}"[:200] for error in errors]
        if Trajectory.from_json(Trajectory.from_session(session).to_json()) != Trajectory.from_session(session):
            wrong.append(f"{path.name}: not the same after JSON")
        page = b"".join(as_trajectory(session.log, []))
        pages.append((f"{len(pages)}-{path.stem}"[:60], page, len(walk(session.log.records()).steps)))
    print(f"{len(pages)} sessions, {requests} requests, {len(wrong)} wrong")
    found = browsing.browser()
    if found is None:
        print("browser: none here (Playwright and Chromium are needed), pages not looked at")
    else:
        with found as opened:
            for name, page, steps in pages:
                wrong += [f"{name}: {line}" for line in opened.wrong_with(page, steps, shots and shots / name)]
        print(f"browser: {len(pages)} pages at 2 widths, dark and light")
    print(*wrong[:20], sep="\n")
    return bool(pages) and not wrong


def jpeg(seed: int) -> bytes:
    """A JPEG of some 500 kB that compresses no further."""
    image = importlib.import_module("PIL.Image")
    out = io.BytesIO()
    image.frombytes("RGB", (1024, 768), random.Random(seed).randbytes(1024 * 768 * 3)).save(out, "JPEG", quality=79)
    return out.getvalue()


def costs(steps: int) -> bool:
    """A long run: time of requests, memory and size of its page."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        aim = turnlog.target("anthropic", "claude-sonnet-4-5", max_tokens=1_000)
        session = turnlog.open("long", store=str(place / "s.db"), target=aim)
        made = Navigation(session, "Where?", jpeg(0), slide_width=100_000, slide_height=80_000)
        for k in range(1, steps + 1):
            image = jpeg(k)
            made.add_turn(
                image, f"I look at place {k}. " * 10, {"action_type": "crop"}, (k * 100, k * 50, 5_000, 4_000)
            )
        spent: list[float] = []
        for _ in range(6):
            begin = time.process_time()
            made.get_messages(max_history_images=5)
            spent.append((time.process_time() - begin) * 1_000)
        made.trajectory.save(place / "s.json")
        session.close()
        memory, sizes = [], []
        for words in ([str(place / "s.json")], ["long", "--store", str(place / "s.db")]):
            script = (
                "import sys; from turnlog.cli import main; code = main(sys.argv[1:]); "
                "peak = [line.split()[1] for line in open('/proc/self/status') if 'VmHWM' in line]; "
                "print(*peak, file=sys.stderr); sys.exit(code)"
            )
            command = [sys.executable, "-c", script, "visualize", *words, "-o", str(place / "s.html")]
            run = subprocess.run(command, capture_output=True, text=True, check=True)
            memory.append(int(run.stderr.split()[-1]) / 1_000)
            sizes.append((place / "s.html").stat().st_size / 1e6)
    first, usual = spent[0], median(spent[1:])
    print(f"{steps} steps with images of {len(image) // 1_000} kB:")
    print(f"get_messages, newest 5: {usual:.0f} ms of CPU, {first:.0f} ms the first time in a process (bar: 200)")
    print(f"visualize: {max(memory):.0f} MB of memory (bar: 500), page of {max(sizes):.1f} MB (bar: 40)")
    return usual < 200 and max(memory) < 500 and max(sizes) < 40


def damages(number: int) -> bool:
    """Damaged files."""
    files = importlib.import_module("damaged_trajectories")
    wrong: list[str] = []
    for seed in range(number):
        try:
            wrong += [f"seed {seed}: {line}" for line in files.wrong_with(files.damaged(seed))]
        except Exception as error:
            wrong.append(f"seed {seed}: {type(error).__name__}: {error}"[:200])
    print(f"{number:,} damaged files, {len(wrong)} wrong")
    print(*wrong[:20], sep="\n")
    return not wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", default=str(ROOT.parent / "shared"))
    parser.add_argument("--damaged", type=int, default=5_000)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--shots", type=Path, default=None)
    options: Any = parser.parse_args()
    shared = Path(options.shared)
    sys.path[:0] = [str(ROOT / "tests"), str(shared / "oracle")]
    good = [costs(options.steps)] if options.steps else []
    good += [damages(options.damaged)] if options.damaged else []
    good += [judged(shared, options.shots)] if shared.is_dir() else []
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
