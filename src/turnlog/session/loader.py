"""What a session reads of its log when it is opened: landmarks, the beginning, the newest part.

Landmarks (decisions, settings, system text) are read however old they are. Of the messages, only those that the next
request could contain are read; records between the beginning and the newest part may stay unread: the gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Protocol

import msgspec
from msgspec import Struct

from ..log.budget import Budget
from ..log.messages import Message, ToolCall, ToolResult, images_in
from ..log.records import Configuration, Decision, MessageRecord, Record
from ..log.store import RecordStore
from ..models.target import target
from ..view.compaction.situation import Item, starts_block
from ..view.decisions import EARLIER, Effects, Rewinds, active_decisions, ended_decisions, lasting, told
from ..view.fold import as_shown
from ..view.program_prefaces import is_preface
from ..view.provider_compaction import ELSEWHERE, shown_to
from ..view.repair.pairing import Pairing, may_answer
from ..view.tool_calls import LEDGER, Standing, fate_of
from ..view.types import Edit, Shown, starts_turn

_REACH = 2
"""How much of a conversation is kept in memory for making decisions, as a multiple of the limit."""

_LEAST_REACH = 20_000
"""The least number of tokens kept in memory, however small the budget is."""

_UNAIMED_REACH = 200_000
"""Tokens kept in memory of a session that has no target."""

_BEGINNING = 0.4
"""Share of the reach that the beginning of a conversation may take where there is a gap behind it."""

_BILLS = 25
"""How many bills are read; counts are corrected with somewhat fewer."""

_RESULTS_WITHIN = 200
"""How many records after a pinned call are searched for its result, and before a pinned result for its call, in the
part of the log that is not in memory."""

_NOTHING = Message("user", ())


class Sizes(Protocol):
    """Counts tokens; implemented by `turnlog.requests.size.Sizing`."""

    def record(self, record: Record) -> int:
        """The tokens of a record as requests show it now."""

    def message(self, message: Message) -> int:
        """Tokens of any message."""


class Window(Struct, frozen=True):
    """The records in memory, oldest first. `gap` is the first and last number of the records between them that are not
    in memory; `within` are numbers inside the gap that are in memory all the same."""

    records: tuple[Record, ...]
    gap: tuple[int, int] | None
    within: frozenset[int] = frozenset()


def reach_for(limit: int) -> int:
    """How many tokens are kept in memory for requests of at most this many tokens."""
    return max(_LEAST_REACH, _REACH * limit)


def usual_reach(now: Configuration) -> int:
    """The same for the requests of a configuration."""
    if not (now.provider and now.model):
        return _UNAIMED_REACH
    window = now.input_limit or target(now.provider, now.model).input_limit
    return reach_for((now.budget or Budget()).max_tokens or window)


def read_window(
    store: RecordStore,
    session_id: str,
    last: int,
    marks: Sequence[Record],
    decisions: Mapping[int, Decision],
    sizes: Sizes,
    reach: int,
) -> Window:
    """The records that requests of the log up to `last` are made from. At most `reach` tokens are read of the newest
    part, unless one turn is larger, and less than half as many of the beginning; pinned messages, the task and the last
    user message are always included. `marks` are the log's landmarks.

    Sizes are those of the messages as requests show them: a conversation that fits after masking and cutting is read
    whole.
    """
    log = _Log(store, session_id, decisions, sizes)
    newest: list[Record] = []
    used = 0
    from_start = True
    for record in log.read(1, last, reverse=True):
        if used > reach and _block_begin(newest[::-1]) is not None:
            from_start = False
            break
        newest.append(record.in_passing)
        used += log.size(record)
    newest.reverse()
    if from_start:
        return Window(_with_system(newest, marks), None)
    newest = newest[_block_begin(newest) or 0 :]
    newest = _calls_before(newest, log.read(1, newest[0].n - 1, reverse=True)) + newest
    begin = newest[0].n
    oldest = _beginning(log, begin, int(reach * _BEGINNING))
    gap = (oldest[-1].n + 1 if oldest else 1, begin - 1)
    if all(map(_has_only_results, log.read(*gap))):  # and no calls: requests show nothing of it, whatever its size
        return Window(_with_system([*oldest, *log.read(*gap), *newest], marks), None)
    inside = _pinned(log, decisions, gap)
    if not any(map(_is_word_of_user, newest)):
        inside += islice(filter(_is_word_of_user, log.read(*gap, reverse=True)), 1)
    if not any(map(_is_own_word, oldest)):
        inside += islice(filter(_is_own_word, log.read(*gap)), 1)
    within = frozenset(record.n for record in inside)
    return Window(_with_system([*oldest, *inside, *newest], marks), gap, within)


def newest_bills(store: RecordStore, session_id: str, window: Window, last: int) -> Sequence[Record]:
    """Records with the newest bills of a log of `last` records, oldest first. Bills of messages that requests leave out
    by now say as much about counts as others."""
    if len(window.records) == last:
        return window.records
    return [*islice(store.of_kinds(session_id, ("usage",), reverse=True), _BILLS)][::-1]


def gap_tokens(
    store: RecordStore,
    session_id: str,
    gap: tuple[int, int] | None,
    within: frozenset[int],
    decisions: Mapping[int, Decision],
    sizes: Sizes,
) -> int:
    """The tokens of the part of the conversation that lies in the gap and is not in memory. Reads all of it."""
    if gap is None:
        return 0
    log = _Log(store, session_id, decisions, sizes)
    return sum(log.size(record) for record in log.read(*gap) if record.n not in within and not _is_system(record))


class _Log:
    """A log as decisions leave it."""

    def __init__(self, store: RecordStore, session_id: str, decisions: Mapping[int, Decision], sizes: Sizes) -> None:
        self._store = store
        self._id = session_id
        self._sizes = sizes
        self._effects = Effects.of(decisions)

    def read(self, first: int, last: int, *, reverse: bool = False) -> Iterator[Record]:
        """Its records from number `first` to `last`, without the stretches that decisions hide."""
        ranges = self._effects.shown_ranges(last, first)
        for begin, end in reversed(ranges) if reverse else ranges:
            yield from self.read_all(begin, end, reverse=reverse)

    def read_all(self, first: int, last: int, *, reverse: bool = False) -> Iterator[Record]:
        """Its records from number `first` to `last`, hidden ones too."""
        return self._store.read(self._id, first=first, last=last, reverse=reverse)

    def size(self, record: Record) -> int:
        """Tokens of a record as it is shown."""
        if record.n not in self._effects.changes:
            return self._sizes.record(record)
        return sum(self._sizes.message(self._effects.treat(shown).message) for shown in as_shown(record))

    def shown(self, record: Record) -> Shown | None:
        """What a record shows by itself, if no decision hides it."""
        messages = as_shown(record)
        return messages[0] if messages and not self._effects.hides(record.n, messages[0].message) else None


def known_fate(
    store: RecordStore, session_id: str, window: Window, first: int, last: int, rewinds: Rewinds
) -> dict[tuple[int, str], Standing]:
    """The states of the calls from record `first` on, also of calls that decisions hide, but not of those that were
    taken back."""
    at_hand = [record for record in window.records if record.n >= first]
    whole = len(at_hand) > last - first  # nothing of it is hidden, or in a gap
    records = at_hand if whole else store.of_kinds(session_id, LEDGER, first=first)
    return fate_of(record for record in records if not rewinds.by(record.n))


def _is_system(record: Record) -> bool:
    return record.message is not None and record.message.role == "system"


def _has_only_results(record: Record) -> bool:
    return _is_system(record) or all(isinstance(part, ToolResult) for part in (record.message or _NOTHING).parts)


def _is_word_of_user(record: Record) -> bool:
    return any(starts_turn(shown) for shown in as_shown(record))


def _is_own_word(record: Record) -> bool:
    """Whether a message was written by the user, and not by an agent in the user's name."""
    return _is_word_of_user(record) and not is_preface(record.message or _NOTHING)


