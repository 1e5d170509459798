"""Generated (history, budget, strategy) triples, played message by message and judged at every request.

`play(seed, aim, oracle)` returns what was wrong, nothing if all laws held. Used by
tests/laws/test_budget_laws.py.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from types import ModuleType
from typing import Any

import msgspec

import reference_model as model
import turnlog
from counted_apart import THINKING
from judging import errors_of
from turnlog.errors import BudgetError, InputError
from turnlog.log.budget import PRESETS, Budget, Strategy, read_strategy
from turnlog.log.messages import Message, Text, Tool, ToolCall, ToolResult, text_of
from turnlog.log.records import Configuration, Decision, Record
from turnlog.log.store import Draft
from turnlog.models.target import Target, target
from turnlog.requests.build import build
from turnlog.requests.request import Request
from turnlog.requests.translate import plan
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.testing import damaged_history, sound_history
from turnlog.testing.histories import History
from turnlog.tokens.calibration import MARGINS
from turnlog.tokens.counters import (
    count_at_once,
    count_frame,
    count_message,
    count_tools,
    counter_for,
    joins_results,
)
from turnlog.view.curate.conversation import CurationRules, Curator
from turnlog.view.tool_calls import fate_of
from turnlog.view.types import Shown

__all__ = ["AIMS", "PROXY", "Play", "longer_history", "play"]

AIMS: tuple[Target, ...] = (
    target("openai-chat", "gpt-4o"),
    target("openai-responses", "gpt-5", store=False, include=["reasoning.encrypted_content"]),
    target("anthropic", "claude-sonnet-4-5", max_tokens=8000, thinking={"type": "enabled", "budget_tokens": 2000}),
    target("google", "gemini-3-pro"),
    target("google-interactions", "gemini-3-pro"),
)
PROXY = target("openai-chat", "claude-sonnet-4-5")
"""One provider's counter and another's rules."""
IN_MEMORY = 20_000
"""Tokens that a session has at hand, however small its budget."""
LEAST_CUT = 60
"""Tokens to fewer than which no output is cut."""
STEPS = ("curate", "mask", "images", "cap", "priority", "summarise", "slide")
TOOLS = tuple(
    Tool(name, "a tool", {"type": "object", "properties": {"path": {"type": "string"}}})
    for name in ("read_file", "bash", "search", "apply_patch", "get_weather", "local_shell")
)


def random_strategy(chance: random.Random) -> Strategy:
    """A preset, or any other strategy that is allowed."""
    if chance.random() < 0.6:
        made = PRESETS[chance.choice(sorted(PRESETS))]
        return msgspec.structs.replace(made, max_history_images=chance.choice((None, None, None, 0, 1, 3)))
    return read_strategy(
        Strategy(
            steps=tuple(chance.sample(STEPS, chance.randint(0, 6))),
            protect=chance.choice((0.0, 0.1, 0.25, 0.6, 1.0)),
            head=chance.choice((0.0, 0.3, 0.9)),
            summary=chance.choice((0.05, 0.25, 1.0)),
            keep_turns=chance.choice((0, 0, 1, 3)),
            recent=chance.choice((0.0, 0.0, 0.3, 0.9)),
            keep_results=chance.random() < 0.2,
            user_tokens=chance.choice((0, 0, 0, 100)),
            grades=chance.choice(((), (), (), (200, 600))),
            cap=chance.choice((0.0, 0.1, 0.5)),
            max_history_images=chance.choice((None, None, 0, 1, 3)),
            max_history_turns=chance.choice((None, 1_000, 1, 2, 5)),
            trigger=chance.choice((None, None, 0.3, 0.7, 400.0)),
            goal=chance.choice((None, None, 0.2, 0.9, 300.0)),
            whole_goal=chance.random() < 0.3,
        )
    )


def random_budget(chance: random.Random, size: int) -> Budget:
    """A limit around the size of what has to fit, and marks."""
    limit = max(1, int(size * chance.choice((0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 1.2))))
    return Budget(
        max_tokens=limit,
        trigger=chance.choice((None, None, 0.8, 0.5, 350.0)),
        goal=chance.choice((None, None, 0.2, 0.9)),
    )


def padded(chance: random.Random, history: History) -> History:
    """The history with longer texts, among them giant outputs."""
    factor = chance.choice((0, 0, 1, 3, 10))

    def longer(part: Any) -> Any:
        if isinstance(part, Text):
            lines = int(chance.expovariate(0.5) * factor * 4)
            return Text(part.text + "".join(f"\nline {n} of {chance.getrandbits(24):x}" for n in range(lines)))
        if isinstance(part, ToolResult):
            return msgspec.structs.replace(part, parts=tuple(longer(inner) for inner in part.parts))
        return part

    messages = tuple(
        msgspec.structs.replace(message, parts=tuple(longer(part) for part in message.parts))
        if message.role != "system"
        else message
        for message in history.messages
    )
    return History(messages, history.blobs, history.damages)


def longer_history(chance: random.Random) -> History:
    """One to four conversations on end, sound or damaged, with short or long texts."""
    damaged = chance.random() < 0.35
    parts = [(damaged_history if damaged else sound_history)(chance) for _ in range(chance.randint(1, 4))]
    blobs = {key: data for part in parts for key, data in part.blobs.items()}
    damages = frozenset(name for part in parts for name in part.damages)
    messages = [part.messages if i == 0 else _renamed(part.messages, i) for i, part in enumerate(parts)]
    made = padded(chance, History(tuple(m for part in messages for m in part), blobs, damages))
    return with_outputs(chance, made) if chance.random() < 0.5 else made


def with_outputs(chance: random.Random, history: History) -> History:
    """The history with outputs in it that can be curated: files that are read again and again, searches, logs."""
    paths = ("src/a.py", "src/b.py")
    calls: dict[str, str] = {}

    def changed(part: Any) -> Any:
        if isinstance(part, ToolCall) and part.kind == "function" and chance.random() < 0.7:
            calls[part.id] = chance.choice(paths)
            return msgspec.structs.replace(part, name="read_file", arguments={"path": calls[part.id]}, raw=None)
        if isinstance(part, ToolResult) and part.call_id in calls and part.name:
            part = msgspec.structs.replace(part, name="read_file")
        if isinstance(part, ToolResult) and part.outcome == "ok" and not part.synthetic:
            path = calls.get(part.call_id)
            lines = _file(chance, path) if path else _output(chance)
            return msgspec.structs.replace(part, parts=(Text("\n".join(lines)), *part.parts[1:]))
        return part

    messages = tuple(
        msgspec.structs.replace(message, parts=tuple(map(changed, message.parts))) for message in history.messages
    )
    return History(messages, history.blobs, history.damages)


def _file(chance: random.Random, path: str) -> list[str]:
    """Lines of a file, one of them sometimes changed."""
    first = chance.choice((1, 1, 20))
    edited = chance.choice((0, 0, 40))
    return [f"{n:6}→line {n} of {path}{' edited' * (n == edited)}" for n in range(first, first + 60)]


def _output(chance: random.Random) -> list[str]:
    size = chance.choice((20, 80, 200))
    if chance.random() < 0.5:
        return [f"src/part_{n // 30}.py:{n}: a match of {n % 7}" for n in range(1, size)]
    return [f"[{n}/{size}] compiled unit {n}" for n in range(size)] + ["error: unit 7 is broken"]


def with_orders(history: History) -> History:
    """The history in which the user forbids something in about every second message."""

    def ordering(n: int, message: Message) -> Message:
        texts = [i for i, part in enumerate(message.parts) if isinstance(part, Text)]
        if message.role != "user" or not texts or n % 5 > 2:
            return message
        parts = list(message.parts)
        said = parts[texts[-1]]
        assert isinstance(said, Text)
        parts[texts[-1]] = Text(f"{said.text}\n\nNever touch file_{n % 7}.py, whatever the tests of part {n} say.")
        return msgspec.structs.replace(message, parts=tuple(parts))

    return History(tuple(ordering(*one) for one in enumerate(history.messages)), history.blobs, history.damages)


def _renamed(messages: Sequence[Message], times: int) -> tuple[Message, ...]:
    """With call ids of their own, so that a sound history stays one; without further system text."""
    found = []
    for message in messages:
        if message.role == "system":
            continue
        parts = []
        for part in message.parts:
            if isinstance(part, ToolCall) and part.id:
                part = msgspec.structs.replace(part, id=f"{part.id}{times}")
            elif isinstance(part, ToolResult) and part.call_id:
                part = msgspec.structs.replace(part, call_id=f"{part.call_id}{times}")
            parts.append(part)
        found.append(msgspec.structs.replace(message, parts=tuple(parts)))
    return tuple(found)


@cache
def _fixed(provider: str, name: str, given: bool, system: bool) -> int:
    counter = counter_for(provider, name)
    tools = count_tools(TOOLS, counter).tokens if given else 0
    return count_frame(counter, system=system, tools=given).tokens + tools


class Play:
    """One triple, played to its end; its requests get tools, or have those declared that are called. With `late`,
    outputs are curated from the middle of the history on: old ones then by decision."""

    def __init__(
        self,
        seed: int,
        aim: Target,
        oracle: ModuleType | None,
        tools: bool = True,
        orders: bool = False,
        late: bool = False,
    ) -> None:
        self.chance = random.Random(seed)
        self.tools = TOOLS if tools else ()
        self.aim, self.oracle = aim, oracle
        self.history = with_orders(longer_history(self.chance)) if orders else longer_history(self.chance)
        self.later = self.strategy = random_strategy(self.chance)
        if late:
            self.history = with_outputs(self.chance, self.history)
            steps = [step for step in self.strategy.steps if step != "curate"]
            self.strategy, self.later = (
                msgspec.structs.replace(self.strategy, steps=(*first, *steps)) for first in ((), ("curate",))
            )
        self.problems: list[str] = []
        self.tally: Counter[str] = Counter()
        self.known: dict[tuple[str, str], int] = {}
        self.sizes_known: dict[tuple[int, ...], tuple[Sequence[model.Line], model.Sizes]] = {}
        self.sound = not self.history.damages
        store = MemoryStore()
        store.create("s")
        for data in self.history.blobs.values():
            store.put_blob(data)
        self.store = store
        self.session = Session(store, store.info("s"))
        self.session.switch(aim)
        counter = counter_for(aim.provider, aim.model)
        size = sum(count_message(m, counter, store.get_blob).tokens for m in self.history.messages)
        self.budget = random_budget(self.chance, size + _fixed(aim.provider, aim.model, True, True))
        self.session.configure(budget=self.budget, strategy=self.strategy, tools=self.tools)
        self.before: list[Any] = []
        self.logged: list[Record] = self.session.history()

    # -- the independent sum ---------------------------------------------------------------------

    def count(self, message: Message) -> int:
        """Tokens of a message: pure, so counted once for each spelling of it."""
        key = self.aim.model, repr(message)
        if key not in self.known:
            counter = counter_for(self.aim.provider, self.aim.model)
            self.known[key] = count_message(message, counter, self.store.get_blob).tokens
        return self.known[key]

    def fixed(self, lines: Sequence[model.Line]) -> int:
        """Tokens of a request beside its messages."""
        fixed = _fixed(self.aim.provider, self.aim.model, bool(self.tools), self.built(lines).system)
        return fixed + THINKING * ("thinking" in self.aim.settings)

    def counts(self, *, system: bool = True) -> model.Counts:
        """How messages are counted, and tools that are declared beside system text or without."""
        counter = counter_for(self.aim.provider, self.aim.model)

        def declared(tools: Sequence[Tool]) -> int:
            bare, around = (count_frame(counter, system=system, tools=there).tokens for there in (False, bool(tools)))
            return around - bare + (count_tools(tools, counter).tokens if tools else 0)

        def at_once(message: Message) -> int:
            return count_at_once(message, counter, self.store.get_blob).tokens

        joined = at_once if joins_results(counter) else self.count
        return model.Counts(self.count, joined, None if self.tools else declared)

    @property
    def limit(self) -> int:
        counter = counter_for(self.aim.provider, self.aim.model)
        return int(self.budget.max_tokens / MARGINS[count_frame(counter, system=False, tools=False).certainty])

    def built(self, lines: Sequence[model.Line]) -> model.Sizes:
        """What each line takes in the request that shows them all; of the same lines, it is worked out once."""
        key = tuple(map(id, lines))
        if key not in self.sizes_known:
            self.sizes_known[key] = tuple(lines), self.sizes_of(lines)  # with the lines, as ids are used again
        return self.sizes_known[key][1]

    def sizes_of(self, lines: Sequence[model.Line]) -> model.Sizes:
        ways = plan(self.session.configuration, self.session.target or self.aim)
        view = self.request(lines).view
        system = any(one.message.role == "system" for one in view)
        return model.sizes_of(lines, view, ways.rules, self.counts(system=system))

    def request(self, lines: Sequence[model.Line]) -> Request:
        """The request that shows these lines."""
        ways = plan(self.session.configuration, self.session.target or self.aim)
        shown = [Shown(line.message, (line.record,), "summarised" if line.summary else "verbatim") for line in lines]
        return build(ways, shown, self.store.get_blob)

    def size(self, lines: Sequence[model.Line]) -> int:
        return self.fixed(lines) + sum(self.built(lines).tokens)

    def is_beyond(self, lines: Sequence[model.Line]) -> bool:
        """Whether these are too many to be all at hand: what is held counts as decisions left it, not curated."""
        held = self.fixed(lines) + sum(self.count(line.uncurated) for line in lines)
        return max(held, self.size(lines)) > IN_MEMORY

    def sizes(self, lines: Sequence[model.Line], *, beyond: bool = False) -> range:
        """What a decision may say of the size: of what is not at hand, being more than any view could hold, nobody
        knows what repair would add, or leave out. `beyond`: something is not, whatever is left of it now."""
        size = self.size(lines)
        if not (beyond or self.is_beyond(lines)):
            return range(size, size + 1)
        bare = self.fixed(lines) + sum(self.count(line.message) for line in lines)
        beside = [
            tokens - self.count(line.message) for line, tokens in zip(lines, self.built(lines).tokens, strict=True)
        ]
        if not self.sound:  # a result that is tied to a call at hand by damage alone is not fetched
            lost = Message("user", (ToolResult("", "", (model.UNKNOWN,)),))
            beside += [self.count(lost) for line in lines for part in line.message.parts if isinstance(part, ToolCall)]
        # What is not at hand is not curated, and files that were read again may be shown again.
        more = sum(max(0, self.count(line.uncurated) - self.count(line.message)) for line in lines)
        most = bare + sum(one for one in beside if one > 0) + more
        return range(bare + sum(one for one in beside if one < 0), most + 1)

    # -- playing ---------------------------------------------------------------------------------

    def wrong(self, law: str, what: str = "") -> None:
        self.problems.append(f"{law}: {what}"[:600])

    def run(self) -> list[str]:
        half = len(self.history.messages) // 2
        for i, message in enumerate(self.history.messages):
            if i == half and self.later is not self.strategy:
                self.strategy = self.later
                self.session.configure(strategy=self.later)
                self.logged = self.session.history()
            self.session.add(message)
            if self.chance.random() < 0.08:
                self.meddle()
            self.ask(closed=message.role == "assistant" and not any(isinstance(p, ToolCall) for p in message.parts))
            if len(self.problems) > 5:
                break
        return self.problems

    def meddle(self) -> None:
        """Something that a user does between two requests."""
        self.before = []
        what = self.chance.choice(
            ("pin", "pin", "clear", "undo", "undo", "compact", "keep", "fork", "switch", "rewind")
        )
        self.tally[what] += 1
        records = self.session.history()
        taken_back = [d for d in model.in_force(records).values() if d.action == "rewind"]
        numbers = [
            record.n
            for record in records
            if record.message is not None and not any(d.first <= record.n <= d.last for d in taken_back)
        ]
        if what == "pin" and numbers:
            self.session.pin(self.chance.choice(numbers))
        elif what == "clear" and self.chance.random() < 0.3:
            self.session.clear()
        elif what == "undo":
            self.undo()
        elif what in ("compact", "keep"):
            self.compact(self.chance.randint(1, 4) if what == "keep" else None)
        elif what == "fork":
            last = max(record.n for record in records if isinstance(record.body, Configuration))
            at = self.chance.randint(max(last, len(records) - 3), len(records))
            self.session = self.session.fork(f"fork-{self.tally[what]}", at=at)
        elif what == "rewind":
            self.rewind(records)
        elif what == "switch":
            self.elsewhere()
        self.logged = self.session.history()

    def undo(self) -> None:
        held = [n for n, d in model.in_force(self.session.history()).items() if d.action in model.SIZES]
        try:
            record = self.session.undo("compaction")
        except InputError:
            if held:
                self.wrong("undo", "refused, though there is something to take back")
            return
        if not held or not isinstance(record.body, Decision) or record.body.supersedes != held[-1]:
            self.wrong("undo", f"took back another decision than the last: {record.body}, {held}")

    def compact(self, keep: int | None) -> None:
        self.sizes_known.clear()
        lines = model.conversation(self.session.history())
        before = self.size(lines)
        try:
            done = self.session.compact(keep=keep)
        except BudgetError:
            return
        after = model.conversation(self.session.history())
        if done.after != self.size(after) or (done.decisions and done.after >= done.before):
            self.wrong("compact", f"says {done.before} -> {done.after}, is {before} -> {self.size(after)}")
        self.kept_what_stays(lines, after, self.session.history())

    def rewind(self, records: Sequence[Record]) -> None:
        said = [r.n for r in records if r.message is not None and r.message.role == "user"][1:]
        if said:
            first = self.chance.choice(said[-4:])
            self.store.append(self.session.id, [Draft(Decision("rewind", first, len(records), "rewound"))])

    def elsewhere(self) -> None:
        """A request for another target is for once and leaves nothing on record."""
        records = len(self.session.history())
        other = self.chance.choice([aim for aim in AIMS if aim != self.aim])
        if self.chance.random() < 0.5:
            self.aim = other
            self.session.switch(other)
            return
        try:
            made = self.session.request(other)
        except BudgetError:
            return
        if len(self.session.history()) != records:
            self.wrong("truth", "a request for another target left something on record")
        self.judge(made.body, other)

    # -- the laws --------------------------------------------------------------------------------

    def ask(self, *, closed: bool) -> None:
        self.sizes_known.clear()
        before = self.session.history()
        if before[: len(self.logged)] != self.logged:
            self.wrong("truth", "the log was rewritten")
        lines = model.conversation(before)
        made = self.attempt(self.session)
        log = self.session.history()
        new = [record.body for record in log[len(before) :]]
        if log[: len(before)] != before or not all(isinstance(b, Decision) and b.action in model.SIZES for b in new):
            self.wrong("truth", f"a request changed the log: {new}")
        decisions = [body for body in new if isinstance(body, Decision)]
        self.logged = log
        self.tally["requests"] += 1
        self.tally["decisions"] += len(decisions)
        self.tally["decisions to curate"] += sum(decision.action == "curate" for decision in decisions)
        self.tally["fingerprint"] += _fingerprint(made)
        thorough = bool(decisions) or self.chance.random() < 0.35  # the rest of the laws costs a request each
        again = Session(self.store, self.store.info(self.session.id)) if thorough else self.session
        if _gist(self.attempt(again)) != _gist(made) or self.store.info(self.session.id).records != len(log):
            self.wrong("determinism", "opened again, the session makes another request or decides again")
        if isinstance(made, BudgetError):
            self.tally["refused"] += 1
            self.refused(made, lines, before)
            if decisions:
                self.wrong("truth", "a refused request left decisions on record")
            return
        after = model.conversation(log) if len(log) > len(before) else lines
        self.tally["requests with curated outputs"] += any(line.decided is not None for line in after)
        if thorough:
            if self.sound and len(log) % 4 == 0:
                self.broken_down()
            self.as_derived(made, log, after)
            self.judge(made.body, self.aim)
        self.within(made, lines, after, before, thorough)
        self.begins_with_the_last(made, closed, bool(decisions))
        self.figures(lines, after, before, decisions)

    def broken_down(self) -> None:
        """What takes how much adds up to the whole."""
        shares, whole = self.session.window.breakdown().tokens, self.session.window.tokens
        if shares != whole:
            self.wrong("figures", f"broken down into {shares} tokens of {whole}")

    def attempt(self, session: Session) -> Any:
        try:
            return session.request()
        except BudgetError as error:
            return error

    def judge(self, request: dict[str, Any], aim: Target) -> None:
        if self.oracle is not None:
            self.tally["judged"] += 1
            for error in errors_of(self.oracle, aim, request):
                self.wrong("validity", error)

    def as_derived(self, made: Any, log: Sequence[Record], after: Sequence[model.Line]) -> None:
        """The request is that of the conversation which the log's decisions leave."""
        shown = [Shown(line.message, (line.record,), "summarised" if line.summary else "verbatim") for line in after]
        config = [record.body for record in log if isinstance(record.body, Configuration)][-1]
        expected = build(plan(config, made.target), shown, self.store.get_blob, fate_of(log))
        if unmarked(expected.body) != unmarked(made.body):
            self.wrong("view", "the request is not what the log's decisions leave of the conversation")
        if msgspec.json.decode(made.json()) != msgspec.json.decode(msgspec.json.encode(made.body)):
            self.wrong("view", "body and request differ")

    def refused(self, error: BudgetError, lines: Sequence[model.Line], log: Sequence[Record]) -> None:
        floor, alone = self.floor(lines, log), self.floor(self.staying(lines, log), log)
        if sum(floor.values()) <= self.limit:  # found out when all else had gone: an answer may come first then
            floor = alone
        whole = self.floor(self.curated(lines, log, whole=True), log)
        if error.floor == whole or error.floor == self.floor(
            self.curated(self.staying(lines, log), log, whole=True), log
        ):
            return  # with files that were read again in full, what must stay does not fit
        capped = self.strategy.max_history_turns is not None  # then some has gone before it was found out
        if error.limit != self.limit:
            self.wrong("budget", f"limit {error.limit}, should be {self.limit}")
        if sum(error.floor.values()) <= error.limit:
            self.wrong("budget", f"refused though it fits: {error.floor}, limit {error.limit}")
        if self.sound and self.strategy.max_history_images is None and error.floor != floor:
            least = {**floor, "the open turn": floor["the open turn"] - self.shorter(lines, log)}
            between = all(
                least[what] <= tokens <= max(floor[what], alone[what]) for what, tokens in error.floor.items()
            )
            if not capped or not between:
                self.wrong("budget", f"refused with {error.floor}, should be {floor}")

    def shorter(self, lines: Sequence[model.Line], log: Sequence[Record]) -> int:
        """Tokens by which outputs of the open turn that were cut before it was refused may be smaller than the most
        that they may take: their ends are of so many characters, which are no tokens."""
        stays = model.staying(lines, model.pins(log))
        there = [line for why, group in stays if why == "the open turn" for line in group]
        outputs = sum(1 for line in there for _ in model.outputs(line, self.count))
        return outputs * LEAST_CUT // 10

    def staying(self, lines: Sequence[model.Line], log: Sequence[Record]) -> list[model.Line]:
        """What cannot be left out."""
        stays = [line for why, group in model.staying(lines, model.pins(log)) if why for line in group]
        return self.curated(stays, log)

    def curated(self, lines: Sequence[model.Line], log: Sequence[Record], whole: bool = False) -> list[model.Line]:
        """The lines as they are curated if there are no others, with files that were read again shown `whole`."""
        curator = Curator(CurationRules(log), model.pins(log), also=model.batched(log), whole_reads=whole)
        return model.curated(lines, curator)

    def floor(self, lines: Sequence[model.Line], log: Sequence[Record]) -> dict[str, int]:
        fixed, counts, sizes = self.fixed(lines), self.counts(), self.built(lines)
        return model.floor_of(lines, model.pins(log), fixed, counts, sizes, self.strategy, self.limit)

    def within(
        self,
        made: Any,
        lines: Sequence[model.Line],
        after: Sequence[model.Line],
        log: Sequence[Record],
        thorough: bool,
    ) -> None:
        """A request is within its limit, and refused exactly when what must stay is not."""
        size = self.size(after)
        if size > self.limit:
            self.wrong("budget", f"{size} tokens, limit {self.limit}")
        sent = turnlog.count(made.body, self.aim.provider, model=self.aim.model).tokens if thorough else 0
        if sent > self.limit:
            if self.sound and after:  # an empty conversation is sent as a placeholder, beside system text and tools
                self.wrong("budget", f"{sent} tokens as sent, limit {self.limit}")
            self.tally["over_as_sent"] += 1
        if self.sound and sum(self.floor(lines, log).values()) > self.limit:
            if self.strategy.max_history_images is None:
                self.wrong("budget", f"not refused, though {self.floor(lines, log)} exceeds {self.limit}")
        self.kept_what_stays(lines, after, log)
        numbers = {line.record for line in after if not line.changed and line.decided is None}
        for record in log:
            if record.message is not None and record.n not in numbers:
                self.can_be_read(record)

    def kept_what_stays(self, lines: Sequence[model.Line], after: Sequence[model.Line], log: Sequence[Record]) -> None:
        """No pair is split, nothing that must stay has gone, nothing came from nowhere."""
        shown = {line.record: line for line in after}
        pinned = model.pins(log)
        for why, group in model.staying(lines, pinned):
            numbers = [line.record for line in group]
            here = [n for n in numbers if n in shown]
            if why in ("system text", "pinned messages") and not self.sound and self.size(lines) > IN_MEMORY:
                # Of a damaged log's calls and results around what is not at hand, only that text or message stays.
                numbers = [line.record for line in group if line.message.role == "system" or line.record in pinned]
                here = [n for n in numbers if n in shown]
            if why and len(here) < len(numbers) and (self.sound or why != "the open turn"):
                self.wrong("kept", f"{why}: records {numbers}, still shown are {here}")
            if self.sound and 0 < len(here) < len(numbers):
                self.wrong("pairs", f"records {numbers} are shown in part: {here}")
            for line in group:
                now = shown.get(line.record)
                allowed = {"": model.SIZES, "the open turn": ("cap", "images"), "system text": ("images",)}.get(
                    why, ("images",)
                )
                if now and now.changed - line.changed - set(allowed):
                    self.wrong("kept", f"record {line.record} ({why}) was changed: {now.changed}")
                if now and line.record in pinned and now.message != line.message:
                    self.wrong("kept", f"record {line.record} is pinned and was changed")
        if model.thumbnail(lines) is not None and self.strategy.max_history_images is not None:
            first = next((line for line in after if model.speaks(line)), None)
            if first is None or model.thumbnail(lines) not in first.message.parts:
                self.wrong("kept", "the thumbnail is gone")

    def can_be_read(self, record: Record) -> None:
        found = self.session.read_back(record.n)
        message = record.message
        assert message is not None
        for text in _texts(message):
            if text not in found:
                self.wrong("truth", f"record {record.n} cannot be read back: {text[:80]!r}")

    def begins_with_the_last(self, made: Any, closed: bool, decided: bool) -> None:
        """A request begins with the one before it, unless something was decided in between."""
        if decided:
            self.before = []
        sent = unmarked(made.body[plan(Configuration(), made.target).provider.conversation])
        if self.sound and sent[: len(self.before)] != self.before:
            self.wrong("prefix", f"changed at {_common(sent, self.before)} of {len(self.before)}")
        if closed:
            self.before = sent[:-1] if made.view[-1].treatment == "synthetic" else sent

    def figures(
        self,
        lines: Sequence[model.Line],
        after: Sequence[model.Line],
        log: Sequence[Record],
        decisions: Sequence[Decision],
    ) -> None:
        """What a decision says of itself is so."""
        said = self.size(lines)
        beyond = self.is_beyond(lines)
        for i, decision in enumerate(decisions):
            detail = decision.detail
            now = model.conversation(log, decisions[: i + 1])
            if detail["before"] not in (self.sizes(lines) if not i else (said,)):
                self.wrong("figures", f"before {detail['before']}, is {said}")
            if detail["after"] not in self.sizes(now, beyond=beyond):
                self.wrong("figures", f"after {detail['after']}, is {self.size(now)}")
            before = model.conversation(log, decisions[:i])
            same = detail["changes_from"]
            if [x for x in before if x.place < same] != [x for x in now if x.place < same]:
                self.wrong("figures", f"changes_from {same}, but something before it changed: {decision}")
            said = detail["after"]
        if self.size(after) > self.limit:
            self.wrong("budget", "over the limit")


