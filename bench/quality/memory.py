"""The memory of a conversation on the shared transcripts.

`files` finds what a session changed by itself, from recorded changes and from the arguments of tools that write files.

Each line of references.jsonl is a reference ("that file", "it") in a shared transcript: where it is, a hash of its
message, as the transcripts are not part of this repository, and what people say that it stands for (`kind:value`, or
null for no file, symbol, command, URL, error, id, branch or person). The rules were made with half 1 alone; 2 and 3
were labelled for the end.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Literal

import turnlog
from harness import TESTS, Report, bench, module, seconds, shared, transcripts
from turnlog.errors import SessionNotFound
from turnlog.importers import Imported
from turnlog.log.messages import Text, ToolCall, ToolResult
from turnlog.log.records import Decision, FileChange, Note, Record
from turnlog.log.store import Draft, Store
from turnlog.memory import Entity, Memory
from turnlog.memory.recall import Recalled
from turnlog.memory.recall import recall as recalled
from turnlog.stores import MemoryStore, open_store
from turnlog.stores.words import role_and_text
from turnlog.tokens.counters import counter_for

RECORD, CHARACTER = 50e-6, 25e-9  # seconds of CPU
MOST_FILES = 200
RIGHT = 0.8
REFERENCES = Path(__file__).with_name("references.jsonl")
QUESTIONS = Path(__file__).with_name("recall.jsonl")
ANSWERED, SECONDS = 16, 0.3
SHARES = (0.1, 0.2, 0.3, 0.5, 0.7)
"""Shares of a session: a tenth, or the first of these that holds what must stay."""
WRITERS = re.compile(r"(?:Multi|Notebook)?Edit|Write|write_file|replace|edit|write|str_replace_based_edit_tool")
PATHS = ("file_path", "path", "absolute_path", "notebook_path")


def sessions() -> Iterator[tuple[str, Imported, list[Record]]]:
    """Every session of the shared transcripts, with its file and its records."""
    for path, session in transcripts():
        records = module("real_transcripts", TESTS).records_of(session.drafts)
        yield path.relative_to(shared("data")).as_posix(), session, records


def characters(record: Record) -> int:
    """The characters of a record's message."""
    total = 0
    for part in record.message.parts if record.message else ():
        if isinstance(part, Text):
            total += len(part.text)
        elif isinstance(part, ToolCall):
            total += len(part.raw_arguments)
        elif isinstance(part, ToolResult):
            total += sum(len(one.text) for one in part.parts if isinstance(one, Text))
    return total


@bench(quick={})
def fold(report: Report) -> None:
    """CPU that the fold of a memory takes for a record, and whether it gives the same record by record."""
    spent = allowed = 0.0
    number = unequal = 0
    slow = []
    for name, _, records in sessions():
        began = time.process_time()
        whole = Memory.of(records)
        took = time.process_time() - began
        may = RECORD * len(records) + CHARACTER * sum(map(characters, records))
        spent, allowed, number = spent + took, allowed + may, number + 1
        slow.append((took / may, name, len(records)))
        growing = Memory()
        for record in records:
            if not growing.follows(record):
                growing = Memory.of(records[: record.n])
            else:
                growing.take(record)
            if record.n % 5 == 0:
                _ = growing.facts
        unequal += growing != whole
    figures = {"sessions": number, "s of CPU": spent, "differ record by record": unequal}
    report.row("fold", figures, at_most={"s of CPU": allowed, "differ record by record": 0})
    for share, name, size in sorted(slow, reverse=True)[:3]:
        report.say(f"  slowest: {share:.2f} of what is allowed, {size} records, {name}")


def changed(records: list[Record]) -> dict[str, tuple[str, int]]:
    """The files that a session changed, each with what was done to it last ("": not known) and the record that says so,
    found without the memory."""
    last: dict[str, tuple[str, int]] = {}
    words = {"created": "created", "deleted": "deleted", "renamed": "moved", "modified": "edited"}
    calls: dict[str, str] = {}
    for record in records:
        if isinstance(record.body, FileChange):
            last[record.body.path] = words[record.body.action], record.n
        for part in record.message.parts if record.message else ():
            if isinstance(part, ToolCall) and WRITERS.fullmatch(part.name) and isinstance(part.arguments, dict):
                path = next((part.arguments[key] for key in PATHS if isinstance(part.arguments.get(key), str)), "")
                if path and part.arguments.get("command") != "view":
                    calls[part.id] = path
            elif isinstance(part, ToolResult) and part.call_id in calls:
                path = calls.pop(part.call_id)
                if part.outcome == "ok":
                    last.setdefault(path, ("", record.n))
    return {path: one for path, one in last.items() if not _is_named_longer(path, last)}


def _is_named_longer(path: str, others: Iterable[str]) -> bool:
    return any(other.endswith(f"/{path.removeprefix('./')}") for other in others)


