"""A result belongs to its own call, whatever ids, names and order a log has."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from hypothesis import example, given
from hypothesis import strategies as st

import turnlog
from judging import TARGETS, numbered
from turnlog.errors import BudgetError, InputError
from turnlog.log.messages import Message, Part, Text, ToolCall, ToolResult
from turnlog.log.records import Configuration, MessageRecord
from turnlog.log.store import Draft
from turnlog.models.target import Target
from turnlog.providers import provider
from turnlog.requests.build import build
from turnlog.requests.request import Request
from turnlog.requests.translate import plan
from turnlog.session.session import Session
from turnlog.session.state import Context
from turnlog.stores import MemoryStore
from turnlog.summarize.reading import TextFindings, read, texts_of
from turnlog.view.fold import select
from turnlog.view.tool_calls import calls_of
from turnlog.view.types import Shown

FOREIGN = "files.read"
"""A name that most providers do not accept, so that they are sent another one."""

SENT = f"files_read_{hashlib.sha256(FOREIGN.encode()).hexdigest()[:8]}"
"""That other name."""

NAMES: dict[str, frozenset[str]] = {
    "read": frozenset({"read"}),
    "delete": frozenset({"delete"}),
    FOREIGN: frozenset({FOREIGN, SENT}),
    SENT: frozenset({FOREIGN, SENT}),
    "use_tool": frozenset({"use_tool", "read"}),
    "": frozenset(),
}
"""The names of called tools, and the names that their results may have. A call of `use_tool` names `read`."""

IDS = ("c1", "c2", "")
At = tuple[int, int]


@dataclass
class Slot:
    """A call of the reference model: its place, and that of its result."""

    at: At
    call: ToolCall
    result: At | None = None


def is_of(result: ToolResult, call: ToolCall) -> bool:
    """Whether id and name of a result are those of a call, as far as they are there."""
    named = not result.name or not call.name or result.name in NAMES[call.name]
    return named and result.call_id in ("", call.id)


def model(messages: Sequence[Message]) -> dict[At, At]:
    """The result of each call that has one, found by looking at the whole history for each result.

    A result belongs to the newest message ahead of it that calls its tool: to the first call there without a result, or
    with one that was recorded ahead of the call; else, if it is real, to the first with a synthetic one. A result that
    belongs to no call is that of the next call of its id and tool in the same turn.
    """
    slots: list[Slot] = []
    strays: list[At] = []

    def result_at(at: At) -> ToolResult:
        part = messages[at[0]].parts[at[1]]
        assert isinstance(part, ToolResult)
        return part

    for i, message in enumerate(messages):
        if message.role == "user" and not any(isinstance(part, ToolResult) for part in message.parts):
            strays.clear()
        for j, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                own = [at for at in strays if is_of(result_at(at), part)]
                slots.append(Slot((i, j), part, own[-1] if own else None))
                strays = [at for at in strays if at not in own[-1:]]
            elif isinstance(part, ToolResult):
                fitting = [slot for slot in slots if is_of(part, slot.call)]
                newest = [slot for slot in fitting if slot.at[0] == fitting[-1].at[0]]
                if part.name:
                    newest.sort(key=lambda slot: not slot.call.name)
                free = [slot for slot in newest if slot.result is None or slot.result < slot.at]
                if not part.synthetic:
                    free += [slot for slot in newest if slot.result and result_at(slot.result).synthetic]
                if free:
                    free[0].result = i, j
                elif not fitting and part.call_id:
                    key = part.call_id, part.name
                    strays = [at for at in strays if (result_at(at).call_id, result_at(at).name) != key]
                    strays.append((i, j))
    return {slot.at: slot.result for slot in slots if slot.result is not None}


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Conversations in which ids and names come again, and results are late, early, doubled, missing or of others."""
    calls = st.tuples(st.sampled_from(IDS), st.sampled_from(sorted(NAMES)))
    results = st.tuples(st.sampled_from(IDS), st.sampled_from([*sorted(NAMES)]), st.integers(0, 5).map(bool))
    step = st.one_of(
        st.lists(calls, min_size=1, max_size=3).map(lambda drawn: ("calls", drawn)),
        st.lists(results, min_size=1, max_size=3).map(lambda drawn: ("results", drawn)),
        st.lists(results, min_size=1, max_size=3).map(lambda drawn: ("results", drawn)),
        st.sampled_from([("word", []), ("answer", [])]),
    )
    return [*_messages(draw(st.lists(step, min_size=1, max_size=10)))]