def _texts(message: Message) -> list[str]:
    texts = [text_of(message)] if text_of(message) else []
    for part in message.parts:
        if isinstance(part, ToolCall):
            texts.append(part.raw_arguments)
        elif isinstance(part, ToolResult):
            texts += [inner.text for inner in part.parts if isinstance(inner, Text)]
    return texts


def unmarked(value: Any) -> Any:
    """A request without prompt-cache marks, a text in one spelling: marks say nothing of what is shown."""
    if isinstance(value, dict):
        bare = {key: unmarked(item) for key, item in value.items() if key != "cache_control"}
        for key in ("content", "system"):
            if isinstance(bare.get(key), str):
                bare[key] = [{"type": "text", "text": bare[key]}]
        return bare
    return [unmarked(item) for item in value] if isinstance(value, list) else value


def _gist(made: Any) -> Any:
    return made.floor if isinstance(made, BudgetError) else (made.json(), Counter(map(repr, made.edits)))


def _fingerprint(made: Any) -> int:
    """A number for what was made: added up, it is the same where all requests are, in whatever order."""
    said = repr(made.floor).encode() if isinstance(made, BudgetError) else made.json()
    return int.from_bytes(blake2b(said, digest_size=4).digest())


def _common(left: Sequence[Any], right: Sequence[Any]) -> int:
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), len(right))


def play(
    seed: int,
    aim: Target,
    oracle: ModuleType | None = None,
    tools: bool = True,
    orders: bool = False,
    late: bool = False,
) -> tuple[list[str], Counter[str]]:
    """What is wrong with the requests of one triple, and what was done in it."""
    played = Play(seed, aim, oracle, tools, orders, late)
    return [f"{seed} {aim.provider}: {one}" for one in played.run()], played.tally
