"""Stores of many small sessions: forks and subagents, several agents, folders, models and labels, and hostile names."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

from hypothesis import strategies as st

from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import Body, MessageRecord, Note, UsageRecord
from turnlog.log.store import Draft, Store
from turnlog.log.usage import Usage
from turnlog.stores import MemoryStore
from turnlog.testing.hostile import HOSTILE

__all__ = ["AGENTS", "FOLDERS", "MODELS", "answered", "filled", "stores"]

AGENTS = ("", "claude-code", "codex")
FOLDERS = ("", "/home/me/app", "/home/me/app/sub", "/home/me/other", f"/{HOSTILE[2]}")
MODELS = ("claude-sonnet-4-5", "gpt-5", "no-price", HOSTILE[0])
TOOLS = ("read", "bash", HOSTILE[1])
_BEGIN = datetime(2026, 1, 30, 12)  # noqa: DTZ001 - written as UTC


def stores(most: int = 12) -> st.SearchStrategy[Store]:
    """Stores with up to so many sessions."""
    return st.randoms(use_true_random=False).map(lambda random: filled(random, random.randrange(most + 1)))


def filled(random: Random, many: int) -> Store:
    """A store with so many sessions."""
    store, names = MemoryStore(), list[str]()
    for n in range(many):
        name = f"s{n}"
        begin = _BEGIN + timedelta(hours=random.randrange(200))
        if names and random.random() < 0.2:
            origin = random.choice(names)
            store.fork(origin, name, at=random.randrange(store.info(origin).records + 1))
        else:
            parent = random.choice(names) if names and random.random() < 0.3 else ""
            title = random.choice(["", "Fix it", random.choice(HOSTILE)])
            store.create(name, title=title, parent=parent, created=_time(begin))
        _append(store, name, begin, _bodies(random))
        names.append(name)
    return store


def _append(store: Store, name: str, begin: datetime, bodies: list[Body]) -> None:
    times = (_time(begin + timedelta(seconds=20 * i)) for i in range(len(bodies)))
    store.append(name, [Draft(body, time=time) for body, time in zip(bodies, times, strict=False)])


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}.000Z"


def _bodies(random: Random) -> list[Body]:
    agent, folder = random.choice(AGENTS), random.choice(FOLDERS)
    bodies: list[Body] = [Note("program", "", {"agent": agent, "cwd": folder})] if agent else []
    if random.random() < 0.5:
        bodies.append(Note("labels", "", {"user": random.choice(["ada", HOSTILE[3]]), "folder": folder}))
    bodies.append(MessageRecord(Message("user", (Text(random.choice(["Please mend the login.", *HOSTILE])),))))
    answers = dict.fromkeys(
        random.choice([f"answer-{random.randrange(6)}", "", ""]) for _ in range(random.randrange(4))
    )
    for n, answer in enumerate(answers):
        bodies += answered(Random(answer) if answer else random, f"c{n}{answer}", answer)
    return bodies


def answered(random: Random, call: str, answer: str = "") -> list[Body]:
    """An answer with a call, its bill and its result."""
    tool = random.choice(TOOLS)
    usage = Usage(input=random.randrange(10**6), output=random.randrange(10**4), cached=random.randrange(9))
    result = ToolResult(call, tool, (Text("needlework"),), outcome=random.choice(["ok", "ok", "failed"]))
    return [
        MessageRecord(Message("assistant", (ToolCall(call, tool),)), response_id=answer),
        UsageRecord("anthropic", random.choice(MODELS), usage, response_id=answer),
        MessageRecord(Message("user", (result,))),
    ]
