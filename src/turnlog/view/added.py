"""What a message takes in a request beside its own size.

Repair puts things in: results in the place of those that nobody gave, signatures, what frames answers that are joined,
a user's word at an end where a provider wants one, declarations of tools where none are given. It leaves out what the
provider does not take, such as reasoning of another. And results of calls made at once are billed otherwise than by
themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import takewhile

import msgspec
from msgspec import Struct

from ..log.messages import Message, Reasoning, Text, Tool, ToolCall, ToolResult
from .compaction.blocks import Item
from .repair.arrange import Fate, fate_of_call, synthetic_result
from .repair.pairing import Pairing
from .repair.repair import added_ends, declare_tools, has_results_alone, joined_runs, named_tools, signed_call
from .rules import Rules
from .sent import Known, apart, as_sent, is_plain
from .types import Shown

_Count = Callable[[Message], int]

Passing = dict[int, tuple[int, tuple[Hashable, ...]]]
"""By the index of a message: the tokens that are added for it as the view stands, and what those additions are."""

ENDS = frozenset({"opening", "closing"})
"""What the two additions are called that are a user's word where a provider wants one: the conversation begins or ends
with it. Of a view without messages, -1 is the index that they are added at."""

_Addition = tuple[int, int, Hashable]
"""One of `Passing`: index, tokens, what it is."""

# Two results count less in one message than in two: these are what the difference is measured on.
_ONE = Message("user", (ToolResult("1", "f", (Text("done"),)),))
_TWO = Message("user", (*_ONE.parts, *_ONE.parts))


class Gauge(Struct, frozen=True, eq=False):
    """How what is added is counted.

    - `message`: gives the tokens of a message by itself.
    - `at_once`: gives those of a message with results of calls made at once; None if it is counted as any other.
    - `tools`: gives those of declarations, and of what any declaration brings along; None if the request is given its
      tools, so that none are declared from calls.
    - `known`: gives messages as the provider knows them.
    - `kept`: sizes of messages on record, and of declarations, that were counted already.
    """

    message: _Count
    at_once: _Count | None = None
    tools: Callable[[Sequence[Tool]], int] | None = None
    known: Known = list
    kept: dict[Hashable, int] = {}


class Added:
    """Sees a view message by message, and tells what it takes beside the size of each. What was counted once is
    remembered.

    Messages go by their index in the view, runs (of answers on end, the first of which calls tools) by theirs.
    """

    def __init__(self) -> None:
        self._view: list[Shown] = []
        self._counts: list[tuple[int, bool]] = []  # of each message: its size, and whether that is as of calls at once
        self._sizes: dict[Hashable, int] = {}  # of what is put in, counted once
        self._pairing = Pairing()
        # Messages:
        self._lead = 0  # messages of system text that the view begins with
        self._orphans: set[int] = set()  # of results alone, of calls that are not there
        self._at_once: set[int] = set()  # with results of calls made at once
        self._together: set[int] = set()  # that answer the same as the one before them
        self._callers: list[int] = []  # that call a tool which none before them called
        self._last_call: dict[str, int] = {}  # the last that calls each tool
        # Runs:
        self._calling = False  # whether one goes on
        self._joins = False  # whether one is of several messages
        self._runs: list[int] = []  # how many calls each has, made at once
        self._run_of: dict[int, int] = {}  # by the messages that call
        self._ends_of: dict[int, int] = {}  # the last answer of each: what is put in stands behind it
        self._answered: set[int] = set()  # those that have a result
        self._answering: set[int] = set()  # those that the last message answers, if it does nothing else
        # What was worked out, and for what:
        self._gone: set[int] = set()  # messages of which a target takes nothing
        self._lasting: dict[int, int] = {}
        self._lasting_rules: Rules | None = None
        self._lasting_seen = self._lasting_total = 0
        self._last_passing: tuple[int, Rules, Passing] | None = None
        self._declared_size: tuple[Rules, Gauge, int, int] | None = None
        self._declared_names: tuple[Rules, int, tuple[str, ...]] | None = None

    def see(self, shown: Shown, tokens: int, *, counted_at_once: bool = False) -> None:
        """The next message of the view, so large by itself; or, as `counted_at_once` says, among results of calls made
        at once."""
        message, at = shown.message, len(self._view)
        self._view.append(shown)
        self._counts.append((tokens, counted_at_once))
        self._pairing.see(message)
        if self._pairing.orphaned and self._pairing.orphaned == len(message.parts):
            self._orphans.add(at)
        if message.role == "system" and self._lead == at:
            self._lead += 1
        if message.role != "assistant":
            self._calling = False
            runs = {self._run_of[i] for i in self._pairing.answered}
            self._answered |= runs
            if any(self._runs[run] > 1 for run in runs):
                self._at_once.add(at)
            alone = runs if has_results_alone(message) else set()
            if alone and alone == self._answering:
                self._together.add(at)
            self._answering = alone
            return
        self._answering = set()
        called = [part.name for part in message.parts if isinstance(part, ToolCall)]
        if called and not self._calling:
            self._runs.append(0)
        self._joins = self._joins or self._calling
        self._calling = self._calling or bool(called)
        if called:
            self._runs[-1] += len(called)
            self._run_of[at] = len(self._runs) - 1
        if self._calling:
            self._ends_of[len(self._runs) - 1] = at
        if called:
            if not self._last_call.keys() >= set(called):
                self._callers.append(at)
            self._last_call.update(dict.fromkeys(called, at))

    @property
    def orphaned(self) -> bool:
        """Whether the last message has a result of a call that is not there."""
        return self._pairing.orphaned > 0

    def declared(self, rules: Rules) -> tuple[str, ...]:
        """The names of the tools that are declared because they were called, in the order in which they were
        first; those that the provider has of its own are not."""
        now = self._declared_names
        if now is None or now[0] is not rules or now[1] != len(self._callers):
            tools, _ = declare_tools([self._view[i] for i in self._callers], (), rules)
            now = self._declared_names = rules, len(self._callers), tuple(tool.name for tool in tools)
        return now[2]

    @property
    def at_once(self) -> frozenset[int]:
        """The messages with results of calls made at once, by index."""
        return frozenset(self._at_once)

    def total(self, rules: Rules, fate: Fate, gauge: Gauge, last: int) -> int:
        """All that the view takes beside the sizes of its messages; the arguments as for the methods below."""
        passing = self.passing(rules, fate, gauge, last)
        return self.tools(rules, gauge) + self._lasting_total + sum(tokens for tokens, _ in passing.values())

    def lasting(self, rules: Rules, gauge: Gauge) -> dict[int, int]:
        """By how much messages differ in size as they are sent, by their index, whatever comes after them. `gauge`
        counts messages the same in every call."""
        if self._lasting_rules is not rules:
            self._lasting_rules, self._lasting, self._lasting_seen, self._lasting_total = rules, {}, 0, 0
            self._gone = set()
        for i in range(self._lasting_seen, len(self._view)):
            tokens = self._difference(i, rules, gauge)
            if tokens:
                self._lasting[i] = tokens
                self._lasting_total += tokens
        self._lasting_seen = len(self._view)
        return self._lasting

    def passing(self, rules: Rules, fate: Fate, gauge: Gauge, last: int) -> Passing:
        """What is added as the view stands, by the index of the message that it is there for. `fate` is as the log has
        it up to record number `last`."""
        if self._last_passing is None or self._last_passing[0] != last or self._last_passing[1] is not rules:
            found: Passing = {}
            self.lasting(rules, gauge)
            added = [self._ends(rules, gauge.message)]
            if self._pairing.waiting:
                added.append(self._results(rules, fate, gauge))
            if self._joins and rules.merge_calls:
                added.append(self._joints(rules, gauge))
            for i, tokens, what in (one for some in added for one in some):
                before = found.get(i, (0, ()))
                found[i] = before[0] + tokens, (*before[1], what)
            self._last_passing = last, rules, found
        return self._last_passing[2]

    def _difference(self, i: int, rules: Rules, gauge: Gauge) -> int:
        shown, (counted, at_once), tokens = self._view[i], self._counts[i], 0
        if i in self._orphans and not rules.calls_elsewhere:
            self._gone.add(i)
            return -counted
        how = (gauge.at_once if i in self._at_once else None) or gauge.message
        together = how is not gauge.message
        sent: Message | None = shown.message
        if not is_plain(shown.message, rules):
            sent = as_sent(shown, rules, leading=i < self._lead, known=gauge.known)
            if sent is None:
                self._gone.add(i)
        if sent is not shown.message or together != at_once:
            tokens += _once(gauge, ("sent", rules, i < self._lead, together), shown, how, sent) - counted
        if gauge.at_once is None:  # else results count one by one anyway
            each = apart(shown.message, rules)
            if each != [shown.message]:
                tokens += sum(map(gauge.message, each)) - gauge.message(shown.message)
        if rules.results_together and i in self._together:
            tokens += self._joining(gauge)
        signed = signed_call(shown.message, rules) if shown.message.role == "assistant" else None
        if signed is not None:
            bare = msgspec.structs.replace(signed, signature="")
            tokens += gauge.message(Message("assistant", (signed,))) - gauge.message(Message("assistant", (bare,)))
        return tokens

    def _joining(self, gauge: Gauge) -> int:
        """By how much a result is larger when it stands in one message with another: a negative number."""
        return self._counted("two", _TWO, gauge.message) - 2 * self._counted("one", _ONE, gauge.message)

    def _results(self, rules: Rules, fate: Fate, gauge: Gauge) -> Iterator[_Addition]:
        there = set(self._answered)
        for i, j in self._pairing.waiting:
            call = self._view[i].message.parts[j]
            assert isinstance(call, ToolCall)
            several = self._runs[self._run_of[i]] > 1
            count = gauge.at_once if several and gauge.at_once is not None else gauge.message
            standing = fate_of_call(call, self._view[i].records, fate)
            key = i, j, standing, several
            size = self._counted(key, Message("user", (synthetic_result(call, standing),)), count)
            if rules.results_together and self._run_of[i] in there:
                size += self._joining(gauge)
            there.add(self._run_of[i])
            yield i, size, (*key, self._ends_of[self._run_of[i]])

    def tools(self, rules: Rules, gauge: Gauge) -> int:
        """The tokens of all declarations of tools that are there because these were called."""
        if gauge.tools is None or not self._callers:
            return 0
        now = self._declared_size
        if now is None or now[0] is not rules or now[1] is not gauge or now[2] != len(self._callers):
            now = self._declared_size = rules, gauge, len(self._callers), sum(self.declarations(rules, gauge).values())
        return now[3]

    def declarations(self, rules: Rules, gauge: Gauge) -> dict[int, int]:
        """What declares the tools that were called, by the index of the message that is the last to call each: it is
        there as long as that is, and nothing older matters."""
        if gauge.tools is None:
            return {}
        callers = [self._view[i] for i in self._callers]
        tools = {tool.name: tool for tool in declare_tools(callers, (), rules)[0]}
        found: dict[int, int] = {}
        newer = 0
        kept: set[str] = set()
        for name in sorted(tools, key=self._last_call.__getitem__, reverse=True):
            kept.add(name)
            there, _ = named_tools([tool for tool in tools.values() if tool.name in kept], rules)
            key = ("tools", *((tool.name, tool.kind) for tool in there))
            if key not in gauge.kept:
                gauge.kept[key] = gauge.tools(there)
            at = self._last_call[name]
            found[at] = found.get(at, 0) + gauge.kept[key] - newer
            newer = gauge.kept[key]
        return found

    def _joints(self, rules: Rules, gauge: Gauge) -> Iterator[_Addition]:
        """By how much answers are larger when they stand in one message."""
        count = gauge.message
        for run in joined_runs(self._view):
            sent = [(i, as_sent(self._view[i], rules, known=gauge.known)) for i in run]
            there = [(i, message) for i, message in sent if message is not None]
            if len(there) > 1:
                whole = Message("assistant", tuple(part for _, message in there for part in message.parts))
                parted = sum(self._counted((rules, i), message, count) for i, message in there)
                key = rules, run.start, run.stop
                yield run[-1], self._counted(key, whole, count) - parted, key

    def _ends(self, rules: Rules, count: _Count) -> Iterable[_Addition]:
        there = [shown for i, shown in enumerate(self._view) if i not in self._gone] if self._gone else self._view
        opening, closing = added_ends(there, rules)
        if opening is None and closing is None:
            return ()
        return self._put_at_ends(opening, closing, count)

    def _put_at_ends(self, opening: Shown | None, closing: Shown | None, count: _Count) -> Iterator[_Addition]:
        view = self._view
        said = [i for i, shown in enumerate(view) if shown.message.role != "system" and i not in self._gone]
        if opening is not None:
            yield said[0], self._counted(opening.message, opening.message, count), "opening"
        if closing is not None:
            answers = set(takewhile(lambda i: view[i].message.role == "assistant", reversed(said)))
            if answers.isdisjoint(i for i, _ in self._pairing.waiting):  # else the results put in stand at the end
                at = said[-1] if said else len(view) - 1
                yield at, self._counted(closing.message, closing.message, count), "closing"

    def _counted(self, key: Hashable, message: Message, count: _Count) -> int:
        if key not in self._sizes:
            self._sizes[key] = count(message)
        return self._sizes[key]


def _once(gauge: Gauge, what: Hashable, shown: Shown, count: _Count, message: Message | None) -> int:
    """The tokens of what a message becomes; of one on record, counted once."""
    if shown.treatment != "verbatim":
        return count(message) if message is not None else 0
    key = what, shown.records, _length(shown.message)
    if key not in gauge.kept:
        gauge.kept[key] = count(message) if message is not None else 0
    return gauge.kept[key]


def _length(message: Message) -> int:
    """Characters of a message, about: a record that was scrubbed of a secret meanwhile has others."""
    length = len(message.parts)
    for part in message.parts:
        if isinstance(part, ToolCall):
            length += len(part.raw_arguments)
        for one in part.parts if isinstance(part, ToolResult) else (part,):
            length += len(one.text) if isinstance(one, (Text, Reasoning)) else 0
    return length


def added_to(view: Sequence[Shown], rules: Rules, fate: Fate, gauge: Gauge) -> dict[int, int]:
    """What the messages of a view take beside their own size, by their index; -1 stands for none, in an empty one."""
    return _beside([(shown, gauge.message(shown.message), False) for shown in view], rules, fate, gauge)[0]


def with_added(items: Sequence[Item], rules: Rules, fate: Fate, gauge: Gauge) -> Sequence[Item]:
    """The items of a view with the size of what they take beside their own."""
    sizes = [(item.shown, item.tokens, item.counted_at_once) for item in items]
    beside, at_once = _beside(sizes, rules, fate, gauge)
    return [_larger(item, beside[i], i in at_once) for i, item in enumerate(items)]


def _beside(
    view: Sequence[tuple[Shown, int, bool]], rules: Rules, fate: Fate, gauge: Gauge
) -> tuple[Counter[int], frozenset[int]]:
    added = Added()
    for shown, tokens, counted_at_once in view:
        added.see(shown, tokens, counted_at_once=counted_at_once)
    beside = Counter(added.lasting(rules, gauge))
    beside.update({i: tokens for i, (tokens, _) in added.passing(rules, fate, gauge, 0).items()})
    beside.update(added.declarations(rules, gauge))
    return beside, added.at_once if gauge.at_once is not None else frozenset()


def _larger(item: Item, beside: int, at_once: bool) -> Item:
    same = item.beside == beside and item.at_once == at_once
    return item if same else msgspec.structs.replace(item, beside=beside, at_once=at_once)
