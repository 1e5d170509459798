"""Summaries by runners: ahead of need, on the living prefix, bounded in time and money, never waited for."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_programs import FakeProgram, saying

import turnlog
from turnlog.errors import InputError
from turnlog.log.messages import Message, Text
from turnlog.log.records import Decision, SummaryRecord
from turnlog.models.makers import PROVIDER_ROWS
from turnlog.models.target import Target, target
from turnlog.runners import ProgramRunner, RunnerSummarizer, ScriptedRunner
from turnlog.session import Session
from turnlog.stores import MemoryStore
from turnlog.summarize import Material
from turnlog.text_history import HistoryPrompt
from turnlog.view.types import Shown

NOTES = "Task: count the rows of every file (#2). Files: part1.py read. Open: the other files. The schema stays."
TARGETS = [target(name, row.model) for name, row in PROVIDER_ROWS.items()]


def finished() -> None:
    """Wait until no summary is being made."""
    for thread in [one for one in threading.enumerate() if one.name == "turnlog-summary"]:
        thread.join(10)


def conversed(
    summarizer: RunnerSummarizer, aim: Target, turns: int = 40, between: Callable[[], None] = finished, scale: int = 1
) -> tuple[Session, list[turnlog.Request]]:
    """A session that has had to make room, and its requests."""
    settings = turnlog.Settings(summarizer=summarizer)
    session = turnlog.open("s", store=MemoryStore(), target=aim, budget=6_000 * scale, settings=settings)
    session.system("Be brief.")
    requests = []
    for turn in range(turns):
        session.user(f"Turn {turn}: count the rows of part{turn}.py. " + f"More words of turn {turn}. " * 30 * scale)
        requests.append(session.request())
        requests[-1].json()
        between()
        session.assistant(f"part{turn}.py has {turn * 17} rows.")
    return session, requests


def summaries(session: Session) -> list[str]:
    """How the summaries on record ended, in order."""
    return [
        f"{one.body.state} {one.body.reason}".strip()
        for one in session.history()
        if isinstance(one.body, SummaryRecord)
    ]


def asked_of(runner: ScriptedRunner) -> str:
    """The question of the last request that a runner was sent."""
    return str(runner.requests[-1].view[-1].message.parts[0].text)  # type: ignore[union-attr]


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: aim.provider)
def test_a_summary_rides_on_the_living_prefix(aim: Target) -> None:
    """A request for a summary that the provider has to read anew, that it refuses, or whose text nobody uses."""
    runner = ScriptedRunner([NOTES] * 9)
    session, requests = conversed(RunnerSummarizer(runner, rides=True), aim)
    assert any(NOTES in str(shown.message) for shown in session.view())
    for asked in runner.requests:
        assert asked.target == aim and turnlog.check(asked.body, aim.provider) == []
        key = next(key for key in ("messages", "input", "contents") if key in asked.body)
        [own] = [one.body for one in requests if one.view == asked.view[:-1]]
        assert {**asked.body, key: asked.body[key][:-1]} == own, "the prefix of the conversation has changed"
    assert (
        "is about to be shortened" in asked_of(runner)
        and "at most 478 tokens" in asked_of(runner)
        and "think in at most 95 tokens" in asked_of(runner)
        and "quotation" not in asked_of(runner)
    )
    assert summaries(session).count("made") == len(runner.requests) > 0


def test_a_session_that_answers_by_a_schema_writes_no_summary() -> None:
    """A summary in the form of the answer: the agent goes on with nonsense."""
    runner = ScriptedRunner([NOTES] * 9)
    form = {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}}}
    session, requests = conversed(RunnerSummarizer(runner, rides=True), target("openai-responses", "gpt-5", text=form))
    assert all(request.body["text"] == form for request in requests)
    assert runner.requests != []
    assert not any("text" in asked.body for asked in runner.requests)
    assert any(NOTES in str(shown.message) for shown in session.view())


@pytest.mark.slow
def test_what_costs_less_is_asked() -> None:
    """A cheap model that reads everything anew, where reading it from the cache of the own model costs less; or the
    reverse."""
    found = {}
    for aim in (target("anthropic", "claude-sonnet-4-5"), target("openai-responses", "gpt-5.5-pro")):
        runner = ScriptedRunner([NOTES] * 9)
        conversed(RunnerSummarizer(runner), aim, scale=12)
        found[aim.model] = {asked.target.model for asked in runner.requests}
    assert found == {"claude-sonnet-4-5": {"claude-sonnet-4-5"}, "gpt-5.5-pro": {"gpt-5-mini"}}
    runner = ScriptedRunner([NOTES] * 9)
    conversed(RunnerSummarizer(runner, rides=False), target("anthropic", "claude-sonnet-4-5"))
    assert {asked.target.model for asked in runner.requests} == {"claude-haiku-4-5"}
    for provider, row in PROVIDER_ROWS.items():
        assert target(provider, row.maker.cheap_model).known


def test_no_request_waits_for_a_summary() -> None:
    """A model that does not answer, and a user who waits for it: this test would not end."""
    let = threading.Event()

    class Hanging(ScriptedRunner):
        async def stream(self, request: turnlog.Request) -> Any:
            while not let.is_set():
                await asyncio.sleep(0.01)
            async for chunk in super().stream(request):
                yield chunk

    session, _ = conversed(
        RunnerSummarizer(Hanging([NOTES] * 9), timeout=60), TARGETS[0], between=lambda: None, turns=40
    )
    let.set()
    made = [one.body for one in session.history() if isinstance(one.body, Decision) and one.body.action == "compact"]
    assert made and NOTES not in str(session.view())
    finished()


@pytest.mark.parametrize(
    ("script", "more", "reason"),
    [
        ([ConnectionError("down")], {}, "ConnectionError: down"),
        ([""], {}, "empty"),
        (["I'm sorry, but I can't help with that."], {}, "refusal"),
        (["words " * 9_000], {}, "inflated"),
        ([NOTES], {"max_cost": 0.000_001}, "more than max_cost or max_total allows"),
        ([NOTES], {"max_total": 0.000_001}, "more than max_cost or max_total allows"),
        ([lambda _: pytest.fail("asked")], {"input_limit": 20, "rides": False}, "too few"),
    ],
)
def test_every_failure_is_told_and_the_digest_stands_in(script: list[Any], more: dict[str, Any], reason: str) -> None:
    """A failed summary that stops the conversation, or that nobody hears of, or money that is spent against a limit."""
    runner = ScriptedRunner(script * 9)
    session, _ = conversed(RunnerSummarizer(runner, **more), TARGETS[0])
    failed = [one for one in summaries(session) if one.startswith("failed")]
    assert failed and reason in failed[0], failed
    [first, *_] = [
        one.body for one in session.history() if isinstance(one.body, Decision) and one.body.action == "compact"
    ]
    assert "Digest of records" in str(first.detail["replacement"])


def test_a_summary_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that nobody ends goes on being paid for."""
    ended = []

    class Slow(ScriptedRunner):
        async def stream(self, request: turnlog.Request) -> Any:
            try:
                await asyncio.sleep(60)
                yield {}
            finally:
                ended.append(True)

    session, _ = conversed(RunnerSummarizer(Slow(), timeout=0.05), TARGETS[0])
    assert ended and "gave no answer in 0.05 s" in summaries(session)[1]


