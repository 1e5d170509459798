"""The loop: it asks, runs tools side by side, asks people, stops at limits, and goes on wherever it was killed."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import turnlog
from turnlog import ToolCall, agent
from turnlog.agent import AgentEvent, Question
from turnlog.errors import InputError, RateLimited, RequestTooLong
from turnlog.log.messages import Message, ToolResult, text_of
from turnlog.log.records import Configuration, MessageRecord, Record, ToolStarted
from turnlog.log.store import Draft
from turnlog.requests.request import Request
from turnlog.runners import DEMO_MODEL, ScriptedRunner
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

CHAT = turnlog.target("openai-chat", "gpt-4o")
PROVIDERS = ("openai-chat", "openai-responses", "anthropic", "google", "google-interactions")


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    """A store in memory."""
    made = MemoryStore()
    yield made
    made.close()


def opened(store: MemoryStore, provider: str = "openai-chat") -> Session:
    """The session of these tests."""
    return turnlog.open("s", store=store, target=turnlog.target(provider, DEMO_MODEL))


class Shop:
    """Tools with effects, and who was asked about them."""

    def __init__(self, answer: bool | str = True) -> None:
        self.paid: list[int] = []
        self.looked: list[str] = []
        self.asked: list[Question] = []
        self._answer = answer
        self.tools: list[Any] = [
            self.pay,
            agent.tool(repeatable=True)(self.look),
            agent.tool(needs_approval=True)(self.burn),
        ]

    def pay(self, amount: int) -> str:
        """Pay."""
        self.paid.append(amount)
        return f"paid {amount}"

    def look(self, at: str) -> dict[str, str]:
        """Look."""
        self.looked.append(at)
        return {"seen": at}

    async def burn(self, what: str) -> None:
        """Burn."""
        self.looked.append(what)

    def approve(self, question: Question) -> bool | str:
        """Whether a call may run."""
        self.asked.append(question)
        return self._answer


def model(request: Request) -> Any:
    """A model that goes by how many results it sees, so that it says the same after a crash."""
    match sum(isinstance(part, ToolResult) for shown in request.view for part in shown.message.parts):
        case 0:
            pay = [ToolCall(f"p{n}", "pay", {"amount": n}) for n in (1, 2)]
            return ["At once.", *pay, ToolCall("l1", "look", {"at": "x"}), ToolCall("b1", "burn", {"what": "letters"})]
        case 4:
            return [ToolCall("p3", "pay", {"amount": 3})]
        case _:
            return "All paid."


def shopper() -> ScriptedRunner:
    """The model, for as many requests as there may be."""
    return ScriptedRunner([model] * 9)


def results(session: Session) -> dict[str, ToolResult]:
    """The newest result of each call."""
    parts = [part for record in session.history() if record.message for part in record.message.parts]
    return {part.call_id: part for part in parts if isinstance(part, ToolResult)}


def killed_after(records: list[Record], n: int, **settings: Any) -> Session:
    """The session as whoever comes after a kill opens it: only the first `n` records were written."""
    store = MemoryStore()
    store.create("s")
    store.append("s", [Draft.of(record) for record in records[:n]])
    return turnlog.open("s", store=store, target=CHAT, settings=turnlog.Settings(**settings))


# -- the loop --------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
def test_it_runs_tools_until_there_is_an_answer(store: MemoryStore, provider: str) -> None:
    """An agent that loses a result, an argument or the answer on the way, with whatever provider."""
    session, shop = opened(store, provider), Shop()
    result = agent.run(session, "Pay all", shopper(), tools=shop.tools, approve=shop.approve)
    assert (result.text, result.stop, result.steps, result.turn.status) == ("All paid.", "end", 3, "completed")
    assert (sorted(shop.paid), sorted(shop.looked)) == ([1, 2, 3], ["letters", "x"])
    assert [question.call.name for question in shop.asked] == ["burn"]
    said = {text_of(Message("user", one.parts)) for one in results(session).values()}
    assert said == {"paid 1", "paid 2", "paid 3", '{"seen":"x"}', ""}
    assert session.log.validate() == []
    assert (result.usage.output > 0, result.usage) == (True, session.usage)


def test_what_a_tool_cannot_do_is_told_to_the_model(store: MemoryStore) -> None:
    """Wrong arguments, no such tool, an exception: an agent that dies of them, or a model that never learns of them."""

    def breaks() -> str:
        """Break."""
        raise OSError("no disk")

    calls = [
        ToolCall("a", "breaks", {}),
        ToolCall("b", "breaks", {"x": 1}),
        ToolCall("c", "mend", {}),
        ToolCall("d", "breaks", raw="{no"),
    ]
    session = opened(store)
    assert agent.run(session, "go", ScriptedRunner([calls, "so"]), tools=[breaks]).text == "so"
    said = {key: (one.outcome, text_of(Message("user", one.parts))) for key, one in results(session).items()}
    assert {key: outcome for key, (outcome, _) in said.items()} == dict.fromkeys("abcd", "failed")
    assert said["a"][1] == "The tool failed: OSError: no disk"
    assert said["b"][1].startswith(
        "The tool was not run, as its arguments do not fit: Object contains unknown field `x`"
    )
    assert said["c"][1] == "There is no tool 'mend'; the tools are: breaks."
    assert said["d"][1].startswith("The tool was not run: the model wrote arguments that are no JSON")
    assert [r.body.call_id for r in session.history() if isinstance(r.body, ToolStarted)] == ["a"]


def test_a_value_that_cannot_be_told_is_a_failure_that_is_told(store: MemoryStore) -> None:
    """The model was sent `<object object at 0x7f...>` as the good end of its call, and nobody was warned."""

    def look() -> object:
        """Look."""
        return object()

    def measure() -> float:
        """Measure."""
        return float("nan")

    def show() -> Any:
        """Show."""
        return [turnlog.Text(5)]  # type: ignore[arg-type]

    def write() -> int:
        """Write."""
        return 10**5000  # more digits than Python writes

    names = ("look", "measure", "show", "write")
    runner = ScriptedRunner([[ToolCall(name, name, {}) for name in names], "I see."])
    with opened(store) as session:
        warnings: list[str] = []
        session.on_event(lambda event: warnings.append(event.text) if event.kind == "warning" else None)
        assert turnlog.run(session, "Go.", runner, tools=[look, measure, show, write]).text == "I see."
        told = [record.message.parts[0] for record in session.log.records() if record.message is not None]
        given = {part.name: part for part in told if isinstance(part, ToolResult)}
        assert {(given[name].outcome, given[name].synthetic) for name in names} == {("failed", False)}
        shown = {name: text_of(Message("user", given[name].parts)) for name in names}  # type: ignore[arg-type]
        advice = "cannot be told to a model; return text, values that JSON has, or turnlog.Text and Media"
        said = "The tool ran, but its result cannot be shown:"
        assert shown["look"] == f"{said} an object of type object, which has no text of its own, {advice}"
        assert shown["measure"] == f"{said} the number nan, which JSON does not have, {advice}"
        assert shown["write"].startswith(f"{said} an int, whose text cannot be made (ValueError: Exceeds the limit")
        assert shown["show"].startswith(f"{said} this cannot be recorded as a MessageRecord")
        assert sorted(warnings) == [
            f"tool {name!r}, call {name!r}: {shown[name].removeprefix(f'{said} ')}" for name in names
        ]


def test_calls_of_one_answer_run_at_the_same_time(store: MemoryStore) -> None:
    """Each tool waits for the other here: one after the other, neither would end. With `parallel=1` they take turns."""
    meeting = threading.Barrier(2, timeout=30)
    running: list[int] = []

    def meet() -> str:
        """Meet."""
        meeting.wait()
        return "met"

    async def alone() -> int:
        """Be alone."""
        running.append(1)
        await asyncio.sleep(0)
        running.pop()
        return len(running)

    both = [ToolCall("a", "meet", {}), ToolCall("b", "meet", {})]
    session = opened(store)
    agent.run(session, "go", ScriptedRunner([both, "so"]), tools=[meet])
    assert {one.outcome for one in results(session).values()} == {"ok"}
    calls = [ToolCall(name, "alone", {}) for name in "cdef"]
    agent.run(session, "more", ScriptedRunner([calls, "so"]), tools=[alone], parallel=1)
    assert {text_of(Message("user", results(session)[name].parts)) for name in "cdef"} == {"0"}


def test_every_event_is_told(store: MemoryStore) -> None:
    """A display shows an agent by its events alone."""
    session, shop = opened(store), Shop("Not the letters.")
    heard = list(agent.stream(session, "Pay all", shopper(), tools=shop.tools, approve=shop.approve))
    text = "".join(event.text for event in heard if event.kind == "text")
    assert text == "At once.All paid."
    assert [event.kind for event in heard].count("tool_call") == 5
    assert [event.kind for event in heard].count("tool_started") == 4
    ends = {event.call.id: (event.outcome, event.text) for event in heard if event.kind == "tool_result" and event.call}
    assert ends["b1"] == ("canceled", "The user did not allow this call; it did not run. Not the letters.")
    assert ends["p3"] == ("ok", "paid 3")
    result = heard[-1].result
    assert (heard[-1].kind, result is not None and result.text) == ("done", "All paid.")


def test_an_iterator_that_is_closed_ends_the_turn(store: MemoryStore) -> None:
    """A browser goes away: nothing is left running, and what had come stays."""

    session = opened(store)

    async def main() -> list[AgentEvent]:
        heard = []
        stream = agent.astream(session, "Say it", ScriptedRunner(["One two three four."], pause=0.001))
        async for event in stream:
            heard.append(event)
            if len(heard) == 2:
                break
        await stream.aclose()  # type: ignore[attr-defined]
        assert len(asyncio.all_tasks()) == 1
        return heard

    assert [event.text for event in asyncio.run(main())] == ["One ", "two "]
    (turn,) = session.log.turns()
    assert (turn.status, turn.answer) == ("cancelled", "One two ")


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals for one thread")
def test_ctrl_c_cancels_the_turn(store: MemoryStore) -> None:
    """A person who stops the program waits for the tool, or finds a turn that is still open."""
    released = threading.Event()

    def waits() -> None:
        """Wait."""
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        released.wait(30)

    session = opened(store)
    with pytest.raises(KeyboardInterrupt):
        agent.run(session, "go", ScriptedRunner([ToolCall("a", "waits", {})]), tools=[waits])
    released.set()
    (turn,) = session.log.turns()
    assert (turn.status, [info.outcome for info in turn.calls]) == ("cancelled", ["aborted"])
    assert agent.run(session, "go", ScriptedRunner(["Here."]), tools=[waits]).turn.id == turn.id


@pytest.mark.parametrize(
    "options, stop, reason",
    [
        ({"max_steps": 2}, "steps", "stopped at the limit of steps: 2"),
        ({"max_seconds": 0.05}, "seconds", "stopped at the limit of seconds: 0.05"),
        ({"max_cost": 0.0000001}, "cost", "stopped at the limit of cost: 1E-7"),
    ],
)
def test_limits_end_a_turn_that_can_go_on(store: MemoryStore, options: dict[str, Any], stop: str, reason: str) -> None:
    """An agent in a circle spends without end; one that was stopped could not be told to go on."""

    async def wait() -> str:
        """Wait."""
        await asyncio.sleep(60 if stop == "seconds" else 0)
        return "waited"

    session = turnlog.open("s", store=store, target=CHAT)
    circle = ScriptedRunner([ToolCall(f"c{n}", "wait", {}) for n in range(5)])
    result = agent.run(session, "go", circle, tools=[wait], **options)
    assert (result.stop, result.turn.status, result.turn.reason) == (stop, "cancelled", reason)
    assert result.steps == {"steps": 2, "seconds": 1, "cost": 1}[stop]
    again = agent.run(session, "go", ScriptedRunner(["Enough."]), tools=[wait])
    assert (again.text, again.turn.id, len(session.log.turns())) == ("Enough.", result.turn.id, 1)
    assert session.log.unfinished() == []


def test_a_price_that_is_not_known_is_said(store: MemoryStore) -> None:
    """A limit of money that nobody can hold would be a promise that is not kept."""
    runner = ScriptedRunner([ToolCall("a", "rest", {}), "so"])

    def rest() -> None:
        """Rest."""

    session = turnlog.open("s", store=store, target=turnlog.target("openai-chat", "of-my-own"))
    with pytest.raises(InputError, match="max_cost: the price of of-my-own is not known"):
        agent.run(session, "go", runner, tools=[rest], max_cost=Decimal(1))


def test_an_error_of_the_runner_can_be_gone_on_from(store: MemoryStore) -> None:
    """A rate limit in the middle costs what was done so far, or pays twice."""
    session, shop = opened(store), Shop()
    once = ScriptedRunner([model, RateLimited("openai", retry_after=90.0)])
    with pytest.raises(RateLimited):
        agent.run(session, "Pay all", once, tools=shop.tools, approve=shop.approve)
    assert session.log.turns()[0].status == "failed"
    result = agent.run(session, None, shopper(), tools=shop.tools, approve=shop.approve)
    assert (result.text, sorted(shop.paid), len(session.log.turns())) == ("All paid.", [1, 2, 3], 1)


def test_a_request_that_is_too_long_is_mended(store: MemoryStore) -> None:
    """An agent that reads much would end at the first refusal."""
    session = turnlog.open("s", store=store, target=CHAT)
    for n in range(20):
        session.user(f"Step {n}: " + "look at one more file. " * 40)
        session.assistant("Done.")
    size = session.request().tokens
    runner = ScriptedRunner([RequestTooLong("openai", tokens=size, limit=size // 2), "Nothing is left."])
    assert agent.run(session, "What is left?", runner).text == "Nothing is left."
    assert runner.requests[1].tokens <= size // 2


def test_ready_tools_are_answered(store: MemoryStore) -> None:
    """A session with tools on demand, and with the tool that reads back, needs them answered by the loop as well."""
    session, shop = opened(store), Shop()
    calls = [
        ToolCall("a", "find_tools", {"names": ["send_mail"]}),
        ToolCall("b", turnlog.session.READ_BACK.name, {"record": 1}),
    ]

    @agent.tool(on_demand=True)
    def send_mail() -> str:
        """Send a mail."""
        return "sent"

    runner = ScriptedRunner([calls, ToolCall("c", "send_mail", {}), "Sent."])
    result = agent.run(session, "go", runner, tools=[send_mail, turnlog.session.READ_BACK, shop.look])
    assert result.text == "Sent."
    assert set(results(session)) == {"a", "b", "c"}
    assert results(session)["a"].outcome == "ok"


def test_a_session_declares_what_can_be_run(store: MemoryStore) -> None:
    """Tools that are recorded anew at each start move the cached prefix; one that is gone from the program, and still
    declared, is called for nothing."""
    session, shop = opened(store), Shop()
    read_back = turnlog.session.READ_BACK
    kinds = [agent.tool(on_demand=True)(shop.pay), shop.look, read_back]
    for _ in range(2):
        agent.run(session, "go", ScriptedRunner(), tools=kinds)
        agent.run(killed_after(session.history(), len(session.history())), "go", ScriptedRunner(), tools=kinds)
    assert {tool.name for tool in session.configuration.tools} == {
        "pay",
        "look",
        "find_tools",
        "use_tool",
        read_back.name,
    }
    assert len([record for record in session.history() if isinstance(record.body, Configuration)]) == 2
    agent.run(session, "go", ScriptedRunner(), tools=[shop.look])
    assert {tool.name for tool in session.configuration.tools} == {"look", read_back.name}
    agent.run(session, "go", ScriptedRunner())
    assert {tool.name for tool in session.configuration.tools} == {read_back.name}


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_tool_cannot_end_the_loop(store: MemoryStore, asynchronous: bool) -> None:
    """`sys.exit` in a tool, or a `next` too many, would leave whoever waits for the answer waiting for ever."""

    async def leaves() -> None:
        """Leave."""
        raise SystemExit(3)

    def leaves_at_once() -> None:
        """Leave."""
        raise SystemExit(3)

    def ends() -> str:
        """End."""
        return next(iter(()))

    first = agent.tool(name="leaves")(leaves if asynchronous else leaves_at_once)
    session = opened(store)
    calls = [ToolCall("a", "leaves", {}), ToolCall("b", "ends", {})]
    assert agent.run(session, "go", ScriptedRunner([calls, "so"]), tools=[first, ends]).text == "so"
    said = {key: text_of(Message("user", one.parts)) for key, one in results(session).items()}
    assert said["a"] == "The tool failed: RuntimeError: SystemExit: 3"
    assert said["b"] == "The tool failed: RuntimeError: StopIteration"


def test_a_tool_may_be_an_agent_itself(store: MemoryStore) -> None:
    """An agent in an agent that waits for the event loop it runs in would wait for ever."""

    def inner(name: str) -> str:
        return agent.run(turnlog.open(name, store=store, target=CHAT), "go", ScriptedRunner([f"{name} done"])).text

    def plain() -> str:
        """Ask another agent."""
        return inner("plain")

    async def wrong() -> str:
        """Ask another agent."""
        return inner("wrong")

    async def right() -> str:
        """Ask another agent."""
        session = turnlog.open("right", store=store, target=CHAT)
        return (await agent.arun(session, "go", ScriptedRunner(["right done"]))).text

    session = opened(store)
    calls = [ToolCall(name, name, {}) for name in ("plain", "wrong", "right")]
    agent.run(session, "go", ScriptedRunner([calls, "so"]), tools=[plain, wrong, right])
    said = {key: text_of(Message("user", one.parts)) for key, one in results(session).items()}
    assert (said["plain"], said["right"]) == ("plain done", "right done")
    assert "InputError: this waits for the event loop that it is called in" in said["wrong"]


# -- killed and started again ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("answer", [True, "Not twice."])
def test_killed_at_any_record_it_goes_on(store: MemoryStore, answer: bool | str) -> None:
    """An agent that starts afresh, pays twice without asking, or forgets what it did."""
    session, shop = opened(store), Shop()
    agent.run(session, "Pay all", shopper(), tools=shop.tools, approve=lambda question: True)
    records = session.history()
    first = next(r.n for r in records if isinstance(r.body, MessageRecord) and r.body.message.role == "user")
    for n in range(first, len(records)):
        before, shop = started(records[:n]), Shop(answer)
        again = killed_after(records, n)
        result = agent.run(again, "Pay all", shopper(), tools=shop.tools, approve=shop.approve)
        assert (result.text, len(again.log.turns()), again.log.validate()) == ("All paid.", 1, [])
        done = {r.call_id for r in results(killed_after(records, n)).values()}
        asked = {question.call.id for question in shop.asked if question.may_have_run}
        assert asked == {one for one in before if one not in done and one != "l1"}
        paid = {f"p{amount}" for amount in shop.paid}
        assert len(shop.paid) == len(paid)
        assert paid == {"p1", "p2", "p3"} - before | (asked - {"b1"} if answer is True else set())
        told = {key: one.outcome for key, one in results(again).items()}
        if answer is not True:
            assert all(told[one] == "aborted" for one in asked)
        assert set(told) == {"p1", "p2", "p3", "l1", "b1"}


def started(records: list[Record]) -> set[str]:
    """The calls that began."""
    return {record.body.call_id for record in records if isinstance(record.body, ToolStarted)}


def test_without_anybody_to_ask_nothing_runs_twice(store: MemoryStore) -> None:
    """The model is told that it may have run, and decides."""
    session = opened(store)
    turn = session.turn("Pay all").__enter__()
    runner = ScriptedRunner([[ToolCall("p1", "pay", {"amount": 1}), ToolCall("l1", "look", {"at": "x"})], "Checked."])
    request = turn.request()

    async def take() -> None:
        answer = await turn.areceive(runner.stream(request), request)
        for call in answer.tool_calls:
            turn.tool_started(call)

    asyncio.run(take())
    again, shop = killed_after(session.history(), len(session.history())), Shop()
    result = agent.run(again, "Pay all", runner, tools=shop.tools[:2])
    assert (result.text, shop.paid, shop.looked) == ("Checked.", [], ["x"])
    assert results(again)["p1"].outcome == "aborted"


def test_another_text_begins_another_turn(store: MemoryStore) -> None:
    """A user who says something else after a crash does not want the old question answered."""
    session = opened(store)
    session.turn("Pay all").__enter__()
    again = killed_after(session.history(), len(session.history()))
    assert agent.run(again, "Never mind.", ScriptedRunner()).text == "You said: Never mind."
    assert [turn.status for turn in again.log.turns()] == ["failed", "completed"]
    with pytest.raises(InputError, match="there is no turn to go on with"):
        agent.run(again, None, ScriptedRunner())


def test_the_same_words_twice_at_once_are_two_turns(store: MemoryStore) -> None:
    """A double submit: the second waits for the first, and must not take its living turn for one that was left."""
    session = opened(store)

    async def main() -> list[str]:
        runs = [agent.arun(session, "Go", ScriptedRunner([f"Answer {n}."], pause=0.001)) for n in range(3)]
        return [result.text for result in await asyncio.gather(*runs)]

    assert asyncio.run(main()) == ["Answer 0.", "Answer 1.", "Answer 2."]
    turns = session.log.turns()
    assert [(turn.input, turn.answer, turn.status) for turn in turns] == [
        ("Go", f"Answer {n}.", "completed") for n in range(3)
    ]


def test_a_text_with_a_secret_is_known_again(store: MemoryStore) -> None:
    """The log has a mark in place of the secret: the same words would begin a second turn."""
    text = "Use npm_" + "a1B2" * 9 + " and go."
    session = turnlog.open("s", store=store, target=CHAT, settings=turnlog.Settings(redact=True))
    session.turn(text).__enter__()
    records = list(session.log.on_disk.records())
    again = killed_after(records, len(records), redact=True)
    assert "npm_" not in again.log.turns()[0].input
    agent.run(again, text, ScriptedRunner(["Done."]))
    assert len(again.log.turns()) == 1


# -- mistakes --------------------------------------------------------------------------------------


def _wrong(question: Question) -> Any:
    return None


@pytest.mark.parametrize(
    "options, says",
    [
        ({"tools": [Shop().pay, Shop().pay]}, "two tools are called 'pay'"),
        ({"tools": [agent.tool(needs_approval=True)(Shop().pay)]}, "tool 'pay' needs approval: give approve="),
        ({"max_steps": 0}, "max_steps must be a whole number from 1 on, not 0"),
        ({"max_seconds": -1}, "max_seconds must be a number, more than 0, not -1"),
        (
            {"tools": [agent.tool(needs_approval=True)(Shop().pay)], "approve": _wrong},
            "approve must return True, False",
        ),
        ({"max_step": 1}, "'max_step' is not an option of a run: did you mean 'max_steps'?"),
        ({"aprove": "no"}, "'aprove' is not an option of a run: did you mean 'approve'?"),
        ({"temperature": 1}, "'temperature' is not an option of a run: there are system, tools, approve, max_steps"),
        ({"approve": True}, "approve must be a function that takes a turnlog.agent.Question .*, not True"),
        ({"approve": "no", "max_steps": 1}, "approve must be a function .*, not 'no'"),
        ({"tools": [7]}, "a tool is a function, a turnlog.Tool or a declaration, not int"),
    ],
)
def test_mistakes_say_what_to_do(store: MemoryStore, options: dict[str, Any], says: str) -> None:
    """A mistake that shows only when the agent is at work, or that says nothing of what to do."""
    with pytest.raises(InputError, match=says):
        agent.run(opened(store), "go", ScriptedRunner([ToolCall("a", "pay", {"amount": 1}), "so"]), **options)


def test_what_is_no_runner_is_said(store: MemoryStore) -> None:
    """An SDK's client is what people have at hand."""
    with pytest.raises(InputError, match=r"runner must be a runner, such as turnlog.runners.SdkRunner"):
        agent.run(opened(store), "go", object())  # type: ignore[arg-type]


