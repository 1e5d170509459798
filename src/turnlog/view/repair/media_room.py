"""Enforce the limits on the media of one request: their number, their total size, and large images among many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec import Struct

from ...errors import StoreError
from ...log.messages import Media, Part, Text, ToolResult, media_parts, unchanged
from ...tokens.dimensions import dimensions
from ..rules import NO_LIMIT, Rules
from ..types import Loss, Shown, without_extras
from .arrange import with_parts

_BYTES_A_TOKEN = 6
"""Bytes of JSON per token of text: roughly the most."""


class MediaTotals(Struct, frozen=True, gc=False):
    """Totals over the media of a view: their number, their characters of base64, and whether an image is too large for
    a request with many media."""

    count: int = 0
    size: int = 0
    large: bool = False

    def __add__(self, other: MediaTotals) -> MediaTotals:
        return MediaTotals(self.count + other.count, self.size + other.size, self.large or other.large)


class MediaLimits(Struct, frozen=True, gc=False):
    """The most media that a request may have, and the most characters of base64. If a large image lowers the number of
    media, `where` says so."""

    count: int = NO_LIMIT
    size: int = NO_LIMIT
    where: str = ""

    def holds(self, media: MediaTotals) -> bool:
        """Whether these media are within the limits."""
        return media.count <= self.count and media.size <= self.size


def beside_texts(rules: Rules, tokens: int) -> Rules:
    """The rules for a request with this many tokens of text besides its media: both share one limit on size."""
    most = rules.media_max_total
    return msgspec.structs.replace(rules, media_max_total=max(most - _BYTES_A_TOKEN * tokens, most // 2))


def base64_of(media: Media) -> int:
    """The characters of base64 that a medium takes in a request; 0 if its bytes are not sent."""
    return (media.size + 2) // 3 * 4 if media.sha256 else 0


def longest_side(media: Media, blob: Callable[[str], bytes] | None) -> int:
    """The longer side of an image in pixels; 0 if it is not an image or cannot be read."""
    if media.kind != "image" or not media.sha256 or blob is None:
        return 0
    try:
        return max(dimensions(blob(media.sha256)) or (0,))
    except StoreError:
        return 0


def media_of(view: Iterable[Shown]) -> list[Media]:
    """All media that a view shows, in order."""
    return [media for shown in view for media in media_parts(shown.message)]


def held(media: Sequence[Media], rules: Rules, side: Callable[[Media], int]) -> MediaTotals:
    """The number and size of these media. `side` returns the longer side of an image, and is called only if the rules
    limit it."""
    limited = rules.many_media < rules.media_max_count
    large = limited and any(side(item) > rules.many_media_side for item in media)
    return MediaTotals(len(media), sum(map(base64_of, media)), large)


def room_for(media: MediaTotals, rules: Rules) -> MediaLimits:
    """The limits that the rules set for these media."""
    if not media.large:
        return MediaLimits(rules.media_max_count, rules.media_max_total)
    where = f" where an image has a side of more than {rules.many_media_side:,} pixels"
    return MediaLimits(min(rules.many_media, rules.media_max_count), rules.media_max_total, where)


def within_room(
    view: list[Shown], rules: Rules, blob: Callable[[str], bytes] | None, losses: list[Loss]
) -> list[Shown]:
    """The view with at most as many media as one request may have; the oldest become placeholders."""
    totals = held(media_of(view), rules, lambda media: longest_side(media, blob))
    room = room_for(totals, rules)
    if room.holds(totals):
        return view
    leaving = _Leaving(room, totals, losses)
    return [with_parts(shown, tuple(leaving.part(part, shown) for part in shown.message.parts)) for shown in view]


class _Leaving:
    """Leaves out media, the oldest first, until the others are within the limits."""

    def __init__(self, room: MediaLimits, now: MediaTotals, losses: list[Loss]) -> None:
        self.room = room
        self.surplus = now.count - room.count
        self.excess = now.size - room.size
        self.losses = losses

    def part(self, part: Part, shown: Shown) -> Part:
        """The part as it is sent: itself, or a placeholder."""
        if isinstance(part, ToolResult):
            inner = tuple(self.part(inner_part, shown) for inner_part in part.parts)
            return part if unchanged(inner, part.parts) else msgspec.structs.replace(part, parts=inner)
        if not isinstance(part, Media) or (self.surplus <= 0 and (self.excess <= 0 or not base64_of(part))):
            return part
        by_count = self.surplus > 0
        most = f"{self.room.count}" if by_count else f"{self.room.size:,} characters of base64"
        self.surplus -= 1
        self.excess -= base64_of(part)
        limit = f"{most} of them" if by_count else most
        reason = f"a request may contain at most {limit}{self.room.where}{without_extras(part.form)}"
        self.losses.append(Loss("media", f"{part.kind} left out: {reason}", shown.records))
        return Text(f"[{part.kind} left out: more than {most} in one request]")
