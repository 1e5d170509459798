"""Golden values: hashes of requests, compared before and after a change that must not change any.

    python bench/run.py golden                  compare with bench/golden.txt (about 3 minutes on 2 cores)
    python bench/run.py golden --update         write bench/golden.txt anew
    python bench/run.py golden --show KEY       print what one line hashes, to compare it with another checkout

Each line has a key and three hashes:

- `bodies`: requests without a budget, from whole logs, from growing sessions, and from `repair` and `convert`;
- `edits`: the kinds and record numbers of their edits and losses;
- `budget`: requests of sessions that must make room, with their edits and losses.

The keys are the sessions of all transcripts in ../shared/data, batches of 50 damaged histories, and batches of
recorded request bodies.
"""

from __future__ import annotations

import json
import logging
import random
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import turnlog
from harness import Report, bench, main
from harness import shared as material
from turnlog.errors import TurnlogError
from turnlog.importers import read_file
from turnlog.stores import MemoryStore
from turnlog.testing import damaged_history

GOLDEN = Path(__file__).with_suffix(".txt")
HISTORIES, BATCH = 2_000, 50
CHUNKS = 6
"""A transcript grows in so many steps, with a request after each."""

FOLDERS = (
    "claude-code-entire", "claude-code-log", "agentcmd/claude", "cua", "codex-entire", "agentcmd/codex",
    "vibe-tracker", "agent-sessions-fixtures", "codexbar-forks", "tau-bench", "pi", "cline", "claude-agent-sdk",
    "webvoyager", "ui-tars", "gemini-entire", "gemini-cli-sessions", "agentcmd/gemini", "gemini-cli-responses",
    "swe-agent", "mini-swe-agent", "openhands",
)  # fmt: skip
TARGETS = (
    ("openai-chat", "gpt-4o", {}),
    ("openai-responses", "gpt-5", {"store": False, "include": ["reasoning.encrypted_content"]}),
    ("anthropic", "claude-sonnet-4-5", {"max_tokens": 8000, "thinking": {"type": "enabled", "budget_tokens": 2000}}),
    ("google", "gemini-3-pro", {}),
)
STRATEGIES = ("auto", "mask", "sliding", "summarise", "spec")
SHARES = (0.2, 0.4, 0.7)


class Told:
    """What was made for one key: three lists of lines."""

    def __init__(self) -> None:
        self.bodies: list[str] = []
        self.edits: list[str] = []
        self.budget: list[str] = []

    def without_budget(self, session: Any, aim: Any = None) -> None:
        body, changes = ask(session, aim)
        self.bodies.append(body)
        self.edits.append(changes)

    def within_budget(self, session: Any) -> None:
        self.budget.append(" ".join(ask(session)))

    def hashes(self) -> str:
        lists = (self.bodies, self.edits, self.budget)
        return " ".join(sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()[:16] for lines in lists)


def body_of(request: Any) -> str:
    return sha256(request.json() if hasattr(request, "json") else request.body()).hexdigest()[:16]


def changes_of(request: Any) -> str:
    """Kinds and record numbers, in a stable order: prose may be reworded."""
    edits = sorted((edit.kind, list(edit.records), edit.through) for edit in request.edits)
    losses = sorted((loss.kind, list(loss.records)) for loss in request.losses)
    return json.dumps([edits, losses])


def ask(session: Any, aim: Any = None) -> tuple[str, str]:
    try:
        request = session.request(aim)
    except TurnlogError as error:
        return type(error).__name__, ""
    return body_of(request), changes_of(request)


def opened(store: MemoryStore, name: str, index: int) -> Any:
    provider, model, settings = TARGETS[index]
    return turnlog.open(
        name,
        store=store,
        target=turnlog.target(provider, model, **settings),
        settings=turnlog.Settings(redact=False),
    )


def with_budget(session: Any, size: int, choice: int) -> None:
    limit = max(300, int(size * SHARES[choice % 3]))
    session.configure(budget=limit, strategy=STRATEGIES[choice % len(STRATEGIES)])


def grown(told: Told, history: Any, choice: int) -> None:
    """Play messages one by one to a target, with and without a budget; show them whole to every target."""
    sizes = []
    for index in range(len(TARGETS)):
        store = stored(history.blobs)
        with opened(store, "s", index) as session:
            for message in history.messages:
                session.add(message)
                if index == choice % len(TARGETS):
                    told.without_budget(session)
            told.without_budget(session)
            sizes.append(session.window.tokens)
        with opened(store, "s", index) as session:
            told.without_budget(session)
    index = choice % len(TARGETS)
    with opened(stored(history.blobs), "s", index) as session:
        with_budget(session, sizes[index], choice)
        for message in history.messages:
            session.add(message)
            told.within_budget(session)


