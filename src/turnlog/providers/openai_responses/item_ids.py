"""Remove item ids that the Responses API would refuse.

The provider stores the items of a response by id and checks them as a group. It refuses a stored item without its
reasoning ("Item 'fc_x' of type 'function_call' was provided without its required 'reasoning' item: 'rs_x'."), stored
reasoning without the item that followed ("... was provided without its required following item."), and an id that
occurs twice ("Duplicate item found with id rs_x."). It accepts an item without an id. So if a view leaves out one item
of a group, the ids of the others are removed; the content stays, except for reasoning that has only an id.

A truncated or edited answer has no id, so stored reasoning before it has lost its follower. Only this case is legal if
nothing is stored (Codex sends reasoning with ids and messages without): here the `store` of the request matters.

The items of a request may be rendered in several parts. Words tell each part what the parts before it contain: an id,
if an item has it, and "reasoning ID", if reasoning is sent with that id (see `LinkedRenderer`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from msgspec import Struct

from ..._platform.units import an
from ...view.types import Loss
from .item_types import ID_MAY_GO, RESULTS, id_fits, item_type


class Entry(Struct):
    """An item to be sent.

    `after` is the id of its reasoning, if its form contains it; `first`: the item directly followed the reasoning.
    `open_end`: the item after it was left out. `renamed`: its id was removed.
    """

    item: dict[str, Any]
    records: tuple[int, ...]
    after: str = ""
    first: bool = False
    open_end: bool = False
    renamed: bool = False

    @property
    def id(self) -> str:
        """The item's id, "" if it has none that the provider could have assigned."""
        found = self.item.get("id")
        return found if isinstance(found, str) and self.type not in RESULTS and id_fits(self.item) else ""

    @property
    def type(self) -> str:
        """The item's type."""
        return item_type(self.item)


class Kept(Struct, frozen=True):
    """The entries of a part of a request, and the words that they give to later parts and ask of earlier ones."""

    entries: list[Entry]
    gives: frozenset[str]
    asks: frozenset[str]


def without_refused_ids(
    entries: list[Entry], losses: list[Loss], earlier: Collection[str] = (), *, stored: bool
) -> Kept:
    """The entries without ids that would be refused; each removed id is a loss. `earlier` are the words of the parts
    before these entries. `stored`: the provider stores the response."""
    ids = frozenset(entry.id for entry in entries if entry.id)
    asks = ids | {_sent(entry.after) for entry in entries if entry.after}
    kept = _without_duplicates(entries, losses, earlier)
    known = -1
    while known < len(losses):  # a removed item may have been the reasoning or the follower of another
        known = len(losses)
        kept = _without_loose_reasoning(kept, losses, stored)
        kept = _without_missing_reasoning(kept, losses, earlier)
    reasoning = {_sent(entry.id) for entry in kept if entry.type == "reasoning" and entry.id}
    return Kept(kept, ids | reasoning, asks)


def _sent(reasoning_id: str) -> str:
    """The word which says that reasoning is sent with its id."""
    return f"reasoning {reasoning_id}"


def _without_duplicates(entries: list[Entry], losses: list[Loss], earlier: Collection[str]) -> list[Entry]:
    seen = set(earlier)
    shown = {entry.id for entry in entries if entry.type != "item_reference"}  # a reference to these adds nothing
    kept: list[Entry] = []
    for entry in entries:
        again = entry.id in seen or (entry.type == "item_reference" and entry.id in shown)
        if entry.id and not again:
            seen.add(entry.id)
        if not again or _drop_id(entry, "an item with this id comes earlier in the request", losses):
            kept.append(entry)
        elif kept:
            kept[-1].open_end = True
    return kept


def _without_loose_reasoning(entries: list[Entry], losses: list[Loss], stored: bool) -> list[Entry]:
    """Goes backwards, so that reasoning before removed reasoning is checked afterwards."""
    kept: list[Entry] = []
    gone = False
    for entry in reversed(entries):
        entry.open_end = entry.open_end or gone
        follower = kept[-1] if kept and _is_models(kept[-1]) else None
        gone = entry.type == "reasoning" and not _may_precede(entry, follower, losses, stored)
        if not gone:
            kept.append(entry)
    return kept[::-1]


def _may_precede(entry: Entry, follower: Entry | None, losses: list[Loss], stored: bool) -> bool:
    """Whether reasoning may precede `follower`, the model's next item. Its id may be removed for that."""
    if follower is None:
        if entry.open_end:
            losses.append(
                Loss(
                    "reasoning",
                    "reasoning left out: the item that must follow it is not in this request",
                    entry.records,
                )
            )
        return not entry.open_end
    own = follower.first and follower.after == entry.id and not follower.renamed
    nameless = stored and follower.type == "message" and not follower.id
    return not entry.id or (own and not nameless) or _drop_id(entry, "the item that must follow it does not", losses)


def _without_missing_reasoning(entries: list[Entry], losses: list[Loss], earlier: Collection[str]) -> list[Entry]:
    present = set(earlier)
    kept: list[Entry] = []
    for entry in entries:
        if entry.type == "reasoning":
            present.add(_sent(entry.id))
        missing = entry.type != "reasoning" and entry.id and entry.after and _sent(entry.after) not in present
        if not missing or _drop_id(entry, f"its reasoning {entry.after} is not in this request", losses):
            kept.append(entry)
        elif kept:
            kept[-1].open_end = True
    return kept


def _is_models(entry: Entry) -> bool:
    if entry.type == "message":
        return entry.item.get("role") == "assistant"
    return entry.type not in RESULTS


def _drop_id(entry: Entry, reason: str, losses: list[Loss]) -> bool:
    """Remove the id of an entry; False if the item is useless without its id and must be removed as a whole."""
    if entry.type == "reasoning" and not entry.item.get("encrypted_content"):
        losses.append(Loss("reasoning", f"reasoning {entry.id} left out: {reason}", entry.records))
        return False
    if entry.type == "computer_call":
        return True  # it must have an id and a result: leave it
    if entry.type not in ID_MAY_GO:
        losses.append(Loss("opaque", f"{entry.type} {entry.id} left out: {reason}", entry.records))
        return False
    losses.append(Loss("extra", f"id {entry.id} of {an(entry.type)} item left out: {reason}", entry.records))
    entry.item = {key: value for key, value in entry.item.items() if key != "id"}
    entry.renamed = True
    return True
