"""Runners against the fake server: long conversations over all wire formats, through the real SDK clients.

Prints how many requests were refused, how many were too long and how many of those could not be mended by one
compaction, and how many losses the switches told. Ends with 1 if a request was refused or an overflow stayed.

    python bench/runners.py [--turns 60] [--limit 16000]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
sys.path[:0] = [str(SHARED / "oracle"), str(ROOT / "tests" / "clients"), str(ROOT / "tests")]

import turnlog  # noqa: E402
from turnlog.errors import RequestTooLong  # noqa: E402
from turnlog.stores import MemoryStore  # noqa: E402


def main() -> int:
    """Run the conversation, print the figures."""
    options = argparse.ArgumentParser()
    options.add_argument("--turns", type=int, default=60)
    options.add_argument("--limit", type=int, default=16_000)
    asked = options.parse_args()
    if not SHARED.is_dir():
        print("the fake server is absent")
        return 0
    from asking import AGENTS, TOOLS
    from fake_server import FakeServer
    from sdk_runners import converse, sdk_runner

    server = FakeServer(context_limit=asked.limit, verify_signatures="all").start()
    session = turnlog.open("long", target=AGENTS[0], store=MemoryStore(), tools=TOOLS, budget=asked.limit - 2_000)
    unrecovered, losses = 0, []
    try:
        losses = asyncio.run(
            converse(session, sdk_runner(server.url), list(AGENTS), turns=asked.turns, each=max(1, asked.turns // 6))
        )
    except RequestTooLong as error:
        print(error)
        unrecovered = 1
    server.stop()
    refused = [one.errors for one in server.requests if one.errors not in ([], ["context"])]
    too_long = sum(one.errors == ["context"] for one in server.requests)
    decisions = sum(type(record.body).__name__ == "Decision" for record in session.history())
    print(f"{asked.turns} turns, {len(server.requests)} requests, half of the turns streamed, limit {asked.limit}")
    print(f"refused: {len(refused)}; too long: {too_long}, not mended: {unrecovered}; decisions: {decisions}")
    kinds = sorted({loss.kind for loss in losses})
    print(f"losses told by the switches: {len(losses)} ({', '.join(kinds) or 'none'})")
    for errors in refused[:5]:
        print("  ", errors)
    return int(bool(refused) or unrecovered > 0)


if __name__ == "__main__":
    sys.exit(main())
