"""The chat in a terminal goes on, whatever a model or a command raises. tests/clients looks at real terminals."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import turnlog
from turnlog.chat.choice import Choice
from turnlog.chat.conversation import Chat
from turnlog.chat.terminal import _Terminal
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
