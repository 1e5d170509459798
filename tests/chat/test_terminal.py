"""The chat in a terminal goes on, whatever a model or a command raises. tests/clients looks at real terminals."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import turnlog
from turnlog.agent import LoopEvent
from turnlog.chat.choice import Choice
from turnlog.chat.conversation import Chat
from turnlog.chat.terminal import _Terminal
from turnlog.log.messages import ToolCall
from turnlog.log.store import Store
from turnlog.runners import DEMO_MODEL, ScriptedRunner
from turnlog.stores import MemoryStore


def test_an_error_that_nobody_knows_is_shown_and_the_chat_goes_on(tmp_path: Path) -> None:
    """An error that is not turnlog's, of a runner or a command, ends the chat, or is never seen."""
    aim = turnlog.target("openai-chat", DEMO_MODEL)
    store = MemoryStore()
    start = partial(turnlog.open, store=store, settings=turnlog.Settings())
    choice = Choice(aim, ScriptedRunner([ValueError("down\x1b[2J"), "Here."]))
    talk = Chat(store, start, start("s", target=aim), choice, folder=tmp_path)
    shown: list[str] = []

    async def live() -> None:
        with create_pipe_input() as keys:
            terminal = _Terminal(talk, None, keys, DummyOutput())
            terminal._out = shown.append
            await terminal._answer("go")
            await terminal._take("/export json " + "a" * 5_000)
            await terminal._answer("again")

    asyncio.run(live())
    text = "".join(shown)
    assert "ValueError: down\\u001b[2J" in text and "too long" in text and "Here." in text


def test_a_session_that_is_opened_again_shows_where_it_was(tmp_path: Path) -> None:
    """Whoever comes back the next day sees an empty screen, and asks what was answered already."""
    aim = turnlog.target("openai-chat", DEMO_MODEL)
    store = MemoryStore()
    start = partial(turnlog.open, store=store, settings=turnlog.Settings())
    with start("s", target=aim) as session:
        turnlog.run(session, "Count.", ScriptedRunner(["\n\n".join(map(str, range(100)))]))
    talk = Chat(store, start, start("s"), Choice(aim, ScriptedRunner()), folder=tmp_path)
    shown: list[str] = []
    with create_pipe_input() as keys:
        terminal = _Terminal(talk, None, keys, DummyOutput())
        terminal._out = shown.append
        terminal._welcome()
    text = "".join(shown)
    assert "> Count." in text and "more lines" in text and "99" in text and "/history lists" in text
    assert len(text.splitlines()) < 30


@contextmanager
def opened(store: Store, folder: Path, *answers: object) -> Iterator[tuple[_Terminal, list[str]]]:
    """A terminal without a screen, with a model that says these answers; and what is written to it."""
    aim = turnlog.target("openai-chat", DEMO_MODEL)
    start = partial(turnlog.open, store=store, settings=turnlog.Settings())
    talk = Chat(store, start, start("s", target=aim), Choice(aim, ScriptedRunner([*answers])), folder=folder)
    shown: list[str] = []
    with create_pipe_input() as keys:
        terminal = _Terminal(talk, None, keys, DummyOutput())
        terminal._out = shown.append
        yield terminal, shown


def test_a_command_at_a_question_is_run_and_the_question_stays(tmp_path: Path) -> None:
    """`/diff`, to see before one says yes, refuses the call and is told to the model as the reason."""
    call = ToolCall("c1", "run_command", {"command": "echo made > new.txt"})

    async def live() -> None:
        terminal._begin("go")
        while terminal._question is None:
            await asyncio.sleep(0)
        for line in ("/cost", "/nonsense", "/rewind"):
            await terminal._take(line)
            assert terminal._question is not None
        await terminal._take("y")
        assert terminal._answering is not None
        await terminal._answering

    with opened(MemoryStore(), tmp_path, call, "Done.") as (terminal, shown):
        asyncio.run(live())
    text = "".join(shown)
    assert "> /cost" in text and "no command /nonsense" in text and "/rewind cannot run while" in text
    assert "Done." in text and (tmp_path / "new.txt").exists()


def test_the_output_of_a_running_command_is_seen_as_it_comes(tmp_path: Path) -> None:
    """A build of ten minutes is a still screen; or its output acts on the terminal, or fills it."""
    with opened(MemoryStore(), tmp_path) as (terminal, shown):
        for piece in (b"one\ntw", b"o\x1b[2J\n", b"10 %\r20", b" %\r", b"30 %"):
            terminal._heard(piece)
        seen = "".join(text for _, text in terminal._message())
        assert seen == "one\ntwo\\u001b[2J\n30 %\n> "
        terminal._heard(b"\n" + b"x" * 5_000_000)
        terminal._heard(b"\nline" * 100)
        assert "".join(text for _, text in terminal._message()).count("line") == 12
        terminal._tell(LoopEvent(kind="tool_result", call=ToolCall("c", "run_command", {}), text="ok", outcome="ok"))
        assert "".join(text for _, text in terminal._message()) == "> " and "".join(shown).count("line") == 12


def test_the_cost_stays_in_the_status_line(tmp_path: Path) -> None:
    """At 80 columns the id of the session stands where the cost should be."""
    facts = {"session": "s" * 25, "model": "claude-sonnet-4-5", "tokens": "12,345 of 190,000 tokens"}
    with opened(MemoryStore(), tmp_path) as (terminal, _):
        terminal._facts = facts | {"cached": "98 % cached", "cost": "$0.1234"}
        lines = {}
        for width in (120, 80, 60, 40, 20):
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("COLUMNS", str(width))
                lines[width] = terminal._toolbar()
    assert lines[120] == f" {' | '.join(terminal._facts.values())}"
    assert lines[80] == " claude-sonnet-4-5 | 12,345 of 190,000 tokens | 98 % cached | $0.1234"
    assert all(line.endswith("$0.1234") and len(line) < width for width, line in lines.items())


def test_what_was_typed_is_kept_without_secrets(tmp_path: Path) -> None:
    """A key that was pasted into the chat stays in the file of what was typed, for good, and the log has a mark."""
    aim, place = turnlog.target("openai-chat", DEMO_MODEL), tmp_path / "chat-history"
    key = "ghp_" + "x7Kq2mNv9LpR4tYw8ZcB1dFgH6jS3aEuT5oP"
    for settings in (turnlog.Settings(), turnlog.load_settings(redact=False)):
        store = MemoryStore()
        start = partial(turnlog.open, store=store, settings=settings)
        talk = Chat(store, start, start("s", target=aim), Choice(aim, ScriptedRunner()), folder=tmp_path)
        with create_pipe_input() as keys:
            kept = _Terminal(talk, place, keys, DummyOutput())._prompt.history
            kept.append_string(f"use {key}\nnow")
        assert kept.get_strings()[-1] == f"use {key}\nnow"
        assert (key in place.read_text()) is (settings.redact is False) and "+use " in place.read_text()