def _beginning(log: _Log, begin: int, room: int) -> list[Record]:
    """The first records of the log, before record `begin`: up to the task, and further until `room` tokens are reached.
    If possible, no call is among them without its result."""
    oldest: list[Record] = []
    task = 0  # so many of them lead to the first user message, which stays whatever is open ahead of it
    ahead = True  # of the user's own words: what was said in his name is an agent's
    whole = 0  # so many of them stand before a place where no call waits for its result
    pairing = Pairing()
    for record in log.read(1, begin - 1):
        room -= log.size(record)
        if room < 0 and task and not ahead:
            break
        oldest.append(record)
        if ahead and _is_word_of_user(record):
            task, ahead = len(oldest), not _is_own_word(record)
        elif task and (record.message or _NOTHING).role == "assistant":
            ahead = False
        pairing.see(_whole(record))
        whole = len(oldest) if not pairing.open else whole
    return oldest[: max(task, whole)] or oldest


def _block_begin(records: Sequence[Record]) -> int | None:
    """The index at which the first whole block begins among records, oldest first: records before it may belong to a
    block that is not in memory."""
    before: Shown | None = None
    for i, record in enumerate(records):
        for shown in as_shown(record):
            if starts_turn(shown) or (before is not None and starts_block(shown, before)):
                return i
            before = shown
    return None


