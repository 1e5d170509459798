"""`chat`: talk with a model, in a terminal or in a pipe."""

from __future__ import annotations

import asyncio
import shlex
import sys
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from .._platform.alike import grouped
from .._platform.stdlib import quiet_log
from .._platform.texts import install_extra
from .._platform.units import counted
from .._platform.visible import visible
from ..chat.choice import Choice, choice_for, chosen
from ..chat.conversation import Chat, busy_in_words
from ..chat.plain import answer_once
from ..errors import InputError, RunnerError, SessionNotFound, StoreError
from ..log.records import MessageRecord, PartialAnswer
from ..log.store import LATEST, Store
from ..runners.programs.runner import PROGRAMS
from ..session import Session
from ..session.open import open as open_session
from ..session.titles import shown_title
from ..stores import default_path
from ..stores.ids import session_named, short_ids
from .arguments import AN_ID, add_command
from .stores import opened, settings_of
from .terminal import flush, is_terminal, out, out_bytes, out_json, say, stdin_bytes


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, store, "chat")
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--model", metavar="PROVIDER/MODEL", default="", help="the model (default: one whose key is set)")
    who.add_argument("--program", metavar="PROGRAM", choices=tuple(PROGRAMS), help=f"a program: {', '.join(PROGRAMS)}")
    text = "another server that speaks the provider's API, such as http://127.0.0.1:8080/v1"
    parser.add_argument("--base-url", metavar="URL", default="", help=text)
    text = "a server that imitates OpenAI's Chat API (`turnlog models --servers`; default: by URL or model)"
    parser.add_argument("--server", metavar="SERVER", default="", help=text)
    which = parser.add_mutually_exclusive_group()
    text = "go on with the last session"
    which.add_argument("-c", "--continue", dest="session", action="store_const", const=LATEST, default="", help=text)
    text = f"go on with a session ({AN_ID}), or give a new one this id"
    which.add_argument("--session", metavar="ID", default="", help=text)
    text = "tools that run without a question, with commas between them: read_file, list_folder, search, edit_file, "
    parser.add_argument("--allow", metavar="TOOLS", default="", help=f"{text}run_command, or all")
    parser.add_argument("-p", metavar="PROMPT", dest="prompt", default=None, help="say this, print the answer, and end")
    parser.add_argument("--json", action="store_true", help="with -p or in a pipe: the events, one JSON object a line")
    parser.set_defaults(run=_chat)


def _chat(arguments: Namespace) -> int:
    settings = settings_of(arguments)
    prompt = arguments.prompt
    if prompt is None and not is_terminal(sys.stdin):
        prompt = stdin_bytes().decode("utf-8", "replace")
    if prompt is not None and not prompt.strip():
        raise InputError("nothing to say: give -p PROMPT, or a prompt on standard input")
    with opened(arguments, write=True, make=arguments.session != LATEST) as store:
        start = partial(open_session, store=store, settings=settings)
        there = _found(store, arguments)
        with busy_in_words(arguments.session):
            session, choice = _begun(arguments, start, there=there)
        begun, failed = session.id, False
        _say_which(store, arguments, there=there)
        try:
            allowed = set(filter(None, arguments.allow.split(",")))
            talk = Chat(store, start, session, choice, folder=Path.cwd(), allowed=allowed)
            try:
                return asyncio.run(_once(talk, prompt, arguments) if prompt is not None else _in_terminal(talk))
            except RunnerError:
                failed = prompt is not None
                raise
            finally:
                session = talk.session
        finally:
            session.close()
            if not there:
                _remove_empty(store, begun, failed=failed)


def _found(store: Store, arguments: Namespace) -> bool:
    """Whether the session that is meant exists; then `session` becomes its whole id. Raises SessionNotFound for a name
    that several have, and for `latest` and -2 where there is no such session."""
    name = arguments.session
    if not name:
        return False
    try:
        arguments.session = session_named(store, name)
    except SessionNotFound:
        if name == LATEST or name[:1] == "-" or any(info.id.startswith(name) for info in store.sessions()):
            raise
        return False
    return True


def _say_which(store: Store, arguments: Namespace, *, there: bool) -> None:
    """Say with which session the chat goes on, or that a new one got the name: a slip of the finger would begin anew,
    without a word of what was said before."""
    name = arguments.session
    if name and not there:
        say(f"new session {name}")
    if not there:
        return
    info = store.info(name)
    title = shown_title(store, info)
    most = max(8, len(short_ids([name], store.sessions())[name]))
    shown = f"{name[:most]}…" if len(name) > most + 1 else name
    say(visible(f'going on with {shown} "{title}" ({counted(info.messages, "message")})', one_line=True))


