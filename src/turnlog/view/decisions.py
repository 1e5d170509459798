"""How the decisions of a log change its conversation: which records are left out, replaced or shortened.

The `detail` of a decision has further entries if its action needs them:

- `kept`: ranges of record numbers, `[first, last]` each, that stay although the decision covers them;
- `standing`: numbers of decisions whose replacements stay although this decision covers their place;
- `replacement`: messages that replace the records left out; `at`: the record before which they are put (default: the
  decision's own record); `tokens`: their sizes, as counted by `counter`;
- `texts`: `[record, [part, inner part], text]` each: this text replaces that part;
- `cuts`: `[record, [part, inner part], head, tail]` each: of that text as recorded, only the first `head` and the last
  `tail` characters are shown. If several decisions cut the same text, the newest one applies;
- `unsigned`: `[record, [part, inner part]]` each: reasoning that is left out, or a call whose signature is;
- `outputs`: records whose tool outputs are curated, though none were when they were recorded;
- `late`, `late_cuts`, `loaded`: what becomes of late blocks and of tools on demand, see `late`;
- `orders`: the user's orders that a replacement quotes, `[record, sentence]` each, and `more_orders`: ranges of records
  with orders that it only names;
- `earlier`: the numbers of the earlier decisions that still count. A reader of the log can ignore all other decisions
  before this one, as long as this one is in force and no later decision takes back what came before it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .._platform.lazy import lazy_pattern
from .._platform.msgspec_init import ready
from ..log.actions import HIDING, SHOWN_BY, SHRINKING, TREATMENT, TextTreatment, action_of
from ..log.codec import as_message
from ..log.messages import CONTAINER, Form, Message, Part, Reasoning, Text, ToolCall, ToolResult
from ..log.records import Decision, Record
from .provider_compaction import PROVIDER, as_recorded
from .types import Edit, Shown

# -- late ------------------------------------------------------------------------------------------
#
# What decisions do to late blocks of the system prompt, and to tools on demand.
#
# A decision that makes requests smaller leaves out the late blocks that newer ones replaced, and declares tools that
# were loaded since at the beginning. Its `detail` says so, with all that earlier ones said: of several decisions in
# force, the newest that has the entry `late` counts.

LATE, CUTS, LOADED = "late", "late_cuts", "loaded"
"""The entries of `detail`, as in `Late`."""


class Late(Struct, frozen=True):
    """The late entries that count, and the number `n` of their decision, 0 if there is none.

    `ranges`: in these ranges of record numbers, system messages are left out. `cuts`: records, each with the number of
    characters that are shown of it. `loaded`: the names of tools on demand that are declared in full.
    """

    n: int = 0
    ranges: tuple[tuple[int, int], ...] = ()
    cuts: tuple[tuple[int, int], ...] = ()
    loaded: frozenset[str] = frozenset()

    @classmethod
    def of(cls, decisions: Mapping[int, Decision]) -> Late:
        """The late entries of the decisions in force, which are given by record number, oldest first."""
        for n, decision in reversed([*decisions.items()]):
            detail = decision.detail
            if LATE in detail:
                return cls(n, _pairs(detail[LATE]), _pairs(detail.get(CUTS, ())), frozenset(detail.get(LOADED, ())))
        return cls()

    def leaves_out(self, n: int) -> bool:
        """Whether the system message of record `n` is left out."""
        return any(first <= n <= last for first, last in self.ranges)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits that tell what is left out."""
        detail = "parts of the system prompt left out that newer ones replaced"
        return tuple(Edit("late", detail, (first,), through=last) for first, last in self.ranges)


def _pairs(entry: Any) -> tuple[tuple[int, int], ...]:
    return tuple((int(a), int(b)) for a, b in entry)


EARLIER = "earlier"
"""The entry of a decision's `detail` that names the earlier decisions which still count (see `still_needed`)."""

_MARK = lazy_pattern(r"\n\[\.\.\. [\d,]+ characters, [\d,]+ line breaks of record \d+ left out \.\.\.\](?=\n)")

_Path = tuple[int, ...]
"""The place of a text in a message: the index of its part and, within a tool result, the index of the inner part."""

_P = TypeVar("_P")


