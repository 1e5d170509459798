"""Predictions of bills along recorded sessions, calibrated by the bills before.

Reads the transcripts that token_truth/chains.jsonl names, and replays their requests in order: each is predicted
from the bills before it and what was said since, then its own bill is observed. Left out are first
requests of a model, which nothing can be calibrated by, and those whose input shrank by more than 10 %
(compactions, whose new content a transcript does not tell).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from harness import Report, bench, quantile, shared
from turnlog.importers import Imported, read_file
from turnlog.log.records import MessageRecord, PartialAnswer, UsageRecord
from turnlog.log.usage import Count
from turnlog.tokens.calibration import Calibration
from turnlog.tokens.counters import count_message, counter_for

PROVIDERS = {"mini-swe-traj": "openai-chat", "pi-jsonl": "anthropic", "claude-code-jsonl": "anthropic"}
LEFT_OUT = ("codexbar-forks/",)
QUICK = ("pi-jsonl", "mini-swe-traj", "gemini-cli-json")

Spoken = MessageRecord | PartialAnswer


class Step(NamedTuple):
    """A request: what was said since the one before, its answer, its bill."""

    new: list[Spoken]
    answer: list[Spoken]
    bill: UsageRecord


class Judged(NamedTuple):
    """A prediction and its bill."""

    format: str
    file: str
    billed: int
    predicted: int

    @property
    def off(self) -> float:
        return abs(self.predicted - self.billed) / self.billed


def steps(session: Imported) -> Iterator[Step]:
    """Requests in order. The answer is the last run of an assistant's messages before its bill; results
    of tools that a log has between the two belong to the next request."""
    waiting: list[Spoken] = []
    for draft in session.drafts:
        body = draft.body
        if isinstance(body, (MessageRecord, PartialAnswer)):
            waiting.append(body)
        elif isinstance(body, UsageRecord):
            end = len(waiting)
            while end and waiting[end - 1].message.role != "assistant":
                end -= 1
            start = end
            while start and waiting[start - 1].message.role == "assistant":
                start -= 1
            if end == 0:
                yield Step(waiting, [], body)
                waiting = []
            else:
                yield Step(waiting[:start], waiting[start:end], body)
                waiting = waiting[end:]


def replay(session: Imported, chain: dict[str, Any]) -> Iterator[Judged]:
    inputs = {step["input"] for step in chain["steps"]}
    state = Calibration()
    total, last, model = 0, 0, ""
    for new, answer, bill in steps(session):
        provider = bill.provider or PROVIDERS.get(chain["format"], "")
        counter = counter_for(provider, bill.model)
        total += sum(count_message(spoken.message, counter).tokens for spoken in new)
        said = sum(count_message(spoken.message, counter).tokens for spoken in answer)
        counted = Count(total, counter.id)
        billed = bill.usage.input
        if billed:
            if bill.model == model and billed >= 0.9 * last and billed in inputs:
                predicted = state.predict(provider, counted).tokens
                yield Judged(chain["format"].split("|")[0], chain["file"], billed, predicted)
            state = state.observe(UsageRecord(provider, bill.model, bill.usage, counted=counted, answer=said))
            last, model = billed, bill.model
        total += said


def recorded(*, quick: bool) -> Iterator[tuple[dict[str, Any], Imported]]:
    """The sessions that token_truth/chains.jsonl names, each with its line; with `quick` those that are short."""
    data = shared("data")
    for line in (data / "token_truth/chains.jsonl").read_text("utf-8").splitlines():
        chain = json.loads(line)
        if not quick or chain["format"] in QUICK:
            yield from ((chain, session) for session in read_file(data / chain["file"]))


@bench(quick={"quick": True})
def chains(report: Report, *, quick: bool = False, worst: int = 0) -> None:
    """Predictions of bills along recorded sessions, calibrated by the bills before."""
    groups: dict[str, list[Judged]] = defaultdict(list)
    for chain, session in recorded(quick=quick):
        if not chain["file"].startswith(LEFT_OUT):
            for judged in replay(session, chain):
                groups[judged.format].append(judged)
                groups["all"].append(judged)
    for name, members in sorted(groups.items(), key=lambda item: (item[0] == "all", item[0])):
        errors = [100 * judged.off for judged in members]
        figures: dict[str, float] = {"requests": len(errors), "% error, mean": sum(errors) / len(errors)}
        figures |= {f"% error, p{at}": quantile(errors, at / 100) for at in (50, 99, 100)}
        report.row(name, figures)
    for judged in sorted(groups["all"], key=lambda judged: -judged.off)[:worst]:
        report.say(f"  {judged.off:6.1%} billed {judged.billed}, predicted {judged.predicted}: {judged.file}")