def _calls_before(newest: Sequence[Record], ahead: Iterable[Record]) -> list[Record]:
    """The records `ahead` of the newest ones (given the last first) that belong to these: calls whose results come
    after a user message."""
    pairing, wanted = Pairing(), list[ToolResult]()
    for record in newest:
        pairing.see(_whole(record))
        wanted += pairing.orphaned
    before: list[Record] = []
    count = 0  # so many of them belong to the newest
    for record in islice(ahead, _RESULTS_WITHIN if wanted else 0):
        before.append(record)
        calls = [part for part in (record.message or _NOTHING).parts if isinstance(part, ToolCall)]
        remaining = [result for result in wanted if not any(may_answer(result, call) for call in calls)]
        if len(remaining) < len(wanted):
            wanted = remaining
            count = len(before)
        elif count == len(before) - 1 and count and (record.message or _NOTHING).role == "assistant":
            count = len(before)  # the same answer, in several messages
        elif not wanted:
            break
    return before[:count][::-1]


def _whole(record: Record) -> Shown:
    """The message of a record, for pairing; an empty message if it has none."""
    return Shown(record.message or _NOTHING, (record.n,))


def _pinned(log: _Log, decisions: Mapping[int, Decision], gap: tuple[int, int]) -> list[Record]:
    """The pinned records in a gap, and the records that stay with them."""
    numbers = {d.first for d in decisions.values() if d.action == "pin" and gap[0] <= d.first <= gap[1]}
    pinned: dict[int, Record] = {}
    for n in sorted(numbers):
        if n not in pinned:
            block = _around(log, n, gap)
            before = _calls_before(block, log.read_all(gap[0], block[0].n - 1, reverse=True))
            block = [*(record for record in before if log.shown(record)), *block]
            pinned.update((record.n, record) for record in block)
    return [pinned[n] for n in sorted(pinned)]


def _around(log: _Log, n: int, gap: tuple[int, int]) -> list[Record]:
    """Record `n` and the rest of its block within a gap: the answer that it belongs to, the results of its calls."""
    block = list(log.read_all(n, n))
    for record in log.read_all(gap[0], n - 1, reverse=True):
        if (shown := log.shown(record)) is None:
            continue
        if shown.message.role == "system" or starts_block(as_shown(block[0])[0], shown):
            break
        block.insert(0, record)
    pairing = Pairing()
    for record in block:
        pairing.see(_whole(record))
    for record in log.read_all(n + 1, min(gap[1], n + _RESULTS_WITHIN)):
        if (shown := log.shown(record)) is None:
            continue
        starts = shown.message.role == "system" or starts_block(shown, as_shown(block[-1])[0])
        if starts and not pairing.open:
            break
        block.append(record)
        pairing.see(_whole(record))
    return block