class Hiding(Struct, frozen=True):
    """A decision that hides the records `first` to `last`, except `kept` ranges and system text."""

    n: int
    first: int
    last: int
    kept: tuple[tuple[int, int], ...]
    standing: frozenset[int]
    system_too: bool

    def covers(self, n: int) -> bool:
        """Whether record `n` is in the hidden ranges."""
        if not self.first <= n <= self.last:
            return False
        index = bisect_right(self.kept, (n, inf))  # ranges are in order and do not overlap
        return not index or n > self.kept[index - 1][1]

    def hides_stand_in(self, n: int, at: int) -> bool:
        """Whether this decision leaves out the replacement that decision `n` put before record `at`."""
        return self.n > n and self.first <= at <= self.last and n not in self.standing

    def hides_all_of(self, other: Hiding, at: int) -> bool:
        """Whether this decision hides everything that an earlier one hides, and the replacement that the earlier one
        put before record `at`."""
        if not (self.first <= other.first and other.last <= self.last and self.first <= at <= self.last):
            return False
        if other.n in self.standing or (other.system_too and not self.system_too):
            return False
        shown = _common(list(self.kept), [(other.first, other.last)])
        return _common(shown, list(other.kept)) == shown


def first_to_hide(hidings: Iterable[Hiding], last: int) -> dict[int, int]:
    """For each record up to `last` that any of the decisions hides, the first of them that does."""
    first: dict[int, int] = {}
    following = list(range(last + 2))  # from each record that has one, on the way to the next that has none
    for hiding in hidings:
        shown = [(max(a, hiding.first), min(b, hiding.last, last)) for a, b in hiding.kept]
        edges = [hiding.first, *(edge for a, b in shown if a <= b for edge in (a - 1, b + 1)), min(hiding.last, last)]
        for begin, end in zip(edges[::2], edges[1::2], strict=True):
            n = _without_one(following, begin) if begin <= end else end + 1
            while n <= end:
                first[n] = hiding.n
                following[n] = n + 1
                n = _without_one(following, n)
    return first


def _without_one(following: list[int], n: int) -> int:
    """The first record from `n` on that has no decision yet. The way there is made shorter for the next search."""
    end = n
    while following[end] != end:
        end = following[end]
    while following[n] != end:
        following[n], n = end, following[n]
    return end


class _Change(Struct, frozen=True):
    treatment: TextTreatment
    text: str | None = None
    head: int = 0
    tail: int = 0
    unsigned: bool = False


def _changes(treatment: TextTreatment, detail: Mapping[str, Any]) -> Iterator[tuple[int, _Path, _Change]]:
    """What a decision changes: a record, the place in it, and how. Entries of another form are ignored: a log may come
    from anywhere."""
    lists = ((name, detail.get(name)) for name in ("texts", "cuts", "unsigned"))
    for name, entry in ((name, entry) for name, held in lists if isinstance(held, (list, tuple)) for entry in held):
        match name, entry:
            case "texts", [int(record), [*path], (str() | None) as text]:
                change = _Change(treatment, text)
            case "cuts", [int(record), [*path], int(head), int(tail)]:
                change = _Change(treatment, head=head, tail=tail)
            case "unsigned", [int(record), [*path]]:
                change = _Change(treatment, unsigned=True)
            case _:
                continue
        if all(isinstance(step, int) and step >= 0 for step in path):
            yield record, tuple(path), change


