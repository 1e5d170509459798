"""Every session with images of the shared material under `max_history_images` 1, 3 and none, for every API.

    python bench/images.py --shared ../shared [--every 5]

Replays each session record by record with a request at every so many messages, and checks each: valid for the
oracle, thumbnail and newest images kept, each other one replaced by its running number. Prints a line a session.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", default=str(ROOT.parent / "shared"))
    parser.add_argument("--every", type=int, default=5)
    options = parser.parse_args()
    shared = Path(options.shared)
    sys.path[:0] = [str(ROOT / "tests"), str(shared / "oracle")]
    oracle = importlib.import_module("oracle")
    images = importlib.import_module("image_sessions")
    sessions = requests = failures = 0
    for path, session in images.with_images(shared):
        sessions += 1
        for aim in images.JUDGED:
            for most in images.CAPS:
                asked, wrong = images.judge_images(session, aim, most, oracle, every=options.every)
                requests += asked
                failures += bool(wrong)
                for line in wrong[:2]:
                    print(f"{path.name} {aim.provider} {most}: {line[:300]}", flush=True)
        print(f"{path.relative_to(shared)}: done", flush=True)
    print(f"{sessions} sessions, {requests:,} requests, {failures} replays with something wrong")
    return 1 if failures or not sessions else 0


if __name__ == "__main__":
    sys.exit(main())
