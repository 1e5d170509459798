"""Agents as tools: a call runs an agent in a child of its session, and goes on with it after a crash."""

from __future__ import annotations

import asyncio
from collections import Counter
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnlog
from draws import examples
from turnlog import ToolCall, agent
from turnlog.agent import FunctionTool, Question, ToolContext
from turnlog.errors import InputError, RateLimited, RunnerFailed, SessionBusy, StoreError
from turnlog.log.bills import total_usage
from turnlog.log.messages import Message, ToolResult, text_of
from turnlog.log.records import Note, Record
from turnlog.log.store import Draft, Store
from turnlog.requests.request import Request
from turnlog.runners import RetryingRunner, ScriptedRunner
from turnlog.session.session import Session
from turnlog.session.turn import Turn
from turnlog.stores import MemoryStore
from turnlog.stores.billing import with_subagents

CLAUDE = turnlog.target("anthropic", "claude-sonnet-4-5")
CHAT = turnlog.target("openai-chat", "gpt-4o")


class Mortal(MemoryStore):
    """A store of a process that is killed after so many writes: nothing is written after them."""

    def __init__(self, writes: int = 10**6, left: Store | None = None) -> None:
        super().__init__()
        self.writes = 10**6
        if left is not None:
            for info in reversed(left.sessions()):
                super().create(info.id, created=info.created, parent=info.parent)
                super().append(info.id, [Draft.of(record) for record in left.read(info.id)])
        self.writes = writes

    def _write(self) -> None:
        if self.writes <= 0:
            raise StoreError("killed")
        self.writes -= 1

    def create(self, *args: Any, **given: Any) -> Any:
        """A new session."""
        self._write()
        return super().create(*args, **given)

    def append(self, *args: Any, **given: Any) -> Any:
        """Append records."""
        self._write()
        return super().append(*args, **given)

    def logs(self) -> dict[str, list[Record]]:
        """The records of each session."""
        return {info.id: list(self.read(info.id)) for info in self.sessions()}


def results_in(request: Request) -> int:
    """How many results a request has."""
    return sum(isinstance(part, ToolResult) for shown in request.view for part in shown.message.parts)


def chief(request: Request) -> Any:
    """A model that asks two agents at once, and then one again."""
    calls = [ToolCall(name, "clerk", {"task": f"Pay {name}."}) for name in ("a", "b", "c")]
    return {0: ["At once.", *calls[:2]], 2: calls[2]}.get(results_in(request), "All paid.")


def clerk(request: Request) -> Any:
    """The model of such an agent: it pays what it is told to pay."""
    task = next(text_of(shown.message) for shown in request.view if shown.message.role == "user")
    what = task.removeprefix("Pay ").removesuffix(".")
    return f"{what} is paid." if results_in(request) else ToolCall(f"p{what}", "pay", {"what": what})


class Office:
    """A chief, who asks clerks, who pay; and what happened outside of the logs."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.asked: list[Question] = []

    def pay(self, what: str) -> str:
        """Pay."""
        self.paid.append(what)
        return f"paid {what}"

    def clerk(self, **options: Any) -> FunctionTool:
        """The clerk as a tool."""
        runner = ScriptedRunner([clerk] * 20)
        return agent.as_tool(
            "clerk", "Pays.", **{"runner": runner, "tools": [self.pay], "system": "You pay.", **options}
        )

    def approve(self, question: Question) -> bool:
        """Allow everything."""
        self.asked.append(question)
        return True

    def run(self, store: Store, *, tool: FunctionTool | None = None, **options: Any) -> tuple[Session, Any]:
        """The session, and its run from the beginning or from where it was."""
        session = turnlog.open("office", store=store, target=CLAUDE, labels={"user": "ann"})
        tools = [self.clerk() if tool is None else tool]
        try:
            return session, turnlog.run(session, "Pay all.", ScriptedRunner([chief] * 9), tools=tools, **options)
        except SessionBusy:
            session.close()
            raise


def children(store: Store) -> list[str]:
    """The sessions of clerks."""
    return sorted(info.id for info in store.sessions() if info.parent == "office")


def told(session: Session) -> dict[str, tuple[str, str]]:
    """The outcome and text of each call's newest result."""
    parts = [part for record in session.log.records() if record.message for part in record.message.parts]
    found = [part for part in parts if isinstance(part, ToolResult)]
    return {part.call_id: (part.outcome, text_of(Message("user", part.parts))) for part in found}


