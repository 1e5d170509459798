"""Secrets: what is found in real transcripts, and what looking for them costs.

    python bench/redaction.py --shared ../shared [--show 40]
    python bench/redaction.py --shared ../shared --lines

Census: every record of every transcript is redacted; each finding is printed without its secret, with
what stands around it, so that a person can judge it. What redaction changes is compared with what it must
not touch (ids, signatures, encrypted reasoning, hashes). Cost: seconds for redacting against seconds for
counting tokens, over the same records, the best of `--rounds`.

With `--lines`: every different line of text in the shared material, source code and all else, is searched by itself,
and each finding is printed with its line. Bar: at most one in 20,000 lines is no secret; `REAL` says which are.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from turnlog.importers import Imported
from turnlog.redaction import Redactor, redacted, redacted_bytes
from turnlog.tokens.counters import count_message, counter_for

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))
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


def census(sessions: list[tuple[Path, Imported]], show: int) -> int:
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
    print(f"{records:,} records, {size / 1e6:.1f} MB: {changed:,} changed, ids and signatures changed in {harmed}")
    for kind, number in kinds.most_common():
        different = [place for (found, _), place in redactor.seen.items() if found == kind]
        print(f"  {kind:24} {number:>6} findings, {len(different):>4} different")
        for place in different[:show]:
            print(f"      {place}")
    return harmed


def strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def lines_of(shared: Path) -> set[str]:
    """The lines of all texts in the shared material: of JSON files and lines, those inside their strings."""
    lines: set[str] = set()
    for path in sorted((shared / "data").rglob("*")):
        if path.suffix in (".jsonl", ".json", ".responses", ".traj", ".md", ".txt", ".py") and path.is_file():
            whole = path.read_text("utf-8", "replace")
            for text in (whole,) if path.suffix in (".json", ".traj") else whole.splitlines():
                try:
                    said = strings(json.loads(text))
                except ValueError:
                    said = iter(text.splitlines())
                lines.update(line for one in said for line in one.splitlines())
    return lines


def false_marks(shared: Path) -> int:
    """Print every finding in a line of the shared material, with its line."""
    lines, redactor = sorted(lines_of(shared)), Redactor()
    held = [(found, line) for line in lines for found in redactor.find(line)]
    for found, line in held:
        print(f"  {found.kind}: {line[max(0, found.start - 60) : found.end + 20]!r}")
    wrong = sum(found.kind not in REAL for found, _ in held)
    print(f"{len(lines):,} different lines, {len(held)} findings, {wrong} false")
    met = wrong * 20_000 <= len(lines)
    print("bar:", "met" if met else "MISSED")
    return 0 if met else 1


def cost(sessions: list[tuple[Path, Imported]], rounds: int) -> None:
    messages = [
        (draft.body, draft.body.message)
        for _, session in sessions
        for draft in session.drafts
        if hasattr(draft.body, "message")
    ]
    redactor = Redactor()
    looking = min(timed(lambda: [redacted(body, redactor) for body, _ in messages]) for _ in range(rounds))
    print(f"{len(messages):,} messages: redacted in {looking:.2f} s ({looking / len(messages) * 1e6:.0f} µs each)")
    for provider, model in COUNTERS:
        counter = counter_for(provider, model)
        seconds = min(
            timed(lambda counter=counter: [count_message(message, counter, no_bytes) for _, message in messages])  # type: ignore[misc]
            for _ in range(rounds)
        )
        print(f"  counted as {model:18} in {seconds:6.2f} s; redacting costs {looking / seconds:.2f} of that")


def no_bytes(name: str) -> bytes:
    return b""


def timed(work: Any) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", default=str(ROOT.parent / "shared"))
    parser.add_argument("--show", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--lines", action="store_true", help="search each line of the shared material by itself")
    options = parser.parse_args()
    if options.lines:
        return false_marks(Path(options.shared))
    sessions = list(importlib.import_module("real_transcripts").imported(Path(options.shared)))
    harmed = census(sessions, options.show)
    cost(sessions, options.rounds)
    return 1 if harmed else 0


if __name__ == "__main__":
    sys.exit(main())