class Effects(Struct, frozen=True):
    """The combined effects of the decisions of a log."""

    hidings: tuple[Hiding, ...] = ()
    changes: dict[int, dict[_Path, _Change]] = {}
    late: Late = Late()

    @classmethod
    def of(cls, decisions: Mapping[int, Decision]) -> Effects:
        """The effects of the decisions in force, which are given by record number, oldest first."""
        changes: dict[int, dict[_Path, _Change]] = {}
        hidings: list[Hiding] = []
        for n, decision in decisions.items():
            if decision.action in HIDING:
                hidings.append(_hiding(n, decision))
            treatment = TREATMENT.get(decision.action)
            if treatment is not None:
                for record, path, change in _changes(treatment, decision.detail):
                    changes.setdefault(record, {})[path] = change
        late = Late.of(decisions)
        for record, head in late.cuts:
            changes.setdefault(record, {})[(0,)] = _Change("cut", head=head)
        return cls(tuple(hidings), changes, late)

    def hides(self, n: int, message: Message) -> bool:
        """Whether the message of record `n` is left out of the conversation."""
        for hiding in self.hidings:
            if hiding.covers(n) and (hiding.system_too or message.role != "system"):
                return True
        return self.hides_late(n, message)

    def hides_late(self, n: int, message: Message) -> bool:
        """Whether record `n` is a late block that is left out."""
        return bool(self.late.ranges) and message.role == "system" and self.late.leaves_out(n)

    def hides_stand_in(self, n: int, at: int) -> bool:
        """Whether a later decision leaves out the replacement that decision `n` put before record `at`."""
        return any(hiding.hides_stand_in(n, at) for hiding in self.hidings)

    def shown_ranges(self, last: int, first: int = 1) -> list[tuple[int, int]]:
        """The ranges of records `first` to `last` in which messages, other than system text, may be shown."""
        shown = [(first, last)] if first <= last else []
        for hiding in self.hidings:
            kept_ranges = [(max(a, hiding.first), min(b, hiding.last)) for a, b in hiding.kept]
            shown = _common(shown, [(1, hiding.first - 1), *kept_ranges, (hiding.last + 1, last)])
        return shown

    def treatment_of(self, n: int) -> TextTreatment:
        """How views describe the texts of record `n` that decisions changed."""
        return next(iter(self.changes[n].values())).treatment

    def treat(self, shown: Shown, raw: Shown | None = None) -> Shown:
        """The message of one record as the decisions show it. `raw` is the message as recorded, if `shown` differs: a
        cut applies to the recorded text, whatever earlier decisions left of it."""
        changes = self.changes.get(shown.records[0]) if shown.records else None
        if not changes:
            return shown
        n = shown.records[0]
        parts: list[Part | None] = list(shown.message.parts)
        recorded = (raw or shown).message.parts
        for path, change in sorted(changes.items()):
            whole_changed = len(path) > 1 and path[:1] in changes
            if path and path[0] < len(parts) and not whole_changed:
                part = shown.message.parts[path[0]] if change.unsigned else parts[path[0]]
                if part is not None:
                    parts[path[0]] = _changed(part, recorded[path[0]], path[1:], change, n)
        remaining = tuple(part for part in parts if part is not None)
        form = _without_container(shown.message.form) if () in changes else shown.message.form
        message = msgspec.structs.replace(shown.message, parts=remaining, form=form)
        return Shown(message, shown.records, self.treatment_of(n))


class Rewinds(Struct, frozen=True):
    """The records that rewinds took back: `ranges` of first record, last record and decision, in order and without
    overlaps."""

    ranges: tuple[tuple[int, int, int], ...] = ()

    @classmethod
    def of(cls, records: Iterable[Record]) -> Rewinds:
        """The rewinds in force; `records` may omit everything but decisions."""
        held = active_decisions(records)
        ranges: list[tuple[int, int, int]] = []
        for n, decision in held.items():
            if decision.action == "rewind":  # records that a foreign log took back twice belong to the later rewind
                first, last = decision.first, decision.last
                cut = (
                    ((a, min(b, first - 1), m) for a, b, m in ranges),
                    ((max(a, last + 1), b, m) for a, b, m in ranges),
                )
                ranges = [(first, last, n), *(piece for part in cut for piece in part if piece[0] <= piece[1])]
        return cls(tuple(sorted(ranges)))

    def by(self, n: int) -> int:
        """The decision that took record `n` back, 0 if none did."""
        index = bisect_right(self.ranges, (n, inf))
        return self.ranges[index - 1][2] if index and n <= self.ranges[index - 1][1] else 0


