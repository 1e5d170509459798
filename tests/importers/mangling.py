"""JSON documents and JSON lines as crashes, disks, editors and other versions leave them."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from pathlib import Path
from typing import Any

from turnlog.errors import ImportFailed
from turnlog.importers import read_file
from turnlog.importers.protocol import Importer
from turnlog.log.codec import encode_record
from turnlog.log.records import Record

__all__ = ["check_damage", "counted", "mangled", "stats_in_manifest"]

_ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    1e999,
    10**400,
    "",
    "x",
    "\ud800",
    [],
    [[]],
    {},
    {"a": [None]},
    ["x"],
    [{"type": "text"}],
)


def stats_in_manifest(shared: Path, form: str) -> list[tuple[Path, dict[str, int]]]:
    """The shared files of one format, and what the manifest counted in each."""
    entries = json.loads((shared / "data/manifest.json").read_text("utf-8"))
    return [(shared / "data" / entry["file"], entry["stats"]) for entry in entries if entry["format"] == form]


def counted(stats: dict[str, int], wanted: dict[str, int], **names: str) -> dict[str, tuple[int, int]]:
    """Where `stats` differ from the manifest's: by name, its number and ours."""
    pairs = {key: (n, stats[names.get(key, key)]) for key, n in wanted.items() if names.get(key, key) in stats}
    return {key: (n, ours) for key, (n, ours) in pairs.items() if n != ours}


def mangled(data: bytes, rng: random.Random) -> bytes:
    """`data` damaged: bytes cut off or overwritten, or values of its JSON changed, gone, out of order."""
    kind = rng.choice(["truncate", "flip", "values", "values", "values", "values"])
    if kind == "truncate":
        return data[: rng.randrange(len(data))]
    if kind == "flip":
        changed = bytearray(data)
        for _ in range(rng.choice([1, 30])):
            changed[rng.randrange(len(data))] = rng.randrange(256)
        return bytes(changed)
    try:
        return json.dumps(_changed(json.loads(data), rng)).encode()
    except ValueError:
        values = [json.loads(line) for line in data.splitlines() if line.strip()]
        return b"\n".join(json.dumps(value).encode() for value in _changed(values, rng))


def _changed(document: Any, rng: random.Random) -> Any:
    document = copy.deepcopy(document)
    holders = [holder for holder in _holders(document) if holder]
    for holder in rng.sample(holders, min(len(holders), rng.choice([1, 5, 50]))):
        key = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        action = rng.choice(["odd", "odd", "drop", "shuffle", "repeat"])
        if action == "odd":
            holder[key] = copy.deepcopy(rng.choice(_ODD))
        elif isinstance(holder, dict):
            if action == "drop":
                del holder[key]
        elif action == "shuffle":
            rng.shuffle(holder)
        elif action == "repeat":
            holder.insert(key, copy.deepcopy(holder[key]))
        else:
            del holder[key]
    return document


def _holders(value: Any) -> list[Any]:
    """Every object and list inside a value."""
    found: list[Any] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, (dict, list)):
            found.append(item)
            stack.extend(item.values() if isinstance(item, dict) else item)
    return found


def check_damage(importer: Importer, data: bytes, seed: int) -> None:
    """An import of damaged data gives records that can be written, the same each time, or is refused."""
    damaged = mangled(data, random.Random(seed))
    try:
        found = importer.read(damaged)
    except ImportFailed:
        return
    assert found
    for session in found:
        for n, draft in enumerate(session.drafts, 1):
            encode_record(Record(n, draft.time, draft.body))
    assert found == importer.read(damaged) or b"NaN" in damaged or b"Infinity" in damaged
    with contextlib.suppress(ImportFailed):
        read_file(damaged)
