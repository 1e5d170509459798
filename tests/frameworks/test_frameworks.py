"""Programs of frameworks over turnlog's HTTP client: without a budget no byte of a request changes and all is on
record; with one, none is refused where the same program fails without turnlog."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from framework_pythons import pinned
from framework_runs import WINDOW, Bench, decisions, findings, moves
from recording_proxy import differences

TURNS = 12 if os.environ.get("CI") else 30
"""Without turnlog, programs fail in the tenth turn or so."""
PROGRAMS = {
    "plain_sdks": (
        "openai-chat openai-chat-stream openai-responses openai-responses-stream anthropic anthropic-stream google "
        "google-stream google-interactions"
    ),
    "openai_agents": (
        "chat chat-stream chat-handoffs chat-guardrail responses responses-stream responses-handoffs "
        "responses-guardrail"
    ),
    "pydantic_ai": "chat chat-stream responses responses-stream anthropic anthropic-stream google google-stream",
    "langchain": "chat chat-stream responses anthropic google graph",
    "google_adk": "google google-stream",
    "smolagents": "chat chat-stream",
    "strands": "chat anthropic google",
    "agent_framework": "chat chat-stream responses responses-stream",
}
"""The environments and the forms of their programs."""
IN_CI = {
    ("plain_sdks", "openai-responses-stream"),
    ("plain_sdks", "anthropic-stream"),
}
"""Cases that need no environment: they also run with `make test-clients`."""
CASES = [
    pytest.param(name, form, marks=[pytest.mark.clients] if (name, form) in IN_CI else [])
    for name, forms in PROGRAMS.items()
    for form in forms.split()
]
_IDS = (
    "it sends calls back without their ids, so that the same answer is recorded a second time, and the first taken back"
)
KNOWN = {
    ("langchain", "google"): _IDS,
}
"""What is known to be wrong, and why."""
SEVERAL = {"chat-handoffs", "responses-handoffs", "chat-guardrail", "responses-guardrail"}
"""Programs with several conversations."""
BIG = [("plain_sdks", form) for form in ("openai-chat", "openai-responses", "anthropic-stream", "google")]


def _python(name: str) -> tuple[Path, str]:
    """The Python and the program of an environment; skips where there can be none."""
    if name == "plain_sdks":
        return Path(sys.executable), name
    return pinned(name), f"{name}_agent"


def _expect_failure(request: pytest.FixtureRequest, why: str) -> None:
    if why:
        request.applymarker(pytest.mark.xfail(reason=why, raises=AssertionError, strict=False))


@pytest.mark.parametrize(("name", "form"), CASES)
def test_without_a_budget_no_byte_changes(
    name: str, form: str, bench: Bench, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A program that turns on turnlog's log would send other requests than before, or lose an answer or its bill."""
    _expect_failure(request, _IDS if (name, form) == ("langchain", "google") else "")
    _is_recorded_unchanged(bench, name, form, tmp_path, turns=TURNS, size=4_000)


@pytest.mark.parametrize(("name", "form"), BIG)
def test_large_bodies_do_not_change_either(name: str, form: str, bench: Bench, tmp_path: Path) -> None:
    """A body of over 300 kB would be sent in another way."""
    assert _is_recorded_unchanged(bench, name, form, tmp_path, turns=6, size=45_000) > 300_000


def _is_recorded_unchanged(bench: Bench, name: str, form: str, folder: Path, **sizes: int) -> int:
    """Compare a run without turnlog and one with its log. Returns the size of the largest body."""
    python, program = _python(name)
    bench.serve()
    plain = bench.run(python, program, form, folder / "plain.db", mode="plain", **sizes)
    assert (plain.refused, plain.told["error"], len(plain.told["answers"])) == ([], "", sizes["turns"])
    bench.proxy.replay(plain.exchanges)
    logged = bench.run(python, program, form, folder / "log.db", mode="log", **sizes)
    assert differences(plain.exchanges, logged.exchanges) == []
    assert {**logged.told, "cpu": 0} == {**plain.told, "cpu": 0}
    assert findings(folder / "log.db", plain) == []
    return max(len(each.body) for each in plain.exchanges)


@pytest.mark.parametrize(("name", "form"), CASES)
def test_with_a_budget_nothing_is_refused(
    name: str, form: str, bench: Bench, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A conversation that outgrows the model's window would end, as it does without turnlog, or be sent invalid."""
    _expect_failure(request, KNOWN.get((name, form), ""))
    python, program = _python(name)
    bench.serve(context_limit=WINDOW)
    plain = bench.run(python, program, form, tmp_path / "plain.db", mode="plain", turns=TURNS)
    assert plain.overflows > 0
    assert len(plain.told["answers"]) < TURNS
    bench.serve(context_limit=WINDOW)
    run = bench.run(python, program, form, tmp_path / "budget.db", mode="budget", turns=TURNS)
    assert (run.refused, run.overflows, run.told["error"], len(run.told["answers"])) == ([], 0, "", TURNS)
    assert run.told["failures"] == 0
    assert findings(tmp_path / "budget.db", run) == []
    if form not in SEVERAL:
        own = TURNS if moves(plain) else 0  # Agent Framework changes the beginning itself, once in each turn
        assert 0 < moves(run) <= decisions(tmp_path / "budget.db") + own


def test_bound_thinking_stays_valid(bench: Bench, tmp_path: Path) -> None:
    """Thinking would be sent after other messages than those it was made after, which the API refuses."""
    bench.serve(context_limit=WINDOW, bind_thinking=True)
    store = tmp_path / "budget.db"
    run = bench.run(Path(sys.executable), "plain_sdks", "anthropic-bound", store, mode="budget", turns=TURNS)
    assert (run.refused, run.overflows, run.told["error"], len(run.told["answers"])) == ([], 0, "", TURNS)
    assert findings(tmp_path / "budget.db", run) == []
