"""A trajectory as one picture: the path on the thumbnail or, without regions, the screenshots with what was done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import pairwise
from math import ceil, sqrt
from typing import Any

from ..errors import BlobMissing, InputError
from ..log.messages import Media
from ..log.store import Problem
from ..session.reader import SessionLog
from ..trajectory.gestures import Gesture, gestures_of
from ..trajectory.images import encoded, opened, pillow
from ..trajectory.steps import Walk, walk
from ..trajectory.values import Region
from .trajectory_page import map_size

_USE = "a PNG of a trajectory"
_SIDE = 1_600
"""The longer side of the picture of a path, in pixels."""

_CELL, _GAP, _LINE = 480, 12, 22
"""Width of a screenshot, the space between two, and the height of the line below, in pixels."""

_MOST = 100
"""The most screenshots in one picture."""

_AMBER, _RED, _BLUE, _WHITE, _INK = (217, 119, 6), (220, 38, 38), (37, 99, 235), (255, 255, 255), (27, 31, 36)


def as_trajectory_picture(log: SessionLog, problems: list[Problem]) -> Iterator[bytes]:
    """The picture as a PNG. Images that cannot be read are problems. Raises InputError without Pillow, and if the
    session has neither a region nor an image."""
    pillow(_USE)
    log = log.on_disk
    walked = walk(log.records())
    regions = [(step.number, step.region) for step in walked.steps if step.region is not None]
    image = _path(walked, regions, log, problems) if regions else _sheet(walked, log, problems)
    return iter([encoded(image, "PNG", 0)])


def _read(media: Media | None, log: SessionLog, problems: list[Problem], side: int) -> Any:
    """A picture with no side longer than `side`, None if there is none that can be read."""
    if media is None or not media.sha256:
        return None
    try:
        image = opened(log.blob(media.sha256), _USE)
    except (BlobMissing, InputError) as error:
        problems.append(Problem(log.id, 0, f"an image is not shown: {error}"))
        return None
    image = image.convert("RGB")
    width = image.width
    image.thumbnail((side, side))
    image.info["scale"] = image.width / width
    return image


def _path(found: Walk, regions: Sequence[tuple[int, Region]], log: SessionLog, problems: list[Problem]) -> Any:
    """The numbered regions on the thumbnail, and lines between their centres."""
    thumbnail = _read(found.thumbnail, log, problems, _SIDE)
    width, height = map_size(found, thumbnail.size if thumbnail is not None else None)
    scale = _SIDE / max(width, height)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    if thumbnail is None:
        image = pillow(_USE).new("RGB", size, _WHITE)
    else:
        image = thumbnail.resize(size)
    draw = _pen(image)
    boxes = [(number, _box(region, scale, size)) for number, region in regions]
    for (_, box), (_, next_box) in pairwise(boxes):
        draw.line([_middle(box), _middle(next_box)], fill=_WHITE, width=6)
        draw.line([_middle(box), _middle(next_box)], fill=_BLUE, width=3)
    for number, box in boxes:
        color = _RED if number == boxes[-1][0] else _AMBER
        draw.rectangle(box, outline=_WHITE, width=6)
        draw.rectangle(box, outline=color, width=4)
    for number, box in boxes:  # after all regions, so that none hides a number
        _disc(draw, (max(box[0], 18), max(box[1], 18)), str(number), _RED if number == boxes[-1][0] else _AMBER)
    return image


def _box(region: Region, scale: float, size: tuple[int, int]) -> tuple[float, float, float, float]:
    """A region in pixels of the picture, inside of it."""
    left, top = min(max(region.x * scale, 0), size[0] - 2), min(max(region.y * scale, 0), size[1] - 2)
    right = min(max((region.x + region.width) * scale, left + 1), size[0] - 1)
    return left, top, right, min(max((region.y + region.height) * scale, top + 1), size[1] - 1)


def _middle(box: tuple[float, float, float, float]) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def _disc(draw: Any, at: tuple[float, float], words: str, color: tuple[int, int, int]) -> None:
    x, y = at
    draw.ellipse((x - 17, y - 17, x + 17, y + 17), fill=color, outline=_WHITE, width=2)
    draw.text((x, y), words, fill=_WHITE, anchor="mm", font=_font(20))


def _sheet(found: Walk, log: SessionLog, problems: list[Problem]) -> Any:
    """The screenshots in the order of the steps, each with the places of the gestures on it."""
    cells: list[tuple[Any, str]] = []
    before, heard, done = found.thumbnail, found.question, None
    for step in found.steps[:_MOST]:
        gestures = gestures_of(step.response.action, heard)
        if before is not None and (gestures or done is not before):
            image = _read(before, log, problems, _CELL)
            if image is not None:
                _mark(image, gestures)
                cells.append((image, f"{step.number}  {' · '.join(map(str, gestures))}"))
            done = before
        before, heard = step.image or before, step.heard or heard
    if before is not None and done is not before and (image := _read(before, log, problems, _CELL)) is not None:
        cells.append((image, "end"))
    if not cells:
        raise InputError(f"session {log.id!r} has no regions and no images that could be shown")
    columns = ceil(sqrt(len(cells)))
    tall = max(image.height for image, _ in cells) + _LINE + _GAP
    sheet = pillow(_USE).new("RGB", (columns * (_CELL + _GAP) + _GAP, ceil(len(cells) / columns) * tall + _GAP), _WHITE)
    draw = _pen(sheet)
    for i, (image, words) in enumerate(cells):
        x, y = _GAP + i % columns * (_CELL + _GAP), _GAP + i // columns * tall
        sheet.paste(image, (x, y))
        draw.text((x, y + image.height + 4), _line(words), fill=_INK, font=_font(14))
    return sheet


def _mark(image: Any, gestures: Sequence[Gesture]) -> None:
    draw = _pen(image)
    scale = image.info["scale"]
    for gesture in gestures:
        places = [(x * scale, y * scale) for x, y in gesture.places(image.width / scale, image.height / scale)]
        if len(places) > 1:
            draw.line(list(places), fill=_RED, width=4)
        for x, y in places:
            draw.ellipse((x - 10, y - 10, x + 10, y + 10), outline=_WHITE, width=6)
            draw.ellipse((x - 10, y - 10, x + 10, y + 10), outline=_RED, width=3)


def _line(words: str) -> str:
    """The words in one line that the font has signs for, not longer than a screenshot is wide."""
    plain = " ".join(words.split()).encode("latin-1", "replace").decode("latin-1")
    return plain if len(plain) <= 66 else f"{plain[:65]}..."


def _pen(image: Any) -> Any:
    return import_module("PIL.ImageDraw").Draw(image)


def _font(size: int) -> Any:
    return import_module("PIL.ImageFont").load_default(size)
