"""What each preset keeps of a small conversation that has become too large: exactly what is shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from turnlog.config.settings import Settings
from turnlog.errors import InputError
from turnlog.log.budget import PRESETS, Budget, Strategy, read_strategy
from turnlog.log.messages import Media, Message, Text, ToolCall, ToolResult
from turnlog.models.target import target
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.summarize import Digest, Material, Summarizer
from turnlog.view.compaction.steps import STEPS

CHAT = target("openai-chat", "gpt-4o")


class Numbers:
    """A summarizer that says which records it was given, and what it was told of before."""

    id = "numbers/1"

    def summarize(self, material: Material, /) -> str:
        given = ",".join(str(shown.records[0]) for shown in material.messages)
        return f"of {given}" + (" and more" if material.previous else "")


class FirstWords:
    """A summarizer that uses all of the room."""

    id = "first-words/1"

    def summarize(self, material: Material, /) -> str:
        return " so" * (material.target - 1)


def opened(strategy: Strategy | str, budget: int, summarizer: Summarizer | None = None) -> Session:
    store = MemoryStore()
    store.create("s")
    session = Session(store, store.info("s"), Settings(summarizer=summarizer or Numbers()))
    session.switch(CHAT)
    session.configure(budget=budget, strategy=strategy)
    session.system("rules")  # record 3
    return session


def talk(session: Session, turns: range, *, size: int = 50, output: int = 120) -> None:
    """Turns of a question, in every odd one a call with its result, and an answer."""
    for n in turns:
        session.user(_long(f"question {n}", size))
        if n % 2:
            call = ToolCall(f"call_{n}", "read", arguments={"path": f"file_{n}.py"})
            session.add(Message("assistant", (call,)))
            session.tool_result(call, _long(f"output {n}", output))
        session.assistant(_long(f"answer {n}", size))


def _long(word: str, size: int) -> str:
    return f"{word}\n" + " so" * size


def shown(session: Session) -> list[str]:
    """The request's messages, each by its first line (a summary whole), calls by their ids."""
    found = []
    for message in session.request().body["messages"]:
        content: Any = message.get("content")
        text = content if isinstance(content, str) else ""
        lines = text.split("\n")
        told = len(lines) > 1 and ("ummary" in lines[0])
        found.append(
            " ".join([" | ".join(lines) if told else lines[0], *(c["id"] for c in message.get("tool_calls", ()))])
        )
    return [line.strip() for line in found]


TURN_5 = ["question 5", "call_5", "output 5", "answer 5"]
TURN_6 = ["question 6", "answer 6"]


def numbers(first: int, last: int) -> str:
    return ",".join(map(str, range(first, last + 1)))


def told(first: int, last: int, given: str = "") -> str:
    """A summary's message: of the records from `first` to `last`, made of those in `given`."""
    head = f"[Summary of records {first} to {last} of this conversation, which are left out here.]"
    return f"{head} | of {given or numbers(first, last)}"


def masked(n: int, record: int) -> str:
    """The line that stands for an output."""
    return f'[Result of read({{"path":"file_{n}.py"}}): 369 characters left out, kept as record {record}]'


def test_an_output_is_masked_with_its_own_call() -> None:
    """The line named the first call of that id: what one file held seemed to be what another one did."""
    session = turnlog.open("s", store=MemoryStore(), target=target("openai-chat", "gpt-4o"))
    session.configure(budget=600, strategy="mask")
    session.user("Look.")
    session.add(Message("assistant", tuple(ToolCall("c1", "read", {"path": path}) for path in "ab")))
    for n in range(2):
        session.add(Message("user", (ToolResult("c1", "read", (Text(_long(f"output {n}", 300)),)),)))
    session.assistant("Seen.")
    for n in range(3):
        session.user(_long(f"question {n}", 120))
        session.assistant("Yes.")
    masked_as = [line for line in shown(session) if line.startswith("[Result of")]
    assert [line.partition(":")[2].partition("}")[0] for line in masked_as] == ['"a"', '"b"']