def _with_system(records: Sequence[Record], marks: Sequence[Record]) -> tuple[Record, ...]:
    """With the system messages among the landmarks: they stay whatever is hidden."""
    by_number = {record.n: record for record in records}
    by_number.update({mark.n: mark for mark in marks if mark.message is not None})
    return tuple(by_number[n] for n in sorted(by_number))


_SUMMARY = "replacement"
"""The entry of a decision's `detail` that only views use."""

_NONE = Configuration()


class Landmarks(Struct, frozen=True):
    """The records of a log that matter however old they are.

    `system` are the messages with system text, `configuration` is the one in force. `decisions` are those in force, by
    record number; `followed` are the same as requests to `provider` follow them; `lasting` are those among these that
    requests still show an effect of; `past` are those in force and those that took others back, which the next decision
    needs. `rewinds` and `told` (an edit for each of `lasting`) follow from them. Decisions that none of this depends on
    may be missing.
    """

    system: tuple[Record, ...]
    configuration: Configuration
    provider: str
    decisions: Mapping[int, Decision]
    followed: Mapping[int, Decision]
    lasting: Mapping[int, Decision]
    past: tuple[Decision, ...]
    rewinds: Rewinds
    told: tuple[Edit, ...]


def read_landmarks(store: RecordStore, session_id: str, provider: str = "") -> Landmarks:
    """The landmarks of a log for requests to a provider ("": the one in its configuration). Decisions are read back to
    the newest one that lists the earlier ones still in force."""
    newest = next(store.of_kinds(session_id, ("configuration",), reverse=True), None)
    configuration = newest.body if newest and isinstance(newest.body, Configuration) else _NONE
    provider = provider or configuration.provider
    system = tuple(store.of_kinds(session_id, ("system",)))
    decision_records = _decisions(store, session_id)
    decisions, ended = active_decisions(decision_records), ended_decisions(decision_records)
    followed = shown_to(decisions, provider)
    lasts = lasting(followed, {record.n for record in system})
    outlines = {n: body if n in lasts else _outline(body) for n, body in decisions.items()}
    past = ((record.n, record.body) for record in decision_records if record.n not in ended)
    return Landmarks(
        system=system,
        configuration=configuration,
        provider=provider,
        decisions=outlines,
        followed={n: lasts.get(n) or _outline(body) for n, body in followed.items()},
        lasting=lasts,
        past=tuple(outlines.get(n, body) for n, body in past if isinstance(body, Decision)),
        rewinds=Rewinds.of(decision_records),
        told=told(lasts),
    )


def _decisions(store: RecordStore, session_id: str) -> list[Record]:
    """The decisions of a log, oldest first, without those that no longer matter."""
    newest_first: list[Record] = []
    for record in store.of_kinds(session_id, ("decision",), reverse=True):
        newest_first.append(record)
        earlier = _earlier(record, newest_first)
        if earlier is not None:
            before = [other for n in earlier for other in store.read(session_id, first=n, last=n)]
            if all(isinstance(other.body, Decision) for other in before):
                return [*before, *reversed(newest_first)]
    return newest_first[::-1]


def _earlier(record: Record, since: Sequence[Record]) -> list[int] | None:
    """The numbers of the earlier decisions that still matter, as listed in a decision; None if it has no list, or if a
    decision `since` then may have put others in force again."""
    body = record.body
    if not isinstance(body, Decision) or EARLIER not in body.detail or record.n in ended_decisions(since[::-1]):
        return None
    for later in since:
        reaches = later.body.first if isinstance(later.body, Decision) and later.body.action == "rewind" else record.n
        if isinstance(later.body, Decision) and (0 < later.body.supersedes < record.n or reaches < record.n):
            return None
    numbers = body.detail[EARLIER]
    if isinstance(numbers, list) and all(type(n) is int and 0 < n < record.n for n in numbers):
        return sorted(set(numbers))
    return None