def test_it_works_where_an_event_loop_runs(store: MemoryStore) -> None:
    """A notebook has an event loop of its own in the same thread."""

    async def main() -> list[str]:
        session = opened(store)
        return [
            agent.run(session, "one", ScriptedRunner()).text,
            (await agent.arun(session, "two", ScriptedRunner())).text,
        ]

    assert asyncio.run(main()) == ["You said: one", "You said: two"]


# -- approvals that come later ---------------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
def test_somebody_says_later_whether_a_call_may_run(store: MemoryStore, provider: str) -> None:
    """A loop that waits for an hour in one process, or forgets meanwhile what the other calls returned."""
    session, shop = opened(store, provider), Shop()
    first = agent.run(session, "Pay all", shopper(), tools=shop.tools, approve=agent.LATER)
    assert (first.stop, first.turn.status, sorted(shop.paid), shop.looked) == (
        "awaiting_approval", "awaiting_approval", [1, 2], ["x"],
    )  # fmt: skip
    session.close()
    with turnlog.open("s", store=store, read_only=True) as page:
        (waits,) = page.pending()
        page.approve(waits, by="kim")
    session = opened(store, provider)
    result = agent.run(session, None, shopper(), tools=shop.tools, approve=agent.LATER)
    assert (result.text, result.turn.id, sorted(shop.paid)) == ("All paid.", first.turn.id, [1, 2, 3])
    assert sorted(shop.looked) == ["letters", "x"]
    assert session.log.validate(strict=True) == []


