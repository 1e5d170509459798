"""Kill writers with SIGKILL while they append, and see whether the store kept what it acknowledged.

    python bench/store_kill.py --kills 200 [--durability full] [--writers 2]

Each round starts some writers on one session, kills them at different moments, opens the store
again and looks for: acknowledged records that are gone, appends of which a part is there, gaps,
and whatever `verify` finds. Ends with status 1 if there is any. Needs fork (Linux, macOS).
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
from pathlib import Path

from turnlog.content import Message, Text, text_of
from turnlog.log import Draft
from turnlog.records import MessageRecord
from turnlog.stores import Durability, SqliteStore

BATCH = 3
LONGEST_WAIT_SECONDS = 0.02
PATIENCE_SECONDS = 60.0


def write_until_killed(path: Path, session: str, writer: int, durability: Durability, acknowledge: int) -> None:
    """Append batches of three records of up to 9 kB, and say the number of each that is done."""
    store = SqliteStore(path, durability=durability)
    count = 0
    while True:
        filling = "x" * (count * 997 % 9_000)
        texts = [f"{writer} {count} {part} {filling}" for part in range(BATCH)]
        store.append(session, [Draft(MessageRecord(Message("user", (Text(text),)))) for text in texts])
        os.write(acknowledge, f"{count}\n".encode())
        count += 1


def start(path: Path, session: str, writer: int, durability: Durability) -> tuple[int, int]:
    """A writer's process id, and the pipe on which it acknowledges."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            write_until_killed(path, session, writer, durability, writing)
        finally:
            os._exit(1)
    os.close(writing)
    return child, reading


def kill_round(path: Path, number: int, writers: int, durability: Durability) -> tuple[int, list[str]]:
    """One round: how many appends were acknowledged, and what is wrong afterwards."""
    session = f"round-{number}"
    store = SqliteStore(path)
    store.create(session)
    store.close()
    running = [start(path, session, writer, durability) for writer in range(writers)]
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
    return sum(acknowledged), look(path, session, acknowledged)


def look(path: Path, session: str, acknowledged: list[int]) -> list[str]:
    """What is wrong with a session after its writers were killed."""
    store = SqliteStore(path)
    try:
        records = list(store.read(session))
        wrong = [str(problem) for problem in store.verify(session)]
    finally:
        store.close()
    if [record.n for record in records] != list(range(1, len(records) + 1)):
        wrong.append("numbers are not 1 to n")
    found = Counter(tuple(map(int, text_of(record.message).split()[:2])) for record in records if record.message)
    for writer, count in enumerate(acknowledged):
        wrong += [f"acknowledged and lost: {writer} {done}" for done in range(count) if not found[(writer, done)]]
        if not count:
            wrong.append(f"writer {writer} never acknowledged anything")
    return wrong + [f"torn or doubled: {key} {parts} of {BATCH}" for key, parts in found.items() if parts != BATCH]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--writers", type=int, default=2)
    parser.add_argument("--durability", choices=("normal", "full"), default="normal")
    options = parser.parse_args()
    rounds = -(-options.kills // options.writers)
    total, wrong = 0, []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kill.db")
        for number in range(rounds):
            acknowledged, found = kill_round(path, number, options.writers, options.durability)
            total += acknowledged
            wrong += [f"round {number}: {what}" for what in found]
        store = SqliteStore(path)
        wrong += [f"at the end: {problem}" for problem in store.verify()]
        store.close()
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(
        f"{rounds * options.writers} kills, {options.durability}: {total * BATCH} records acknowledged, "
        f"{len(wrong)} problems"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
