"""Damaged histories through the real SDKs, against a server that judges them; streams cut everywhere.

    python bench/sdk_requests.py --histories 200 --shared ../shared [--start 0] [--streams]

Sends a request of each history to every target of tests/judging.py through that provider's SDK and
counts the answers. `--streams` then breaks every reply of tests/clients/replies.py after every one
of its events, by a dropped connection and by an error in the stream. Prints a line a finding.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
import time
from pathlib import Path
from typing import Any

from turnlog.log.records import Configuration
from turnlog.requests.build import build
from turnlog.requests.translate import plan
from turnlog.testing import damaged_history

ROOT = Path(__file__).parent.parent


def send_histories(seeds: range, server_class: Any) -> list[str]:
    """Each history to each target; gives what was refused."""
    judging = importlib.import_module("judging")
    sdk_client = importlib.import_module("sdk_clients").sdk_client
    findings: list[str] = []
    for aim in judging.TARGETS:
        began = time.perf_counter()
        refused = len(findings)
        with server_class() as server:
            client = sdk_client(aim.provider, server.url)
            for seed in seeds:
                history = damaged_history(random.Random(seed))
                try:
                    view = judging.shown(history)
                    request = build(plan(Configuration(), aim), view, history.blobs.__getitem__).body
                    client.send(request, aim.model)
                except Exception as error:
                    findings.append(f"{seed} {aim.provider}/{aim.model}: {error!r}")
            answered = sum(one.status == 200 for one in server.requests)
        seconds = time.perf_counter() - began
        print(
            f"{aim.provider}/{aim.model:24} {answered} of {len(seeds)} answered, {len(findings) - refused} refused, "
            f"{seconds:.1f} s",
            flush=True,
        )
    return findings


def cut_streams(server_class: Any, oracle: Any) -> list[str]:
    """Every reply of every provider, broken after every event in both ways."""
    asking = importlib.import_module("asking")
    cutting = importlib.import_module("cutting")
    replies = importlib.import_module("replies")
    sdk_clients = importlib.import_module("sdk_clients").sdk_clients
    findings: list[str] = []
    for aim in asking.AGENTS:
        cuts = 0
        with server_class() as server:
            clients = sdk_clients(server.url)
            for name in replies.replies_of(aim.provider):
                for by_error in (False, True):
                    done = cutting.cut_everywhere(server, clients, oracle, aim, name, by_error=by_error)
                    cuts += done.cuts
                    findings += [f"{aim.provider} {name!r} {what}" for what in done.findings]
        print(f"{aim.provider:24} {cuts} streams cut", flush=True)
    return findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=200)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--shared", default=str(ROOT.parent / "shared"))
    parser.add_argument("--streams", action="store_true")
    parser.add_argument("--show", type=int, default=40)
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "clients"), str(Path(options.shared) / "oracle")]
    sys.dont_write_bytecode = True
    server_class = importlib.import_module("fake_server").FakeServer
    findings = send_histories(range(options.start, options.start + options.histories), server_class)
    if options.streams:
        findings += cut_streams(server_class, importlib.import_module("oracle"))
    for line in findings[: options.show]:
        print(line[:400])
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
