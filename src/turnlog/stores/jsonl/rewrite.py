"""Rewrites records of a JSONL store. The new logs are written next to the old ones first, and then a plan that lists
them. After a crash, the next process that opens the folder completes the plan.

A log is replaced under its lock. Processes that waited for the lock notice that the log is another file now; readers go
on reading the old file. Incomplete appends in `.torn` files are removed: they belong to no log, and it is not known
what they contain.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
from msgspec.structs import replace

from ..._platform.files import CAN_REPLACE_OPEN
from ..._platform.lazy import lazy_pattern
from ...errors import CorruptRecord, InputError
from ...log.codec import decode_record
from ..folders import write_whole
from . import labels
from .files import LogFolder, SessionFile, start_sum
from .lines import checked, digest, lines_forwards, read_line, write_line
from .reading import LogSegment

_PLAN = "rewrite.json"
_HALF_DONE = lazy_pattern(r"(.+)\.(?:jsonl|jsonl\.zst|json)(?:\.new)?\.(?:new|[0-9]+\.tmp)")
"""The names of a stem's files before they are put in place."""


class _Log(NamedTuple):
    """A log after the rewrite: its card, its lines, and for each record its old and new sum."""

    card: SessionFile
    data: bytes
    sums: dict[int, tuple[str, str]]


def rewrite(folder: LogFolder, segments: Sequence[LogSegment], records: Mapping[int, bytes]) -> None:
    """Replace records by these bytes. The caller must hold the store's lock."""
    changes: dict[str, dict[int, bytes]] = {}
    for n, raw in records.items():
        if decode_record(raw).n != n:
            raise InputError(f"the bytes given for record {n} encode another record")
        stem = next((each.key for each in segments if each.first <= n <= each.last), None)
        if stem is None:
            raise InputError(f"the session has no record {n} to rewrite")
        changes.setdefault(stem, {})[n] = raw
    logs: dict[str, _Log] = {}
    for stem, card in _oldest_first(folder):
        if stem in changes or card.base in logs:
            logs[stem] = _rewritten(folder, stem, card, changes.get(stem, {}), logs)
    for stem, log in logs.items():
        write_whole(_new(folder, stem, "jsonl"), log.data)
        write_whole(_new(folder, stem, "json"), log.card.sealed().encoded())
    write_whole(folder.path / _PLAN, json.dumps({"stems": list(logs)}).encode())
    finish_rewrite(folder)
    labels.forget(folder)
    clear_half_done(folder)


def finish_rewrite(folder: LogFolder) -> None:
    """Complete the plan of a rewrite, if there is one. May be repeated if it was interrupted."""
    plan = folder.path / _PLAN
    try:
        stems = json.loads(plan.read_bytes())["stems"]
    except FileNotFoundError:
        return
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptRecord(f"{plan} cannot be read: {error}; restore the store from a copy") from error
    for stem in stems:
        _put_in_place(folder, stem)
    plan.unlink(missing_ok=True)


def clear_half_done(folder: LogFolder) -> None:
    """Remove files that killed processes have not put in place, as they may contain whole logs, even of sessions
    deleted since; also logs of sessions that were not completely created. The caller must hold the store's lock, and
    there must be no plan left."""
    for log in half_made(folder):
        log.unlink()
    for name in (_PLAN, labels.FILE):
        for half_done in folder.path.glob(f"{name}.*.tmp"):
            half_done.unlink(missing_ok=True)
    for name in os.listdir(folder.sessions):
        if match := _HALF_DONE.fullmatch(name):
            # A process that unpacks a log holds the lock of the log, but not the store's lock.
            with suppress(FileNotFoundError), folder.opened(match[1], write=False):
                (folder.sessions / name).unlink(missing_ok=True)
            (folder.sessions / name).unlink(missing_ok=True)  # if there is no log


def half_made(folder: LogFolder) -> list[Path]:
    """Empty logs without a card, left by processes that were killed while they created the session."""
    stems = {log.stem for log in folder.sessions.glob("*.jsonl")}.difference(folder.stems())
    logs = (folder.file(stem) for stem in sorted(stems) if not folder.is_packed(stem))
    return [log for log in logs if not log.stat().st_size]


