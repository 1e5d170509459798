"""Old images become a line of text; the thumbnail and the newest stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ....log.messages import Media, Message, ToolResult
from ....log.records import Decision
from ...repair.media_room import Held, Room, base64_of, media_of
from ..blocks import Item, user_word
from ..situation import Situation, shortening

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
    most, room = situation.strategy.max_history_images, situation.room
    found = _shown(situation)
    asked = [] if most is None else _that_may_go(situation, _all_but(most, found))
    media = media_of(item.shown for block in situation.blocks for item in block.items)
    size = sum(map(base64_of, media))
    if not room.holds(Held(len(media), size)):
        free = _that_may_go(situation, found)
        going = _all_but(_newest_within(room, len(media), size, [one for _, _, one in free]), free)
        if len(going) > len(asked):
            few = f"{room.count} images and documents" if len(media) > room.count else f"{room.size:,} bytes of media"
            return _replaced(situation, going, f"more than {few}, which is all that the provider takes{room.where}")
    return _replaced(situation, asked, f"more than {most} images")


def _newest_within(room: Room, count: int, size: int, free: Sequence[Media]) -> int:
    """How many of the newest that may go can stay, so that a quarter of the room is left where it was too little."""
    most = room.count - room.count // 4 * (count > room.count)
    largest = room.size - room.size // 4 * (size > room.size)
    count, size = count - len(free), size - sum(map(base64_of, free))
    for newest, media in enumerate(reversed(free)):
        size += base64_of(media)
        if count + newest + 1 > most or size > largest:
            return newest
    return len(free)


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
    return shortening("images", "texts", texts, why)


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