def test_a_call_runs_an_agent_in_a_child() -> None:
    """Its work was in no log, or in one that nobody finds, and its cost in no sum."""
    store, office = Mortal(), Office()
    session, result = office.run(store)
    assert (result.text, result.stop, sorted(office.paid)) == ("All paid.", "end", ["a", "b", "c"])
    assert told(session) == {x: ("ok", f"{x} is paid.") for x in "abc"}
    ids = children(store)
    notes = [r.body.text for r in session.log.records() if isinstance(r.body, Note) and r.body.topic == "subagent"]
    assert sorted(notes) == ids and len(ids) == 3 and all(name.startswith("office.agent-clerk-") for name in ids)
    costs = [Decimal(0)]
    for name in ids:
        with turnlog.open(name, store=store) as child:
            assert (child.log.labels, len(child.log.turns()), child.target) == ({"user": "ann"}, 1, CLAUDE)
            assert next(text_of(r.message) for r in child.log.records() if r.message) == "You pay."
            costs.append(child.cost.at_least)
    assert (
        session.total_cost.at_least
        == session.cost.at_least + sum(costs)
        > session.cost.at_least
        == result.turn.cost.at_least
    )


def settled(store: Mortal, kills: list[int], office: Office) -> tuple[Session, Mortal]:
    """Run until it is done: after each kill a new process goes on with what is on disk."""
    for writes in (*kills, 10**6):
        before = store.logs()
        store = Mortal(writes, left=store)
        try:
            session, result = office.run(store)
        except StoreError:
            assert all(store.logs()[name][: len(records)] == records for name, records in before.items())
            continue
        assert (result.text, result.stop) == ("All paid.", "end")
        return session, store
    raise AssertionError("it did not come to its end")


@pytest.mark.slow
@settings(max_examples=examples(40, 1_000))
@given(st.lists(st.integers(1, 45), min_size=1, max_size=4))
def test_killed_at_any_record_of_parent_and_child_it_goes_on(kills: list[int]) -> None:
    """After a crash an agent began afresh: what it had paid was paid twice, what it had answered was asked again."""
    office = Office()
    session, store = settled(Mortal(), kills, office)
    assert max(Counter(office.paid).values()) == 1
    assert [turn.status for turn in session.log.turns()] == ["completed"] and session.log.validate() == []
    assert {call: outcome for call, (outcome, _) in told(session).items()} == dict.fromkeys("abc", "ok")
    ids = children(store)
    assert len(ids) == 3
    for name in ids:
        with turnlog.open(name, store=store) as child:
            [turn] = child.log.turns()
            [call] = child.log.calls()
            assert (turn.status, child.log.validate()) == ("completed", [])
            assert call.outcome in ("ok", "aborted")
            if call.outcome == "ok":
                assert call.call.arguments and call.call.arguments["what"] in office.paid
    usages = [usage for bills in store.usages().values() for usage in bills.values()]
    assert session.total_cost.at_least == sum(turnlog.cost(usage, CLAUDE.model).at_least for usage in usages)
    notes = [r.body.text for r in session.log.records() if isinstance(r.body, Note) and r.body.topic == "subagent"]
    assert sorted(notes) == ids


def test_a_finished_agent_is_not_asked_again() -> None:
    """A crash between the agent's answer and the result of the call bought the answer twice."""
    whole, office = Mortal(), Office()
    session, _ = office.run(whole)
    records = list(session.log.records())
    [*_, last] = [
        r.n for r in records if getattr(r.body, "kind", "") == "x" or r.body.__class__.__name__ == "ToolFinished"
    ]
    cut = Mortal()
    for info in reversed(whole.sessions()):
        cut.create(info.id, created=info.created, parent=info.parent)
        kept = [r for r in whole.read(info.id) if info.id != "office" or r.n < last]
        cut.append(info.id, [Draft.of(r) for r in kept])
    silent = office.clerk(runner=ScriptedRunner([RunnerFailed("x", "asked again")] * 9))
    session, result = office.run(cut, tool=silent)
    assert (result.text, told(session)["c"], len(office.paid)) == ("All paid.", ("ok", "c is paid."), 3)