# The conversation: record 3 system text, then turn 1 in records 4 to 7, 2 in 8 and 9, 3 in 10 to 13, 4 in 14 and 15,
# 5 in 16 to 19, 6 in 20 and 21, and the open question in 22.
GOLDEN: dict[str, list[str]] = {
    # the oldest left out, far below the limit; the task stays
    "sliding": ["rules", "question 1", "answer 5", *TURN_6, "question last"],
    # outputs first, then answers; the user's own words last
    "priority": [
        *("rules", "question 1", "question 2", "question 3", "question 4", "answer 4", "question 5", "answer 5"),
        *(*TURN_6, "question last"),
    ],
    # every call is still there, with a line for its output
    "mask": [
        *("rules", "question 1", "call_1", masked(1, 6), "answer 1", "question 2", "answer 2"),
        *("question 3", "call_3", masked(3, 12), "answer 3", "question 4", "answer 4"),
        *("question 5", "call_5", masked(5, 18), "answer 5", *TURN_6, "question last"),
    ],
    # no image and no giant: the oldest leave
    "images": ["rules", "question 1", "answer 4", *TURN_5, *TURN_6, "question last"],
    "cap": ["rules", "question 1", "answer 4", *TURN_5, *TURN_6, "question last"],
    "summarise": ["rules", "question 1", told(5, 18), "answer 5", *TURN_6, "question last"],
    # the beginning, the middle told, the newest as it was
    "auto": ["rules", "question 1", told(5, 21), "question last"],
    # the user's newest words, the summary behind them
    "codex": [
        *("rules", "question 1", "question 4", "question 5", "question 6"),
        *(told(5, 21, "5,6,7,8,9,10,11,12,13,15,17,18,19,21"), "question last"),
    ],
    # acts at half of the window; the newest 30 % stay
    "gemini-cli": ["rules", "question 1", told(5, 16), *TURN_5[1:], *TURN_6, "question last"],
    # the last five turns, and every output with its call
    "spec": [
        *("rules", "question 1", "Previous conversation summary: | of 7,8,9", "call_1", "output 1"),
        *("question 3", "call_3", "output 3", "answer 3", "question 4", "answer 4", *TURN_5, *TURN_6, "question last"),
    ],
}


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_what_a_preset_keeps(name: str) -> None:
    """Each keeps what its name promises; a change here changes what users' models see."""
    # 20 for the declaration of `read`; `spec` keeps what it promises where half of its summary and more fits beside
    session = opened(name, 2_450 if name == "spec" else 1_020)
    talk(session, range(1, 3), size=400 if name == "spec" else 50)
    talk(session, range(3, 7))
    session.user("question last")
    assert shown(session) == GOLDEN[name]


@pytest.mark.parametrize(
    "turns, kept",
    [
        (8, None),
        (12, ["rules", "question 1", "call_1", "output 1", "answer 1", told(8, 39), "question last"]),
        (
            60,
            [
                *("rules", "question 1", told(5, 171), "question 57", "call_57", "output 57", "answer 57"),
                *("question 58", "answer 58", "question 59", "call_59", "output 59", "answer 59"),
                *("question 60", "answer 60", "question last"),
            ],
        ),
    ],
)
def test_graded_does_more_the_longer_the_conversation(turns: int, kept: list[str] | None) -> None:
    """Under 5,000 tokens everything stays, to 15,000 the first and the last exchange, above it the last five."""
    session = opened("graded", 50_000)
    talk(session, range(1, turns + 1), size=200, output=300)
    session.user("question last")
    if kept is None:
        assert len(shown(session)) == 2 + 2 * turns + turns  # every second turn has two messages more
    else:
        assert shown(session) == kept


def test_cap_keeps_head_and_tail_of_a_giant_of_the_open_turn() -> None:
    """The newest output is what the model works with: its ends and where to read the rest."""
    session = opened("cap", 3_000)
    session.user("look")
    session.add(Message("assistant", (ToolCall("call_1", "read", arguments={}),)))
    output = "".join(f"line {n} 数据🙂\n" for n in range(2_000))
    record = session.tool_result("call_1", output).n
    text = session.request().body["messages"][-1]["content"]
    head, mark, tail = (
        text.partition("\n[... ")[0],
        text.split("\n[... ")[1].split(" ...]\n")[0],
        text.split(" ...]\n")[1],
    )
    gone = len(output) - len(head) - len(tail)
    lines = output[len(head) : len(output) - len(tail)].count("\n")
    assert output.startswith(head) and output.endswith(tail) and head and tail
    assert mark == f"{gone:,} characters, {lines:,} line breaks of record {record} left out"
    assert session._context.counter.text(text) <= 300
    assert session.read_back(record) == output


def test_images_keeps_the_thumbnail_the_pinned_and_the_newest() -> None:
    """The first image is what the user asked about; the newest are what the model sees now."""
    session = opened(Strategy(max_history_images=1), 100_000)
    pictures = [Media("image", url=f"https://example.org/{n}.png") for n in range(1, 7)]
    session.add(Message("user", (Text("compare"), pictures[0], pictures[1])))
    for n, picture in enumerate(pictures[2:], start=3):
        session.assistant(f"seen {n - 1}")
        said = session.add(Message("user", (Text(f"and {n}"), picture)))
        if n == 4:
            session.pin(said.n)
    session.add(Message("assistant", (ToolCall("call_1", "shoot", arguments={}),)))
    last = Media("image", url="https://example.org/7.png")
    session.add(Message("user", (ToolResult("call_1", "shoot", (Text("done"), last)),)))
    session.request()
    parts = [message.message.parts for message in session.view() if message.message.role == "user"]
    gone = [Text(f"[Image from Step {n} removed to save context]") for n in range(8)]
    assert parts == [
        (Text("compare"), pictures[0], gone[2]),
        (Text("and 3"), gone[3]),
        (Text("and 4"), pictures[3]),
        (Text("and 5"), gone[5]),
        (Text("and 6"), gone[6]),
        (ToolResult("call_1", "shoot", (Text("done"), last)),),
    ]