def _put_in_place(folder: LogFolder, stem: str) -> None:
    """Replace the files of one log. The log is replaced last; until then, everything here can be repeated."""
    new = _new(folder, stem, "jsonl")
    if not new.exists():
        return
    with folder.opened(stem, write=True) as file:
        updated = folder.tail(stem, file, folder.card(stem)).updated
        _carry_over(folder, stem, file, new)
        card = _new(folder, stem, "json")
        if card.exists():
            os.replace(card, folder.file(stem, "json"))
        folder.file(stem, "head").unlink(missing_ok=True)
        folder.file(stem, "torn").unlink(missing_ok=True)
        if not CAN_REPLACE_OPEN:  # nor is there a lock, which would end with this
            file.close()
        os.replace(new, folder.file(stem, "jsonl"))
    with folder.opened(stem, write=True) as file:
        tail = folder.tail(stem, file, folder.card(stem))
        if tail.records > folder.card(stem).parent_records:
            folder.write_head(stem, tail._replace(updated=max(tail.updated, updated)))


def _carry_over(folder: LogFolder, stem: str, file: BinaryIO, new: Path) -> None:
    """Add to the new log what others, or a process before a crash, have appended to the old log since the new one was
    written. When repeated, it adds nothing."""
    card = folder.card(stem)
    held = list(lines_forwards(file, folder.tail(stem, file, card).size))
    with new.open("rb") as new_file:
        data = new_file.read()
        last = list(lines_forwards(new_file, len(data)))
    if len(held) <= len(last):
        return
    new_card = _new(folder, stem, "json")  # missing if it was put in place already; then `card` is the new card
    start = msgspec.json.decode(new_card.read_bytes(), type=SessionFile).start if new_card.exists() else card.start
    old, total = (_sum(held[len(last) - 1]), _sum(last[-1])) if last else (card.start, start)
    added = _resummed(held[len(last) :], card.parent_records + len(last), old, total, {})
    write_whole(new, data + b"".join(line for line, _ in added))


def _sum(line: bytes) -> str:
    stored_line = read_line(line)
    if stored_line is None:
        raise CorruptRecord("the log has a damaged line, so it cannot be rewritten; `turnlog verify` names it")
    return stored_line.sum


def _oldest_first(folder: LogFolder) -> Iterator[tuple[str, SessionFile]]:
    """Stems and cards, each after the stem that it is based on."""
    cards = {stem: folder.card(stem) for stem in folder.stems()}
    done: set[str] = set()
    while len(done) < len(cards):
        ready = [stem for stem, card in cards.items() if stem not in done and card.base in done | {""}]
        if not ready:
            raise CorruptRecord(
                f"{folder.path}: the log of a fork is missing the log it was forked from; `turnlog verify` names it"
            )
        for stem in ready:
            yield stem, cards[stem]
        done.update(ready)


def _rewritten(
    folder: LogFolder, stem: str, card: SessionFile, changes: Mapping[int, bytes], logs: Mapping[str, _Log]
) -> _Log:
    """A log after the rewrite. Raises CorruptRecord if an old sum is wrong, because a new sum would hide the damage."""
    new_card = card
    if card.base in logs:
        new_card = replace(card, start=start_sum(stem, card.order, logs[card.base].sums[card.parent_records][1]))
    with folder.reading(stem) as (file, end):
        held = list(lines_forwards(file, end.size))
    if end.lost:
        raise end.damage()
    made_lines = list(_resummed(held, card.parent_records, card.start, new_card.start, changes))
    sums = [(card.start, new_card.start), *(both for _, both in made_lines)]
    return _Log(new_card, b"".join(line for line, _ in made_lines), dict(enumerate(sums, card.parent_records)))


def _resummed(
    held: Iterable[bytes], after: int, old: str, new: str, changes: Mapping[int, bytes]
) -> Iterator[tuple[bytes, tuple[str, str]]]:
    """The new lines for the lines after record `after`, each with its old and new sum. `old` and `new` are the sums
    before the first line. Raises CorruptRecord."""
    for n, line in enumerate(held, after + 1):
        stored_line = read_line(line)
        checked(n, old, stored_line)
        assert stored_line is not None  # `checked` raises CorruptRecord for None
        raw = changes.get(n, stored_line.raw)
        old, new = stored_line.sum, digest(new, stored_line.messages, stored_line.left, raw)
        yield write_line(new, stored_line.messages, stored_line.left, raw), (old, new)


def _new(folder: LogFolder, stem: str, kind: str) -> Path:
    """The path of a file until it is put in place."""
    return folder.file(stem, kind).with_name(f"{stem}.{kind}.new")
