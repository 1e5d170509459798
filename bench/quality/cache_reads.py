"""Expected against billed reads from prompt caches, along recorded sessions.

Replays the transcripts that token_truth/chains.jsonl names: before each answer, turnlog makes the request for the model
that was billed, and says what it should read from the cache, by the rules of that model and the times on record. The
error is the difference to the billed read, in points of the billed input. Left out are first requests of a model, of
which nothing is known (other sessions may have filled the cache), and sessions of made-up models. Requests that should
have read something and read less than half of it are counted as evictions by the provider and listed apart; `all` are
the errors with them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

import turnlog
from harness import Report, bench, quantile
from quality.chains import recorded
from turnlog.importers import Imported
from turnlog.log.messages import Tool, ToolCall
from turnlog.log.records import Configuration, MessageRecord, PartialAnswer, UsageRecord
from turnlog.log.store import Draft
from turnlog.stores import MemoryStore

BAR = 3.0
MAKERS = {"claude": "anthropic", "gemini": "google"}
PROVIDERS = {"anthropic": "anthropic", "google": "google", "openai": "openai-responses"}


class Judged(NamedTuple):
    """A request: what it was expected to read from the cache, what it read, its billed input."""

    file: str
    model: str
    expected: int
    read: int
    billed: int

    @property
    def off(self) -> float:
        return 100 * abs(self.expected - self.read) / self.billed

    @property
    def evicted(self) -> bool:
        return self.read < self.expected / 2


def maker_of(model: str) -> str:
    return next((maker for word, maker in MAKERS.items() if word in model), "openai")


def steps(drafts: list[Draft]) -> Iterator[tuple[list[Draft], list[Draft]]]:
    """For each bill, the records before its answer, and the answer with the bill. Results that a log has between these
    two belong to the next request."""
    waiting: list[Draft] = []
    for draft in drafts:
        if not isinstance(draft.body, UsageRecord):
            waiting.append(draft)
            continue
        spoken = [i for i, one in enumerate(waiting) if isinstance(one.body, (MessageRecord, PartialAnswer))]
        answers = [i for i in spoken if waiting[i].body.message.role == "assistant"]
        end = answers[-1] + 1 if answers else len(waiting)
        start = end
        while answers and start and not (start - 1 in spoken and start - 1 not in answers):
            start -= 1
        yield waiting[:start], [*waiting[start:end], draft]
        waiting = waiting[end:]


def calls_of(body: object) -> list[ToolCall]:
    parts = body.message.parts if isinstance(body, (MessageRecord, PartialAnswer)) else ()
    return [part for part in parts if isinstance(part, ToolCall)]


def with_tools(draft: Draft, tools: tuple[Tool, ...]) -> Draft:
    """A configuration with the tools that the session calls, where a transcript does not say which were declared."""
    body = draft.body
    if not isinstance(body, Configuration) or body.tools:
        return draft
    return msgspec.structs.replace(draft, body=msgspec.structs.replace(body, tools=tools))


def replay(imported: Imported, file: str, model: str) -> Iterator[Judged]:
    store = MemoryStore()
    for data in imported.blobs.values():
        store.put_blob(data)
    billed: set[str] = set()
    drafts = [Draft(Configuration()), *imported.drafts]
    calls = (call for draft in drafts for call in calls_of(draft.body))
    tools = tuple(Tool(name, "", {"type": "object"}) for name in sorted({call.name for call in calls}))
    with turnlog.open("s", store=store, settings=turnlog.Settings(redact=False)) as session:
        for before, after in steps([with_tools(draft, tools) for draft in drafts]):
            store.append("s", before)
            bill = after[-1].body
            assert isinstance(bill, UsageRecord)
            name = bill.model or model
            if bill.usage.input:
                target = turnlog.target(bill.provider or PROVIDERS[maker_of(name)], name)
                expected = session.request(target).expected_cache_read
                if name in billed:
                    yield Judged(file, name, expected, bill.usage.cached, bill.usage.window or bill.usage.input)
                billed.add(name)
            store.append("s", after)


@bench(quick={"quick": True})
def cache_reads(report: Report, *, quick: bool = False, worst: int = 0) -> None:
    """Expected against billed reads from prompt caches, along recorded sessions."""
    made: dict[str, list[Judged]] = defaultdict(list)
    for chain, session in recorded(quick=quick):
        if not any(model.startswith(("fixture", "aide")) for model in chain["models"]):
            for judged in replay(session, chain["file"], chain["models"][-1]):
                made[maker_of(judged.model)].append(judged)
    for maker, members in sorted(made.items()):
        kept = [judged.off for judged in members if not judged.evicted]
        every = [judged.off for judged in members]
        figures = {
            "requests": len(members),
            "points off, median": quantile(kept, 0.5) if kept else 0.0,
            "points off, median of all": quantile(every, 0.5),
            f"% of all below {BAR:.0f}": 100 * sum(off < BAR for off in every) / len(every),
            "evicted by the provider": len(members) - len(kept),
        }
        report.row(maker, figures, at_most={"points off, median": BAR})
        for judged in sorted(members, key=lambda judged: -judged.off)[:worst]:
            what = "evicted" if judged.evicted else "read"
            report.say(f"    {judged.off:.1f} points, expected {judged.expected}, {what} {judged.read}: {judged.file}")