def test_what_is_still_not_decided_waits_on(store: MemoryStore) -> None:
    """A page is loaded, and the agent goes on without an answer."""
    session, shop = opened(store), Shop()
    for _ in range(3):
        result = agent.run(session, "Pay all", shopper(), tools=shop.tools, approve=lambda question: agent.LATER)
        assert (result.stop, [info.call.id for info in session.pending()]) == ("awaiting_approval", ["b1"])
    assert (sorted(shop.paid), shop.looked) == ([1, 2], ["x"])
    session.deny("b1", "No fire.")
    result = agent.run(session, "Pay all", shopper(), tools=shop.tools, approve=agent.LATER)
    assert (result.text, result.turn.calls[3].outcome) == ("All paid.", "canceled")
    assert len(session.log.turns()) == 1


def test_an_approve_that_fails_takes_no_result_away(store: MemoryStore) -> None:
    """A page that is down: calls that had begun are cut off, and their effects may or may not have happened."""
    session, shop = opened(store), Shop()

    async def slow(at: str) -> str:
        """Look for a while."""
        await asyncio.sleep(0.05)
        shop.looked.append(at)
        return "seen"

    def fails(question: Question) -> bool:
        raise OSError("the page is down")

    tools = [shop.tools[0], shop.tools[2], agent.tool(name="look")(slow)]
    with pytest.raises(OSError, match="the page is down"):
        agent.run(session, "Pay all", shopper(), tools=tools, approve=fails)
    said = {call_id: text_of(Message("user", one.parts)) for call_id, one in results(session).items()}
    assert said == {"p1": "paid 1", "p2": "paid 2", "l1": "seen"}
    assert [info.call.id for info in session.pending()] == ["b1"]
    result = agent.run(session, None, shopper(), tools=tools, approve=shop.approve)
    assert (result.text, sorted(shop.paid), shop.looked) == ("All paid.", [1, 2, 3], ["x", "letters"])


