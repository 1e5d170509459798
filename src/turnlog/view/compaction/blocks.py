"""What strategies cut: stretches of conversation that stay or go as one.

A block is a user's word, or an assistant's answer with the results of its calls. A call and its result never
stand in different blocks, so that every border between blocks is a place where a view may be cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from msgspec import Struct

from ...log.messages import ToolResult
from ..program_prefaces import is_preface
from ..repair.pairing import pair
from ..types import Shown, starts_turn


class Item(Struct, frozen=True, eq=False, gc=False):
    """A message as a view would show it.

    - `tokens`: its size by itself.
    - `raw`: the message as it is on record.
    - `n`: its place, the number of its record; a summary's is that of the record which it stands before.
    - `size`: the tokens that a request holds because of it, as measured on what is built of the view.
    - `at_once`: it has results of calls made at once, which some providers bill otherwise; `counted_at_once` says that
      `tokens` counts them so.
    """

    shown: Shown
    tokens: int
    raw: Shown
    n: int
    size: int = 0
    at_once: bool = False
    counted_at_once: bool = False

    @property
    def is_summary(self) -> bool:
        """Whether it stands in for older messages."""
        return self.shown.treatment == "summarised"


class Block(Struct, frozen=True, eq=False, gc=False):
    """Items that stay or go as one. `tokens` is its size. `stays` says why it must stay, or is empty."""

    items: tuple[Item, ...]
    tokens: int
    stays: str = ""

    @property
    def first(self) -> int:
        """The smallest number of its records."""
        return min(item.n for item in self.items)

    @property
    def last(self) -> int:
        """The greatest number of its records."""
        return max(item.n for item in self.items)

    @property
    def is_summary(self) -> bool:
        """Whether it stands in for older messages."""
        return self.items[0].is_summary

    @property
    def opens_turn(self) -> bool:
        """Whether a user speaks here."""
        return starts_turn(self.items[0].raw) and not self.is_summary

    @property
    def has_results(self) -> bool:
        """Whether a tool answers here."""
        return any(isinstance(part, ToolResult) for item in self.items for part in item.raw.message.parts)


def total(blocks: Sequence[Block]) -> int:
    """The tokens of all of them."""
    return sum(block.tokens for block in blocks)


def starts_block(shown: Shown, before: Shown | None) -> bool:
    """Whether a message begins a new block."""
    if before is None or starts_turn(shown):
        return True
    return shown.message.role == "assistant" and before.message.role != "assistant"


def blocks_of(items: Sequence[Item], pinned: frozenset[int], gap: tuple[int, int] | None = None) -> list[Block]:
    """The blocks of a view. What must stay: system text, the first user message and, where an agent says something
    there in the user's name, the first of the user's own; what is pinned; and of the open turn the user's word, calls
    without a result and the newest block. `gap` names records between the items that are not at hand: what stands ahead
    of them is no part of what stands behind."""
    groups = _groups(items, gap)
    words = [(i, word.raw.message) for i, group in enumerate(groups) if (word := user_word(group)) is not None]
    said = [i for i, _ in words]
    task = {*said[:1], *islice((i for i, message in words if not is_preface(message)), 1)}
    blocks: list[Block] = []
    for i, group in enumerate(groups):
        stays = ""
        if any(item.raw.message.role == "system" for item in group):
            stays = "system text"
        elif i in task:
            stays = "the task"
        elif not group[0].is_summary and any(item.n in pinned for item in group):
            stays = "pinned messages"
        elif i == len(groups) - 1 or (said and i == said[-1]):
            stays = "the open turn"
        elif said and i > said[-1] and has_open_call(group):
            stays = "the open turn"
        blocks.append(Block(tuple(group), sum(item.size for item in group), stays))
    return blocks


def user_word(group: Sequence[Item]) -> Item | None:
    """What a user says in a group: at its beginning, or between a call and its result."""
    return next((item for item in group if starts_turn(item.raw) and not item.is_summary), None)


def _groups(items: Sequence[Item], gap: tuple[int, int] | None) -> list[list[Item]]:
    groups: list[list[Item]] = []
    before: Item | None = None
    for item in items:
        if gap and before is not None and (before.n < gap[0] <= item.n or before.n <= gap[1] < item.n):
            before = None  # something of the gap is between them, though one may be pinned in it
        alone = before is not None and (before.raw.message.role == "system" or starts_turn(before.raw))
        alone = alone or item.raw.message.role == "system"
        borders_summary = before is not None and item.is_summary != before.is_summary
        if alone or borders_summary or starts_block(item.raw, before.raw if before else None):
            groups.append([item])
        else:
            groups[-1].append(item)
        before = item
    return _tied(groups)


def _tied(groups: list[list[Item]]) -> list[list[Item]]:
    """The groups, where a call and its result stand in two, those and all between them joined into one."""
    owner = [i for i, group in enumerate(groups) for _ in group]
    pairs = pair([item.raw for group in groups for item in group])
    reach = list(range(len(groups)))
    for call, result in pairs.answers.items():
        reach[owner[call[0]]] = max(reach[owner[call[0]]], owner[result[0]])
    joined: list[list[Item]] = []
    until = -1
    for i, group in enumerate(groups):
        if i <= until:
            joined[-1].extend(group)
        else:
            joined.append(list(group))
        until = max(until, reach[i])
    return joined


def has_open_call(group: Sequence[Item]) -> bool:
    """Whether a call in a group of items has no result there."""
    return bool(pair([item.raw for item in group]).waiting)


def newest_start(blocks: Sequence[Block], start: int, room: int, *, beside_kept: bool = False) -> int:
    """Where the newest blocks begin that `room` tokens hold; those that stay anyway may be counted apart."""
    end = len(blocks)
    for i in range(len(blocks) - 1, start - 1, -1):
        block = blocks[i]
        room -= 0 if beside_kept and block.stays else block.tokens
        if room < 0 and i < len(blocks) - 1:
            break
        end = i
    return end


def turns_start(blocks: Sequence[Block], turns: int, start: int, *, all_else: bool = False) -> int:
    """Where the newest turns begin; where there are no more than these, `start`, unless `all_else` has to go: what
    stands ahead of them then is the answer to the task."""
    opening = [i for i in range(start, len(blocks)) if blocks[i].opens_turn]
    return opening[-turns] if len(opening) >= turns + (not all_else) else start
