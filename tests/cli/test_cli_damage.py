"""Commands on damaged stores: what they advise is of use."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import turnlog as library

KEY = "file:key"


def _changed_record(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("update records set record = replace(record, '\"n\":40', '\"n\":41') where id = (1 << 32 | 40)")
        db.execute("update records set record = replace(record, '=', 'A') where id = (1 << 32 | 40)")


def _changed_row(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("update sessions set messages = 1")


def _overwritten(begin: int, size: int) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(begin)
            file.write(b"\x07" * size)

    return change


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])


def _no_store(path: Path) -> None:
    path.write_text("root:x:0:0::/root:/bin/sh\n" * 30)


def _in_folder(name: str, change: Callable[[Path], None]) -> Callable[[Path], None]:
    return lambda path: change(path / name)


DAMAGE = {
    "record": ("log.db", _changed_record),
    "encrypted record": ("locked.db", _changed_record),
    "row": ("log.db", _changed_row),
    "header": ("log.db", _overwritten(0, 50)),
    "first pages": ("log.db", _overwritten(4096, 6 * 4096)),
    "pages": ("log.db", _overwritten(30 * 4096, 4 * 4096)),
    "cut": ("log.db", _cut),
    "no store": ("log.db", _no_store),
    "line": ("files:log", _in_folder("sessions/s.jsonl", _overwritten(9000, 500))),
    "end": ("files:log", _in_folder("sessions/s.jsonl", _cut)),
    "log": ("files:log", _in_folder("sessions/s.jsonl", Path.unlink)),
    "card": ("files:log", _in_folder("sessions/s.json", _overwritten(20, 4))),
    "marker": ("files:log", _in_folder("turnlog.json", _overwritten(3, 4))),
}
COMMANDS = ("verify", "verify s", "salvage s new", "copy copy.db", "ls", "show s", "fork s f", "pack s", "search says")


@pytest.mark.parametrize("damage", DAMAGE)
def test_no_command_advises_itself(turnlog: Any, tmp_path: Path, damage: str) -> None:
    """Advice that leads in a circle: to run the command that has just failed."""
    place, change = DAMAGE[damage]
    (tmp_path / "key").write_text("5" * 64)
    key = KEY if "locked" in place else "none"
    with library.open("s", store=place, settings=library.load_settings(key=key)) as session:
        session.extend([library.Message("user", (library.Text(f"says {n} " * 40),)) for n in range(60)])
    change(tmp_path / place.removeprefix("files:"))
    for command in COMMANDS:
        ended = turnlog(*command.split(), "--store", place, "--key", key)
        said = ended.out + ended.err
        assert f"turnlog {command.split()[0]}" not in said, (command, said)
        assert ended.code != 70 and "salvage ''" not in said, (command, said)
        if damage == "no store":
            assert (ended.code, "is no turnlog store" in ended.err) == (3, True), (command, said)
