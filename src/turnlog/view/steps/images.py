"""Old images become a line of text; the thumbnail and the newest stay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...content import Media, ToolResult, images_in, media_in
from ...records import Decision
from ..blocks import Item, user_word
from ..situation import Situation

__all__ = ["images", "images_over", "placeholder"]

_NEWEST = 3
"""Images that stay when the strategy names no number and the view is too large."""


def placeholder(step: int) -> str:
    """What stands where the image of that running number stood."""
    return f"[Image from Step {step} removed to save context]"


def images_over(situation: Situation) -> Decision | None:
    """Replace all images but the newest `max_history_images`, if the strategy names that number. Where the provider
    takes no more than are there, a quarter more than needed goes, so that this is not done at every image."""
    most, taken = situation.strategy.max_history_images, situation.most_media
    over = None if most is None else _replace(situation, most, f"more than {most} images", everything=True)
    if over is not None:
        return over
    shown = [item.shown.message for block in situation.blocks for item in block.items]
    media = sum(map(media_in, shown))
    if media <= taken:
        return None
    others = media - sum(map(images_in, shown))
    why = f"more than {taken} images and documents, which is all that the provider takes"
    return _replace(situation, taken - taken // 4 - others, why, everything=True, in_all=True)


def images(situation: Situation) -> Decision | None:
    """Replace the oldest images until the goal is met."""
    most = situation.strategy.max_history_images
    return _replace(situation, _NEWEST if most is None else most, "old images left out to fit the budget")


def _replace(
    situation: Situation, newest: int, why: str, *, everything: bool = False, in_all: bool = False
) -> Decision | None:
    """Replace the oldest images until the goal is met, or `everything` but the newest, so many. The task's and pinned
    ones stay besides; with `in_all` they count among those."""
    found = [one for block in situation.blocks for item in block.items for one in _images(item)]
    thumbnail = _thumbnail(situation)
    if in_all:
        staying = sum((item.n, path) == thumbnail or item.n in situation.pinned for item, path, _ in found)
        found = [one for one in found if (one[0].n, one[1]) != thumbnail and one[0].n not in situation.pinned]
        newest = max(0, newest - staying)
    excess = situation.held - situation.marks.goal
    texts: list[list[Any]] = []
    for item, path, media in found[: max(0, len(found) - newest)]:
        if not everything and excess <= 0:
            break
        if (item.n, path) == thumbnail or item.n in situation.pinned:
            continue
        step = situation.means.images_before(item.n) + 1 + _rank(item, path)
        text = placeholder(step)
        texts.append([item.n, list(path), text])
        excess -= _tokens(situation, item, media) - situation.means.count_text(text)
    if not texts:
        return None
    records = [text[0] for text in texts]
    return Decision("images", min(records), max(records), why, {"texts": texts})


def _images(item: Item, *, raw: bool = False) -> Iterator[tuple[Item, tuple[int, ...], Media]]:
    if item.shown.treatment == "summarised":
        return
    for i, part in enumerate((item.raw if raw else item.shown).message.parts):
        if isinstance(part, Media) and part.kind == "image":
            yield item, (i,), part
        elif isinstance(part, ToolResult):
            for j, inner in enumerate(part.parts):
                if isinstance(inner, Media) and inner.kind == "image":
                    yield item, (i, j), inner


def _rank(item: Item, path: tuple[int, ...]) -> int:
    """Which of its record's images this is, from 0."""
    return [other for _, other, _ in _images(item, raw=True)].index(path)


def _thumbnail(situation: Situation) -> tuple[int, tuple[int, ...]] | None:
    """The first image of the first user message: the task, which always stays."""
    words = (user_word(block.items) for block in situation.blocks)
    first = next((word for word in words if word is not None), None)
    return next(((item.n, path) for item, path, _ in _images(first)), None) if first is not None else None


def _tokens(situation: Situation, item: Item, media: Media) -> int:
    parts = item.shown.message.parts
    message = item.shown.message
    if media in parts:
        without = type(message)(message.role, tuple(part for part in parts if part is not media))
        return max(0, situation.means.count(message) - situation.means.count(without))
    return situation.means.count(type(message)("user", (media,)))