@pytest.mark.slow
def test_a_second_summary_at_the_end_spares_the_newest_word() -> None:
    """A summary stands at the place of the record behind it; that record must not leave with it."""
    session = opened("codex", 900)
    session.user("the task")
    for n in range(12):
        talk(session, range(2 * n, 2 * n + 1), output=30)
        session.user(f"next {n}")
        for step in range(6):
            session.add(Message("assistant", (ToolCall(f"c{n}-{step}", "read", arguments={}),)))
            session.tool_result(f"c{n}-{step}", _long("out", 60))
            assert f"next {n}" in shown(session)


def test_results_that_a_strategy_keeps_leave_last_and_are_named() -> None:
    """`spec` that drops what it says it keeps, without a word, fails here: the decision says that results left."""
    session = opened("spec", 2_400)
    for n in range(1, 40):
        talk(session, range(n, n + 1), output=20 if n < 14 else 120)
        session.request()
    left = ["results that the strategy keeps are among them" in one.decision.why for one in session.explain().rulings]
    assert not left[0] and any(left)


@pytest.mark.slow
@pytest.mark.parametrize("output, size", [(50, 30), (200, 30), (100, 200), (600, 30)])
def test_spec_ends_at_seventy_percent_of_its_budget(output: int, size: int) -> None:
    """The turns and results that `spec` keeps, or what can never leave, filled more of the window than its goal says:
    the next decision came too soon."""
    session = opened("spec", 8_000)
    session.user(_long("the task", 400))
    ends: list[int] = []
    known = 0
    for n in range(1, 61):
        talk(session, range(2 * n + 1, 2 * n + 2), size=size, output=output)
        tokens = session.request().tokens
        if (made := len(session.explain().rulings)) > known:
            known = made
            ends.append(tokens)
    assert ends and max(ends) <= 0.7 * 8_000, ends


@pytest.mark.slow
@pytest.mark.parametrize("output", [120, 200, 280, 330, 400])
def test_turns_that_nearly_fill_the_window_are_not_summarised_at_every_turn(output: int) -> None:
    """Where the five turns that `spec` keeps left the view at its limit, each turn began with a decision that gained
    next to nothing, as often as not four times in a row, and nothing was ever read from the prompt cache."""
    session = opened("spec", 4_000, FirstWords())
    made = []
    for n in range(60):
        talk(session, range(2 * n + 1, 2 * n + 2), size=20, output=output)
        session.request()
        made.append(len(session.explain().rulings))
    assert all(later - earlier < 3 for earlier, later in zip(made, made[3:], strict=False)) and made[-1] <= 30


@pytest.mark.slow
def test_beside_much_that_is_pinned_not_every_request_is_compacted() -> None:
    """`auto` filled the view to its limit where much was pinned, and what is pinned does not leave: nearly each step of
    an agent was another summary. So was one made ahead of need, and paid for, that told of one turn more."""
    session = opened("auto", 4_000, FirstWords())
    talk(session, range(1, 2))
    for n in range(3, 15, 2):
        talk(session, range(n, n + 1), size=20, output=300)
        session.pin(session.history()[-3].n)
    made = []
    for n in range(15, 65):
        talk(session, range(2 * n + 1, 2 * n + 2), size=20, output=50)
        session.request()
        made.append(len(session.explain().rulings))
    assert all(later - earlier < 3 for earlier, later in zip(made, made[3:], strict=False)) and made[-1] <= 25


@pytest.mark.slow
@pytest.mark.parametrize("name", ["auto", "codex", "gemini-cli", "graded", "spec", "summarise"])
@pytest.mark.parametrize("budget", [4_000, 8_000])
def test_an_order_outlives_the_turn_in_which_it_was_given(name: str, budget: int) -> None:
    """Turns with large outputs left no room for the five that `spec` keeps, so nothing was ever summarised: the oldest
    went, among them what the user had asked for once and for all."""
    session = opened(name, budget, Digest())
    session.user("Port billing to Decimal.")
    for n in range(40):
        session.user("From now on, never push to main." if n == 5 else "Go on.")
        for i in range(2):
            call = ToolCall(f"call_{n}_{i}", "bash", {"q": f"sed -n 1,80p mod_{n}_{i}.py"})
            session.add(Message("assistant", (call,)))
            session.request()
            session.tool_result(call, "\n".join(f"mod_{n}_{i}.py:{k}: def ledger_{n * 20 + k}(tax)" for k in range(20)))
        session.assistant(f"Done with mod_{n}.")
        assert n < 5 or "never push to main" in session.request().json().decode()


