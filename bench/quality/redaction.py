"""Secrets: what is found in real transcripts, and what looking for them costs.

`census`: every record of every transcript is redacted; each finding is printed without its secret, with what stands
around it, so that a person can judge it. What redaction changes is compared with what it must not touch (ids,
signatures, encrypted reasoning, hashes). Cost: seconds for redacting against seconds for counting tokens, over the same
records, the best of `--rounds`.

`lines`: every different line of text in the shared material, source code and all else, is searched by itself, and each
finding is printed with its line. Bar: at most one in 20,000 lines is no secret; `REAL` says which are.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness import Report, bench, by_turns, shared, transcripts
from turnlog.importers import Imported
from turnlog.redaction import Redactor
from turnlog.redaction.drafts import redacted, redacted_bytes
from turnlog.tokens.counters import count_message, counter_for

EXACT = {"id", "call_id", "item_id", "response_id", "signature", "encrypted", "sha256", "model", "before", "after"}
REAL = {"azure-signature"}
"""Of what is found in the shared material, the kinds that are secrets: one signed address. The passwords in addresses
are inputs of a test suite."""
COUNTERS = (("openai-chat", "gpt-4o"), ("anthropic", "claude-sonnet-4-5"), ("google", "gemini-2.5-pro"))


def exact(value: Any) -> Iterator[tuple[str, str]]:
    """The fields of a record, as builtins, that have to stay byte for byte."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key in EXACT and isinstance(item, str):
                yield key, item
            else:
                yield from exact(item)
    elif isinstance(value, list):
        for item in value:
            yield from exact(item)


class Census(Redactor):
    """A redactor that keeps what it replaced, with its surroundings."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[tuple[str, str], str] = {}

    def text(self, text: str) -> tuple[str, dict[str, int]]:
        for found in self.find(text):
            around = text[max(0, found.start - 60) : found.start], text[found.end : found.end + 20]
            self.seen.setdefault((found.kind, text[found.start : found.end]), f"{around[0]!r} ... {around[1]!r}")
        return super().text(text)


def changes(report: Report, sessions: list[tuple[Path, Imported]], show: int) -> None:
    redactor, kinds = Census(), Counter[str]()
    records = changed = harmed = size = 0
    for _, session in sessions:
        for data in session.blobs.values():
            kinds.update(redacted_bytes(data, redactor)[1])
        for draft in session.drafts:
            clean, counts = redacted(draft.body, redactor)
            records += 1
            before = msgspec.to_builtins(draft.body)
            size += len(msgspec.json.encode(before))
            if counts:
                changed += 1
                kinds.update(counts)
                harmed += list(exact(before)) != list(exact(msgspec.to_builtins(clean)))
            elif clean is not draft.body:
                harmed += 1
    figures = {"records": records, "MB": size / 1e6, "changed": changed, "with a changed id or signature": harmed}
    report.row("redacted", figures, at_most={"with a changed id or signature": 0})
    for kind, number in kinds.most_common():
        different = [place for (found, _), place in redactor.seen.items() if found == kind]
        report.row(kind, {"findings": number, "different": len(different)})
        for place in different[:show]:
            report.say(f"      {place}")


def strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def lines_of() -> set[str]:
    """The lines of all texts in the shared material: of JSON files and lines, those inside their strings."""
    lines: set[str] = set()
    for path in sorted(shared("data").rglob("*")):
        if path.suffix in (".jsonl", ".json", ".responses", ".traj", ".md", ".txt", ".py") and path.is_file():
            whole = path.read_text("utf-8", "replace")
            for text in (whole,) if path.suffix in (".json", ".traj") else whole.splitlines():
                try:
                    said = strings(json.loads(text))
                except ValueError:
                    said = iter(text.splitlines())
                lines.update(line for one in said for line in one.splitlines())
    return lines


def no_bytes(name: str) -> bytes:
    return b""


@bench(quick={"rounds": 1})
def census(report: Report, *, show: int = 5, rounds: int = 2) -> None:
    """What redaction finds in all real transcripts, and what it costs beside counting their tokens."""
    sessions = list(transcripts())
    changes(report, sessions, show)
    bodies = [draft.body for _, session in sessions for draft in session.drafts if hasattr(draft.body, "message")]
    redactor = Redactor()
    counters = {model: counter_for(provider, model) for provider, model in COUNTERS}
    works: dict[str, Any] = {"redacting": lambda: [redacted(body, redactor) for body in bodies]}
    for model, counter in counters.items():
        works[model] = lambda counter=counter: [count_message(body.message, counter, no_bytes) for body in bodies]
    taken = {name: min(each) for name, each in by_turns(works, rounds).items()}
    per_message = {"messages": len(bodies), "µs of CPU each": taken["redacting"] / len(bodies) * 1e6}
    report.row("redacting", {"s of CPU": taken["redacting"], **per_message})
    for model in counters:
        ratio = {"s of CPU": taken[model], "of it for redacting": taken["redacting"] / taken[model]}
        report.row(f"counted as {model}", ratio)


@bench()
def lines(report: Report) -> None:
    """How often redaction marks what is no secret: every line of the shared material."""
    found, redactor = sorted(lines_of()), Redactor()
    held = [(mark, line) for line in found for mark in redactor.find(line)]
    for mark, line in held:
        report.say(f"  {mark.kind}: {line[max(0, mark.start - 60) : mark.end + 20]!r}")
    wrong = sum(mark.kind not in REAL for mark, _ in held)
    figures = {"different lines": len(found), "findings": len(held), "false": wrong}
    report.row("lines", figures, at_most={"false": len(found) / 20_000})
