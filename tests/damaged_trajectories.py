"""Damaged trajectory files, and what must come of each: a clear error, or a declared loss."""

from __future__ import annotations

import base64
import json
import random
import struct
import zlib
from copy import deepcopy
from typing import Any

from navigating import CROP, THUMBNAIL, png
from turnlog.errors import InputError
from turnlog.export import as_trajectory
from turnlog.importers import read_file
from turnlog.importers.sync.session import sync_session
from turnlog.log.store import Problem
from turnlog.models.target import target
from turnlog.session.reader import SessionLog
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.trajectory import Navigation, Trajectory

__all__ = ["damaged", "wrong_with"]

_WRONG: tuple[Any, ...] = (
    *(None, True, -1, 0, 1.5, 10**30, "", "text", "\ud800", [], {}, [[[]]], {"x": 1}, ["a"]),
    *(float("nan"), float("inf"), {"": None}, "A" * 1000, "data:image/png;base64,", "=", "%", "\u202e<script>"),
)
_CHAT = target("openai-chat", "gpt-4o")


def bomb(side: int) -> bytes:
    """A PNG of a few kilobytes that unpacks to side * side pixels."""
    head = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(bytes(4_000_000)))
        + chunk(b"IEND", b"")
    )


_BOMBS = [base64.b64encode(bomb(side)).decode() for side in (9_000, 60_000, 2**31 - 1)]


def sound(chance: random.Random) -> dict[str, Any]:
    """A trajectory with every field."""
    turns = [
        {
            "step_index": i,
            "image_base64": base64.b64encode(png(i + 1)).decode(),
            "response": {"reasoning": f"I look, {i}.", "action": chance.choice([{**CROP}, "Click [5]", None, "wait"])},
            "region": {"x": i, "y": 2, "width": 30, "height": 40},
            "conch_scores": [0.5],
        }
        for i in range(chance.randrange(4))
    ]
    whole = {"wsi_path": "a.svs", "question": "Where?", "turns": turns, "final_answer": "There.", "slide_width": 1000}
    return {**whole, "slide_height": 800, "thumbnail_base64": base64.b64encode(THUMBNAIL).decode()}


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every object or list inside a value, with each of its keys."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [(value, key) for key in keys] + [one for key in keys for one in _places(value[key])]


def damaged(seed: int) -> bytes:
    """A damaged file; each seed gives another."""
    chance = random.Random(seed)
    whole = sound(chance)
    for _ in range(chance.choice([1, 1, 2, 5])):
        holder, key = chance.choice(_places(whole))
        match chance.randrange(4):
            case 0:
                del holder[key]
            case 1 if key in ("image_base64", "thumbnail_base64"):
                holder[key] = chance.choice(_BOMBS)
            case 2 if isinstance(holder[key], str):
                at = chance.randrange(len(holder[key]) + 1)
                holder[key] = holder[key][:at] + chance.choice(["", "?", "\0", "AAAA"]) + holder[key][at + 1 :]
            case _:
                holder[key] = deepcopy(chance.choice(_WRONG))  # it may be damaged in its turn
    data = json.dumps(whole).encode()
    match chance.randrange(6):
        case 0:
            return data[: chance.randrange(len(data))]
        case 1:
            at = chance.randrange(len(data))
            return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
        case 2:
            at = chance.randrange(len(data))
            return data[:at] + data[at + chance.randrange(200) :]
    return data


def wrong_with(data: bytes) -> list[str]:
    """What is wrong with how a file is treated: a loss that nobody is told of, or a step that the page lacks. Errors
    that are no `InputError` are raised."""
    wrong: list[str] = []
    try:
        loaded = Trajectory.from_json(data)
    except InputError as error:
        loaded = None
        if not str(error).startswith("the trajectory: "):
            wrong.append(f"an error without its place: {error}")
    try:
        imported = read_file(data)[0]
    except InputError as error:
        if loaded is not None and (loaded.question or loaded.turns or loaded.thumbnail):
            wrong.append(f"loaded, but not imported: {error}")
        return wrong
    if imported.format != "trajectory":
        return wrong  # too little is left of it to be known
    if loaded is None and not imported.warnings:
        wrong.append("imported without a word of the loss")
    store = MemoryStore()
    log = SessionLog(store, sync_session(store, imported).session)
    found = Trajectory.from_session(log)
    if loaded is not None and found.to_json() != loaded.to_json():  # NaN equals nothing
        wrong.append(f"imported as another trajectory: {found!r}, not {loaded!r}")
    problems: list[Problem] = []
    page = b"".join(as_trajectory(log, problems)).decode("utf-8")
    if page.count('class="step"') != len(found.turns) or "</html>" not in page:
        wrong.append("the page lacks steps")
    if found.question.strip():
        Navigation(Session(store, store.info(log.id))).get_messages(_CHAT, 1)
    return wrong
