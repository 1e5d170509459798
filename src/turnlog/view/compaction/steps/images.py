"""Replace old images by a line of text; the first image of the task and the newest images stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ....log.messages import Media, Message, ToolResult
from ....log.records import Decision
from ...repair.media_room import MediaLimits, MediaTotals, base64_of, media_of
from ..situation import CompactionInput, Item, shortening, user_word

_NEWEST = 3
"""The number of images that stay if the view is too large and the strategy sets no number."""

_Image = tuple[Item, tuple[int, ...], Media]
"""The message that contains an image, the place of the image in it (a part, or a part of a result), and the image."""


def placeholder(step: int) -> str:
    """The text that replaces the image with this running number."""
    return f"[Image from Step {step} removed to save context]"


def images_over(situation: CompactionInput) -> Decision | None:
    """Replace all images but the newest `max_history_images`, if the strategy sets that number. If the view has more
    media than the provider accepts, a quarter of the provider's limit is left free, so that this is not repeated at
    every image."""
    most, room = situation.strategy.max_history_images, situation.room
    images = _shown(situation)
    surplus = [] if most is None else _that_may_go(situation, _all_but(most, images))
    media = media_of(item.shown for block in situation.blocks for item in block.items)
    size = sum(map(base64_of, media))
    if not room.holds(MediaTotals(len(media), size)):
        free = _that_may_go(situation, images)
        going = _all_but(_newest_within(room, len(media), size, [image for _, _, image in free]), free)
        if len(going) > len(surplus):
            few = f"{room.count} images and documents" if len(media) > room.count else f"{room.size:,} bytes of media"
            return _replaced(situation, going, f"more than {few}, which is all that the provider accepts{room.where}")
    return _replaced(situation, surplus, f"more than {most} images")


def _newest_within(room: MediaLimits, count: int, size: int, free: Sequence[Media]) -> int:
    """How many of the newest media in `free` can stay if a quarter of each exceeded limit is left free. `count` and
    `size` are those of all media."""
    most = room.count - room.count // 4 * (count > room.count)
    largest = room.size - room.size // 4 * (size > room.size)
    count, size = count - len(free), size - sum(map(base64_of, free))
    for newest, media in enumerate(reversed(free)):
        size += base64_of(media)
        if count + newest + 1 > most or size > largest:
            return newest
    return len(free)


def images(situation: CompactionInput) -> Decision | None:
    """Replace the oldest images until the goal is met."""
    most = situation.strategy.max_history_images
    going = _that_may_go(situation, _all_but(_NEWEST if most is None else most, _shown(situation)))
    excess = situation.held - situation.marks.goal
    return _replaced(situation, going, "old images left out to fit the budget", excess=excess)


def _replaced(
    situation: CompactionInput, going: Sequence[_Image], why: str, *, excess: int | None = None
) -> Decision | None:
    """The decision that replaces these images: all of them, or only as many as are needed to save `excess` tokens."""
    texts: list[list[Any]] = []
    for item, path, media in going:
        if excess is not None and excess <= 0:
            break
        text = placeholder(situation.ports.images_before(item.n) + 1 + _rank(item, path))
        texts.append([item.n, list(path), text])
        if excess is not None:
            excess -= _tokens(situation, item, media) - situation.ports.count_text(text)
    return shortening("images", "texts", texts, why)


def _shown(situation: CompactionInput) -> list[_Image]:
    return [image for block in situation.blocks for item in block.items for image in _images(item)]


def _all_but(newest: int, found: Sequence[_Image]) -> Sequence[_Image]:
    return found[: max(0, len(found) - max(0, newest))]


def _that_may_go(situation: CompactionInput, images: Sequence[_Image]) -> list[_Image]:
    """The images that may be replaced: all except pinned ones and the first image of the task."""
    thumbnail = _thumbnail(situation)
    return [image for image in images if (image[0].n, image[1]) != thumbnail and image[0].n not in situation.pinned]


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
    """The index of this image among the images of its record."""
    return [other for _, other, _ in _images(item, raw=True)].index(path)


def _thumbnail(situation: CompactionInput) -> tuple[int, tuple[int, ...]] | None:
    """The first image of the first user message. It belongs to the task, which always stays."""
    words = (user_word(block.items) for block in situation.blocks)
    first = next((word for word in words if word is not None), None)
    return next(((item.n, path) for item, path, _ in _images(first)), None) if first is not None else None


def _tokens(situation: CompactionInput, item: Item, media: Media) -> int:
    message, count = item.shown.message, situation.ports.count
    if media in message.parts:
        without = Message(message.role, tuple(part for part in message.parts if part is not media))
        return max(0, count(message) - count(without))
    return count(Message("user", (media,)))
