"""What crashes cost a PostgreSQL store: of the server, and of those who write to it.

    python bench/postgres_kill.py [--crashes 10]

Four processes append to one session, as fast as they can. Again and again the server crashes and recovers, or a writer
is killed with SIGKILL and another begins. Afterwards every append that returned must be there once, whole and in its
place, and `verify` must find nothing. An append whose error says that it may have happened is not repeated. Prints what
was counted; ends with status 1 if anything is lost, doubled or damaged. Needs psycopg and an installed server.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from postgres_server import binaries, running_server
from turnlog.log.messages import Message, Text, text_of
from turnlog.log.records import MessageRecord
from turnlog.log.store import Draft
from turnlog.stores import open_store

WRITERS = 4
SECONDS_BETWEEN = 1.5


def write(place: str, name: str) -> None:
    """Append pairs of messages, and print the name of each pair once the call has returned."""
    store, number = None, 0
    while True:
        number += 1
        said = [f"{name}.{number}", f"{name}.{number}+"]
        drafts = [Draft(MessageRecord(Message("user", (Text(text),)))) for text in said]
        try:
            store = store or open_store(place)
            store.append("s", drafts)
        except Exception as error:
            print("unknown" if "may have happened" in str(error) else "refused", said[0], flush=True)
            time.sleep(0.02)
        else:
            print("done", said[0], flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crashes", type=int, default=10, help="of the server, and as many of writers")
    crashes = parser.parse_args().crashes
    if (binary := binaries()) is None:
        sys.exit("no PostgreSQL server is installed")
    chance, counts = random.Random(1), Counter[str]()
    with tempfile.TemporaryDirectory() as folder, running_server(binary, durable=True) as server:
        place = server.new_place()
        store = open_store(place)
        store.create("s")
        running: list[subprocess.Popen[bytes]] = []

        def begin() -> None:
            counts["writers"] += 1
            name = f"w{counts['writers']}"
            with open(f"{folder}/{name}", "wb") as told:
                running.append(subprocess.Popen([sys.executable, __file__, "--write", place, name], stdout=told))

        for _ in range(WRITERS):
            begin()
        for _ in range(crashes):
            time.sleep(SECONDS_BETWEEN)
            server.stop("QUIT")
            server.start()
            time.sleep(SECONDS_BETWEEN)
            killed = running.pop(chance.randrange(len(running)))
            killed.kill()
            killed.wait()
            begin()
        for one in running:
            one.kill()
            one.wait()
        told = [line.split() for path in Path(folder).iterdir() for line in path.read_text().splitlines()]
        records = list(store.read("s"))
        said = [text_of(record.message) for record in records if record.message]
        problems = len(store.verify())
        store.close()
    there = Counter(said)
    counts["returned"] = sum(word == "done" for word, _ in told)
    counts["said to be unknown"] = sum(word == "unknown" for word, _ in told)
    counts["lost"] = sum(word == "done" and there[text] == 0 for word, text in told)
    counts["refused and there"] = sum(word == "refused" and there[text] > 0 for word, text in told)
    counts["doubled"] = sum(number > 1 for number in there.values())
    counts["torn"] = sum(second != f"{first}+" for first, second in zip(said[::2], said[1::2], strict=True))
    counts["gaps"] = sum(record.n != n for n, record in enumerate(records, 1))
    counts["damage"] = problems
    print(f"{crashes} crashes of the server:", ", ".join(f"{what} {number}" for what, number in counts.items()))
    return int(any(counts[what] for what in ("lost", "refused and there", "doubled", "torn", "gaps", "damage")))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        write(*sys.argv[2:])
    sys.exit(main())