def _messages(steps: Sequence[tuple[str, Sequence[tuple[object, ...]]]]) -> Iterator[Message]:
    yield Message("user", (Text("Begin."),))
    number = 0
    for kind, drawn in steps:
        parts: list[Part] = []
        for one in drawn:
            number += 1
            call_id, name = str(one[0]), str(one[1])
            if kind == "calls":
                inner = {"name": "read", "arguments": {"k": number}}
                parts.append(ToolCall(call_id, name, inner if name == "use_tool" else {"k": number}))
            else:
                parts.append(ToolResult(call_id, name, (Text(f"<r{number}>"),), synthetic=not one[2]))
        number += 1
        said = {"word": "user", "answer": "assistant"}.get(kind)
        if said:
            yield Message("user" if said == "user" else "assistant", (Text(f"Word {number}."),))
        else:
            yield Message("assistant" if kind == "calls" else "user", tuple(parts))


def sent_pairs(aim: Target, request: Request) -> dict[int, str]:
    """The text of the result of each call in a body, by the number in the call's arguments. A result in a body is that
    of the nearest call of its id."""
    pairs: dict[int, str] = {}
    calls: dict[str, int] = {}
    for message in provider(aim.provider).parse(request.body).messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                found = re.search(r'"k":\s*(\d+)', part.raw_arguments)
                assert found is not None
                calls[part.id] = int(found[1])
            elif isinstance(part, ToolResult):
                pairs[calls.pop(part.call_id)] = "".join(one.text for one in part.parts if isinstance(one, Text))
    return pairs


def _number(call: Part) -> int:
    assert isinstance(call, ToolCall)
    return int(call.arguments.get("k") or call.arguments["arguments"]["k"])


CALL, OTHER = ToolCall("c1", "delete", {"k": 1}), ToolCall("c1", "read", {"k": 2})
KILLED = [
    Message("assistant", (CALL,)),
    Message("user", (Text("Well?"),)),
    Message("assistant", (OTHER,)),
    Message("user", (ToolResult("c1", "read", (Text("<r3>"),)),)),
    Message("user", (ToolResult("c1", "", (Text("<r4>"),)),)),
]


@given(messages=histories(), aim=st.sampled_from(TARGETS), asked=st.sets(st.integers(1, 10), max_size=2))
@example(messages=KILLED, aim=TARGETS[0], asked={3})
@example(messages=KILLED, aim=TARGETS[-1], asked={5})
def test_a_result_is_shown_with_its_own_call(messages: list[Message], aim: Target, asked: set[int]) -> None:
    """A model was told that what it asked of one tool had been answered with what another one said. Or a result was
    left out of a request that did not say so, or the living session paired other ones than a session opened again."""
    expected = model(messages)
    store = MemoryStore()
    store.create("s")
    context, shown = Context(store, "s"), []
    for message in messages:
        (record,) = store.append("s", [Draft(MessageRecord(message))])
        context.take([record])
        shown.append(Shown(message, (record.n,)))
        if record.n in asked:
            context.request(aim)
    made = context.request(aim)
    whole = build(plan(Configuration(), aim), shown, store.get_blob)
    assert made.body == whole.body
    assert json.loads(made.json()) == whole.body
    assert Counter(map(repr, made.edits)) == Counter(map(repr, whole.edits))

    texts = dict(_results(messages))
    sent = sent_pairs(aim, whole)
    wanted = {_number(messages[i].parts[j]): texts[at] for (i, j), at in expected.items()}
    everything = [_number(part) for message in messages for part in message.parts if isinstance(part, ToolCall)]
    assert sorted(sent) == everything
    assert {k: text for k, text in sent.items() if text.startswith("<r")} == wanted
    left = sorted(at[0] + 1 for at in texts if at not in expected.values())
    told = [edit for edit in whole.edits if edit.kind in ("orphan", "duplicate")]
    assert sorted(edit.records[0] for edit in told) == left

    infos = {(info.record, _number(info.call)): info.result for info in calls_of(store.read("s"))}
    places = {(i + 1, _number(messages[i].parts[j])): at[0] + 1 for (i, j), at in expected.items()}
    assert {key: result for key, result in infos.items() if result} == places