def _outline(decision: Decision) -> Decision:
    """A decision without effect on requests, without its summary, which is by far its largest field."""
    if _SUMMARY not in decision.detail:
        return decision
    detail = {key: value for key, value in decision.detail.items() if key not in (_SUMMARY, ELSEWHERE)}
    return msgspec.structs.replace(decision, detail=detail)


# -- originals -------------------------------------------------------------------------------------
#
# Messages as they are on record, for a summary of them: from memory as far as it holds them, else from the store.

_READ_BEFORE, _SHORT = 2_000, 2_000
"""How many records are kept in memory for the next summary, and the tokens of the longest of them."""


class Originals(Struct, frozen=True):
    """The original messages of a log: `items` are in memory as `decisions` left them, those in the `gap` are read from
    the store. `before` are the records that were read for the last summary, as the next one needs most of them too.
    They do not change while the session is open: only a session that nobody has open is scrubbed."""

    store: RecordStore
    session_id: str
    items: Sequence[Item]
    decisions: Mapping[int, Decision]
    gap: tuple[int, int] | None
    rewinds: Rewinds
    sizes: Sizes
    before: dict[int, Record]

    def newest_first(self, first: int, last: int, room: float) -> Iterator[Shown]:
        """The messages of records `first` to `last`, the last first and without those taken back, until they have more
        than `room` tokens."""
        whole = max(first, self._whole_from())
        for shown, tokens in chain(self._at_hand(whole, last), self._stored(first, min(last, whole - 1))):
            room -= tokens
            if room < 0:
                return
            yield shown

    def words(self, first: int, last: int) -> Iterator[Shown]:
        """The user's messages of records `first` to `last`, oldest first and without those taken back."""
        for record in self.store.read(self.session_id, first=first, last=last):
            message = record.message
            if message is not None and message.role == "user" and not self.rewinds.by(record.n):
                yield from as_shown(record)

    def _whole_from(self) -> int:
        """The record from which on all messages are at hand as they are on record."""
        effects = Effects.of(self.decisions)
        hidden = (hiding.last for hiding in effects.hidings)
        return 1 + max([*hidden, *effects.changes, self.gap[1] if self.gap else 0], default=0)

    def _at_hand(self, first: int, last: int) -> Iterator[tuple[Shown, int]]:
        for item in reversed(self.items):
            if not item.is_summary:
                if item.n < first:
                    return
                if item.n <= last:
                    yield item.raw, item.plain_tokens or item.tokens

    def _stored(self, first: int, last: int) -> Iterator[tuple[Shown, int]]:
        for record in self._read(first, last):
            if not self.rewinds.by(record.n):
                yield from ((shown, self.sizes.record(record)) for shown in as_shown(record))

    def _read(self, first: int, last: int) -> Iterator[Record]:
        """The records, the last first."""
        while last >= first:
            if last in self.before:
                yield self.before[last]
                last -= 1
                continue
            for record in self.store.read(self.session_id, first=first, last=last, reverse=True):
                if record.n in self.before:
                    break
                if len(self.before) >= _READ_BEFORE:
                    self.before.clear()
                if self.sizes.record(record) <= _SHORT:
                    self.before[record.n] = record
                last = record.n - 1
                yield record


class ImageNumbers:
    """The running numbers of a log's images."""

    def __init__(self, store: RecordStore, session_id: str) -> None:
        self._store = store
        self._id = session_id
        self._known = (1, 0)  # a record number, and how many images are before it

    def before(self, n: int) -> int:
        """How many images the log has before record `n`. A message of a step of a trajectory sets the number, so that
        its image has the number of the step."""
        begin, images = self._known if self._known[0] <= n else (1, 0)
        for record in self._store.read(self._id, first=begin, last=n):
            step = record.body.step if isinstance(record.body, MessageRecord) else 0
            images = step - 1 if step else images
            if record.n < n and record.message is not None:
                images += images_in(record.message)
        self._known = n, images
        return images