def replayed(told: Told, imported: Any, number: int) -> None:
    """Show a growing transcript to every target, and the end of each of its beginnings within a budget."""
    drafts = imported.drafts
    size = max(1, -(-len(drafts) // CHUNKS))
    aims = [turnlog.target(provider, model, **settings) for provider, model, settings in TARGETS]
    store = stored(imported.blobs)
    with turnlog.open("s", store=store, settings=turnlog.Settings(redact=False)) as session:
        for at in range(0, len(drafts), size):
            store.append("s", drafts[at : at + size])
            for aim in aims if at + size >= len(drafts) else aims[number % len(aims) :][:1]:
                told.without_budget(session, aim)
    for step, at in enumerate(range(0, len(drafts), size)):
        store = stored(imported.blobs)
        store.create("s")
        store.append("s", drafts[: at + size])
        with opened(store, "s", number % len(aims)) as session:
            with_budget(session, session.window.tokens, number + step)
            told.within_budget(session)
            session.user("Go on.")
            told.within_budget(session)


def stored(blobs: dict[str, bytes]) -> MemoryStore:
    store = MemoryStore()
    for data in blobs.values():
        store.put_blob(data)
    return store


def histories(start: int) -> Told:
    told = Told()
    for seed in range(start, start + BATCH):
        history = damaged_history(random.Random(seed))
        grown(told, history, seed)
    return told


def recorded(lines: Sequence[str]) -> Told:
    told = Told()
    for line in lines:
        entry = json.loads(line)
        body = entry.get("request") or entry.get("body")
        if not isinstance(body, dict):
            continue
        for to, model, _ in (("", "", {}), *TARGETS):
            try:
                made = turnlog.convert(body, to=to, model=model) if to else turnlog.repair(body, own(body))
            except TurnlogError as error:
                told.bodies.append(type(error).__name__)
                continue
            told.bodies.append(body_of(made))
            told.edits.append(changes_of(made))
    return told


def own(body: dict[str, Any]) -> str:
    if "contents" in body:
        return "google"
    if "input" in body:
        return "openai-responses"
    anthropic = str(body.get("model")).startswith("claude") and "system" in body
    return "anthropic" if anthropic else "openai-chat"


def work_of(shared: Path) -> Iterator[tuple[str, str]]:
    """Kind and argument of each piece of work."""
    for start in range(0, HISTORIES, BATCH):
        yield "histories", str(start)
    number = 0
    for folder in FOLDERS:
        for path in sorted((shared / "data" / folder).rglob("*")):
            if path.suffix in (".jsonl", ".json", ".responses", ".traj") and not path.name.endswith(".meta.json"):
                yield "transcripts", f"{number}:{path}"
                number += 1
    requests = shared / "data" / "token_truth" / "requests.jsonl"
    count = sum(1 for _ in requests.open())
    for start in range(0, count, 250):
        yield "recorded", f"{start}:{requests}"


def work(job: tuple[str, str]) -> list[tuple[str, str, Told]]:
    warnings.simplefilter("ignore")
    logging.disable()
    kind, argument = job
    if kind == "histories":
        return [(f"histories/{argument}", argument, histories(int(argument)))]
    start, _, name = argument.partition(":")
    path = Path(name)
    if kind == "recorded":
        with path.open() as file:
            lines = [line for n, line in enumerate(file) if int(start) <= n < int(start) + 250]
        return [(f"recorded/{start}", argument, recorded(lines))]
    found = []
    for n, session in enumerate(read_file(path)):
        key = f"transcripts/{path.parent.name}/{path.name}#{n}"
        told = Told()
        replayed(told, session, int(start) + n)
        found.append((key, argument, told))
    return found


def made(job: tuple[str, str]) -> list[tuple[str, str]]:
    return [(key.replace(" ", "_"), told.hashes()) for key, _, told in work(job)]


def lines_of(key: str, shared: Path) -> Iterator[str]:
    """What one line of the file hashes."""
    for job in work_of(shared):
        kind, argument = job
        name = Path(argument.partition(":")[2]).name
        if not key.startswith(kind) or (kind == "transcripts" and name.replace(" ", "_") not in key):
            continue
        if kind != "transcripts" and key != f"{kind}/{argument.partition(':')[0]}":
            continue
        for found, _, told in work(job):
            if found.replace(" ", "_") == key:
                for what in ("bodies", "edits", "budget"):
                    yield from (f"== {what}", *getattr(told, what))
                return
    raise KeyError(f"no line has the key {key!r}")


@bench()
def golden(report: Report, *, update: bool = False, show: str = "", jobs: int = 2) -> None:
    """Hashes of requests, compared before and after a change that must not change any."""
    shared = material()
    if show:
        for line in lines_of(show, shared):
            report.say(line)
        return
    found: dict[str, str] = {}
    with ProcessPoolExecutor(jobs) as pool:
        for lines in pool.map(made, list(work_of(shared))):
            found.update(lines)
    if update:
        GOLDEN.write_text("".join(f"{key} {hashes}\n" for key, hashes in sorted(found.items())))
        report.say(f"{len(found)} lines written to {GOLDEN.name}")
        return
    known = dict(line.split(" ", 1) for line in GOLDEN.read_text().splitlines())
    differing = {"bodies differ": 0, "edits differ": 0, "budget differ": 0}
    for key in sorted({*known, *found}):
        pairs = zip(known.get(key, "- - -").split(), found.get(key, "- - -").split(), strict=True)
        changed = [what for what, (a, b) in zip(differing, pairs, strict=True) if a != b]
        for what in changed:
            differing[what] += 1
        if changed:
            report.say(f"{key}: {', '.join(what.split()[0] for what in changed)}")
    report.row("golden", {"lines": len(found), **differing}, at_most=dict.fromkeys(differing, 0))


if __name__ == "__main__":
    sys.exit(main(["golden", *sys.argv[1:]]))
