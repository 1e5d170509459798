"""Curation of tool output on every tool result of the shared transcripts, and its time for hostile outputs.

`kinds` counts an identifier (as `idents.py` of the shared bench finds them) for a result if it first stands in that
result and a later message of the assistant uses it; `kept` is the share of them that is verbatim in the curated output,
`ends` the share that the head and the tail of the result keep in as many tokens. Both are of the results that became
shorter.

`sessions` replays each session with a budget of a share of its tokens and asks for a request before each answer. Of the
outputs that curation changed, it counts those that lost an identifier which one of the next three messages uses, and
which nothing else in the view has.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from msgspec.structs import replace

from harness import Report, bench, module, seconds, shared
from harness import transcripts as imported
from turnlog.errors import BudgetError
from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import MessageRecord, Record
from turnlog.models.target import target
from turnlog.session.open import open as open_session
from turnlog.stores import MemoryStore
from turnlog.tokens.counters import counter_for
from turnlog.view.curate.curate import LEAST, curated
from turnlog.view.curate.reading import ShownLines, read_of
from turnlog.view.curate.recognise import OUTPUTS, kind_of
from turnlog.view.fold import select

CLAUDE_CODE = ("claude-code", "agentcmd/claude", "/cua/")
GONE = re.compile(r"\[\.\.\. lines ([\d,]+)-([\d,]+) of .* unchanged since record \d+ \.\.\.\]")
SECONDS = 3.0
count = counter_for("openai-chat", "gpt-4o").text


def identifiers() -> ModuleType:
    """What finds identifiers, of the shared bench."""
    return module("idents", shared("bench", "context"))


def transcripts() -> Iterator[tuple[Path, list[Message]]]:
    """The messages of every session."""
    for path, session in imported():
        yield path, [draft.body.message for draft in session.drafts if hasattr(draft.body, "message")]


def results(messages: Iterable[Message]) -> Iterator[tuple[int, ToolCall, str]]:
    """Each text of a tool result, with the place of its message and its call."""
    calls: dict[str, ToolCall] = {}
    for i, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, ToolCall):
                calls[part.id] = part
            elif isinstance(part, ToolResult):
                call = calls.get(part.call_id, ToolCall("", part.name))
                yield from ((i, call, inner.text) for inner in part.parts if isinstance(inner, Text))


def said(message: Message) -> str:
    """The text of a message with the arguments of its calls."""
    found = [part.text for part in message.parts if isinstance(part, Text)]
    found += [part.raw_arguments for part in message.parts if isinstance(part, ToolCall)]
    for part in message.parts:
        if isinstance(part, ToolResult):
            found += [inner.text for inner in part.parts if isinstance(inner, Text)]
    return "\n".join(found)


def ends(text: str, tokens: int) -> str:
    """The head and the tail of a text in about so many tokens."""
    whole = max(1, count(text))
    size = int(len(text) * tokens / whole)
    cut = ""
    for _ in range(6):
        head = size * 2 // 3
        cut = f"{text[:head]}\n[... {len(text) - size:,} characters left out ...]\n{text[len(text) - (size - head) :]}"
        now = count(cut)
        if abs(now - tokens) <= max(8, tokens // 50):
            break
        size = max(0, int(size * tokens / max(1, now)))
    return cut


@bench(quick={})
def kinds(report: Report, *, show: str = "") -> None:
    """Kinds of real tool outputs: tokens before and after curation, and identifiers that are kept."""
    found: Counter[str] = Counter()
    shorter: Counter[str] = Counter()
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    used: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    at_ends: Counter[str] = Counter()
    seen_texts: set[int] = set()
    for path, messages in transcripts():
        names = identifiers()
        uses = [names.idents(said(m)) if m.role == "assistant" else {} for m in messages]
        last: dict[str, int] = {}
        for i, one in enumerate(uses):
            last.update(dict.fromkeys(one, i))
        texts = [said(m) for m in messages]
        for i, call, text in results(messages):
            key = hash((call.raw_arguments, text))
            if key in seen_texts:
                continue
            seen_texts.add(key)
            made = curated(call, text)
            made = made if len(text) >= LEAST else replace(made, kind=kind_of(call, text))
            found[made.kind] += 1
            tokens = count(text)
            before[made.kind] += tokens
            if not made.saved:
                after[made.kind] += tokens
                continue
            shorter[made.kind] += 1
            now = count(made.text)
            after[made.kind] += now
            head = "\n".join(texts[:i])
            own = [x for x in names.idents(text) if last.get(x, -1) > i and names.occurs(x, head) < 0]
            cut = ends(text, now)
            left = [x for x in own if names.occurs(x, made.text) >= 0]
            plain = [x for x in own if names.occurs(x, cut) >= 0]
            used[made.kind] += len(own)
            kept[made.kind] += len(left)
            at_ends[made.kind] += len(plain)
            if show == made.kind:
                report.say(f"--- {path.name} {i} {call.name} {call.raw_arguments[:150]} {tokens} -> {now}")
                report.say(f"    lost {[x for x in own if x not in left][:12]}")
                report.say(f"    only at the ends {[x for x in plain if x not in left][:12]}")
    for kind in OUTPUTS:
        mine, theirs = (part[kind] / max(1, used[kind]) for part in (kept, at_ends))
        figures = {
            "results": found[kind],
            "shorter": shorter[kind],
            "tokens": before[kind],
            "tokens after": after[kind],
            "identifiers used later": used[kind],
            "of them kept": mine,
            "of them kept at the ends": theirs,
        }
        report.row(kind, figures, at_least={"of them kept": theirs})
    totals = {"results": found.total(), "shorter": shorter.total(), "tokens": before.total()}
    report.row("all", {**totals, "tokens after": after.total()})


def outputs(size: int) -> dict[str, list[str]]:
    """Outputs that are hard for each kind."""

    def filled(piece: str) -> str:
        return (piece * (size // len(piece) + 1))[:size]

    noise = random.Random(1)
    pieces = ("\n", "a\n", "a", " ", "error\n", "x 1 error: a\n", "\x1b[", "\r", "a\x08", "0123456789\n")
    plain = [*map(filled, pieces), "".join(noise.choices("ab:1/\n\t<>{}[],\"'\\-+@ e", k=size))]
    own = {
        "search": [
            *map(filled, ("a:1:x\n", "a-1-", "a.b:")),
            "".join(f"src/f{n}.py:{n}:x\n" for n in range(600_000)),
        ],
        "listing": [
            *map(filled, ("a/", "node_modules/", "│ ")),
            "".join(f"d{n % 1000}/f{n}\n" for n in range(900_000)),
        ],
        "json": [
            *map(filled, ("[", '{"a":1}\n')),
            *(f"[{filled(piece)}0]" for piece in ("0,", "{},")),
            '{"a":' * 900_000,
            f'"{filled("a")}"',
        ],
        "diff": [*map(filled, ("@@ -1 +1 @@\n", "--- a\n+++ b\n@@ \n", "diff --git a b\n", "--- \n"))],
        "page": [*map(filled, ("<", "<!--", "<a ", "<script>", "</", "<p>", "<a href='", "&amp;", '<a href="x">'))],
        "table": [*map(filled, ("a,b,c\n", ",", '"', '"a,b\n', "1,2,3\n"))],
        "tests": [*map(filled, ("ok 1\n", "<testcase ", "FAILED\n", "<testcase a/>\n"))],
    }
    return {kind: [*plain, *own.get(kind, [])] for kind in OUTPUTS}


@bench(quick={"size": 100_000})
def hostile(report: Report, *, size: int = 12_000_000) -> None:
    """CPU that the curation of 12 MB of hostile output of each kind takes."""
    for kind, texts in outputs(size).items():
        worst, which = 0.0, -1
        for i, text in enumerate(texts):
            for output in (kind, "") if kind == "command" else (kind,):
                spent = seconds(lambda text=text, output=output: curated(ToolCall("", "tool"), text, output))  # type: ignore[misc]
                if spent > worst:
                    worst, which = spent, i
        figures = {"texts": len(texts), "s of CPU, slowest": worst, "is the slowest": repr(texts[which][:12])}
        report.row(kind, figures, at_most={"s of CPU, slowest": SECONDS})


@bench()
def reads(report: Report) -> None:
    """What of the repeated lines leaves the views of the Claude Code sessions."""
    tally: Counter[str] = Counter()
    for path, messages in transcripts():
        if "snapshots" in str(path) or not any(name in str(path) for name in CLAUDE_CODE):
            continue
        records = [Record(n, "", MessageRecord(message)) for n, message in enumerate(messages, start=1)]
        shown = {one.records[0]: one.message for one in select(records)[0]}
        last: dict[tuple[str, int], str] = {}
        ledger = ShownLines()
        for n, message in enumerate(messages, start=1):
            for part in message.parts:
                if isinstance(part, ToolCall):
                    ledger.edited(part)
            texts = zip(results_of(messages, n - 1), results_of([*messages[: n - 1], shown[n]], n - 1), strict=True)
            for (call, text), (_, now) in texts:
                found = read_of(call, text) if kind_of(call, text) == "read" else None
                if found is None:
                    continue
                tally["reads"] += 1
                marks = [range(int(a.replace(",", "")), int(b.replace(",", "")) + 1) for a, b in GONE.findall(now)]
                unchanged = ledger.repeats(found, n)
                for line, number, since in zip(found.lines, found.numbers, unchanged, strict=True):
                    size, gone = len(line) + 1, now != text and any(number in lines for lines in marks)
                    tally["characters"] += size
                    tally["left the view"] += size * gone
                    tally["of lines that an edit may have changed"] += size * (
                        bool(number) and last.get((found.path, number)) == line and not since
                    )
                    tally["repeat an unchanged line"] += size * bool(since)
                    last[found.path, number] = line
                ledger.shown(found, [0] * len(unchanged), n)
    share = tally["left the view"] / max(1, tally["repeat an unchanged line"])
    report.row("reads", {**tally, "share that leaves the view": share}, at_least={"share that leaves the view": 0.8})


NEXT = 3
LEAST_BUDGET = 4_000


@bench()
def sessions(report: Report, *, share: float = 0.2) -> None:
    """What the next messages use of outputs that were changed a moment ago."""
    tally: Counter[str] = Counter()
    for path, messages in transcripts():
        names = identifiers()
        uses = [names.idents(said(m)) if m.role == "assistant" else {} for m in messages]
        whole = sum(count(said(m)) for m in messages)
        budget = max(LEAST_BUDGET, int(share * whole)) if share else None
        session = open_session(target=target("openai-chat", "gpt-4o"), store=MemoryStore(), budget=budget)
        changed: set[int] = set()
        at: dict[int, int] = {}
        for i, message in enumerate(messages):
            if message.role == "assistant" and i:
                try:
                    view = session.request().view
                except BudgetError:
                    tally["requests that could not be made"] += 1
                    break
                shown = {one.records[0]: one for one in view if one.treatment == "curated"}
                for n in shown.keys() - changed:
                    now = said(shown[n].message)
                    soon = {x for one in uses[i : i + NEXT] for x in one}
                    text = said(messages[at[n]])
                    gone = [x for x in soon if names.occurs(x, text) >= 0 and names.occurs(x, now) < 0]
                    rest = "\n".join(said(one.message) for one in view) if gone else ""
                    lost = [x for x in gone if names.occurs(x, rest) < 0]
                    tally["outputs that were changed"] += 1
                    tally["of them lost what is used next"] += bool(lost)
                    if lost:
                        report.say(f"{path.name} record {n}: {lost[:5]}")
                changed |= shown.keys()
            at[session.add(message).n] = i
    most = {"of them lost what is used next": 0.03 * tally["outputs that were changed"]}
    report.row("sessions", dict(tally), at_most=most)


def results_of(messages: list[Message], at: int) -> list[tuple[ToolCall, str]]:
    """The texts of the results in one message, with their calls."""
    return [(call, text) for i, call, text in results(messages) if i == at]
