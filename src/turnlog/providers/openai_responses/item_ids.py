"""Which ids a request may send: those of items that stand beside what they belong to.

The provider keeps a response's items by id and checks them as a group: a stored item is refused
without the reasoning that it came from ("Item 'fc_x' of type 'function_call' was provided without
its required 'reasoning' item: 'rs_x'."), a stored reasoning without what it led to ("... was
provided without its required following item."), and no id may come twice ("Duplicate item found
with id rs_x."). An item without an id is taken for what it says. So where a view leaves one of a
group out, the ids of the others go; content stays, except for reasoning that is nothing but its id.

An answer that was cut off or edited has no id; stored reasoning before it has lost its follower all
the same. That one case is legal where nothing is stored (Codex sends reasoning with its id and
messages without), so there and only there the `store` of the request counts.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ...view.types import Loss
from .item_types import ID_MAY_GO, RESULTS, id_fits, item_type


class Entry(Struct):
    """An item on its way into a request.

    `after` is the id of the reasoning that it came from, as far as its form knows; `first` says that
    it directly followed it. `open_end` says that what stood behind it was left out, `renamed` that
    it had an id which it is not sent with.
    """

    item: dict[str, Any]
    records: tuple[int, ...]
    after: str = ""
    first: bool = False
    open_end: bool = False
    renamed: bool = False

    @property
    def id(self) -> str:
        """The item's id, or nothing: one that is none of the provider's does not count."""
        found = self.item.get("id")
        return found if isinstance(found, str) and self.type not in RESULTS and id_fits(self.item) else ""

    @property
    def type(self) -> str:
        """The item's type."""
        return item_type(self.item)


def without_refused_ids(entries: list[Entry], losses: list[Loss], *, stored: bool) -> list[Entry]:
    """The entries without ids that would be refused; each one gone is a loss. `stored` says whether
    the provider keeps what the request answers to."""
    kept = _without_duplicates(entries, losses)
    known = -1
    while known < len(losses):  # what goes may have been what something else belonged to
        known = len(losses)
        kept = _without_loose_reasoning(kept, losses, stored)
        kept = _without_missing_reasoning(kept, losses)
    return kept


def _without_duplicates(entries: list[Entry], losses: list[Loss]) -> list[Entry]:
    seen: set[str] = set()
    shown = {entry.id for entry in entries if entry.type != "item_reference"}  # a reference to those says nothing
    kept: list[Entry] = []
    for entry in entries:
        again = entry.id in seen or (entry.type == "item_reference" and entry.id in shown)
        if entry.id and not again:
            seen.add(entry.id)
        if not again or _drop_id(entry, "it stands in the view before", losses):
            kept.append(entry)
        elif kept:
            kept[-1].open_end = True
    return kept


def _without_loose_reasoning(entries: list[Entry], losses: list[Loss], stored: bool) -> list[Entry]:
    """Backwards, so that reasoning before reasoning that goes is looked at afterwards."""
    kept: list[Entry] = []
    gone = False
    for entry in reversed(entries):
        entry.open_end = entry.open_end or gone
        follower = kept[-1] if kept and _is_models(kept[-1]) else None
        gone = entry.type == "reasoning" and not _may_stand(entry, follower, losses, stored)
        if not gone:
            kept.append(entry)
    return kept[::-1]


def _may_stand(entry: Entry, follower: Entry | None, losses: list[Loss], stored: bool) -> bool:
    """Whether reasoning may stand before `follower`, the model's next item; its id may have to go."""
    if follower is None:
        if entry.open_end:
            losses.append(Loss("reasoning", "reasoning left out: what it led to is not in the view", entry.records))
        return not entry.open_end
    own = follower.first and follower.after == entry.id and not follower.renamed
    nameless = stored and follower.type == "message" and not follower.id
    return not entry.id or (own and not nameless) or _drop_id(entry, "what it led to does not follow", losses)


def _without_missing_reasoning(entries: list[Entry], losses: list[Loss]) -> list[Entry]:
    present: set[str] = set()
    kept: list[Entry] = []
    for entry in entries:
        if entry.type == "reasoning":
            present.add(entry.id)
        missing = entry.type != "reasoning" and entry.id and entry.after and entry.after not in present
        if not missing or _drop_id(entry, f"its reasoning {entry.after} is not in the view", losses):
            kept.append(entry)
        elif kept:
            kept[-1].open_end = True
    return kept


def _is_models(entry: Entry) -> bool:
    if entry.type == "message":
        return entry.item.get("role") == "assistant"
    return entry.type not in RESULTS


def _drop_id(entry: Entry, why: str, losses: list[Loss]) -> bool:
    """Take the id off an entry; False if the item is nothing without it and must go as a whole."""
    if entry.type == "reasoning" and not entry.item.get("encrypted_content"):
        losses.append(Loss("reasoning", f"reasoning {entry.id} left out: {why}", entry.records))
        return False
    if entry.type == "computer_call":
        return True  # it must have an id and be answered: let it stand
    if entry.type not in ID_MAY_GO:
        losses.append(Loss("opaque", f"{entry.type} {entry.id} left out: {why}", entry.records))
        return False
    losses.append(Loss("extra", f"id {entry.id} of a {entry.type} item left out: {why}", entry.records))
    entry.item = {key: value for key, value in entry.item.items() if key != "id"}
    entry.renamed = True
    return True
