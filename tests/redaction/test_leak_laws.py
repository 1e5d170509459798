"""Wherever a secret was put and whatever was done to its session: no piece of it that can be told is left anywhere."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from planted import SECRETS

import turnlog
from agents import CHAT, says
from turnlog.errors import BudgetError, SessionNotFound
from turnlog.export import FORMATS
from turnlog.importers import Imported, read_file
from turnlog.importers.sync.session import without_secrets
from turnlog.log.messages import Media, Message, Reasoning, Text, Tool, ToolCall, text_of
from turnlog.log.store import Store
from turnlog.redaction import Redactor
from turnlog.redaction.scrub import scan, scrub
from turnlog.session.session import Session
from turnlog.stores import open_store
from turnlog.stores.records import blob_names

KINDS = ("memory", "s.db", "files:logs")
WAYS: tuple[dict[str, Any], ...] = (
    {"keep": 1},
    {"keep": 2, "budget": 3_000},
    {"budget": 1_500},
    {"budget": 1_500, "strategy": "mask"},
    {"budget": 3_000, "strategy": "graded"},
)
FINDER = Redactor()
EXAMPLES = max(10, settings.default.max_examples // 5) if settings.default else 20


class Planted(NamedTuple):
    """A secret by its name in `SECRETS`, the place that it is put in, and how much is said ahead of it and behind."""

    name: str
    place: str
    ahead: int
    behind: int

    @property
    def said(self) -> str:
        """What is said there."""
        return f"{_words(self.ahead)}{SECRETS[self.name][0]} {_words(self.behind)}"


def _words(size: int) -> str:
    return ("please decide what not to change in parser.py " * (size // 40 + 1))[:size] + " " if size else ""


def _calls(session: Session, arguments: dict[str, Any]) -> ToolCall:
    call = {"id": f"c{session.log.message_count}", "type": "function"}
    wire = {**call, "function": {"name": "sh", "arguments": json.dumps(arguments)}}
    message = {"role": "assistant", "content": None, "tool_calls": [wire]}
    return session.receive({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}).tool_calls[0]


def _streamed(session: Session, said: str, *, whole: bool) -> None:
    """In pieces of seven characters; one that breaks off does so behind what is said."""

    def chunks() -> Iterator[dict[str, Any]]:
        for start in range(0, len(said), 7):
            yield {"choices": [{"index": 0, "delta": {"role": "assistant", "content": said[start : start + 7]}}]}
        if not whole:
            raise OSError(f"lost: {said}")
        yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}

    with suppress(OSError):
        session.receive(chunks())


def _turned(session: Session, said: str) -> None:
    with suppress(ValueError), session.turn("now") as turn:
        call = _calls(session, {"path": "a"})
        turn.ask_approval(call, reason=said)
        turn.deny(call, reason=said)
        session.tool_finished(call, "failed", reason=said)
        raise ValueError(said)


def _file(session: Session, said: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        session.files(folder).record(f"{folder}/.env", b"A=1\n", f"A=1\n{said}\n".encode())


PLACES: dict[str, Callable[[Session, str], object]] = {
    "system": lambda session, said: session.system(said),
    "user": lambda session, said: session.user(said),
    "name": lambda session, said: session.add(Message("user", (Text("hi"),), name=said)),
    "answer": lambda session, said: session.receive(says(said)),
    "reasoning": lambda session, said: session.add(
        Message("assistant", (Reasoning("p", said, (said,), "sig"), Text("ok")))
    ),
    "arguments": lambda session, said: session.tool_result(_calls(session, {"deep": [{"er": [1, said]}]}), "done"),
    "keys": lambda session, said: session.tool_result(_calls(session, {"env": {said: 1}}), "done"),
    "result": lambda session, said: session.tool_result(_calls(session, {"path": "a"}), said),
    "failure": lambda session, said: session.tool_result(
        _calls(session, {"command": "make"}), f"error: {said}", outcome="failed"
    ),
    "attachment": lambda session, said: session.add(
        Message("user", (session.media(said.encode(), "text/plain", name=said),))
    ),
    "link": lambda session, said: session.add(Message("user", (Media("image", url=f"https://a.example/?q={said}"),))),
    "note": lambda session, said: session.note(said, said, {"k": [said], said: 2}),
    "turn": _turned,
    "setting": lambda session, said: session.configure(metadata={"about": said}),
    "tool": lambda session, said: session.configure(
        tools=[Tool("sh", said, {"type": "object", "properties": {"x": {"type": "string", "description": said}}})]
    ),
    "stream": lambda session, said: _streamed(session, said, whole=True),
    "broken stream": lambda session, said: _streamed(session, said, whole=False),
    "file": _file,
    "why": lambda session, said: session.pin(session.user("keep this").n, reason=said),
    "title": lambda session, said: session._store.rename(session.id, said),
    "replaced system text": lambda session, said: session.system(said, replace=True),
}


def wanted(name: str, *, cut: bool) -> list[bytes]:
    """What must not be left of a secret, in small letters as an index has them: any eight characters of it that tell
    something. With `cut`, of one that may have been cut off: its two ends, if it is random, and all of a word."""
    text, secret = SECRETS[name]
    lines = [line for line in secret.split() if len(line) >= 8 and not line.startswith("-----")]
    if not cut:
        pieces = [line[at : at + 8] for line in lines for at in range(len(line) - 7)]
        pieces = [piece for piece in pieces if any(map(str.isdigit, piece))]
    elif any(found.random for found in FINDER.find(text)):
        begins = [1 + max(line.rfind(mark, 0, 16) for mark in "-_.") for line in lines]  # what all of a kind begin with
        pieces = [piece for line, known in zip(lines, begins, strict=True) for piece in (line[: known + 8], line[-12:])]
    else:
        pieces = lines
    return [piece.lower().encode() for piece in pieces]


def held(store: Store, folder: str) -> dict[str, bytes]:
    """All that a store has, by where that is: its files, what it can be asked, and what is exported of it."""
    found = {path.name: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}
    for info in store.sessions():
        found[f"title of {info.id}"] = info.title.encode()
        for record in store.read(info.id):
            found[f"{info.id}, {record.n}"] = record.raw or b""
            found.update((name, store.get_blob(name)) for name in blob_names(record))
        for form in ("html", "markdown", "jsonl", "openai-chat"):
            with suppress(BudgetError):
                found[f"{info.id} as {form}"] = b"".join(FORMATS[form](store, info.id, []))
    for word in ("please", "parser", "token", "password", "bob"):
        found[f"search for {word}"] = repr(store.search(word)).encode()  # type: ignore[attr-defined]
    return found


def left(places: dict[str, bytes], planted: list[Planted], *, cut: bool) -> list[tuple[str, str, bytes]]:
    """The pieces of secrets that stand anywhere, and where."""
    low = {place: data.lower() for place, data in places.items()}
    return [
        (one.name, place, piece)
        for one in planted
        for piece in wanted(one.name, cut=cut)
        for place, data in low.items()
        if piece in data
    ]


def live_through(session: Session, planted: list[Planted], way: dict[str, Any]) -> None:
    """Says it all, with other talk around, and makes the view smaller."""
    for number, one in enumerate(planted):
        with session.turn(f"Task {number}: port module_{number}.py."):
            pass
        PLACES[one.place](session, one.said)
        session.assistant("It is done, and works. " * 20)
    session.user("And now?")
    with suppress(BudgetError):
        session.compact(**way)
    with suppress(BudgetError):
        session.request()


WORDS = sorted(name for name, (text, _) in SECRETS.items() if not any(found.random for found in FINDER.find(text)))
PLANTED = st.builds(
    Planted,
    st.sampled_from(sorted(SECRETS)) | st.sampled_from(WORDS),
    st.sampled_from(sorted(PLACES)),
    st.integers(0, 400),
    st.sampled_from((0, 30, 300, 4_000)),
)
DRAWN = st.lists(PLANTED, min_size=1, max_size=5)


def made(kind: str, folder: str) -> Store:
    """A store of a kind in a folder."""
    prefix, _, name = kind.rpartition(":")
    return open_store(":memory:" if name == "memory" else f"{prefix}{':' * bool(prefix)}{folder}/{name}")


class Life(NamedTuple):
    """How a session is kept and made smaller, by a model that quotes so many characters of both ends of each line (0:
    by none); and whether its fork is scrubbed first, it is packed, or deleted."""

    kind: str
    way: dict[str, Any]
    quotes: int
    fork_first: bool
    packed: bool
    deleted: bool

    def model(self, own: str) -> Callable[[str], str] | None:
        """Says what it has of its own, too."""

        def summarised(prompt: str) -> str:
            lines = [line for line in prompt.splitlines() if len(line) > 20][-30:]
            quoted = [quote for line in lines for quote in (f"{line[: self.quotes]}…", f"…{line[-self.quotes :]}")]
            return "\n".join([own, *quoted])

        return summarised if self.quotes else None


LIVES = st.builds(
    Life,
    st.sampled_from(KINDS),
    st.sampled_from(WAYS),
    st.sampled_from((0, 0, 60, 90, 200)),
    *[st.booleans()] * 3,
)


def opened(store: Store, planted: list[Planted], told: list[str], **more: Any) -> Session:
    """The session, which says secrets in its title and in what it is configured by; `told` is told of it."""
    session = turnlog.open("s", store=store, target=CHAT, settings=turnlog.Settings(title=planted[0].said, **more))
    session.on_event(lambda event: told.append(event.text))
    return session


def lived(store: Store, planted: list[Planted], life: Life, redact: bool | str) -> list[str]:
    """The session lives and has a fork, both are made smaller, and it is opened again. Returns what it told."""
    told: list[str] = []
    first, last = planted[0].said, planted[-1].said
    with opened(store, planted, told, redact=redact, summarizer=life.model(first)) as session:
        live_through(session, planted, life.way)
        if redact == "all":
            told.append(repr(session.request().body))
        with session.fork("fork", title=last) as fork, suppress(BudgetError):
            fork.compact(keep=1)
    aim = turnlog.target("openai-chat", "gpt-4o", metadata={"about": last})
    again = turnlog.open("s", store=store, target=aim, settings=turnlog.Settings(system=first, redact=redact))
    told += [event.text for event in again.events().waiting()]
    again.close()
    return told


@pytest.mark.slow
@pytest.mark.parametrize("live", [False, True])
@given(planted=DRAWN, life=LIVES)
@example(  # cut off behind eleven characters
    planted=[*[Planted("age key", "answer", 0, 0)] * 3, Planted("bearer", "keys", 41, 30)],
    life=Life("memory", {"keep": 1}, 0, False, False, False),
)
@settings(max_examples=EXAMPLES)
def test_nothing_is_left_of_what_was_redacted(live: bool, planted: list[Planted], life: Life) -> None:
    """Some of a key on the disk, in a listing, a search, a page or a request, or in a line about what happened.
    Or words around it that went with it."""
    with tempfile.TemporaryDirectory() as folder, closing(made(life.kind, folder)) as store:
        told = lived(store, planted, life, True if live else "all")
        cut = live or life.quotes > 0
        texts = [text_of(record.message) for record in store.read("s") if record.message is not None]
        for one in planted:
            around = _words(one.ahead), f" {_words(one.behind)}"
            assert one.place not in ("user", "answer", "stream") or any(
                text.startswith(around[0]) and text.endswith(around[1]) for text in texts
            )
        assert left(held(store, folder) | {"told": "\n".join(told).encode()}, planted, cut=cut) == []
        assert list(scan(store)) == [] and store.verify() == []


@pytest.mark.slow
@given(DRAWN, LIVES)
@settings(max_examples=EXAMPLES)
@example(
    [Planted("npm", "answer", 0, 0), Planted("curl", "arguments", 104, 0)],
    Life("memory", {"keep": 1}, 0, False, False, False),
)
def test_nothing_is_left_of_what_was_scrubbed(planted: list[Planted], life: Life) -> None:
    """Some of a key in a summary that was cut off in it, in a fork that reads what is scrubbed, in an index, a pack or
    a title; or all of a password whose name was cut off."""
    with tempfile.TemporaryDirectory() as folder, closing(made(life.kind, folder)) as store:
        lived(store, planted, life, False)
        store.search("please")  # type: ignore[attr-defined]
        if life.packed:
            store.pack("s")
        if life.deleted:
            store.delete("s")
        for name in ("fork", "s") if life.fork_first else ("s", "fork"):
            with suppress(SessionNotFound):
                scrub(store, name)
        assert left(held(store, folder), planted, cut=True) == []
        assert list(scan(store)) == [] and store.verify() == []


def run(text: str) -> Imported:
    """The run of a WebVoyager that was asked this."""
    said = [("system", "Imagine you are a robot browsing the web"), ("user", f"Now given a task: {text}")]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "interact_messages.json")
        path.write_text(json.dumps([{"role": role, "content": content} for role, content in said]))
        return read_file(path)[0]


def rollout(text: str) -> Imported:
    """A rollout of Codex in an editor, asked this."""
    asked = f"# Context from my IDE setup:\n## My request for Codex: {text}"
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": asked}]}
    lines = [("session_meta", {"id": "s", "timestamp": "2026-01-01T00:00:00Z"}), ("response_item", item)]
    told = [{"timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload} for kind, payload in lines]
    return read_file("\n".join(map(json.dumps, told)).encode())[0]


def body(text: str) -> Imported:
    """A request body that says this."""
    return read_file(json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode())[0]


@pytest.mark.parametrize("read", [run, rollout, body])
@given(name=st.sampled_from(sorted(SECRETS)), ahead=st.integers(0, 80), behind=st.integers(0, 80))
def test_no_title_holds_half_of_a_secret(read: Callable[[str], Imported], name: str, ahead: int, behind: int) -> None:
    """Most of a key in every listing: titles are cut off, and be it of a line that begins with words of the agent's
    own, so that no line of the log begins as the title does. Or a title that had none and is another one."""
    one = Planted(name, "title", ahead, behind)
    imported = without_secrets(read(one.said), FINDER)
    assert left({"title": imported.title.encode()}, [one], cut=True) == []
    plain = read(_words(ahead) + _words(behind))
    assert without_secrets(plain, FINDER).title == plain.title