@given(messages=histories())
@example(messages=KILLED)
def test_a_summary_reads_a_result_with_its_own_call(messages: list[Message]) -> None:
    """A digest said of one command what another one had put out."""
    said = read(numbered(messages), lambda message, _: [TextFindings() for _ in texts_of(message)])
    calls = {one.part.parts[0]: one for one in said if isinstance(one.part, ToolResult)}
    for (i, j), at in model(messages).items():
        result = messages[at[0]].parts[at[1]]
        assert isinstance(result, ToolResult)
        if at > (i, j):
            assert calls[result.parts[0]].asked is messages[i].parts[j]


class Life:
    """A session whose calls leave the view, and what belongs to what in it.

    `calls` are the calls on record with their numbers, oldest first. `own` are the texts of the results of each call,
    `early` those of results whose call may follow. Such results of earlier turns are `older`: a call may show them
    (`may`) if the user's message in between is taken back.
    """

    def __init__(self, aim: Target, budget: int | None) -> None:
        self.store = MemoryStore()
        self.session = turnlog.open("s", store=self.store, target=aim, budget=budget)
        self.calls: list[tuple[ToolCall, int]] = []
        self.own: dict[int, list[str]] = {}
        self.may: dict[int, list[str]] = {}
        self.early: dict[tuple[str, str], str] = {}
        self.older: dict[tuple[str, str], list[str]] = {}
        self.n = 0

    def step(self, kind: str, number: int) -> None:
        """One step; `number` picks what it is about. What is refused with a reason changes nothing."""
        self.n += 1
        with suppress(InputError, BudgetError):
            self._step(kind, number)

    def _step(self, kind: str, number: int) -> None:
        session, key = self.session, (("c1", "c2")[number % 2], ("read", "delete")[number // 2 % 2])
        match kind:
            case "word":
                session.user(f"Word {self.n}. " * (1, 300)[number % 2])
                for said, text in self.early.items():
                    self.older.setdefault(said, []).append(text)
                self.early.clear()
            case "answer":
                session.assistant(f"Answer {self.n}. " * (1, 300)[number % 2])
            case "call":
                call = ToolCall(*key, {"k": self.n})
                session.add(Message("assistant", (call,)))
                self.calls.append((call, self.n))
                self.may[self.n] = [*self.older.get(key, [])]
                self.own[self.n] = [self.early.pop(key)] if key in self.early else []
            case "result":
                self._result(key, by_id=number % 3 == 0)
            case "clear":
                session.clear()
            case "rewind":
                session.rewind(turns=1 + number % 2)
            case "compact":
                session.compact(keep=1 + number % 3)
            case "undo":
                session.undo()
            case "request":
                session.request()
            case "open anew":
                session.close()
                self.session = turnlog.open("s", store=self.store)

    def _result(self, key: tuple[str, str], *, by_id: bool) -> None:
        text = f"<r{self.n}>"
        newest = next((made for made in reversed(self.calls) if (made[0].id, made[0].name) == key), None)
        if newest is not None and by_id:
            self.session.tool_result(newest[0], text)
        else:
            self.session.add(Message("user", (ToolResult(*key, (Text(text),)),)))
        if newest is not None:
            self.own[newest[1]].append(text)
        else:
            self.early[key] = text


STEPS = ("word", "answer", "call", "call", "call", "result", "result", "result", "clear", "rewind", "compact", "undo")
LIVES = st.lists(st.tuples(st.sampled_from((*STEPS, "request", "open anew")), st.integers(0, 11)), max_size=20)
GONE = [("word", 0), ("call", 0), ("clear", 0), ("word", 0), ("result", 0), ("call", 0)]


@given(steps=LIVES, aim=st.sampled_from(TARGETS), budget=st.sampled_from((None, 6_000)))
@example(steps=GONE, aim=TARGETS[0], budget=None)
@example(steps=[*GONE[:2], ("rewind", 0), *GONE[3:]], aim=TARGETS[-1], budget=None)
@example(steps=[*GONE[:2], *[("word", 0)] * 4, ("compact", 1), *GONE[3:]], aim=TARGETS[0], budget=None)
@example(  # the newer call is gone, and the older one of its id waits
    steps=[*GONE[:2], ("word", 0), ("call", 0), ("rewind", 0), ("result", 0)], aim=TARGETS[0], budget=None
)
@example(steps=[*GONE[:4], ("result", 0), ("undo", 0)], aim=TARGETS[0], budget=None)
def test_a_result_is_of_no_other_call_when_its_own_has_left(
    steps: list[tuple[str, int]], aim: Target, budget: int | None
) -> None:
    """After clear(), rewind() or a compaction, a late result of a call that was gone was shown with another call of the
    same id; or what a session showed was not what it showed when it was opened again, or what the log says."""
    life = Life(aim, budget)
    life.session.user("Begin.")
    for kind, number in steps:
        life.step(kind, number)
    life.session.user("Go on.")
    try:
        made = life.session.request()
    except BudgetError:
        return
    again = Session(life.store, life.store.info("s")).request()
    assert (made.json(), made.edits, made.losses) == (again.json(), again.edits, again.losses)

    sent = {k: text for k, text in sent_pairs(aim, made).items() if text.startswith("<r")}
    assert all(text in life.own[k] + life.may[k] for k, text in sent.items())
    shown = select(list(life.store.read("s")))[0]
    whole = sent_pairs(aim, build(plan(Configuration(), aim), shown, life.store.get_blob))
    assert {k: text for k, text in whole.items() if text.startswith("<r")} == sent
    texts = {text for _, text in _results([one.message for one in shown])}
    assert sent.keys() >= {k for k in whole if texts.intersection(life.own[k])}


def test_a_result_names_the_call_that_a_long_session_has_no_longer_in_memory() -> None:
    """In a session that is too long for its memory, a late result was shown with a later call of the same id."""
    life = Life(TARGETS[0], None)
    life.session.configure(budget=6_000)
    between = [("word", 0), ("answer", 0)] * 90 + [("word", 1), ("answer", 1)] * 20
    for kind, number in [("word", 0), ("call", 0), *between, ("word", 0), ("result", 0), ("call", 0)]:
        life.step(kind, number)
    made = life.session.request()
    told = [(edit.kind, edit.detail) for edit in made.edits if edit.kind in ("orphan", "moved")]
    assert told == [("orphan", "result of 'c1' left out: its call, in record 4, is not shown")]
    assert not any(text.startswith("<r") for text in sent_pairs(TARGETS[0], made).values())
    again = Session(life.store, life.store.info("s")).request()
    assert (made.json(), made.edits, made.losses) == (again.json(), again.edits, again.losses)


def _results(messages: Sequence[Message]) -> Iterator[tuple[At, str]]:
    """The place and the text of each result."""
    for i, message in enumerate(messages):
        for j, part in enumerate(message.parts):
            if isinstance(part, ToolResult):
                yield (i, j), "".join(one.text for one in part.parts if isinstance(one, Text))
