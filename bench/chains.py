"""Predictions of bills along recorded sessions, calibrated by the bills before.

    python bench/chains.py [--shared ../shared] [--worst N]

Reads the transcripts that token_truth/chains.jsonl names, and replays their requests in order: each is predicted
from the bills before it and what was said since, then its own bill is observed. Left out are first
requests of a model, which nothing can be calibrated by, and those whose input shrank by more than 10 %
(compactions, whose new content a transcript does not tell).
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from turnlog.importers import Imported, read_file
from turnlog.log.records import MessageRecord, PartialAnswer, UsageRecord
from turnlog.log.usage import Count
from turnlog.tokens.calibration import Calibration
from turnlog.tokens.counters import count_message, counter_for

ROOT = Path(__file__).parent.parent
PROVIDERS = {"mini-swe-traj": "openai-chat", "pi-jsonl": "anthropic", "claude-code-jsonl": "anthropic"}
LEFT_OUT = ("codexbar-forks/",)

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


def quantile(values: list[float], at: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * at))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", default=str(ROOT.parent / "shared"))
    parser.add_argument("--worst", type=int, default=0)
    options = parser.parse_args()
    data = Path(options.shared) / "data"
    groups: dict[str, list[Judged]] = defaultdict(list)
    for line in (data / "token_truth/chains.jsonl").read_text("utf-8").splitlines():
        chain = json.loads(line)
        if chain["file"].startswith(LEFT_OUT):
            continue
        for session in read_file(data / chain["file"]):
            for judged in replay(session, chain):
                groups[judged.format].append(judged)
                groups["all"].append(judged)
    for name, members in sorted(groups.items(), key=lambda item: (item[0] == "all", item[0])):
        errors = [judged.off for judged in members]
        mean, p50, p99 = sum(errors) / len(errors), quantile(errors, 0.5), quantile(errors, 0.99)
        print(f"{name:18} mean {mean:6.2%}  p50 {p50:6.2%}  p99 {p99:6.2%}  worst {max(errors):6.1%}  n={len(errors)}")
    for judged in sorted(groups["all"], key=lambda judged: -judged.off)[: options.worst]:
        print(f"  {judged.off:6.1%} billed {judged.billed}, predicted {judged.predicted}: {judged.file}")


if __name__ == "__main__":
    main()
