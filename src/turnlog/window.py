"""The part of a log that its next request shows: read backwards from the end, past what decisions hide.

What no view could hold is not read: between the beginning of the conversation and its newest part there may be a gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct

from .content import Message, ToolCall, ToolResult
from .log import RecordStore
from .records import Decision, Record
from .view.blocks import starts_block
from .view.effects import Effects
from .view.select import as_shown
from .view.shown import Shown, starts_turn

__all__ = ["Sizes", "Window", "gap_tokens", "read_window"]

_BEGINNING = 0.4
"""Share of the reach that the beginning of a conversation may take where there is a gap behind it."""

_RESULTS_WITHIN = 200
"""So many records behind a pinned call its result is looked for, and ahead of a result its call, where what lies
between is not at hand."""

_NOTHING = Message("user", ())

Sizes = tuple[Callable[[Record], int], Callable[[Message], int]]
"""Tokens of a record as it is, and of any message."""


class Window(Struct, frozen=True):
    """Records that are at hand, oldest first; `gap` names the first and last of those in their midst that are not,
    `within` the numbers of those that are at hand in it all the same."""

    records: tuple[Record, ...]
    gap: tuple[int, int] | None
    within: frozenset[int] = frozenset()


def read_window(
    store: RecordStore,
    session_id: str,
    last: int,
    marks: Sequence[Record],
    decisions: Mapping[int, Decision],
    sizes: Sizes,
    reach: int,
) -> Window:
    """What the view of records 1 to `last` shows. More than `reach` tokens are read only of the newest block, and of
    the beginning less than half as many besides; what is pinned and what the user said last is always at hand.
    `marks` are the log's landmarks.

    Sizes are those of what is shown: however much was masked or cut, a view that fits is read whole.
    """
    effects = Effects.of(decisions)
    segments = effects.shown_ranges(last)
    size = _sizer(effects, sizes)
    newest: list[Record] = []
    used = 0
    from_start = True
    for record in _read(store, session_id, reversed(segments), reverse=True):
        if used > reach and _block_begin(newest[::-1]) is not None:
            from_start = False
            break
        newest.append(record)
        used += size(record)
    newest.reverse()
    if from_start:
        return Window(_with_system(newest, marks), None)
    newest = newest[_block_begin(newest) or 0 :]
    newest = _calls_before(store, session_id, segments, newest) + newest
    begin = newest[0].n
    oldest = _beginning(store, session_id, segments, begin, size, int(reach * _BEGINNING))
    gap = (oldest[-1].n + 1 if oldest else 1, begin - 1)
    if gap[0] > gap[1]:
        return Window(_with_system([*oldest, *newest], marks), None)
    inside = _pinned(store, session_id, effects, decisions, gap)
    if not any(starts_turn(shown) for record in newest for shown in as_shown(record)):
        inside += _said_last(store, session_id, segments, gap)
    within = frozenset(record.n for record in inside)
    return Window(_with_system([*oldest, *inside, *newest], marks), gap, within)


def gap_tokens(
    store: RecordStore,
    session_id: str,
    gap: tuple[int, int] | None,
    within: frozenset[int],
    decisions: Mapping[int, Decision],
    sizes: Sizes,
) -> int:
    """What of the conversation stands in a gap, if there is one, and is not at hand, in tokens. Reads all of it."""
    if gap is None:
        return 0
    effects = Effects.of(decisions)
    size = _sizer(effects, sizes)
    inside = ((max(first, gap[0]), min(last, gap[1])) for first, last in effects.shown_ranges(gap[1]))
    kept = (one for one in inside if one[0] <= one[1])
    records = _read(store, session_id, kept, reverse=False)
    return sum(size(record) for record in records if record.n not in within and not _is_system(record))


def _is_system(record: Record) -> bool:
    return record.message is not None and record.message.role == "system"


def _sizer(effects: Effects, sizes: Sizes) -> Callable[[Record], int]:
    """Tokens of a record as it is shown."""

    def size(record: Record) -> int:
        if record.n not in effects.changes:
            return sizes[0](record)
        return sum(sizes[1](effects.treat(shown).message) for shown in as_shown(record))

    return size


def _read(
    store: RecordStore, session_id: str, segments: Iterator[tuple[int, int]], *, reverse: bool
) -> Iterator[Record]:
    for first, last in segments:
        yield from store.read(session_id, first=first, last=last, reverse=reverse)


def _beginning(
    store: RecordStore,
    session_id: str,
    segments: Sequence[tuple[int, int]],
    begin: int,
    size: Callable[[Record], int],
    room: int,
) -> list[Record]:
    """The first records up to the first user message, and on as far as `room` tokens reach; no call is among them
    without its result, if that can be helped."""
    oldest: list[Record] = []
    task = 0  # so many of them lead to the first user message, which stays whatever is open ahead of it
    whole = 0  # so many of them stand before a place where no call waits for its result
    waiting: set[str] = set()
    for record in _read(store, session_id, iter(segments), reverse=False):
        room -= size(record)
        if record.n >= begin or (room < 0 and task):
            break
        oldest.append(record)
        if not task and any(starts_turn(shown) for shown in as_shown(record)):
            task = len(oldest)
        _see(record, waiting)
        whole = len(oldest) if not waiting else whole
    return oldest[: max(task, whole)] or oldest


def _block_begin(records: Sequence[Record]) -> int | None:
    """Where the first whole block begins among records, oldest first: what stands before it may belong to what is not
    at hand."""
    before: Shown | None = None
    for i, record in enumerate(records):
        for shown in as_shown(record):
            if starts_turn(shown) or (before is not None and starts_block(shown, before)):
                return i
            before = shown
    return None


def _calls_before(
    store: RecordStore, session_id: str, segments: Sequence[tuple[int, int]], newest: Sequence[Record]
) -> list[Record]:
    """What stands just before the newest records and belongs to them: calls that they answer behind a user's word."""
    wanted, called = set[str](), set[str]()
    for part in (part for record in newest if record.message is not None for part in record.message.parts):
        if isinstance(part, ToolCall):
            called.add(part.id)
        elif isinstance(part, ToolResult) and part.call_id not in called:
            wanted.add(part.call_id)
    before: list[Record] = []
    found = 0  # so many of them belong to the newest
    ahead = [(first, min(last, newest[0].n - 1)) for first, last in reversed(segments) if first < newest[0].n]
    for record in islice(_read(store, session_id, iter(ahead), reverse=True), _RESULTS_WITHIN if wanted else 0):
        before.append(record)
        calls = {part.id for part in (record.message or _NOTHING).parts if isinstance(part, ToolCall)}
        if not calls.isdisjoint(wanted):
            wanted -= calls
            found = len(before)
        elif found == len(before) - 1 and found and (record.message or _NOTHING).role == "assistant":
            found = len(before)  # the same answer, in several messages
        elif not wanted:
            break
    return before[:found][::-1]