def named(digest: str) -> dict[str, tuple[str, int]]:
    """The files that a digest names, each with its state and the record that says so."""
    section = re.search(r"## Files changed\n(.*?)(?:\n## |\Z)", digest, re.DOTALL)
    found: dict[str, tuple[str, int]] = {}
    root = ""
    for line in section[1].split("\n") if section else ():
        if line.startswith("in "):
            root = line[3:]
            continue
        folder, _, files = line.partition(": ")
        place = "" if folder == "./" else folder
        for name, state, record in re.findall(r"(?:^|, )(.+?) (edited|created|deleted|moved) \[(\d+)\]", files):
            path = f"{place}{name}"
            found[path] = state, int(record)
            if root and not path.startswith("/"):
                found[root + path] = state, int(record)
    return found


def without_decision(draft: Draft) -> Draft:
    """A draft, a note in place of a decision: agents compacted some of these sessions themselves."""
    return Draft(Note("decision"), draft.time) if isinstance(draft.body, Decision) else draft


@bench(quick={})
def files(report: Report) -> None:
    """Whether the digest of a tenth of each session names every file that the session changed."""
    target = turnlog.target("openai-chat", "gpt-4o")
    total = missing = wrong = number = refused = without = larger = 0
    seen = set()
    for name, imported, records in sessions():
        truth = changed(records)
        if not 0 < len(truth) <= MOST_FILES or imported.session_id in seen:
            continue
        store = MemoryStore()
        store.create("s")
        for data in imported.blobs.values():
            store.put_blob(data)
        store.append("s", [without_decision(draft) for draft in imported.drafts])
        with turnlog.open("s", store=store, target=target) as session:
            whole = session.window.tokens
            share = next((share for share in SHARES if _fits(session, int(share * whole))), 0.0)
            larger += share != SHARES[0]
            if not share:
                refused += 1
                continue
            made = [record.body for record in session.history() if isinstance(record.body, Decision)]
        texts = [
            text.text for one in made for message in one.replacement for text in message.parts if isinstance(text, Text)
        ]
        digests = [text for text in texts if "Digest of records" in text]
        if not digests:
            without += 1
            report.say(f"  {name}: {whole} tokens, {len(truth)} files, decisions {[one.action for one in made]}")
            continue
        seen.add(imported.session_id)
        told = named(digests[-1])
        states = {path: _told(path.removeprefix("./"), told) for path in truth}
        lost = [path for path, state in states.items() if not state]
        other = [path for path, (state, n) in truth.items() if state and not _agrees(state, n, states[path])]
        number, total, missing, wrong = number + 1, total + len(truth), missing + len(lost), wrong + len(other)
        if lost or other:
            report.say(f"  {name}: {whole} tokens, {len(truth)} files, missing {lost[:3]}, other state {other[:3]}")
    figures = {"sessions": number, "changed files": total, "not named": missing, "with another state": wrong}
    report.row("files", figures, at_most={"not named": 0, "with another state": 0})
    left = {"need more than a tenth": larger, f"more than {SHARES[-1]}": refused, "have no digest": without}
    report.row("sessions", left)


def _fits(session: turnlog.Session, budget: int) -> bool:
    session.configure(budget=max(1, budget))
    try:
        session.request()
    except turnlog.BudgetError:
        return False
    return True


def _agrees(state: str, n: int, told: set[tuple[str, int]]) -> bool:
    """Whether a digest tells this state of a file, or a change after it, such as one by a shell command."""
    return not told or any(state == known or n < at for known, at in told)


def _told(path: str, told: dict[str, tuple[str, int]]) -> set[tuple[str, int]]:
    """The states of a file in a digest, which may know it by a longer path."""
    return {state for known, state in told.items() if known == path or known.endswith(f"/{path}")}


def same(label: str | None, found: Entity | None) -> bool:
    """Whether an entity is the one that a label names. Either may name a file by a longer path."""
    if label is None or found is None:
        return label is None and found is None
    kind, _, value = label.partition(":")
    if kind != found.kind:
        return False
    left, right = (" ".join(one.removeprefix("~").split()).rstrip("/") for one in (value, found.value))
    if kind in ("file", "symbol"):
        left, right = (one.removeprefix("./").lstrip("*&.") for one in (left, right))
        return left == right or any(
            a.endswith(f"{sign}{b}") for sign in "/." for a, b in ((left, right), (right, left))
        )
    return left == right or (kind in ("command", "error") and (left in right or right in left))


