"""The runner of agent programs: `claude`, `gemini` and `codex`, each with its JSON lines."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import shutil
import signal
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec

from ..._platform.given import flag_given, list_given, number_given, text_given
from ...errors import InputError, NotLoggedIn, RateLimited, RunnerError, RunnerFailed, RunnerNotFound, RunnerTimedOut
from ...log.messages import Message, Text, ToolCall, sha256_hex
from ...log.usage import Usage
from ...models.makers import maker_of
from ...providers.answer_events import RunnerEvent
from ...requests.request import Request
from ...summarize.transcript import entries_of
from ...text_history import BuiltPrompt, HistoryPrompt
from ...view.types import Shown
from ..refusals import refusal
from ..waiting import MOST_TRIES
from .claude import CLAUDE
from .codex import CODEX
from .gemini import GEMINI
from .program import Program, ProgramEvent

# -- process ---------------------------------------------------------------------------------------
#
# Run a program: its prompt in, its lines out, and nothing of it left behind.
#
# The program gets a process group of its own, so that everything that it starts can be ended with it, and Ctrl-C in a
# terminal reaches it only through its runner. Its three pipes are served at the same time: none can fill up and stop
# it.

_CHUNK = 1 << 16
_TAIL = 8_192
"""Bytes that are kept from the end of standard error."""

_GRACE = 2.0
"""Seconds between asking a program to end and killing it."""

_FINISH = 5.0
"""Seconds that a program may take to end after its answer."""

_LINGER = 0.5
"""Seconds that pipes are read after the program has ended, as a process that it started may hold them open."""

_living: set[int] = set()
"""The process groups that this process has started and not yet ended."""


class Child:
    """A started program. Make it with `start`, and always call `end`."""

    def __init__(self, process: asyncio.subprocess.Process, prompt: str, seconds: float) -> None:
        self._process = process
        self._left = seconds
        self._errors = b""
        _living.add(process.pid)
        self._fed = asyncio.create_task(self._feed(prompt.encode("utf-8", "replace")))
        self._heard = asyncio.create_task(self._hear())
        self._exited: asyncio.Task[Any] = asyncio.create_task(self._end_of(process))

    @property
    def stderr(self) -> str:
        """The end of what the program wrote to standard error."""
        return self._errors.decode("utf-8", "replace").strip()

    @property
    def code(self) -> int | None:
        """The program's exit code, negative for a signal; None while it runs."""
        return self._process.returncode

    async def lines(self) -> AsyncIterator[bytes]:
        """The lines that the program prints. Raises TimeoutError when waiting for them has used up its time."""
        pending = b""
        while data := await self._read():
            *whole, pending = (pending + data).split(b"\n")
            for line in whole:
                yield line
        if pending:
            yield pending

    async def finish(self) -> None:
        """Give the program time to end by itself, as it may have to save the conversation."""
        rest = asyncio.create_task(self._drain())
        await asyncio.wait({self._exited}, timeout=min(_FINISH, max(0.0, self._left)))
        if self._exited.done():
            await asyncio.wait({rest, self._heard}, timeout=_LINGER)
        rest.cancel()
        await asyncio.wait({rest})

    async def end(self) -> None:
        """End the program and everything that it has started: ask the program first, and kill after a pause what is
        left."""
        try:
            if self._process.returncode is None:
                _signal(self._process.pid, signal.SIGTERM)
                await asyncio.wait({self._exited}, timeout=_GRACE)
        finally:
            _signal(self._process.pid, _KILL)
            _living.discard(self._process.pid)
            await asyncio.wait({self._exited})
            rest = {asyncio.create_task(self._drain()), self._heard, self._fed}
            await asyncio.wait(rest, timeout=_LINGER)
            for task in rest:
                task.cancel()
            await asyncio.wait(rest)

    async def _read(self) -> bytes:
        assert self._process.stdout is not None
        read: asyncio.Task[Any] = asyncio.create_task(self._process.stdout.read(_CHUNK))
        try:
            began = time.monotonic()
            waited = {read, self._exited}
            done, _ = await asyncio.wait(waited, timeout=max(0.0, self._left), return_when=asyncio.FIRST_COMPLETED)
            self._left -= time.monotonic() - began
            if not done:
                raise TimeoutError
            if not read.done():
                await asyncio.wait({read}, timeout=_LINGER)
            data: bytes = read.result() if read.done() else b""
            return data
        finally:
            if not read.done():
                read.cancel()

    async def _drain(self) -> None:
        assert self._process.stdout is not None
        while await self._process.stdout.read(_CHUNK):
            pass

    @staticmethod
    async def _end_of(process: asyncio.subprocess.Process) -> None:
        # not `process.wait()`, which up to Python 3.12 also waits for the pipes (https://github.com/python/cpython/issues/119710)
        pause = 0.005
        while process.returncode is None:
            await asyncio.sleep(pause)
            pause = min(0.1, pause * 1.5)

    async def _feed(self, data: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(data)
            await stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has ended, or does not want it; its exit code says more
        finally:
            stdin.close()

    async def _hear(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(_CHUNK):
            self._errors = (self._errors + data)[-_TAIL:]


async def start(
    arguments: Sequence[str], prompt: str, seconds: float, *, cwd: str | Path | None, env: Mapping[str, str]
) -> Child:
    """Start a program, and write `prompt` to its standard input. The program has `seconds` in all, not counting pauses
    of its reader. Raises OSError."""
    process = await asyncio.create_subprocess_exec(
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=cwd,
        env=env,
        start_new_session=True,
    )
    return Child(process, prompt, seconds)


_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


def _signal(pid: int, number: int) -> None:
    """Send a signal to a process group, or to the process alone where there are no groups."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(pid, number)
        else:
            os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass  # nothing of it is left


@atexit.register
def _end_all() -> None:
    """End the programs that still run when this process ends without having closed its runners."""
    for pid in _living:
        _signal(pid, _KILL)


PROGRAMS: Mapping[str, Program] = {"claude": CLAUDE, "gemini": GEMINI, "codex": CODEX}
"""The programs by name."""

_REMEMBERED = 256
"""How many conversations of programs a runner can resume."""

_NOISE = 20
"""How many lines that are not JSON an error quotes."""

_HARMLESS = ("Loaded cached credentials", "WARNING:", "Warning:")
"""Beginnings of lines that programs write even if nothing is wrong."""


class ProgramRunner:
    """Lets an agent program answer: `claude`, `gemini` or `codex`.

        runner = ProgramRunner("claude", model="haiku")

    The program runs its own tools, and asks nobody: its own settings and `arguments`, which are added to its command
    line, say what it may do. Tools and settings of the request are ignored; `ran_tool` events report what it ran.

    While the program's own conversation matches the history of the request, the program resumes it and gets only the
    newest messages of the user. If it does not match (another runner answered, something was taken back, the process is
    new), or with `resume=False`, it gets the whole conversation as one prompt, which `history` makes.

    `model` is one of the program's short names (`PROGRAMS["claude"].models`) or any name that it knows; by default, the
    model of the request's target if it is of the program's maker. A run may take `timeout` seconds. A rate-limited
    program is asked once more after the time that it states, if that is no more than `max_wait` seconds. `command` is
    the path of the program, `cwd` the folder in which it works, `env` is added to its environment.
    """

    def __init__(
        self,
        program: str,
        *,
        model: str = "",
        resume: bool = True,
        history: HistoryPrompt | None = None,
        timeout: float = 120.0,
        max_wait: float = 60.0,
        command: str | Path = "",
        arguments: Sequence[str] = (),
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Raises InputError for an unknown program, and for a `timeout` that is not positive."""
        if not isinstance(program, str) or program not in PROGRAMS:
            raise InputError(f"program: there are {', '.join(map(repr, PROGRAMS))}, not {program!r}")
        arguments = [text_given("arguments[]", argument) for argument in list_given("arguments", arguments, "texts")]
        number_given("timeout", timeout, above=0)
        number_given("max_wait", max_wait)
        self.name = program
        self._program = PROGRAMS[program]
        self._model = self._program.models.get(text_given("model", model), model)
        self._resumes = flag_given("resume", resume)
        self._history = history
        self._histories: dict[tuple[str, str], HistoryPrompt] = {}
        self._timeout = timeout
        self._max_wait = max_wait
        self._command = str(command)
        self._extra = arguments
        self._cwd = cwd
        self._env = env
        self._known: OrderedDict[str, tuple[str, Usage]] = OrderedDict()

    async def stream(self, request: Request) -> AsyncIterator[RunnerEvent]:
        """The events of the answer."""
        since = _newest(request.view)
        # Taken out: while it is used, and once it has gone on, no other session or turn may go on with it.
        conversation = self._known.pop(_digest(request.view[:since]), None) if self._resumes else None
        has_waited = False
        while True:
            has_begun = False
            try:
                async with aclosing(self._answer(request, conversation)) as told:
                    async for event in told:
                        has_begun = True
                        yield event
                return
            except RateLimited as error:
                if has_begun or has_waited or error.retry_after is None or error.retry_after > self._max_wait:
                    raise
                has_waited = True
                await asyncio.sleep(error.retry_after)
            except _Lost as error:
                if has_begun or conversation is None:
                    raise error.failed from None
                conversation = None
                self._resumes = self._resumes and not error.for_good

    async def aclose(self) -> None:
        """Forget the programs' conversations. Programs at work end with their streams."""
        self._known.clear()

    # -- inside ----------------------------------------------------------------------------------

    async def _answer(
        self, request: Request, conversation: tuple[str, Usage] | None
    ) -> AsyncGenerator[RunnerEvent, None]:
        """The events of one run. Raises RunnerError, and _Lost if the conversation to resume is gone."""
        run = _Run(self._program, self.name)
        resumed, billed = conversation or ("", Usage())
        built = self._prompt(request, resumed)
        child = await self._start(request, built.prompt, resumed)
        try:
            try:
                async for line in child.lines():
                    for told in run.read(line):
                        if told.kind == "ran_tool":
                            yield RunnerEvent(kind="ran_tool", call=ToolCall("", told.name, told.arguments))
                        elif told.kind in ("text", "reasoning") and told.text:
                            yield RunnerEvent(kind=told.kind, text=told.text)
                    if run.ended:
                        break
            except TimeoutError:
                raise _sent(RunnerTimedOut(self.name, self._timeout, message=run.last or child.stderr), built) from None
            if not run.done:
                await child.finish()
                raise _sent(run.error(child), built)
            usage = run.usage
            if usage is not None and self._program.sums and resumed:
                usage = _less(usage, billed)
            self._remember(request, run)
            if usage is not None:
                yield RunnerEvent(kind="usage", usage=usage)
            yield RunnerEvent(kind="done", stop="end")
            await child.finish()
        finally:
            await child.end()

    def _prompt(self, request: Request, resumed: str) -> BuiltPrompt:
        """The prompt: the user's newest messages if the program resumes its conversation, else the whole
        conversation."""
        view = request.view[_newest(request.view) :] if resumed else request.view
        target = request.target
        history = self._history
        if history is None:  # one for all prompts, so that a large conversation is warned of once
            key = target.provider, target.model
            if key not in self._histories:
                self._histories[key] = HistoryPrompt(model=target.model, provider=target.provider)
            history = self._histories[key]
        return history.prompt_of(view)

    async def _start(self, request: Request, prompt: str, resumed: str) -> Child:
        """Start the program with its prompt. Raises RunnerNotFound, RunnerFailed."""
        target = request.target
        maker = maker_of(target.provider)
        model = self._model or (target.model if maker and maker.name == self._program.maker else "")
        executable = shutil.which(self._command or self._program.command)
        if executable is None:
            what = f"{self.name} ({self._command})" if self._command else self.name
            raise RunnerNotFound(self.name, self._program.install, what=what)
        command = [os.path.abspath(executable), *self._program.arguments(model, resumed), *self._extra]
        if self._extra and command[-len(self._extra) - 1] == "-":  # the prompt stays last
            command = [*command[: -len(self._extra) - 1], *self._extra, "-"]
        env = {**self._program.env, **os.environ, **(self._env or {})}
        try:
            return await start(command, prompt, self._timeout, cwd=self._cwd, env=env)
        except OSError as error:
            raise RunnerFailed(self.name, f"it cannot be started: {error}") from error

    def _remember(self, request: Request, run: _Run) -> None:
        """Remember the id by which the conversation can be resumed, by a digest of the conversation."""
        if not run.session or not run.text:
            return
        answer = Shown(Message("assistant", (Text(run.text),)), ())
        for digest in [digest for digest, (name, _) in self._known.items() if name == run.session]:
            del self._known[digest]  # it has gone on since
        self._known[_digest([*request.view, answer])] = run.session, run.usage or Usage()
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)


class _Lost(Exception):
    """The conversation to resume is gone; `for_good` if the program resumes none."""

    def __init__(self, failed: RunnerError, *, for_good: bool) -> None:
        super().__init__(str(failed))
        self.failed = failed
        self.for_good = for_good


class _Run:
    """What one run has reported so far."""

    def __init__(self, program: Program, name: str) -> None:
        self._program = program
        self._name = name
        self._reader = program.reader()
        self._noise: list[str] = []
        self._failed: ProgramEvent | None = None
        self._pieces: list[str] = []
        self._events = 0
        self.session = ""
        self.usage: Usage | None = None
        self.done = False

    @property
    def ended(self) -> bool:
        """Whether nothing more is to come."""
        return self.done or self._failed is not None

    @property
    def text(self) -> str:
        """The text of the answer."""
        return "".join(self._pieces)

    @property
    def last(self) -> str:
        """The last line that was not JSON."""
        return self._noise[-1] if self._noise else ""

    def read(self, line: bytes) -> list[ProgramEvent]:
        """The events of a line; lines that are not JSON are kept for an error."""
        try:
            event = msgspec.json.decode(line) if line.lstrip().startswith(b"{") else None
        except (msgspec.DecodeError, UnicodeDecodeError):
            event = _lenient(line)
        if not isinstance(event, dict):
            if text := line.decode("utf-8", "replace").strip():
                self._noise = [*self._noise[1 - _NOISE :], text]
            return []
        self._events += 1
        told = self._reader.read(event)
        for program_event in told:
            if program_event.kind == "session":
                self.session = program_event.text or self.session
            elif program_event.kind == "text":
                self._pieces.append(program_event.text)
            elif program_event.kind == "done":
                self.done, self.usage = True, program_event.usage
            elif program_event.kind == "failed":
                self._failed = program_event
        return told

    def error(self, child: Child) -> Exception:
        """The error that says why there is no answer."""
        failed = self._failed or ProgramEvent(kind="failed")
        written = [*self._noise, *child.stderr.splitlines()]
        stderr = "\n".join(line for line in written if not line.startswith(_HARMLESS))
        message = failed.text or stderr.strip() or self._silence(child.code)
        reason = "\n".join((failed.text, stderr))
        if self._program.no_login.search(reason):
            return NotLoggedIn(self._name, self._program.login, message[-500:])
        failure = refusal(self._name, self._program.login, message, status=failed.status, wait=failed.wait)
        if isinstance(failure, RunnerFailed):
            status = child.code or failed.status
            failure = RunnerFailed(self._name, message[:2_000], status=status, stderr=child.stderr)
        never = self._program.no_resume is not None and self._program.no_resume.search(reason) is not None
        return _Lost(failure, for_good=never) if never or self._program.lost.search(reason) else failure

    def _silence(self, code: int | None) -> str:
        if self._events:
            return "it ended in the middle of its answer"
        command = self._program.command
        return (
            f"it printed none of its JSON events; is `{command}` the right program, and new enough?" if not code else ""
        )


def _sent(error: Exception, built: BuiltPrompt) -> Exception:
    """The error, with the size of the prompt that led to it. Programs send again by themselves as long as it is of
    use."""
    failed = error.failed if isinstance(error, _Lost) else error
    if isinstance(failed, RunnerError):
        failed.sent, failed.tries = built.tokens, MOST_TRIES
    return error


def _lenient(line: bytes) -> Any:
    """A JSON line with what only lenient readers accept, such as lone surrogates or bytes that are no UTF-8; None if it
    is not JSON."""
    try:
        return json.loads(line.decode("utf-8", "replace"))
    except ValueError:
        return None


def _newest(view: Sequence[Shown]) -> int:
    """The index of the first message of the user after the model's last message."""
    since = len(view)
    while since and view[since - 1].message.role == "user":
        since -= 1
    return since


def _digest(view: Sequence[Shown]) -> str:
    """A digest of a conversation without its reasoning, which programs do not show."""
    entries: list[tuple[str, str, str]] = []
    for shown in view:
        for entry in entries_of([Shown(shown.message, (0,))]):
            if entries and entries[-1][:2] == (shown.message.role, entry.title) and entry.voice != "tool":
                entries[-1] = (shown.message.role, entry.title, entries[-1][2] + entry.text)
            else:
                entries.append((shown.message.role, entry.title, entry.text))
    return sha256_hex(msgspec.json.encode(entries))


def _less(usage: Usage, before: Usage) -> Usage:
    """The usage since `before`."""
    return Usage(
        input=max(0, usage.input - before.input),
        output=max(0, usage.output - before.output),
        cached=max(0, usage.cached - before.cached),
        cache_write=max(0, usage.cache_write - before.cache_write),
        reasoning=max(0, usage.reasoning - before.reasoning),
    )