def _merged(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The same ranges in order, with overlapping ones joined."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def _common(left: Sequence[tuple[int, int]], right: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The intersection of two lists of ranges, each of which is in order."""
    common: list[tuple[int, int]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        first, last = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if first <= last:
            common.append((first, last))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return common


def _without_container(form: Form | None) -> Form | None:
    """A form that names no container."""
    words = form.shape.split() if form is not None else []
    shape = " ".join(word for word in words if not word.startswith(f"{CONTAINER}="))
    return msgspec.structs.replace(form, shape=shape) if form is not None and (shape or form.delta) else None


def _changed(part: Part, said: Part, path: _Path, change: _Change, n: int) -> Part | None:
    """A part with the change made to it, or to the inner part at `path` of a tool result; None if the part is left out.
    `said` is the part as recorded."""
    if change.unsigned:
        if isinstance(part, Reasoning):
            return None
        return msgspec.structs.replace(part, signature="") if isinstance(part, ToolCall) else part
    if path and isinstance(part, ToolResult) and isinstance(said, ToolResult) and path[0] < len(part.parts):
        inner = list(part.parts)
        inner[path[0]] = _shortened(inner[path[0]], said.parts[path[0]], change, n)
        return msgspec.structs.replace(part, parts=tuple(inner))
    if isinstance(part, ToolResult) and not path and change.text is not None:
        return msgspec.structs.replace(part, parts=(Text(change.text),), form=None)
    return _shortened(part, said, change, n)


def _shortened(part: _P, said: object, change: _Change, n: int) -> _P | Text:
    """The text that replaces a part, or what is left of the part's own text."""
    if change.text is not None:
        return Text(change.text)
    if isinstance(said, Text):
        return Text(cut_text(said.text, change.head, change.tail, n))
    return part


def cut_text(text: str, head: int, tail: int, n: int) -> str:
    """The first `head` and last `tail` characters of a text of record `n`, with a marker between them that says how
    much is missing."""
    gone = len(text) - head - tail
    if gone <= 0:
        return text
    missing = text[head : len(text) - tail]
    lines = missing.count("\n")
    mark = f"[... {gone:,} characters, {lines:,} line breaks of record {n} left out ...]"
    return f"{text[:head]}\n{mark}\n{text[len(text) - tail :] if tail else ''}"


def is_cut(text: str, said: str, n: int) -> bool:
    """Whether `text` is what `cut_text` returns for the text `said` of record `n`."""
    marks = _MARK.finditer(text)
    return any(cut_text(said, mark.start(), len(text) - mark.end() - 1, n) == text for mark in marks)


def active_decisions(records: Iterable[Record]) -> dict[int, Decision]:
    """The decisions in force, by record number: those that no later decision took back or rewound."""
    decision_records = {record.n: record for record in records if isinstance(record.body, Decision)}
    ended = ended_decisions(decision_records.values())
    left = ((n, record, record.body) for n, record in decision_records.items() if n not in ended)
    bodies = ((n, as_recorded(record, body)) for n, record, body in left if isinstance(body, Decision))
    return {n: body for n, body in bodies if body is not None and body.action != "undo"}


def ended_decisions(records: Iterable[Record]) -> dict[int, int]:
    """The decisions that are no longer in force: the number of each, with the number of the decision that ended it."""
    decisions = [(record.n, record.body) for record in records if isinstance(record.body, Decision)]
    ended: dict[int, int] = {}
    for n, decision in reversed(decisions):
        if n in ended:
            continue
        if decision.supersedes:
            ended.setdefault(decision.supersedes, n)
        if decision.action == "rewind":
            ended.update({m: n for m, _ in decisions if decision.first <= m <= decision.last and m not in ended})
    return ended


def changed_by(decision: Decision) -> set[int]:
    """The records whose texts a decision changes."""
    entries = (entry for key in ("texts", "cuts", "unsigned") for entry in decision.detail.get(key, ()))
    return {int(entry[0]) for entry in entries} if decision.action in TREATMENT else set()


def lasting(decisions: Mapping[int, Decision], system: Collection[int]) -> dict[int, Decision]:
    """The decisions that still change a view: of `decisions`, those in force, all whose effects no later one hides
    completely. `system` are the numbers of the system messages."""
    effective: dict[int, Decision] = {}
    later: list[Hiding] = []
    late = Late.of(decisions).n
    for n, decision in reversed([*decisions.items()]):
        if decision.action in HIDING:
            hiding, place = _hiding(n, decision), int(decision.detail.get("at", n))
            if n != late and any(other.hides_all_of(hiding, place) for other in later):
                continue
            later.append(hiding)
        elif decision.action in TREATMENT:
            changed = {*decision.detail.get("outputs", ()), *changed_by(decision)}
            stays = n == late or not changed.isdisjoint(system)
            if not stays and all(any(other.covers(n) for other in later) for n in changed):
                continue
        effective[n] = decision
    return dict(reversed([*effective.items()]))


def still_needed(decisions: Mapping[int, Decision], n: int, system: Collection[int]) -> list[int]:
    """The numbers of the decisions before decision `n` on which views or the next decisions still depend.

    `decisions` are those in force at that time, including decision `n`, by record number. A decision that left out or
    shortened messages for lack of room is no longer needed if decision `n` leaves out all of these messages. `system`
    are the numbers of the system messages.
    """
    alike = {m: decision for m, decision in decisions.items() if PROVIDER not in decision.detail}
    lasts, newest = {**lasting(decisions, system), **lasting(alike, system)}, decisions[n]
    earlier = {m: decision for m, decision in decisions.items() if m < n}
    sized = [m for m, decision in earlier.items() if decision.action in SHRINKING and "rule" not in decision.detail]
    return [
        m
        for m, decision in earlier.items()
        if m in lasts
        or m in sized[-2:]  # these show whether compaction has stalled
        or decision.action not in SHRINKING
        or (decision.action in HIDING and not _covers_all(newest, decision))
    ]


def _hiding(n: int, decision: Decision) -> Hiding:
    kept_ranges = _merged((int(first), int(last)) for first, last in decision.detail.get("kept", ()))
    standing = frozenset(decision.detail.get("standing", ()))
    system_too = action_of(decision.action).system_too or bool(decision.detail.get("system_too"))
    return Hiding(n, decision.first, decision.last, kept_ranges, standing, system_too)


def told(decisions: Mapping[int, Decision]) -> tuple[Edit, ...]:
    """One edit for each decision that changes the conversation, which describes the change."""
    edits: list[Edit] = []
    for n, decision in decisions.items():
        if word := action_of(decision.action).word:
            detail = f"{word} by decision {n}: {decision.why}".rstrip(": ")
            edits.append(Edit(decision.action, detail, (decision.first,), through=decision.last))
    return (*edits, *Late.of(decisions).edits)


def untold(decisions: Mapping[int, Decision], standing: Collection[int], last: int) -> list[tuple[int, int]]:
    """Ranges of records up to `last` that decisions left out for lack of room and that no summary covers. Records that
    a user cleared or took back and records that left because they mattered least are not included. `standing` are the
    numbers of the decisions whose summaries are shown."""
    hiding: dict[int, Decision] = {}
    for n, decision in reversed([*decisions.items()]):
        lasts = n in standing or not action_of(decision.action).needs_summary
        if decision.action in HIDING and (lasts or not any(_covers_all(later, decision) for later in hiding.values())):
            hiding[n] = decision
    covered = {
        n: decision for n, decision in hiding.items() if n in standing or not action_of(decision.action).needs_summary
    }
    edges = [0, *(edge for ends in Effects.of(hiding).shown_ranges(last) for edge in ends), last + 1]
    hidden = [(before + 1, after - 1) for before, after in zip(edges[::2], edges[1::2], strict=True)]
    return _common([ends for ends in hidden if ends[0] <= ends[1]], Effects.of(covered).shown_ranges(last))


def _covers_all(later: Decision, earlier: Decision) -> bool:
    """Whether a later decision certainly hides everything that an earlier one did. Most decisions of a long session
    pass this simple check."""
    return later.first <= earlier.first and earlier.last <= later.last and not later.detail.get("kept")


def failures_of(decisions: Iterable[Decision]) -> tuple[str, ...]:
    """One line for each summarizer that failed to write the summary of a decision, so that another one was used."""
    return tuple(str(failure) for decision in decisions for failure in decision.detail.get("failures") or ())


def stand_ins(number: int, decision: Decision) -> tuple[int, list[Shown]]:
    """The record before which a decision puts its replacement messages, and these messages."""
    messages: list[Any] = decision.detail.get("replacement") or []
    shown = [Shown(as_message(message), (number,), action_of(decision.action).leaves) for message in messages]
    return int(decision.detail.get("at", number)), shown


def stand_in_sizes(decision: Decision, counter: str) -> list[int]:
    """The tokens of each replacement message of a decision, as counted when the decision was made; [] if they were not
    counted by `counter`."""
    sizes = decision.detail.get("tokens")
    is_same_counter = isinstance(sizes, list) and decision.detail.get("counter") == counter
    return [int(size) for size in sizes] if is_same_counter and sizes else []


# -- decision detail -------------------------------------------------------------------------------
#
# The entries of a decision's `detail`, and whether those of a foreign decision can be read.


@ready
class _Detail(Struct, frozen=True):
    """The entries of a decision's `detail` that views read, and their types."""

    kept: list[tuple[int, int]] = []
    standing: list[int] = []
    replacement: list[Any] | None = None
    at: int = 0
    texts: list[tuple[int, list[int], str]] = []
    cuts: list[tuple[int, list[int], int, int]] = []
    outputs: list[int] = []
    provider: str = ""
    elsewhere: dict[str, Any] | None = None
    system_too: bool = False
    bound: list[str] = []
    orders: list[tuple[int, str]] = []
    more_orders: list[tuple[int, int]] = []
    untold_orders: list[tuple[int, int]] = []
    named_orders: bool = False


def misfit(decision: Decision) -> str:
    """Why a decision cannot be applied to a view: an error in its `detail`; "" if it can. Only a log that another
    program wrote can contain such an error."""
    if decision.action in SHOWN_BY:
        try:
            read = {key: decision.detail[key] for key in _Detail.__struct_fields__ if key in decision.detail}
            detail = msgspec.convert(read, _Detail)
            for message in detail.replacement or ():
                as_message(message)
            if detail.elsewhere is not None:
                return misfit(replace(decision, detail={**detail.elsewhere, "elsewhere": None}))
        except (msgspec.ValidationError, UnicodeEncodeError) as error:  # the latter: a lone surrogate in a key
            return str(error)
    return ""
