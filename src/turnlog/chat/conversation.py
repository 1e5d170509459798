"""One conversation: what the user says, which tools may run, which session and model are in use.

This module displays nothing: `Chat.say` yields events, and commands return Markdown.
"""

from __future__ import annotations

import mimetypes
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from .._platform.lazy import lazy_pattern
from ..agent import AgentEvent, Question, astream
from ..agent.run_tools import AnyTool
from ..errors import InputError, SessionBusy
from ..log.messages import Media, Text, text_of
from ..log.store import Store
from ..session import READ_BACK, RECALL, Session, interrupted_turn
from ..tokens.dimensions import image_type
from ..view.repair.damaged_media import damage_of
from ..view.types import starts_turn
from ..workspace.diff import NetChange, net_changes
from .choice import Choice, choice_for
from .searching import opened
from .workshop import TOOL_NAMES, Workshop

Answer = str
"""The user's answer to a question: `yes`, `no`, `always`, or the reason why not."""

_IMAGE = lazy_pattern(r"(?<!\S)@(\S+\.(?:png|jpe?g|gif|webp|pdf))\b", re.IGNORECASE)


@contextmanager
def busy_in_words(session_id: str) -> Iterator[None]:
    """Reword the error of a session that is in use, to say what the user can do. The library's error names arguments of
    its functions."""
    try:
        yield
    except SessionBusy as error:
        who = f"process {error.process} on {error.host}" if error.process else "another program"
        raise SessionBusy(
            f"session {session_id!r} is in use: {who} has it open; close it there, or talk in another one",
            process=error.process,
            host=error.host,
            thread=error.thread,
            since=error.since,
        ) from error


class Chat:
    """A conversation in `session`, with the model of `choice`, in `folder`. `open_session` opens another session of the
    same store; `allowed` are the tools that run without a question. `ask` is called with each question; without it, no
    other tool runs, and `unasked` has the names of those that the model called. `hear` is called with the output of
    running commands, as it comes."""

    def __init__(
        self,
        store: Store,
        open_session: Callable[[str], Session],
        session: Session,
        choice: Choice,
        *,
        folder: Path,
        allowed: Collection[str] = (),
    ) -> None:
        """Raises InputError if `allowed` names a tool that does not exist."""
        self.store = store
        self.session = session
        self.choice = choice
        self.folder = folder
        self.ask: Callable[[Question], Awaitable[Answer]] | None = None
        self.hear: Callable[[bytes], object] | None = None
        self.unasked: set[str] = set()
        self._open = open_session
        self._allowed = {*allowed}
        self._used = [choice.runner]
        Workshop(session, folder).tools(self._allowed)

    @property
    def last_words(self) -> tuple[str, str]:
        """The user's last message, and the last text of the model after it; "" for what does not exist."""
        answered = ""
        for shown in reversed([entry for entry in self.session.view() if entry.records]):
            if starts_turn(shown):
                return text_of(shown.message), answered
            if shown.message.role == "assistant":
                answered = answered or text_of(shown.message)
        return "", answered

    @property
    def goes_on(self) -> bool:
        """Whether the newest turn is unfinished, so that `say(None)` continues it."""
        return interrupted_turn(self.session) is not None

    async def say(self, text: str | None) -> AsyncGenerator[AgentEvent, None]:
        """Send a text to the model, or with None continue the last turn; yields the events of the answer. Closing the
        iterator cancels it. Raises InputError for an image that cannot be read or is damaged, and the runner's
        errors."""
        content = None if text is None else self._with_images(text)
        shop = Workshop(self.session, self.folder, self.hear)
        stream = astream(self.session, content, self.choice.runner, tools=self._tools(shop), approve=self._approve)
        try:
            async for event in stream:
                yield event
        finally:
            await stream.aclose()  # type: ignore[attr-defined]
            shop.close()

    def changed_since(self, record: int) -> list[NetChange]:
        """The files that changed in the records after this one."""
        return net_changes(change for change in self.session.log.of_kinds("file_change") if change.n > record)

    def choose(self, choice: Choice) -> None:
        """Let another model answer from now on."""
        self.choice = choice
        self._used.append(choice.runner)

    async def aclose(self) -> None:
        """Close all runners that were used."""
        for runner in self._used:
            await runner.aclose()

    def move_to(self, session: Session) -> None:
        """Continue in another session, with that session's model if it has one."""
        self.session.close()
        self.session = session
        if session.target is None:
            session.switch(self.choice.target)
        elif session.target != self.choice.target:
            self.choose(choice_for(session.target))

    def open(self, session_id: str) -> Session:
        """Another session of the store. Raises SessionBusy."""
        with busy_in_words(session_id):
            return self._open(session_id)

    # -- inside ----------------------------------------------------------------------------------

    def _tools(self, shop: Workshop) -> list[AnyTool]:
        if self.choice.brings_tools:
            return []
        return [*shop.tools(self._allowed), READ_BACK, RECALL]

    async def _approve(self, question: Question) -> bool | str:
        if question.call.name in self._allowed and not question.may_have_run:
            return True
        if self.ask is None:
            self.unasked.add(question.call.name)
            return False  # without a reason, which would be taken for the user's words
        answer = (await self.ask(question)).strip()
        word = answer.lower()
        if word in ("a", "always") and question.call.name in TOOL_NAMES:
            self._allowed.add(question.call.name)
            return True
        if word in ("y", "yes"):
            return True
        return False if word in ("", "n", "no") else answer

    def _with_images(self, text: str) -> str | list[Text | Media]:
        """The text, with the images and PDF files that it names as `@path`."""
        media = []
        for name in _IMAGE.findall(text):
            try:
                with opened(str(self.folder / name)) as file:
                    data = file.read()
            except (OSError, ValueError) as error:
                raise InputError(f"@{name}: {getattr(error, 'strerror', None) or error}") from error
            kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
            no_image = kind.startswith("image/") and not image_type(data)
            if damage := "it is no image" if no_image else damage_of(data, kind):
                raise InputError(f"@{name} cannot be sent: {damage}")
            media.append(self.session.media(data, kind, name=Path(name).name))
        return [Text(text), *media] if media else text