def _remove_empty(store: Store, session_id: str, *, failed: bool) -> None:
    """Delete a session that this command created if it has no messages or, where the answer to its only prompt
    `failed`, nothing from the model."""
    with suppress(StoreError):  # somebody else deleted it, or writes to it
        info = store.info(session_id)
        bodies = (record.body for record in store.of_kinds(session_id, ("message", "partial")))
        said = (body.message for body in bodies if isinstance(body, (MessageRecord, PartialAnswer)))
        if failed and not any(message.parts for message in said if message.role != "user"):
            store.delete(session_id, expected=info.records)
            say("no answer came, so the new session is not kept")
        elif not info.messages:
            store.delete(session_id, expected=info.records)


def _begun(arguments: Namespace, start: partial[Session], *, there: bool) -> tuple[Session, Choice]:
    """The session and the model: the model that the options name, else the session's, else one whose key is set. A new
    session has the folder as a label."""
    session = None
    with ExitStack() as opened:  # what is closed if there is no model
        if there:
            session = start(arguments.session, create=False)
            opened.callback(session.close)
            if session.target is not None and not (arguments.model or arguments.program):
                if not arguments.base_url:
                    choice = choice_for(session.target)
                    opened.pop_all()
                    return session, choice
                arguments.model = f"{session.target.provider}/{session.target.model}"
        choice = chosen(arguments.model, arguments.program or "", base_url=arguments.base_url, server=arguments.server)
        opened.pop_all()
    if session is None:
        redactor, folder = start.keywords["settings"].redactor, str(Path.cwd())
        labels = {"folder": folder if redactor is None else redactor.text(folder)[0]}
        session = start(arguments.session, target=choice.target, labels=labels)
    if session.target != choice.target:
        losses = session.switch(choice.target)
        for _, what, _ in grouped(("", loss.detail, ()) for loss in losses):
            say(f"lost with the new model: {what}")
    return session, choice


async def _once(talk: Chat, prompt: str, arguments: Namespace) -> int:
    """Print one answer; returns 0 if it is complete, else 1."""
    told = out_json if arguments.json else None
    printed = _Printed()
    try:
        with quiet_log():
            stop = await answer_once(talk, prompt, tell=printed.tell, say=printed.say, tell_json=told)
    finally:
        await talk.aclose()
    if not arguments.json:
        out()
    if names := ",".join(sorted(talk.unasked)):
        say(f"not run, as nobody could be asked: {names}; `--allow {names}` allows it")
    if stop != "end":
        say(f"the answer ended: {stop}")
    return 0 if stop == "end" else 1


class _Printed:
    """Prints an answer as it arrives, and what tools do meanwhile on separate lines."""

    def __init__(self) -> None:
        self._watched = is_terminal(sys.stdout)
        self._ended = True

    def tell(self, piece: str) -> None:
        """Print a piece of the answer: escaped on a terminal, unchanged for a program that reads it."""
        out_bytes([(visible(piece) if self._watched else piece).encode("utf-8", "replace")])
        flush()
        self._ended = piece.endswith("\n") if piece else self._ended

    def say(self, text: str) -> None:
        """Print a message. On a terminal it begins on a new line."""
        if self._watched and not self._ended:
            out()
            self._ended = True
        say(text)


async def _in_terminal(talk: Chat) -> int:
    if not is_terminal(sys.stdout):
        raise InputError("chat: standard output is not a terminal, so nobody would see what is asked; give -p PROMPT")
    try:
        terminal = import_module("turnlog.chat.terminal")
    except ImportError as error:
        raise InputError(f"a chat in a terminal needs {error.name}: {install_extra('chat')}; or give -p") from error
    try:
        await terminal.talk(talk, history=_history())
    finally:
        await talk.aclose()
    if talk.store.info(talk.session.id).messages:
        say(f"`turnlog chat --session {shlex.quote(talk.session.id)}` continues this chat")
    return 0


def _history() -> Path | None:
    """The file for typed lines, beside the user's own store; None if its folder cannot be made."""
    place = default_path().parent / "chat-history"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch(mode=0o600)
    except OSError:
        return None
    return place