@bench()
def references(report: Report, *, half: Literal["1", "2", "3"] = "1") -> None:
    """References ("that file", "it") in real transcripts, resolved as people labelled them."""
    wanted = [one for one in map(json.loads, REFERENCES.read_text("utf-8").splitlines()) if one["half"] == int(half)]
    places = {(one["file"], one["session"]) for one in wanted}
    logs = {(name, it.session_id): log for name, it, log in sessions() if (name, it.session_id) in places}
    right = 0
    for one in wanted:
        log = logs[one["file"], one["session"]]
        message = log[one["record"] - 1].message
        assert message is not None
        text = next(part.text for part in message.parts if isinstance(part, Text))
        assert sha256(text.encode()).hexdigest().startswith(one["hash"]), one["id"]
        end = one["start"] + len(one["reference"])
        rest = text[end : end + 200]
        again = rest.lower().find(one["reference"].lower())
        said = text[:end] + (rest if again < 0 else rest[:again])
        found = Memory.of(log[: one["record"] - 1]).resolve(one["reference"], said)
        first = found[0] if found else None
        good = same(one["entity"], first.entity if first else None)
        right += good
        if not good:
            told = f"{first.entity} ({first.reasons[0]})" if first else "none"
            report.say(f"  {one['id']} {one['reference']!r}: {told}, not {one['entity'] or 'none'}"[:300])
    figures = {"references": len(wanted), "right at rank 1": right}
    report.row(f"half {half}", figures, at_least={"right at rank 1": RIGHT * len(wanted)})


@bench()
def recall(report: Report) -> None:
    """Questions answered from a store of all real sessions, by the first three passages."""
    questions = [json.loads(line) for line in QUESTIONS.read_text("utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "all.db")
        for _, imported, _ in sessions():
            keep(store, imported)
        report.row("index", {"s": seconds(lambda: store.search("turnlog"), clock=time.perf_counter)})  # type: ignore[attr-defined]
        count = counter_for("", "").text
        count("the vocabulary is loaded")
        right, slowest, first, cpu = 0, 0.0, 0.0, 0.0
        for one in questions:
            began, spent = time.perf_counter(), time.process_time()
            found = recalled(store, one["question"], count=count)
            took = time.perf_counter() - began
            first, slowest = first or took, max(slowest, took)
            cpu = max(cpu, time.process_time() - spent)
            good = any(answers(store, one, passage) for passage in found[:3])
            right += good
            if not good:
                report.say(f"  {one['question']!r}: {[(it.session[:20], it.record) for it in found[:3]]}")
        store.close()
    figures = {
        "questions": len(questions),
        "answered": right,
        "s, first": first,
        "s, slowest": slowest,
        "s of CPU, most": cpu,
    }
    report.row("recall", figures, at_most={"s, first": SECONDS}, at_least={"answered": ANSWERED})


def keep(store: Store, imported: Imported) -> None:
    """Put a session into a store; of those with the same id the longest."""
    try:
        if store.info(imported.session_id).records >= len(imported.drafts):
            return
        store.delete(imported.session_id)
    except SessionNotFound:
        pass
    store.create(imported.session_id, title=imported.title)
    for data in imported.blobs.values():
        store.put_blob(data)
    store.append(imported.session_id, imported.drafts)


def answers(store: Store, question: dict[str, str], found: Recalled) -> bool:
    """Whether a passage is of a record that answers a question."""
    session = question["session"]
    own = found.session.startswith(session[:-1]) if session.endswith("*") else found.session == session
    own = found.session.endswith(session[1:]) if session.startswith("*") else own
    text = "".join(
        role_and_text(record)[1] for record in store.read(found.session, first=found.record, last=found.record)
    )
    return own and re.search(question["right"], text, re.IGNORECASE | re.DOTALL) is not None


@bench(quick={"turns": 30})
def cost(report: Report, *, turns: int = 300) -> None:
    """What appends and turns take in a session that asks for no memory. There is no bar: compare two versions."""
    with tempfile.TemporaryDirectory() as folder:
        with turnlog.open("a", store=Path(folder) / "a.db") as session:
            text = "look at src/app/dates.py " * 8
            took = seconds(lambda: [session.user(f"message {n}: {text}") for n in range(2 * turns)])
            report.row("appends", {"appends": 2 * turns, "s of CPU": took})
        chat = turnlog.target("openai-chat", "gpt-4o")
        with turnlog.open("b", store=Path(folder) / "b.db", target=chat, budget=4_000) as session:
            took = seconds(lambda: [_turn(session, n) for n in range(turns)])
            report.row("turns behind a budget of 4,000", {"turns": turns, "s of CPU": took})


def _turn(session: turnlog.Session, n: int) -> None:
    session.user(f"turn {n}: please look at src/app/part_{n % 40}.py and tell what it does " * 3)
    session.request()
    call = ToolCall(f"c{n}", "edit_file", {"path": f"src/app/part_{n % 40}.py", "old": "a", "new": str(n)})
    session.add(turnlog.Message("assistant", (call,)))
    session.tool_result(call, f"done: {n} " * 20)
    session.request()
    session.assistant(f"It is part {n} of the program. " * 5)