def test_the_page_has_every_field_of_a_strategy() -> None:
    """A knob that nobody finds, or whose default is another than docs/strategies.md says."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "strategies.md").read_text("utf-8")
    table = page.split("| field of `Strategy` |")[1].split("\n\n")[0]
    told: dict[str, str] = {}
    for names, default in re.findall(r"(?m)^\| (`.+?`) \| (.+?) \|", table):
        told |= dict.fromkeys(re.findall(r"`(\w+)`", names), default)
    words = {None: "none", True: "true", False: "false", "": '`""`', (): "`()`"}
    fields = msgspec.structs.fields(Strategy)
    assert told == {
        one.name: f"{one.default:,}"
        if type(one.default) in (int, float)
        else words.get(one.default, f"`{one.default}`")
        for one in fields
    }


@pytest.mark.parametrize("name", PRESETS)
def test_one_giant_output_is_refused_by_no_preset(name: str) -> None:
    """With a preset without the step `cap`, one giant output would make every later request of the session fail. It
    must be cut no further than necessary, and nothing else may be cut."""
    preset = PRESETS[name]
    session = opened(preset, 1_000)
    session.user("the task")
    session.add(Message("assistant", (ToolCall("c1", "read", arguments={}),)))
    session.tool_result("c1", _long("out", 3_000))
    made = session.request()
    assert [edit.kind for edit in made.edits if edit.kind != "tool"] == ["cap"]
    text = made.body["messages"][-1]["content"]
    assert "characters" in text and (session.window.tokens > 600 or "cap" in preset.steps)


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda preset: preset.name)
def test_what_a_budget_says_counts_before_what_a_strategy_has(preset: Strategy) -> None:
    """A goal that somebody sets would have no effect with the default strategy, and nobody would say so."""
    own = preset.applied_to(Budget(max_tokens=10_000, trigger=0.5, goal=0.2))
    assert own == Budget(max_tokens=10_000, trigger=0.5, goal=0.2)
    left_out = preset.applied_to(Budget(max_tokens=10_000))
    assert left_out == Budget(max_tokens=10_000, trigger=preset.trigger, goal=preset.goal)
    marks = left_out.marks(100_000, 0, 1_000)
    trigger = 10_000 if preset.trigger is None else preset.trigger
    assert marks.trigger == (trigger if trigger > 1 else 10_000 * trigger)
    share = 0.5 if preset.goal is None else preset.goal
    assert marks.goal == 1_000 + int((marks.trigger - 1_000) * share)


@given(st.integers(0, 200_000), st.integers(0, 200_000), st.floats(0.01, 1), st.sampled_from((1.0, 1.1)))
def test_a_whole_goal_is_a_share_of_the_trigger(limit: int, floor: int, goal: float, scale: float) -> None:
    """A goal that what can never leave lifts, so that the next decision comes soon; or one below what can leave."""
    marks = Budget(max_tokens=limit, goal=goal).marks(1_000_000, 0, floor, scale=scale, whole=True)
    room = max(0, marks.trigger - floor)
    assert marks.goal <= marks.trigger
    assert marks.goal == min(marks.trigger, max(int(marks.trigger * goal), floor + room // 2))


def test_every_step_has_a_name_in_strategies_and_every_name_a_step() -> None:
    """A strategy could name a step that nobody carries out, or a step could not be named."""
    for name in STEPS:
        assert read_strategy(Strategy(steps=(name,))).steps == (name,)
    with pytest.raises(InputError) as raised:
        read_strategy(Strategy(steps=("else",)))
    assert sorted(str(raised.value).rpartition("there are ")[2].split(", ")) == sorted(STEPS)


@pytest.mark.parametrize(("budget", "most"), [(300, 100), (500, 150), (2_000, 200)])
def test_a_summary_of_a_large_budget_may_be_larger(budget: int, most: int) -> None:
    """A summary that stays as small as that of a small budget wastes the room of a large one; one without a bound costs
    what no request saves again."""
    targets: list[int] = []

    class Asked(FirstWords):
        def summarize(self, material: Material, /) -> str:
            targets.append(material.target)
            return super().summarize(material)

    strategy = Strategy("mine", ("summarise",), summary=0.6, summary_tokens=100, summary_large=0.3, tail=0.05)
    session = opened(strategy, budget, Asked())
    talk(session, range(1, 2 + budget // 60))
    session.request()
    assert most - 30 <= max(targets) <= most  # the heading takes part of it
