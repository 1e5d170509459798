"""Old images become a line of text; the thumbnail and the newest stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...content import Media, Message, ToolResult, images_in, media_in
from ...records import Decision
from ..blocks import Item, user_word
from ..situation import Situation

__all__ = ["images", "images_over", "placeholder"]

_NEWEST = 3
"""Images that stay when the strategy names no number and the view is too large."""

_Image = tuple[Item, tuple[int, ...], Media]
"""An image, the message that it stands in, and its place there: a part, or a part of a result."""


def placeholder(step: int) -> str:
    """What stands where the image of that running number stood."""
    return f"[Image from Step {step} removed to save context]"


def images_over(situation: Situation) -> Decision | None:
    """Replace all images but the newest `max_history_images`, if the strategy names that number. Where the provider
    takes no more than are there, a quarter more than needed goes, so that this is not done at every image."""
    most, taken = situation.strategy.max_history_images, situation.most_media
    found = _shown(situation)
    if most is not None and (going := _that_may_go(situation, _all_but(most, found))):
        return _replaced(situation, going, f"more than {most} images")
    shown = [item.shown.message for block in situation.blocks for item in block.items]
    media = sum(map(media_in, shown))
    if media <= taken:
        return None
    others = media - sum(map(images_in, shown))
    free = _that_may_go(situation, found)
    newest = taken - taken // 4 - others - (len(found) - len(free))
    why = f"more than {taken} images and documents, which is all that the provider takes"
    return _replaced(situation, _all_but(newest, free), why)


def images(situation: Situation) -> Decision | None:
    """Replace the oldest images until the goal is met."""
    most = situation.strategy.max_history_images
    going = _that_may_go(situation, _all_but(_NEWEST if most is None else most, _shown(situation)))
    excess = situation.held - situation.marks.goal
    return _replaced(situation, going, "old images left out to fit the budget", excess=excess)


def _replaced(situation: Situation, going: Sequence[_Image], why: str, *, excess: int | None = None) -> Decision | None:
    """The decision that replaces these images: all of them, or only as many as it takes to save `excess` tokens."""
    texts: list[list[Any]] = []
    for item, path, media in going:
        if excess is not None and excess <= 0:
            break
        text = placeholder(situation.means.images_before(item.n) + 1 + _rank(item, path))
        texts.append([item.n, list(path), text])
        if excess is not None:
            excess -= _tokens(situation, item, media) - situation.means.count_text(text)
    if not texts:
        return None
    records = [text[0] for text in texts]
    return Decision("images", min(records), max(records), why, {"texts": texts})


def _shown(situation: Situation) -> list[_Image]:
    return [one for block in situation.blocks for item in block.items for one in _images(item)]


def _all_but(newest: int, found: Sequence[_Image]) -> Sequence[_Image]:
    return found[: max(0, len(found) - max(0, newest))]


def _that_may_go(situation: Situation, found: Sequence[_Image]) -> list[_Image]:
    """Those of the images that are neither the task's first one nor pinned."""
    thumbnail = _thumbnail(situation)
    return [one for one in found if (one[0].n, one[1]) != thumbnail and one[0].n not in situation.pinned]


def _images(item: Item, *, raw: bool = False) -> Iterator[_Image]:
    if item.is_summary:
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
    message, count = item.shown.message, situation.means.count
    if media in message.parts:
        without = Message(message.role, tuple(part for part in message.parts if part is not media))
        return max(0, count(message) - count(without))
    return count(Message("user", (media,)))