def _said_last(
    store: RecordStore, session_id: str, segments: Sequence[tuple[int, int]], gap: tuple[int, int]
) -> list[Record]:
    """What the user said last in a gap."""
    inside = ((max(first, gap[0]), min(last, gap[1])) for first, last in reversed(segments))
    for record in _read(store, session_id, (one for one in inside if one[0] <= one[1]), reverse=True):
        if any(starts_turn(shown) for shown in as_shown(record)):
            return [record]
    return []


def _pinned(
    store: RecordStore, session_id: str, effects: Effects, decisions: Mapping[int, Decision], gap: tuple[int, int]
) -> list[Record]:
    """What is pinned in a gap, and what stays with it."""
    numbers = {d.first for d in decisions.values() if d.action == "pin" and gap[0] <= d.first <= gap[1]}
    found: dict[int, Record] = {}
    for n in sorted(numbers):
        if n not in found:
            block = _around(store, session_id, n, effects, gap)
            before = _calls_before(store, session_id, [gap], block)
            block = [*(record for record in before if _shown(record, effects)), *block]
            found.update((record.n, record) for record in block)
    return [found[n] for n in sorted(found)]


def _around(store: RecordStore, session_id: str, n: int, effects: Effects, gap: tuple[int, int]) -> list[Record]:
    """Record `n` and the rest of its block within a gap: the answer that it belongs to, the results of its calls."""
    block = list(store.read(session_id, first=n, last=n))
    for record in store.read(session_id, first=gap[0], last=n - 1, reverse=True):
        if (shown := _shown(record, effects)) is None:
            continue
        if shown.message.role == "system" or starts_block(as_shown(block[0])[0], shown):
            break
        block.insert(0, record)
    waiting: set[str] = set()
    for record in block:
        _see(record, waiting)
    for record in store.read(session_id, first=n + 1, last=min(gap[1], n + _RESULTS_WITHIN)):
        if (shown := _shown(record, effects)) is None:
            continue
        starts = shown.message.role == "system" or starts_block(shown, as_shown(block[-1])[0])
        if starts and not waiting:
            break
        block.append(record)
        _see(record, waiting)
    return block


def _shown(record: Record, effects: Effects) -> Shown | None:
    """What a record shows by itself, if no decision hides it."""
    found = as_shown(record)
    return found[0] if found and not effects.hides(record.n, found[0].message) else None


def _see(record: Record, waiting: set[str]) -> None:
    """Add the calls of a record to those that wait for their results, take away those that it answers."""
    for part in record.message.parts if record.message is not None else ():
        if isinstance(part, ToolCall):
            waiting.add(part.id)
        elif isinstance(part, ToolResult):
            waiting.discard(part.call_id)


def _with_system(records: Sequence[Record], marks: Sequence[Record]) -> tuple[Record, ...]:
    """With the system messages among the landmarks: they stay whatever is hidden."""
    found = {record.n: record for record in records}
    found.update({mark.n: mark for mark in marks if mark.message is not None})
    return tuple(found[n] for n in sorted(found))