@pytest.mark.slow
def test_money_is_counted_over_all_summaries() -> None:
    """A limit that each summary has for itself would be none."""
    runner = ScriptedRunner([NOTES] * 9)
    summarizer = RunnerSummarizer(runner, rides=True)
    conversed(summarizer, TARGETS[0], turns=80)
    assert summarizer.spent > 0 and len(runner.requests) > 2
    fewer = ScriptedRunner([NOTES] * 9)
    limited = RunnerSummarizer(fewer, rides=True, max_total=summarizer.spent * 3 / 4)
    conversed(limited, TARGETS[0], turns=80)
    assert 0 < len(fewer.requests) < len(runner.requests) and limited.spent <= summarizer.spent * 3 / 4


def test_a_program_writes_summaries_too(tmp_path: Path) -> None:
    """Any runner: a program gets the messages as a prompt."""
    program = FakeProgram(tmp_path, saying("claude", NOTES))
    runner = ProgramRunner("claude", command=program.path, model="haiku")
    session, _ = conversed(RunnerSummarizer(runner, timeout=30), target("anthropic", "claude-sonnet-4-5"), turns=24)
    assert any(NOTES in str(shown.message) for shown in session.view())
    assert "You make notes for an assistant" in program.calls[0]["prompt"]


def test_it_serves_a_text_history_and_says_what_it_needs() -> None:
    """Without a session there is no provider to go by: the error says so, and a target is enough."""
    material = Material(messages=(Shown(Message("user", (Text("Hi"),)), (1,)),), target=100, count=len)
    with pytest.raises(InputError, match=r"target=turnlog\.target"):
        RunnerSummarizer(ScriptedRunner([NOTES])).summarize(material)
    summarizer = RunnerSummarizer(ScriptedRunner([NOTES] * 3), target=target("openai-chat", "gpt-4o"))
    history = HistoryPrompt(summarizer=summarizer)
    for turn in range(60):
        history.add_message("assistant" if turn % 2 else "user", f"Turn {turn}: " + "count the rows of it. " * 40)
    history.build_prompt("Go on.")
    finished()
    assert NOTES in history.build_prompt("Go on.").prompt
    for wrong in ({"runner": print}, {"timeout": 0}, {"max_cost": -1}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            RunnerSummarizer(**{"runner": ScriptedRunner(), **wrong})
    assert json.dumps(summarizer.id)


def drafted(request: turnlog.Request) -> str:
    """A good answer, with a draft, to the question at the end of a request."""
    question = str(request.view[-1].message.parts[0].text)  # type: ignore[union-attr]
    found = re.search(r'under the line "(==== \w+ draft)".*"(==== \w+ notes)"', question, re.DOTALL)
    assert found is not None, question
    return f"{found[1]}\nFirst I think.\n{found[2]}\n{NOTES}"


@pytest.mark.parametrize("rides", [True, False])
def test_a_draft_is_paid_for_and_cut_off(rides: bool) -> None:
    """Thoughts of a model in the view of its successor, or an answer that takes longer than its time."""
    runner = ScriptedRunner([drafted] * 9)
    summarizer = RunnerSummarizer(runner, rides=rides)
    session, _ = conversed(summarizer, TARGETS[0])
    made = [one.body.text for one in session.history() if isinstance(one.body, SummaryRecord) and one.body.text]
    assert set(made) == {NOTES} and summarizer.spent > 0
    assert "First I think." not in str(session.view())
    asked = [int(n) for n in re.findall(r"at most (\d+) tokens", asked_of(runner))]
    assert len(asked) == 2 and sum(asked) <= 5 * 150  # the timeout, and what a model writes in a second


def test_a_draft_fits_into_the_limit_of_an_answer() -> None:
    """A session with short answers: its model is asked for more than it may write, and its notes break off."""
    runner = ScriptedRunner([drafted] * 9)
    aim = target("openai-responses", "gpt-5", max_output_tokens=300)
    conversed(RunnerSummarizer(runner, rides=True), aim)
    asked = [int(n) for n in re.findall(r"at most (\d+) tokens", asked_of(runner))]
    assert len(asked) == 2 and sum(asked) <= 300


def test_a_draft_without_notes_is_paid_for_and_told() -> None:
    """Money for an answer that nobody can use is not counted, and the digest does not stand in."""
    runner = ScriptedRunner(["==== draft\nI think and think."] * 9)
    summarizer = RunnerSummarizer(runner)
    session, _ = conversed(summarizer, TARGETS[0])
    failed = [one for one in summaries(session) if one.startswith("failed")]
    assert "a draft without notes" in failed[0] and summarizer.spent > 0


def test_the_question_names_what_stays() -> None:
    """A pinned message in the midst of what is summarised: the notes say it again."""
    runner = ScriptedRunner([NOTES] * 9)
    settings = turnlog.Settings(summarizer=RunnerSummarizer(runner, rides=True))
    session = turnlog.open("s", store=MemoryStore(), target=TARGETS[0], budget=6_000, settings=settings)
    for turn in range(40):
        asked = session.user(f"Turn {turn}: count the rows of part{turn}.py. " + f"More words of turn {turn}. " * 30)
        if turn == 3:
            session.pin(asked.n)
        session.request().json()
        finished()
        session.assistant(f"part{turn}.py has {turn * 17} rows.")
    staying = asked_of(runner).partition("so do the user's messages that begin with ")[2].partition(": do not write")[0]
    assert re.findall(r"Turn (\d+): count", staying) == ["0", "3"]
    session.close()