def test_a_failure_and_a_limit_of_an_agent_are_failed_results() -> None:
    """The model was told nothing, or the whole run failed with its agent."""
    store, office = Mortal(), Office()
    busy = office.clerk(runner=ScriptedRunner([RunnerFailed("gpt", "no such model", status=404)] * 9))
    session, result = office.run(store, tool=busy)
    assert result.text == "All paid."
    outcome, text = told(session)["a"]
    assert outcome == "failed" and "no such model" in text
    circle = office.clerk(runner=ScriptedRunner([ToolCall("", "pay", {"what": "x"})] * 20), max_steps=2)
    session, _ = Office().run(Mortal(), tool=circle)
    assert told(session)["a"] == (
        "failed",
        "The tool failed: InputError: the agent clerk came to no answer: stopped at the limit of steps: 2",
    )


def test_the_cost_of_agents_counts_within_the_callers_limit() -> None:
    """A run of a dollar cost ten, as its agents were not counted."""
    store, office = Mortal(), Office()
    session, result = office.run(store)
    assert (result.cost, result.usage.output) == (
        session.total_cost,
        total_usage(with_subagents(store, "office")[0]).output,
    )
    own = result.turn.cost.at_least
    session, result = office.run(Mortal(), max_cost=own)  # enough for the caller alone
    assert result.stop == "cost"
    assert session.total_cost.at_least >= own > session.cost.at_least
    endless = office.clerk(runner=ScriptedRunner([ToolCall("", "pay", {"what": "x"})] * 500), max_steps=400)
    session, result = office.run(Mortal(), tool=endless, max_cost=own)
    assert result.stop == "cost" and session.total_cost.at_least < own * 2
    assert "a" not in told(session)  # its work is not done: with more money it goes on
    result = turnlog.run(session, None, ScriptedRunner([chief] * 9), tools=[office.clerk()])
    assert result.text == "All paid." and told(session)["a"][0] == "ok"


def test_a_wait_of_an_agent_ends_with_the_time_of_its_caller() -> None:
    """A run of a minute waited an hour inside of its agent."""
    office = Office()
    busy = office.clerk(runner=ScriptedRunner([RateLimited("gpt", retry_after=3_600.0)] * 9))
    session, result = office.run(Mortal(), tool=busy, max_seconds=60)
    assert "stopped at the limit of seconds: that of the caller" in told(session)["a"][1]
    assert result.text == "All paid."


def test_questions_of_agents_go_to_the_caller() -> None:
    """A tool that needs approval ran unasked because an agent called it, or nobody was told that one is needed."""
    office = Office()
    careful = office.clerk(tools=[agent.tool(needs_approval=True)(office.pay)])
    with pytest.raises(InputError, match=r"a tool of the agent 'clerk' \(pay\) needs approval: give approve="):
        office.run(Mortal(), tool=careful)
    _, result = office.run(Mortal(), tool=careful, approve=office.approve)
    assert result.text == "All paid." and sorted(q.call.id for q in office.asked) == ["pa", "pb", "pc"]
    own = office.clerk(tools=[agent.tool(needs_approval=True)(office.pay)], approve=lambda question: "No.")
    session, _ = office.run(Mortal(), tool=own)
    assert len(office.paid) == 3 and told(session)["a"] == ("ok", "a is paid.")  # what its model says


def test_an_agent_that_waits_makes_its_caller_wait() -> None:
    """A call whose agent waits for somebody failed, and its agent was forgotten."""
    store, office = Mortal(), Office()
    careful = office.clerk(tools=[agent.tool(needs_approval=True)(office.pay)])
    session, result = office.run(store, tool=careful, approve=agent.LATER)
    assert (result.stop, result.turn.status) == ("awaiting_approval", "awaiting_approval")
    assert (told(session), office.paid) == ({}, [])
    assert [info.call.id for info in session.pending()] == ["pa", "pb"]
    assert sorted(info.session for info in session.pending()) == children(store)
    with pytest.raises(
        InputError, match=r"'a' of 'clerk' runs an agent, and goes on by itself; these calls wait .* 'pa' of"
    ):
        session.approve("a")
    session.close()
    with turnlog.open("office", store=store) as again:
        assert again.resumed is not None and not again.resumed.recovered
    for round in (2, 1):
        waiting = [turnlog.open(name, store=store) for name in children(store)]
        calls = [(child, call) for child in waiting for call in child.pending()]
        assert len(calls) == round
        for child, call in calls:
            child.approve(call)
        for child in waiting:
            child.close()
        session, result = office.run(store, tool=careful, approve=agent.LATER)
        session.close()
    assert (result.text, sorted(office.paid)) == ("All paid.", ["a", "b", "c"])
    assert [turn.status for turn in session.log.turns()] == ["completed"]


