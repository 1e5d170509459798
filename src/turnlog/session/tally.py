"""The messages that are in memory of a session, with their sizes, and what they add up to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..log.budget import Strategy
from ..log.messages import Media, images_in, media_parts
from ..log.records import Record
from ..requests.size import Sizing
from ..view.compaction.blocks import Item
from ..view.repair.pairing import Pairing
from ..view.types import Shown, starts_turn


class Tally:
    """The tokens, turns, images and media of the messages added, and their calls without results.

    `tokens` is the size before the curation of tool output, so what is kept in memory does not depend on that.
    """

    def __init__(self) -> None:
        self.tokens = self.turns = self.images = 0
        self.media: list[Media] = []
        self.pairing = Pairing()

    def add(self, item: Item) -> None:
        """Add a message as it is before curation."""
        message = item.shown.message
        self.tokens += item.tokens
        self.turns += starts_turn(item.shown)
        self.images += images_in(message)
        self.media += media_parts(message)
        self.pairing.see(item.shown)

    def is_over_caps(self, strategy: Strategy) -> bool:
        """Whether there are more turns or images than a strategy shows."""
        turns, images = strategy.max_history_turns, strategy.max_history_images
        return (turns is not None and self.turns > turns) or (images is not None and self.images > images)


def items_of(
    shown: Iterable[tuple[int, Shown, Shown]],
    records: Mapping[int, Record],
    stand_ins: Mapping[int, Iterable[int]],
    sizing: Sizing,
) -> Iterator[Item]:
    """Messages with their sizes. `shown`: for each message the number of the record where it stands, the message as it
    is shown, and the message as it is on record. `stand_ins`: by record number of a decision, the recorded token counts
    of the messages that it put there."""
    sizes = {n: iter(known) for n, known in stand_ins.items()}
    for place, now, raw in shown:
        if now is raw and not now.stands_in and now.treatment != "appended":
            yield sizing.item(now, records[place])
            continue
        size = next(sizes[now.records[0]], None) if now.stands_in else None
        yield Item(now, size or sizing.message(now.message), raw, place)