@pytest.mark.parametrize("yes", [True, False])
def test_what_is_decided_elsewhere_while_somebody_is_asked_counts(store: MemoryStore, yes: bool) -> None:
    """Two who are asked at the same time: the call runs after a no, or is refused after a yes."""
    session, shop = opened(store), Shop()
    page = turnlog.open("s", store=store, read_only=True)

    def asked(question: Question) -> bool:
        (page.approve if yes else page.deny)(question.call, reason="said on the page", by="kim")
        return not yes

    result = agent.run(session, "Pay all", shopper(), tools=shop.tools, approve=asked)
    burn = result.turn.calls[3]
    assert (burn.approval, burn.approved_by, burn.outcome) == (
        ("given", "kim", "ok") if yes else ("denied", "kim", "canceled")
    )
    assert ("letters" in shop.looked, result.text) == (yes, "All paid.")


def test_one_approval_allows_one_run(store: MemoryStore) -> None:
    """A fork of a session whose call was allowed: the bill is paid in both."""
    session, shop = opened(store), Shop()
    agent.run(session, "Pay all", shopper(), tools=shop.tools, approve=agent.LATER)
    session.approve("b1")
    fork = session.fork("fork")
    first = agent.run(fork, None, shopper(), tools=shop.tools, approve=agent.LATER)
    assert (first.stop, [info.call.id for info in fork.pending()], shop.looked) == ("awaiting_approval", ["b1"], ["x"])
    assert agent.run(session, None, shopper(), tools=shop.tools, approve=agent.LATER).text == "All paid."
    assert shop.looked == ["x", "letters"]
    fork.approve("b1")
    assert agent.run(fork, None, shopper(), tools=shop.tools, approve=agent.LATER).text == "All paid."
    assert shop.looked == ["x", "letters", "letters"]


