"""Kill writers with SIGKILL while they append, and see whether the store kept what it acknowledged.

    python bench/store_kill.py --kills 200 [--durability full] [--writers 2] [--store files] [--encrypted] [--pack]

Each round starts some writers on one session, kills them at different moments, opens the store
again and looks for: acknowledged records that are gone, appends of which a part is there, gaps,
and whatever `verify` finds. Appends that were torn at the end of a file and set aside when it was
opened, which only files can have, are counted. `--encrypted`: the store is. `--pack`: writers pack the session after
every third append, which takes longer than the appends, so that most are killed while they do. Ends with status 1 if
there is any. Needs fork (Linux, macOS).
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
import tempfile
import time
from collections import Counter
from typing import NamedTuple

from turnlog.log.messages import Message, Text, text_of
from turnlog.log.records import MessageRecord
from turnlog.log.store import Draft
from turnlog.stores import Durability, open_store


class Way(NamedTuple):
    """How a store is written to: what of an append lasts, with which key, and whether sessions are packed."""

    durability: Durability
    key: bytes | None
    pack: bool


BATCH = 3
LONGEST_WAIT_SECONDS = 0.02
PATIENCE_SECONDS = 60.0
TORN = "bytes of an unfinished append are at the end of the log"


def write_until_killed(path: str, session: str, writer: int, way: Way, acknowledge: int) -> None:
    """Append batches of three records of up to 9 kB, and say the number of each that is done."""
    store = open_store(path, durability=way.durability, key=way.key)
    count = 0
    while True:
        filling = "x" * (count * 997 % 9_000)
        texts = [f"{writer} {count} {part} {filling}" for part in range(BATCH)]
        store.append(session, [Draft(MessageRecord(Message("user", (Text(text),)))) for text in texts])
        os.write(acknowledge, f"{count}\n".encode())
        count += 1
        if way.pack and count % 3 == 0:
            store.pack(session)
            store.reclaim()


def start(path: str, session: str, writer: int, way: Way) -> tuple[int, int]:
    """A writer's process id, and the pipe on which it acknowledges."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            write_until_killed(path, session, writer, way, writing)
        finally:
            os._exit(1)
    os.close(writing)
    return child, reading


def kill_round(path: str, number: int, writers: int, way: Way) -> tuple[int, int, list[str]]:
    """One round: how many appends were acknowledged, how many torn, and what is wrong afterwards."""
    session = f"round-{number}"
    store = open_store(path, key=way.key)
    store.create(session)
    store.close()
    running = [start(path, session, writer, way) for writer in range(writers)]
    for _, pipe in running:
        select.select([pipe], [], [], PATIENCE_SECONDS)
    for place, (child, _) in enumerate(running):
        time.sleep((number * 37 + place * 59) % 100 / 100 * LONGEST_WAIT_SECONDS)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    acknowledged = []
    for _, pipe in running:
        with open(pipe, encoding="ascii") as lines:
            acknowledged.append(len(lines.read().splitlines()))
    torn, wrong = look(path, session, acknowledged, way.key)
    return sum(acknowledged), torn, wrong


def look(path: str, session: str, acknowledged: list[int], key: bytes | None) -> tuple[int, list[str]]:
    """How many torn appends were set aside after the writers were killed, and what is wrong with the session."""
    store = open_store(path, key=key)
    try:
        records = list(store.read(session))
        problems = store.verify(session)
        torn = [problem for problem in problems if problem.what.endswith(TORN)]
        wrong = [str(problem) for problem in problems if problem not in torn]
    finally:
        store.close()
    if [record.n for record in records] != list(range(1, len(records) + 1)):
        wrong.append("numbers are not 1 to n")
    found = Counter(tuple(map(int, text_of(record.message).split()[:2])) for record in records if record.message)
    for writer, count in enumerate(acknowledged):
        wrong += [f"acknowledged and lost: {writer} {done}" for done in range(count) if not found[(writer, done)]]
        if not count:
            wrong.append(f"writer {writer} never acknowledged anything")
    return len(torn), wrong + [
        f"torn or doubled: {key} {parts} of {BATCH}" for key, parts in found.items() if parts != BATCH
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--writers", type=int, default=2)
    parser.add_argument("--store", choices=("sqlite", "files"), default="sqlite")
    parser.add_argument("--durability", choices=("normal", "full"), default="normal")
    parser.add_argument("--encrypted", action="store_true")
    parser.add_argument("--pack", action="store_true")
    options = parser.parse_args()
    way = Way(options.durability, b"k" * 32 if options.encrypted else None, options.pack)
    rounds = -(-options.kills // options.writers)
    total, set_aside, wrong = 0, 0, []
    with tempfile.TemporaryDirectory() as folder:
        path = f"files:{folder}/kill" if options.store == "files" else f"{folder}/kill.db"
        for number in range(rounds):
            acknowledged, torn, found = kill_round(path, number, options.writers, way)
            total += acknowledged
            set_aside += torn
            wrong += [f"round {number}: {what}" for what in found]
        store = open_store(path, key=way.key)
        wrong += [f"at the end: {problem}" for problem in store.verify()]
        store.close()
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(
        f"{rounds * options.writers} kills, {options.store} {options.durability}{' encrypted' * options.encrypted}"
        f"{' packing' * options.pack}: {total * BATCH} records "
        f"acknowledged, {set_aside} torn appends set aside, {len(wrong)} problems"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