def test_what_an_agent_waits_for_is_decided_in_the_session_of_its_caller() -> None:
    """A page that has to look into every session, or lets somebody allow what nobody wants any more."""
    store, office = Mortal(), Office()
    careful = office.clerk(tools=[agent.tool(needs_approval=True)(office.pay)])
    session, _ = office.run(store, tool=careful, approve=agent.LATER)
    first, _ = session.pending()
    session.close()
    with turnlog.open("office", store=store, read_only=True) as page:
        page.approve(first, by="kim")
        page.deny("pb", "Not b.", by="kim")
        assert page.pending() == []
    session, result = office.run(store, tool=careful, approve=agent.LATER)
    assert (result.stop, office.paid, [info.call.id for info in session.pending()]) == (
        "awaiting_approval",
        ["a"],
        ["pc"],
    )
    (third,) = session.pending()
    session.deny("c", "No more.")  # the whole work of the agent
    for name in (third.session, "office"):
        with turnlog.open(name, store=store, read_only=True) as page:
            assert page.pending() == []
            with pytest.raises(InputError, match=r"does not wait for approval|has no call with the id 'pc'"):
                page.approve("pc")
    session.close()
    session, result = office.run(store, tool=careful, approve=agent.LATER)
    assert (result.text, office.paid) == ("All paid.", ["a"])
    assert told(session)["c"][1].endswith("the user did not allow it to run again. No more.")


def test_an_agent_whose_session_is_in_use_is_not_forgotten() -> None:
    """Somebody has the session of an agent open: its call fails, and what was allowed there never runs."""
    store, office = Mortal(), Office()
    careful = office.clerk(tools=[agent.tool(needs_approval=True)(office.pay)])
    session, _ = office.run(store, tool=careful, approve=agent.LATER)
    for info in session.pending():
        session.approve(info)
    owner = turnlog.open(children(store)[0], store=store)
    session.close()
    with pytest.raises(SessionBusy):
        office.run(store, tool=careful, approve=agent.LATER)
    owner.close()
    session, result = office.run(store, tool=careful, approve=office.approve)
    assert (result.text, sorted(office.paid)) == ("All paid.", ["a", "b", "c"])
    session.close()


def test_a_fork_does_not_run_an_interrupted_agent_again() -> None:
    """A fork of a session whose agent has begun: its work is done anew, and nobody is asked."""
    store, office = Mortal(), Office()
    careful = office.clerk(tools=[agent.tool(needs_approval=True)(office.pay)])
    session, _ = office.run(store, tool=careful, approve=agent.LATER)
    with session.fork("fork") as fork:
        result = turnlog.run(fork, None, ScriptedRunner([chief] * 9), tools=[careful], approve=lambda question: False)
        assert {info.call.id: info.outcome for info in result.turn.calls} == {"a": "aborted", "b": "aborted", "c": "ok"}
    assert office.paid == []
    session.close()


def test_a_denial_beside_a_run_that_goes_on_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody denies an agent's call just when the next run lets it go on: the agent pays all the same."""
    store, office = Mortal(), Office()
    careful = office.clerk(tools=[agent.tool(needs_approval=True)(office.pay)])
    session, _ = office.run(store, tool=careful, approve=agent.LATER)
    for info in session.pending():
        session.approve(info)
    page, approve = turnlog.open("office", store=store, read_only=True), Turn.approve

    def late(turn: Turn, call: ToolCall, **given: Any) -> Any:
        if call.id == "b":
            page.deny("b", "No.", by="kim")
        return approve(turn, call, **given)

    monkeypatch.setattr(Turn, "approve", late)
    session.close()
    session, result = office.run(store, tool=careful, approve=office.approve)
    assert (sorted(office.paid), told(session)["b"][1].endswith("No."), result.text) == (["a", "c"], True, "All paid.")
    session.close()


def test_children_by_hand_and_ids_used_again_can_be_decided() -> None:
    """A child whose name looks like that of a call's, or an id that parent and child have: "does not wait"."""
    session = turnlog.open("office", store=":memory:", target=CLAUDE)
    office = Office()
    pay = agent.tool(needs_approval=True)(office.pay)

    def wants() -> ScriptedRunner:
        return ScriptedRunner([ToolCall("c1", "pay", {"what": "x"}), "Done."])

    with session.child("review-12-3fa9c1de") as child:
        turnlog.run(child, "go", wants(), tools=[pay], approve=agent.LATER)
        assert child.approve("c1").body.state == "given"  # type: ignore[union-attr]
    clerk = agent.as_tool("clerk", "Pays.", runner=wants(), tools=[pay])
    chief_runner = ScriptedRunner([ToolCall("c1", "clerk", {"task": "Pay."}), "Done."])
    turnlog.run(session, "go", chief_runner, tools=[clerk], approve=agent.LATER)
    (waits,) = session.pending()
    assert (waits.call.id, waits.session != "") == ("c1", True)
    session.deny("c1", "No.")
    assert (session.pending(), office.paid) == ([], [])
    session.close()


