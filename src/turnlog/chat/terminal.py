"""The chat in a terminal: an input line at the bottom, and above it the conversation as it arrives.

The user can type while an answer streams; what is entered then is sent next. Ctrl-C stops the answer, and what has
arrived of it is kept.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.styles import Style

from .._platform.exceptions import described
from .._platform.stdlib import quiet_log
from .._platform.visible import visible
from ..agent import AgentEvent, Question
from ..errors import TurnlogError
from ..models.pricing import dollars, is_priced
from .commands import completions, is_command, run_command
from .conversation import Chat
from .markup import columns, markdown
from .plain import folded
from .rendering import Blocks, call_in_full, changed_files, note, said, tool_line

_TAIL = 12
"""The most lines of the unfinished block that are shown above the input line."""

_WIDEST = 1_000
"""The most characters of a line of a running command that are kept for the screen."""

_FOLDED = 20
"""A paste of more lines is shown in a few words until it is sent."""

_DROPPED = ("session", "cached", "model", "tokens")
"""What the status line does without where it has no room, the first first. It always has the cost."""

_REDRAWN, _WRITTEN = 0.02, 0.05
"""The least seconds between two redraws of the bottom, and between two writes above it."""


async def talk(
    conversation: Chat, *, history: Path | None = None, input: Input | None = None, output: Output | None = None
) -> None:
    """Talk until the user ends it with Ctrl-D or /quit. `history` is the file for typed lines."""
    await _Terminal(conversation, history, input, output).run()


class _Typed(FileHistory):
    """The typed lines in a file, with marks instead of secrets, as in the log."""

    def __init__(self, place: Path, conversation: Chat) -> None:
        super().__init__(str(place))
        self._talk = conversation

    def store_string(self, string: str) -> None:
        redactor = self._talk.session.log.redactor
        super().store_string(string if redactor is None else redactor.text(string)[0])


class _Terminal:
    def __init__(self, conversation: Chat, history: Path | None, input: Input | None, output: Output | None) -> None:
        self._talk = conversation
        self._talk.ask = self._asked
        self._talk.hear = self._heard
        self._blocks = Blocks()
        self._waiting: list[str] = []
        self._pastes: list[str] = []
        self._answering: asyncio.Task[None] | None = None
        self._question: tuple[str, asyncio.Future[str]] | None = None
        self._busy = ""
        self._facts: Mapping[str, str] = {}
        self._live: deque[str] = deque(maxlen=_TAIL)  # the last lines of a running command
        plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
        typed_history: History = InMemoryHistory() if history is None else _Typed(history, conversation)
        self._prompt: PromptSession[str] = PromptSession(
            message=self._message,
            bottom_toolbar=self._toolbar,
            completer=_Commands(conversation),
            complete_in_thread=True,
            complete_while_typing=True,
            key_bindings=self._keys(),
            multiline=True,
            history=typed_history,
            erase_when_done=True,
            style=Style.from_dict({"live": "ansibrightblack"}),
            color_depth=ColorDepth.DEPTH_1_BIT if plain else None,
            input=input,
            output=output,
        )
        self._prompt.app.min_redraw_interval = _REDRAWN
        self._above = _Above(self._prompt.app.output)
        self._out: Callable[[str], object] = self._above.write

    async def run(self) -> None:
        """Read lines until the end."""
        with quiet_log():
            self._welcome()
            await self._measure()
            try:
                while True:
                    await self._take(self._unfolded(await self._prompt.prompt_async()))
            except EOFError:
                await self._stop()
            finally:
                await self._above.written()

    def _welcome(self) -> None:
        asked, answered = self._talk.last_words
        if asked or answered:
            self._show(said(asked) if asked else "")
            self._show(markdown(folded(answered)) if answered else "")
            self._show(note("these were the last words; /history lists what was said before"))
        self._show(note(f"session {self._talk.session.id}; /help lists the commands, Ctrl-D ends"))
        if self._talk.goes_on:
            self._show(note("the last turn is unfinished; /continue goes on with it", "yellow"))

    # -- lines -----------------------------------------------------------------------------------

    async def _take(self, line: str) -> None:
        """Act on a line: answer a question, run a command, or send it to the model."""
        if self._question is not None and not is_command(line or " "):
            asked, answer = self._question
            self._question = None
            self._show(note(f"{asked}: {line.strip() or 'no'}"))
            answer.set_result(line)
        elif not line.strip():
            return
        elif is_command(line):
            self._show(said(line))
            await self._command(line)
        elif self._answering is not None:
            self._waiting.append(line)
        else:
            self._begin(line)

    async def _command(self, line: str) -> None:
        if line.split()[0] == "/continue" and self._talk.goes_on and self._answering is None:
            self._begin(None)
            return
        try:
            self._show(markdown(await run_command(self._talk, line, answering=self._answering is not None)))
        except EOFError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a command meets: the chat goes on
            self._show(note(_told(error), "red"))
        if self._answering is None:
            await self._measure()

    def _begin(self, line: str | None) -> None:
        if line is not None:
            self._show(said(line))
        self._busy = "thinking"
        self._answering = asyncio.create_task(self._answer(line))

    async def _stop(self) -> None:
        """Stop the answer, if one is coming."""
        task, waiting, self._waiting = self._answering, self._waiting, []
        for line in waiting:
            self._show(note(f"not said: {line}", "yellow"))
        if task is None:
            return
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    # -- answers ---------------------------------------------------------------------------------

    async def _answer(self, line: str | None) -> None:
        first = self._talk.session.log.records()
        before = max((record.n for record in first), default=0)
        try:
            async with aclosing(self._talk.say(line)) as events:
                async for event in events:
                    self._tell(event)
        except asyncio.CancelledError:
            self._finish_block()
            self._show(note("stopped; what had come is kept, and /continue goes on", "yellow"))
            raise
        except Exception as error:  # noqa: BLE001 - whatever a runner raises: the chat goes on
            self._finish_block()
            self._show(note(_told(error), "red"))
        finally:
            self._finish_block()
            self._show(changed_files(self._talk.session, self._talk.changed_since(before)))
            self._answering, self._question, self._busy = None, None, ""
        await self._measure()
        if self._waiting:
            self._begin(self._waiting.pop(0))
        self._redraw()

    def _tell(self, event: AgentEvent) -> None:
        match event.kind:
            case "text":
                self._busy = "answering"
                for block in self._blocks.feed(event.text):
                    self._show(markdown(block))
            case "reasoning":
                self._busy = "thinking"
            case "tool_started" | "ran_tool" | "tool_result":
                self._finish_block()
                self._busy = "working" if event.kind != "tool_result" else "thinking"
                self._show(note("\n".join(self._last_lines())) if self._live else "")
                self._live.clear()
                self._show(tool_line(event))
            case "error":
                self._finish_block()
                self._show(note(f"the answer broke off: {event.text}", "red"))
            case "done" if event.result is not None and event.result.stop not in ("end", "tool_calls"):
                self._finish_block()
                self._show(note(f"the answer ended: {event.result.stop}", "yellow"))
        self._redraw()

    def _finish_block(self) -> None:
        for block in self._blocks.end():
            self._show(markdown(block))

    def _heard(self, output: bytes) -> None:
        """Show the last lines of a running command. Of a line that is written over, as bars of progress are, it is the
        newest text."""
        begun = self._live.pop() if self._live else ""
        for line in f"{begun}{output.decode('utf-8', 'replace')}".split("\n"):
            self._live.append(line[line.rstrip("\r").rfind("\r") + 1 :][:_WIDEST])
        self._redraw()

    def _last_lines(self) -> list[str]:
        return "\n".join(line.rstrip("\r") for line in self._live).rstrip("\n").split("\n")

    async def _asked(self, question: Question) -> str:
        """Ask whether a call may run; returns what the user enters."""
        again = f" ({question.reason})" if question.may_have_run else ""
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._finish_block()
        self._show(call_in_full(question.call))
        await self._above.written()  # the call is on the screen before the question, which is drawn at once
        self._question = f"run {question.call.name}{again}?", answer
        self._redraw()
        return await answer

    # -- the screen ------------------------------------------------------------------------------

    def _show(self, lines: str) -> None:
        """Print lines above the input line."""
        if lines:
            self._out(lines)

    def _redraw(self) -> None:
        self._prompt.app.invalidate()

    def _message(self) -> FormattedText:
        """The text before the input line: the unfinished block, and a question."""
        fragments: list[tuple[str, str]] = []
        width = columns() - 1
        if self._blocks.rest:
            lines = [piece for line in visible(self._blocks.rest).splitlines() for piece in _wrapped(line, width)]
            fragments.append(("", "\n".join(lines[-_TAIL:]) + "\n"))
        if self._live:
            lines = [visible(line, one_line=True)[:width] for line in self._last_lines()]
            fragments.append(("class:live", "\n".join(lines) + "\n"))
        if self._question is not None:
            fragments.append(("bold", visible(self._question[0], one_line=True) + "\n"))
            fragments.append(("", "[y]es, [n]o, [a]lways, or why not: "))
        else:
            fragments.append(("bold", "> "))
        return FormattedText(fragments)

    def _toolbar(self) -> str:
        waiting = f"{len(self._waiting)} waiting" if self._waiting else ""
        busy = "waiting for you" if self._question is not None else self._busy
        ahead, width = [waiting, busy and f"{busy}, Ctrl-C stops"], columns() - 2
        for dropped in range(len(_DROPPED) + 1):
            facts = [fact for name, fact in self._facts.items() if name not in _DROPPED[:dropped]]
            line = " | ".join(filter(None, [*ahead, *facts]))
            if len(line) <= width:
                break
        return f" {line[:width]}"

    async def _measure(self) -> None:
        """Compute the text of the status line."""
        self._facts = await asyncio.to_thread(self._status)
        self._redraw()

    def _status(self) -> Mapping[str, str]:
        session = self._talk.session
        target, usage = session.target, session.usage
        if target is None:
            return {"session": session.id}
        cached = f"{100 * usage.cached // usage.input} % cached" if usage.input else ""
        tokens = session.window.tokens
        window = (
            f"{tokens:,} of {tokens + session.window.available:,} tokens"  # as `/context` has it, which explains it
        )
        price = dollars(session.cost) if is_priced(session.cost) else ""
        return {"session": session.id, "model": target.model, "tokens": window, "cached": cached, "cost": price}

    # -- keys ------------------------------------------------------------------------------------

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter")
        @keys.add("c-j")  # what is typed before the chat is ready has this in the place of Enter
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if buffer.document.char_before_cursor == "\\":
                buffer.delete_before_cursor()
                buffer.insert_text("\n")
            else:
                buffer.validate_and_handle()

        @keys.add("escape", "enter")
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add("c-c")
        def _(event: KeyPressEvent) -> None:
            if self._answering is not None:
                event.app.create_background_task(self._stop())
            else:
                event.current_buffer.reset()

        @keys.add(Keys.BracketedPaste)
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text(self._folded(event.data.replace("\r\n", "\n").replace("\r", "\n")))

        return keys

    def _folded(self, text: str) -> str:
        """A paste as the input line shows it: a long one in a few words."""
        lines = text.count("\n") + 1
        if lines <= _FOLDED:
            return text
        self._pastes.append(text)
        return f"[paste {len(self._pastes)}: {lines:,} lines]"

    def _unfolded(self, line: str) -> str:
        """A line with its pastes in full."""
        for number, text in enumerate(self._pastes, 1):
            lines = text.count("\n") + 1
            line = line.replace(f"[paste {number}: {lines:,} lines]", text)
        self._pastes = []
        return line


class _Above:
    """Writes lines above the input line, in order, and several at once, because each write redraws the bottom."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._lines: list[str] = []
        self._writing: asyncio.Task[None] | None = None

    def write(self, lines: str) -> None:
        """Write these lines soon."""
        self._lines.append(lines)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    async def written(self) -> None:
        """Return once all lines are on the screen."""
        while self._writing is not None and not self._writing.done():
            await asyncio.shield(self._writing)

    async def _write(self) -> None:
        while self._lines:
            text, self._lines = "".join(self._lines), []
            await run_in_terminal(partial(self._put, text))
            await asyncio.sleep(_WRITTEN)

    def _put(self, text: str) -> None:
        self._output.enable_autowrap()  # on Windows a flush turns it off
        self._output.write_raw(text)
        self._output.flush()


def _told(error: Exception) -> str:
    """The text of an error, with its type if it is neither turnlog's nor the system's."""
    return str(error) if isinstance(error, (TurnlogError, OSError)) else described(error)


class _Commands(Completer):
    """Completes slash commands, and what they take."""

    def __init__(self, talk: Chat) -> None:
        self._talk = talk

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """See `Completer.get_completions`."""
        line = document.text_before_cursor
        typed = len(line.partition(" ")[2]) if " " in line else len(line) - 1
        try:
            for name, meaning in completions(self._talk, line):
                yield Completion(name, start_position=-typed, display_meta=meaning)
        except (TurnlogError, OSError):  # a list of sessions or models that cannot be read: there is nothing to offer
            return


def _wrapped(line: str, width: int) -> list[str]:
    return [line[start : start + width] for start in range(0, len(line), width)] or [""]
