"""Blocks: the parts of a conversation that strategies keep or leave out as a whole.

A block is a user message, or an assistant's answer with the results of its calls. A call and its result are always in
the same block, so a view may be cut at every border between blocks.
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
    - `raw`: the message as recorded.
    - `n`: the number of its record; for a summary, the number of the record that follows it.
    - `size`: the tokens that it adds to a request, as measured in the request built from the view.
    - `plain`: the message as decisions show it, if it was curated, and `plain_tokens` its tokens; `curator`: what its
      outputs are.
    - `at_once`: it has results of parallel calls, which some providers bill differently; `counted_at_once`: `tokens`
      counts them in this way.
    """

    shown: Shown
    tokens: int
    raw: Shown
    n: int
    size: int = 0
    at_once: bool = False
    counted_at_once: bool = False
    plain: Shown | None = None
    plain_tokens: int = 0
    curator: str = ""

    @property
    def decided(self) -> Shown:
        """The message as decisions show it, not curated."""
        return self.plain or self.shown

    @property
    def is_summary(self) -> bool:
        """Whether it replaces older messages."""
        return self.shown.stands_in


class Block(Struct, frozen=True, eq=False, gc=False):
    """Items that stay or leave together. `tokens` is the size of the block. `stays` is the reason why it must stay, ""
    if it may leave."""

    items: tuple[Item, ...]
    tokens: int
    stays: str = ""

    @property
    def first(self) -> int:
        """The smallest record number in the block."""
        return min(item.n for item in self.items)

    @property
    def last(self) -> int:
        """The greatest record number in the block."""
        return max(item.n for item in self.items)

    @property
    def is_summary(self) -> bool:
        """Whether it replaces older messages."""
        return self.items[0].is_summary

    @property
    def is_note(self) -> bool:
        """Whether it replaces older messages and shows only the orders in them."""
        return self.items[0].shown.treatment == "noted"

    @property
    def opens_turn(self) -> bool:
        """Whether it begins with a message of the user."""
        return starts_turn(self.items[0].raw) and not self.is_summary

    @property
    def has_results(self) -> bool:
        """Whether it contains tool results."""
        return any(isinstance(part, ToolResult) for item in self.items for part in item.raw.message.parts)


def total(blocks: Sequence[Block]) -> int:
    """The tokens of all these blocks."""
    return sum(block.tokens for block in blocks)


def starts_block(shown: Shown, before: Shown | None) -> bool:
    """Whether a message begins a new block."""
    if before is None or starts_turn(shown):
        return True
    return shown.message.role == "assistant" and before.message.role != "assistant"


def blocks_of(items: Sequence[Item], pinned: frozenset[int], gap: tuple[int, int] | None = None) -> list[Block]:
    """The blocks of a view. These must stay: system text; the first user message and, if an agent wrote that one, the
    first that the user wrote; pinned messages; and of the open turn the user message, calls without a result and the
    newest block. `gap`: the first and the last of the records that were not read; messages before and after it are
    never in the same block, except a call and its result."""
    groups = _groups(items, gap)
    words = [(i, word.raw.message) for i, group in enumerate(groups) if (word := user_word(group)) is not None]
    word_groups = [i for i, _ in words]
    task = {*word_groups[:1], *islice((i for i, message in words if not is_preface(message)), 1)}
    blocks: list[Block] = []
    for i, group in enumerate(groups):
        stays = ""
        if any(item.raw.message.role == "system" for item in group):
            stays = "system text"
        elif i in task:
            stays = "the task"
        elif not group[0].is_summary and any(item.n in pinned for item in group):
            stays = "pinned messages"
        elif i == len(groups) - 1 or (word_groups and i == word_groups[-1]):
            stays = "the open turn"
        elif word_groups and i > word_groups[-1] and has_open_call(group):
            stays = "the open turn"
        blocks.append(Block(tuple(group), sum(item.size for item in group), stays))
    return blocks


def user_word(group: Sequence[Item]) -> Item | None:
    """The first user message in a group: at its beginning, or between a call and its result. None if there is none."""
    return next((item for item in group if starts_turn(item.raw) and not item.is_summary), None)


def _groups(items: Sequence[Item], gap: tuple[int, int] | None) -> list[list[Item]]:
    groups: list[list[Item]] = []
    before: Item | None = None
    for item in items:
        if gap and before is not None and (before.n < gap[0] <= item.n or before.n <= gap[1] < item.n):
            before = None  # records of the gap are between them, even if one is a pinned message inside it
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
    """The groups. If a call and its result are in two groups, these and all groups between them are joined."""
    owner = [i for i, group in enumerate(groups) for _ in group]
    pairs = pair([item.raw for group in groups for item in group])
    reach = list(range(len(groups)))
    for call, result in pairs.answers.items():
        first, last = sorted((owner[call[0]], owner[result[0]]))
        reach[first] = max(reach[first], last)
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
    """Whether a group of items contains a call, but not its result."""
    return bool(pair([item.raw for item in group]).waiting)


def newest_start(blocks: Sequence[Block], start: int, room: int, *, beside_kept: bool = False) -> int:
    """The index of the first of the newest blocks that fit into `room` tokens; the last block is always included. With
    `beside_kept`, blocks that must stay take no room."""
    end = len(blocks)
    for i in range(len(blocks) - 1, start - 1, -1):
        block = blocks[i]
        room -= 0 if beside_kept and block.stays else block.tokens
        if room < 0 and i < len(blocks) - 1:
            break
        end = i
    return end


def turns_start(blocks: Sequence[Block], turns: int, start: int, *, all_else: bool = False) -> int:
    """The index at which the newest `turns` turns begin; `start` if there are no more turns than these. With
    `all_else`, blocks before these turns have to leave even if there are no other turns: they are the answer to the
    task."""
    opening = [i for i in range(start, len(blocks)) if blocks[i].opens_turn]
    return opening[-turns] if len(opening) >= turns + (not all_else) else start