def test_who_goes_on_talking_ends_the_work_of_agents() -> None:
    """The user said "forget it", and an hour later somebody allows what an agent had asked for."""
    store, office = Mortal(), Office()
    careful = office.clerk(tools=[agent.tool(needs_approval=True)(office.pay)])
    session, _ = office.run(store, tool=careful, approve=agent.LATER)
    waited = session.pending()
    with session.turn("Forget it."):
        session.assistant("Forgotten.")
    assert session.pending() == []
    for info in waited:
        page = turnlog.open(info.session, store=store, read_only=True)
        with page, pytest.raises(InputError, match="does not wait for approval: its turn has ended"):
            page.approve(info.call)
    session.close()


def test_progress_and_deps_and_a_runner_of_another_session() -> None:
    """Who watches a run saw nothing for minutes; tools of an agent had no database; waits were noted elsewhere."""
    office, other = Office(), turnlog.open("other", store=":memory:", target=CHAT)
    seen: list[Any] = []

    def pay(what: str, context: ToolContext[str]) -> str:
        """Pay."""
        context.progress(f"paying {what}")
        seen.append((context.deps, context.session_id))
        return "paid"

    runner = RetryingRunner(ScriptedRunner([RateLimited("gpt", retry_after=0.0), clerk, clerk]), other)
    session = turnlog.open("office", store=":memory:", target=CLAUDE)
    script = ScriptedRunner([ToolCall("a", "clerk", {"task": "Pay a."}), "Done."])
    tool = office.clerk(runner=runner, tools=[pay], target=CHAT)
    events = list(agent.stream(session, "go", script, tools=[tool], deps="base"))
    said = [event.text for event in events if event.kind == "progress"]
    assert said == ["gpt: the request is sent again in 0 s", 'pay {"what":"a"}', "paying a"]
    assert [deps for deps, _ in seen] == ["base"] and seen[0][1].startswith("office.agent-clerk-")
    assert list(other.log.records())[-1].n == 1  # its configuration
    with turnlog.open(seen[0][1], store=session._store) as child:
        assert child.target == CHAT


class Bill(msgspec.Struct):
    """What such an agent answers with."""

    total: int


@pytest.mark.parametrize("provider", ["openai-chat", "anthropic", "google"])
def test_the_answer_of_an_agent_may_have_a_type(provider: str) -> None:
    """A typed answer was told as the text around it, or lost where a tool gives it."""
    session = turnlog.open("s", store=":memory:", target=turnlog.target(provider, "scripted/demo"))
    runner = ScriptedRunner(["three", '{"total": 3}'])
    tool = agent.as_tool("count", "Counts.", runner=runner, output=Bill)
    turnlog.run(session, "go", ScriptedRunner([ToolCall("a", "count", {"task": "Count."}), "3."]), tools=[tool])
    assert told(session)["a"] == ("ok", '{"total":3}')


def test_cancelling_the_caller_cancels_the_agent() -> None:
    """The agent of a run that was stopped went on paying."""

    async def go() -> tuple[Session, str]:
        session = turnlog.open("office", store=Mortal(), target=CLAUDE)
        begun = asyncio.Event()

        async def wait() -> str:
            """Wait."""
            begun.set()
            await asyncio.Event().wait()
            return "never"

        tool = agent.as_tool("clerk", "Pays.", runner=ScriptedRunner([ToolCall("w", "wait", {})]), tools=[wait])
        script = ScriptedRunner([ToolCall("a", "clerk", {"task": "Pay a."})])
        task = asyncio.create_task(turnlog.arun(session, "go", script, tools=[tool]))
        await begun.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        [name] = [info.id for info in session._store.sessions() if info.parent]
        with turnlog.open(name, store=session._store) as child:
            return session, child.log.turns()[-1].status

    session, status = asyncio.run(go())
    assert (status, session.log.turns()[-1].status) == ("cancelled", "cancelled")


