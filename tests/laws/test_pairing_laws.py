"""A result belongs to its own call, whatever ids, names and order a log has."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hypothesis import example, given
from hypothesis import strategies as st

from judging import TARGETS, numbered
from turnlog.log.messages import Message, Part, Text, ToolCall, ToolResult
from turnlog.log.records import Configuration, MessageRecord
from turnlog.log.store import Draft
from turnlog.models.target import Target
from turnlog.providers import provider
from turnlog.requests.build import build
from turnlog.requests.request import Request
from turnlog.requests.translate import plan
from turnlog.session.state import Context
from turnlog.stores import MemoryStore
from turnlog.summarize.reading import Note, read, texts_of
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
    said = read(numbered(messages), lambda message, _: [Note() for _ in texts_of(message)])
    calls = {one.part.parts[0]: one for one in said if isinstance(one.part, ToolResult)}
    for (i, j), at in model(messages).items():
        result = messages[at[0]].parts[at[1]]
        assert isinstance(result, ToolResult)
        if at > (i, j):
            assert calls[result.parts[0]].asked is messages[i].parts[j]


def _results(messages: Sequence[Message]) -> Iterator[tuple[At, str]]:
    """The place and the text of each result."""
    for i, message in enumerate(messages):
        for j, part in enumerate(message.parts):
            if isinstance(part, ToolResult):
                yield (i, j), "".join(one.text for one in part.parts if isinstance(one, Text))
