"""Writers that are killed with SIGKILL while they append: a store keeps what it acknowledged, and nothing by halves.

Each round starts some writers on one session, kills them at different moments, opens the store again and looks for
acknowledged records that are gone, appends of which a part is there, gaps, and whatever `verify` finds. A folder of
files may have appends that were torn at the end of a file; they are set aside when it is opened.
"""

from __future__ import annotations

import os
import select
import signal
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from draws import LONG, draws
from turnlog.log.messages import Message, Text, text_of
from turnlog.log.records import MessageRecord
from turnlog.log.store import Draft
from turnlog.stores import open_store
from turnlog.stores.folders import Durability

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="writers are killed in processes that are forked")


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
        moment = (number * 37 + place * 59) % 100 / 100 * LONGEST_WAIT_SECONDS
        select.select([], [], [], moment)  # each is killed at another moment
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


WAYS = {
    "plain": Way("normal", None, False),
    "full": Way("full", None, False),
    "encrypted": Way("normal", b"k" * 32, False),
    "packing": Way("normal", None, True),  # takes longer than the appends: most are killed while they do
}
WRITERS = 2


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS if LONG else ["plain", "packing"])
@pytest.mark.parametrize("place", ["{}/kill.db", "files:{}/kill"], ids=["sqlite", "files"])
def test_killed_writers_lose_nothing_acknowledged(place: str, way: str, tmp_path: Path, record_property: Any) -> None:
    """An acknowledged record that is gone, or half an append, after kill -9."""
    path, total, torn, wrong = place.format(tmp_path), 0, 0, list[str]()
    for number in range(draws(6, 200) // WRITERS):
        acknowledged, aside, found = kill_round(path, number, WRITERS, WAYS[way])
        total, torn, wrong = total + acknowledged, torn + aside, [*wrong, *(f"round {number}: {one}" for one in found)]
    with closing(open_store(path, key=WAYS[way].key)) as store:
        wrong += [f"at the end: {problem}" for problem in store.verify()]
    record_property("appends", {"acknowledged": total, "torn and set aside": torn})
    assert wrong == []