def test_a_turn_that_is_cancelled_ends_its_agent_at_the_next_event() -> None:
    """`turn.cancel()` from a page did not reach an agent, which went on to its end."""
    store, office = Mortal(), Office()
    session = turnlog.open("office", store=store, target=CLAUDE)

    def stop(what: str) -> str:
        """Pay."""
        active = session._turn.turn
        assert isinstance(active, turnlog.session.Turn)
        active.cancel("enough")
        return "paid"

    script = ScriptedRunner([lambda r: ToolCall(f"p{results_in(r)}", "pay", {"what": "a"})] * 50)
    tool = office.clerk(runner=script, tools=[agent.tool("pay", call=stop)])
    result = turnlog.run(session, "go", ScriptedRunner([ToolCall("a", "clerk", {"task": "Pay."})]), tools=[tool])
    [name] = children(store)
    with turnlog.open(name, store=store) as child:
        assert (child.log.turns()[-1].status, len(child.log.calls())) == ("cancelled", 1)
    assert (result.stop, session.log.turns()[-1].status) == ("interrupted", "cancelled")


def test_an_agent_may_call_agents() -> None:
    """Costs and limits ended at the first level."""
    store, office = Mortal(), Office()
    inner = office.clerk()
    runner = ScriptedRunner([lambda r: "Done." if results_in(r) else ToolCall("i", "clerk", {"task": "Pay z."})] * 5)
    middle = agent.as_tool("head", "Heads.", runner=runner, tools=[inner])
    session = turnlog.open("office", store=store, target=CLAUDE)
    script = ScriptedRunner([ToolCall("a", "head", {"task": "Go."}), "Ended."])
    result = turnlog.run(session, "go", script, tools=[middle], max_cost=1)
    assert (result.text, office.paid) == ("Ended.", ["z"])
    deep = [info for info in store.sessions() if info.parent not in ("", "office")]
    assert len(deep) == 1 and deep[0].id.startswith("office.agent-head-")
    all_of_it = sum(usage.output for bills in store.usages().values() for usage in bills.values())
    assert all_of_it > session.usage.output and session.total_cost.at_least > session.cost.at_least


# -- children by hand ------------------------------------------------------------------------------


def test_a_child_of_the_same_name_goes_on() -> None:
    """A second session lay beside the first one; or it was one that belongs to nobody."""
    store = MemoryStore()
    with turnlog.open("trip", store=store, target=CLAUDE, system="You plan.", budget=50_000) as session:
        with session.child("maps", system="You draw.", labels={"kind": "map"}) as child:
            turnlog.run(child, "Draw.", ScriptedRunner(["Drawn."]))
            assert (child.configuration.budget, child.target) == (session.configuration.budget, CLAUDE)
            held = list(child.log.records())
        with session.child("maps") as again:
            assert (again.id, list(again.log.records())[: len(held)]) == ("trip.agent-maps", held)
            assert again.log.labels == {"kind": "map"} and again.resumed is not None and not again.resumed.kept
        assert [info.parent for info in store.sessions() if info.id == "trip.agent-maps"] == ["trip"]
        with session.fork("other") as forked, forked.child("maps") as fresh:
            assert (fresh.id, len(fresh.log.turns())) == ("other.agent-maps", 0)
        assert session.cost.at_least == 0 < session.total_cost.at_least


def test_what_cannot_be_a_child_is_said() -> None:
    """A child was made of another session, or of nothing."""
    store = MemoryStore()
    turnlog.open("trip.agent-x", store=store).close()
    with turnlog.open("trip", store=store) as session:
        for name, says in (("", "name must say something"), ("x", "is no child of this one"), (3, "must be")):
            with pytest.raises(InputError, match=says):
                session.child(name)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="needs a target"):
            session.child("y", budget=9_000)
    with turnlog.open("trip", store=store, read_only=True) as reading, pytest.raises(StoreError, match="reading only"):
        reading.child("z")
    assert [info.id for info in store.sessions()] == ["trip", "trip.agent-x"]
    with pytest.raises(InputError, match="'step' is not an option"):
        agent.as_tool("a", "b", runner=ScriptedRunner(), step=3)  # type: ignore[call-arg]
    with pytest.raises(InputError, match="runner must be a runner"):
        agent.as_tool("a", "b", runner=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="only a run can call it"):
        asyncio.run(agent.as_tool("a", "b", runner=ScriptedRunner()).run({"task": "t"}, ToolContext()))