def test_a_denial_that_was_confirmed_holds(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody says no between the loop's look and its own yes: it is on record, and the call runs."""
    session, shop = opened(store), Shop()
    page, decide = turnlog.open("s", store=store, read_only=True), session._decide

    def late(*given: Any) -> Record:
        page.deny("b1", "No fire.", by="kim")
        return decide(*given)

    monkeypatch.setattr(session, "_decide", late)
    result = agent.run(session, "Pay all", shopper(), tools=shop.tools, approve=shop.approve)
    burn = result.turn.calls[3]
    assert (burn.approval, burn.approved_by, burn.outcome, "letters" in shop.looked) == (
        "denied",
        "kim",
        "canceled",
        False,
    )


def test_a_call_whose_secrets_were_not_kept_does_not_run(tmp_path: Any) -> None:
    """A file is written with a mark in place of the token that was approved."""
    written: list[str] = []

    @agent.tool(needs_approval=True)
    def write(text: str) -> str:
        """Write."""
        written.append(text)
        return "written"

    token = "ghp_" + "a1B2c3D4e5F6" * 3
    for approve, runner in (
        (agent.LATER, ScriptedRunner([ToolCall("w1", "write", {"text": token})])),
        (agent.LATER, ScriptedRunner(["I need the token."])),
    ):
        with turnlog.open(
            "s", store=tmp_path / "log.db", target=CHAT, settings=turnlog.Settings(redact=True)
        ) as session:
            result = agent.run(session, "Write it.", runner, tools=[write], approve=approve)
            if session.pending():
                session.approve("w1")
    assert (result.text, written, result.turn.calls[0].outcome) == ("I need the token.", [], "failed")


def test_a_run_that_waits_changes_nothing_of_the_one_before(store: MemoryStore) -> None:
    """Two runs of one session at once: the first is sent with the tools of the second."""
    session, sent = opened(store), list[list[str]]()
    inside = threading.Event()

    def seen(request: Request) -> str:
        sent.append([tool["function"]["name"] for tool in request.body["tools"]])
        return "Done."

    def slow() -> str:
        """Wait for the other run."""
        inside.set()
        other.join(0.2)
        return "done"

    def fast() -> str:
        """Do nothing."""
        return ""

    second = ScriptedRunner(["Fine."])
    other = threading.Thread(target=lambda: inside.wait() and agent.run(session, "b", second, tools=[fast]))
    other.start()
    agent.run(session, "a", ScriptedRunner([ToolCall("s", "slow", {}), seen]), tools=[slow])
    other.join()
    assert sent == [["slow"]]
    assert [(turn.input, turn.status) for turn in session.log.turns()] == [("a", "completed"), ("b", "completed")]
