"""Cut a summary short, so that a view with it fits."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import msgspec

from ...log.messages import Message, Text, text_of
from ...log.records import Decision
from .blocks import Item
from .orders import Orders, detail_of, without_orders
from .situation import CompactionInput, applied

_ENDS_HERE = "[The summary ends here: no more of it fits.]"

_SPARE = 0.05
"""Share of the conversation's room that is left free if a summary is cut to fit."""

_LONG_LINE = 200
"""Characters. A longer line may be cut inside."""


def shortened(situation: CompactionInput) -> Decision | None:
    """Cut the newest summary short if nothing else is left that could leave: half a summary says more than none."""
    told = (block for block in reversed(situation.blocks) if block.is_summary and not (block.stays or block.is_note))
    block = next(told, None)
    if block is None or situation.fits:
        return None
    item = block.items[0]
    orders = Orders.of(detail_of(situation, item))
    whole = Message("user", (Text(orders.after("".join(whole_texts(situation, item)))),))
    # Messages at the same place are not part of the summary and stay.
    detail = {
        "kept": [[block.first, block.last]],
        "replacement": [msgspec.to_builtins(whole)],
        "at": block.first,
        **orders.detail,
    }
    decision = Decision("compact", block.first, block.last, "the summary cut short to fit the budget", detail)
    cut = fitting(situation, decision, whole)
    return None if cut is decision else cut


def fitting(situation: CompactionInput, decision: Decision, message: Message) -> Decision:
    """The decision with a slightly shorter summary, if the view with it is slightly too large: messages may take more
    tokens together than counted one by one, and what stays may have to declare tools now. Without a summary, nothing
    would cover these messages."""
    over = applied(situation, decision).size - situation.marks.limit
    if over <= 0:
        return decision
    whole = situation.ports.count(message)
    if over > whole // 2:
        return decision
    # Save a little more than necessary, or the next request would have to be made smaller too.
    most = whole - min(whole // 2, over + int(_SPARE * (situation.marks.limit - situation.system)))
    orders = Orders.of(decision.detail)
    heading, _, summary = without_orders(text_of(message), decision.detail).partition("\n")

    def ended(length: int) -> Message:
        return Message("user", (Text(orders.after(f"{heading}\n{_cut_off(summary, length)}\n{_ENDS_HERE}")),))

    length = bisect_right(range(len(summary)), most, key=lambda length: situation.ports.count(ended(length)))
    shorter = [msgspec.to_builtins(ended(max(0, length - 1)))]
    return msgspec.structs.replace(decision, detail={**decision.detail, "replacement": shorter})


def _cut_off(text: str, length: int) -> str:
    """The beginning of a text, up to the end of a line; within a line that is long or most of the text, of a word."""
    begin = text[:length]
    lines = begin.rpartition("\n")[0]
    short = len(begin) - len(lines) < min(_LONG_LINE, len(lines))
    return lines if short else begin.rpartition(" ")[0] or begin


def is_cut_short(summary: Message, detail: dict[str, Any]) -> bool:
    """Whether a summary, made by a decision with this detail, was cut short."""
    return without_orders(text_of(summary), detail).endswith(_ENDS_HERE)


def whole_texts(situation: CompactionInput, item: Item) -> list[str]:
    """The texts of a summary, without the orders at its end and without the line that says that it was cut short."""
    detail = detail_of(situation, item)
    texts = (part.text for part in item.shown.message.parts if isinstance(part, Text))
    return [without_orders(text, detail).removesuffix(f"\n{_ENDS_HERE}") for text in texts]
