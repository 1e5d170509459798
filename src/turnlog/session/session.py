"""A session: one log, opened for work. Each of its jobs is a module of this package; this module puts them together.

Every message is appended as a record before anything else happens to it, and requests are made from the log. So a
session that is opened again after a crash makes the same request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self
from weakref import WeakSet

from .._platform.given import flag_given, text_given
from .._platform.lazy import Later
from .._platform.units import counted
from ..config.settings import Settings
from ..errors import InputError
from ..log.budget import Budget, Strategy
from ..log.messages import Media, Message, Outcome, Tool, ToolCall, bare
from ..log.records import Configuration, Decision, MessageRecord, Note, Record, ToolFinished
from ..log.store import Held, Leased, SessionInfo, Store
from ..memory import Memory
from ..memory.recall import MAX_TOKENS
from ..models.target import Target
from ..requests.request import Request
from ..stores.labels import labels_given, labels_note
from ..stores.leases import WAIT, Lease, Locks, ReadLease
from ..view.explain import Explanation
from ..view.fold import select
from ..view.types import Loss, Shown
from ..workspace.watch import FileRecorder, Watches
from .answer import Answer, Receiving
from .approvals import Approvals
from .caches import CacheReport
from .compactor import Compaction, Compactor
from .configure import Change, Configurer, changes_of
from .events import Events, Feed
from .exclusions import exclusion_for, readmission_for
from .family import Parent
from .history_edits import Rewind, Rewinder, pin_for, undone_last, unpins_for
from .inputs import Content, media_of, message_given, messages_of, outcome_given, parts_of, target_given
from .inspect import WindowUse, explained
from .memory import SessionMemory
from .open_turn import OpenTurn
from .parts import Parts
from .prompt import Prompt
from .read_back import read_back, read_back_for
from .reader import Checker, SessionLog, recorded_messages, system_record_of
from .recall import recalled_for
from .recorder import Journal
from .recovery import Calls, Resumed, begin, recover
from .resources import Services
from .skills import SessionSkills
from .state import Context
from .telling import Event, Teller
from .threads import in_thread
from .turn import Turn

if TYPE_CHECKING:
    from . import absorbing, active, following
else:  # few programs ask for them
    absorbing = Later(lambda: import_module(f"{__package__}.absorbing"))
    active = Later(lambda: import_module(f"{__package__}.active"))
    following = Later(lambda: import_module(f"{__package__}.following"))


class Session(Approvals, Parent):
    """One conversation, returned by `turnlog.open`; a context manager.

    Threads and tasks may share a session; their turns wait for each other. Records of other processes, if they share
    it, are seen at the next request. `log` reads the records, `window` tells how full the model's window is, `cache`
    what requests read from prompt caches, `prompt` has the system prompt in sections, `skills` what the model loads on
    demand, `resumed` what opening an existing session found.
    """

    def __init__(
        self,
        store: Store,
        info: SessionInfo,
        settings: Settings = Settings(),
        *,
        owns_store: bool = False,
        lease: Leased | None = None,
        hold: Held | None = None,
        wait: float = WAIT,
        opener: Callable[..., Any] | None = None,
    ) -> None:
        self.id, self._opener = bare(info.id), opener
        self.log = SessionLog(store, self.id)
        self.resumed: Resumed | None = None
        self._store = store
        self._context = Context(store, self.id)
        redactor = self.log.redactor
        self._events = Events(self.id, redactor, Teller(store, self.id))
        self._services = Services(self._events.warn)
        if owns_store:
            self._services.on_close(store.close)
        self._lease = Lease(self.id) if lease is None else lease
        self._wait, self._hold = wait, hold
        for lock in filter(None, (self._lease, hold)):
            self._services.on_close(lock.close)
        self._followers: WeakSet[following.Follower] = WeakSet()
        self._services.on_close(self._events.close)
        self._services.on_close(self._end_followers)
        tell, warn, check = self._events.tell, self._events.warn, self._lease.check
        by_lines = redactor is not None and redactor.spans_words
        self._journal = Journal(
            store, self.id, self._context, tell, settings.checkpoint, by_lines=by_lines, warn=warn, check=check
        )
        self._memory = SessionMemory(store, self.id)
        self._configurer = Configurer(self._context, self._journal, redactor)
        self.prompt = Prompt(store, self.id, self._context, self._journal, self._configurer)
        self.skills = SessionSkills(self._context, self._journal, self._configurer, self.prompt)
        self._compactor = Compactor(store, self.id, self._context, self._journal, settings, tell)
        self._services.on_close(self._compactor.close)
        self._turn = OpenTurn(lambda begins: recover(self._parts, begins=begins), warn, self._lease, wait)
        self._rewinder = Rewinder(self.id, self.log.records, self._journal.append, lambda: self._turn.id)
        self._watches = Watches()
        self.window = WindowUse(store, self.id, self._context, self._compactor, self._configurer.target_or)
        self.cache = CacheReport(store, self.id)
        self._parts = Parts(
            store=store,
            log=self.log,
            lease=self._lease,
            events=self._events,
            context=self._context,
            journal=self._journal,
            configurer=self._configurer,
            prompt=self.prompt,
            watches=self._watches,
            checker=Checker(self.log, settings.check, warn),
        )
        self._services.on_close(self._parts.checker.look)
        self._absorber: absorbing.Absorber | None = None
        self._found, self._settings = self._parts.state, settings

    def __repr__(self) -> str:
        words = [repr(self.id), *([str(self.target)] if self.target else []), counted(self._context.last, "record")]
        if self.target is not None and self._context.lock.acquire(blocking=False):
            try:
                words.append(counted(self._context.tokens(self.target).tokens, "token"))
            finally:
                self._context.lock.release()
        words += [f"turn {self._turn.id} open"] if self._turn.id else []
        return f"Session({', '.join(words)})"

    # -- opening and closing ---------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def close(self) -> None:
        """Close the attached services, the last first, and the store, if this session opened it. An open turn is
        closed as failed. Failures are reported as warnings; the first one is raised at the end."""
        self._services.on_close(self._turn.give_up)
        self._services.close()

    async def aclose(self) -> None:
        """As `close`, for a session with services that are closed asynchronously."""
        self._services.on_close(self._turn.give_up)
        await self._services.aclose()

    def attach(self, service: Any, name: str = "") -> Any:
        """Close `service` (a model client, a tool) together with this session. A context manager without `close` and
        `aclose` is entered now and left then. Returns the service, or what entering it returns; with a `name`,
        `services` has that under it. Raises InputError if the name is taken."""
        return self._services.attach(service, name)

    async def aattach(self, service: Any, name: str = "") -> Any:
        """As `attach`, for asynchronous context managers too."""
        return await self._services.aattach(service, name)

    @property
    def services(self) -> Mapping[str, Any]:
        """The attached services that have a name, until the session is closed."""
        return MappingProxyType(self._services.named)

    def fork(self, new_id: str, *, at: int | None = None, title: str = "") -> Session:
        """A new session that begins with this one's records up to number `at` (None: all), also those that a rewind
        took back. It has the same summarizer and pause between checkpoints; a turn open at `at` is closed as failed."""
        self._lease.check()
        if (redactor := self.log.redactor) is not None:
            redactor.refuse("new_id", new_id)
        with ExitStack() as taken:  # given back if the rest fails
            locks = Locks(self._store, taken, shared=False, wait=self._wait)
            locks.take(new_id)
            info = self._store.fork(self.id, new_id, at=at, title=text_given("title", title))
            forked = Session(
                *(self._store, info, self._settings),
                lease=locks.lease,
                hold=locks.hold,
                wait=self._wait,
                opener=self._opener,
            )
            forked._begin(source=self._settings.source, of=self.id)
            taken.pop_all()
        return forked

    def on_event(self, callback: Callable[[Event], object]) -> Callable[[], None]:
        """Call `callback` with every event from now on; the first callback also gets the events of opening the session.
        Returns a function that stops this. Exceptions of a callback are logged and never raised."""
        return self._events.on(callback)

    def events(self) -> Feed:
        """Events to iterate over, with `for` or `async for`."""
        return self._events.feed()

    def follow(self, first: int | None = None, *, every: float = 0.2) -> following.Follower:
        """Events to iterate over, with `for` or `async for`, made from the log: of the records from number `first` on
        (None: that come from now on), whoever appends them, in this process or another. A session that is open with
        `read_only` can so be followed while another process works in it. The log is looked at `every` so many seconds.
        Raises InputError."""
        follower = following.follow(self._store, self.id, first, every, self._events.clean)
        self._followers.add(follower)
        return follower

    # -- turns -----------------------------------------------------------------------------------

    def turn(self, content: Content | None = None, *, watch: str | Path | None = None, calls: Calls = "answer") -> Turn:
        """A turn that begins with a user message of `content`, for use in `with` or `async with`. With `watch`, changes
        of files in that folder are recorded during the turn. Only one turn is open at a time: others wait for it, and
        raise SessionBusy after the session's `wait` seconds.

        Without content, the newest turn goes on, if a crash, an error or a cancellation ended it. `calls` says what
        becomes of its calls without a result: `answer` records what is known of each as its result; with `run` they
        wait to be run; with `ask` those that may have run wait for `approve` or `deny`. Raises InputError when it is
        entered, if there is no such turn."""
        turn = Turn(self._parts, self.request, self._turn, content, watch, calls)
        self._turn.made(turn)
        return turn

    @property
    def active_turn(self) -> active.ActiveTurn | None:
        """The turn that is open now, with its calls and what has come of the answer that is being streamed; None if no
        turn is. In a session that is shared, or open with `read_only`, also the turn of another owner, as the log has
        it: a turn that a crash left open is there until somebody opens the session to write."""
        turn = self._turn.turn
        if isinstance(turn, Turn) and turn.id:
            return active.active_here(turn, self._journal)
        return None if self._lease.alone else active.active_elsewhere(self.log)

    # -- recording -------------------------------------------------------------------------------

    def system(self, content: Content, *, replace: bool = False) -> Record:
        """Record system text. With `replace`, this text replaces the system text at the beginning of later requests, or
        is told in mid-conversation to models that accept system text there; if there was none, it is added. If requests
        begin with this text already, nothing is recorded, and the record that set it is returned."""
        if flag_given("replace", replace):
            text = text_given("system(..., replace=True): content", content)
            existing = system_record_of(self.log) if self._configurer.begins_with(text) else None
            return self._configurer.replace_system(text) if existing is None else existing
        return self.add(Message("system", parts_of(content)))

    def user(self, content: Content) -> Record:
        """Record a user message. Outside of a turn, the sections of the system prompt are updated first."""
        message = Message("user", parts_of(content))
        return (
            self.add(message) if self._turn.id else self.prompt.said(lambda n: [MessageRecord(message)], exact=False)[0]
        )

    def assistant(self, content: Content) -> Record:
        """Record an assistant message with this content. For the response of an SDK call, use `receive`."""
        return self.add(Message("assistant", parts_of(content)))

    def tool_result(self, call: ToolCall | str, content: Content = (), *, outcome: Outcome = "ok") -> Record:
        """Record the result of a tool call, given as the call itself or its id. Raises InputError, which names the open
        calls, if no call on record has that id. To record a result whose call is not on record, use `add`."""
        return self._journal.tool_result(call, content, outcome)

    def add(self, message: Message, *, model: str = "", step: int = 0) -> Record:
        """Record a turnlog.Message. `model` wrote it; `step` is the step of a trajectory whose image it shows."""
        return self._journal.append(MessageRecord(message_given(message), model=model, step=step))[0]

    def extend(self, messages: Iterable[Any], target: Target | None = None) -> tuple[Record, ...]:
        """Record several messages at once, all or none: turnlog.Message objects, or messages in the format of
        `target`'s provider (None: the session's target), as dicts or SDK objects. For tools and settings, use
        `configure`."""
        parsed = messages_of(messages, lambda: self._configurer.target_or(target))
        for data in parsed.blobs.values():
            self._store.put_blob(data)
        return self._journal.append(*map(MessageRecord, parsed.messages))

    def absorb(self, body: Mapping[str, Any], target: Target | None = None) -> Request:
        """Take in the request body of a program that keeps the conversation itself and sends it whole each time: what
        is new in it is recorded, and what the program changed in its past as decisions. Returns the request to send.
        `target` is the target of the body; None: the body says it. Raises FormatError, and the errors of `request`."""
        self._absorber = self._absorber or absorbing.Absorber(self._parts)
        self._absorber.absorb(body, target)
        return self.request()

    def note(self, topic: str, text: str = "", data: Any = None) -> Record:
        """Record a note, which is never sent to a model."""
        return self._journal.append(Note(topic, text, data))[0]

    def label(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Set labels of your own, such as `{"user": "ann"}`, by which `store.sessions(where=...)` finds the session. An
        empty value takes a label away; others stay. Returns all labels. They are never sent to a model."""
        current, redactor = self.log.labels, self.log.redactor
        if redactor is not None:
            new = {name: value for name, value in labels_given(labels).items() if current.get(name) != value}
            redactor.refuse("labels", new)
        if (note := labels_note(current, labels_given(labels))) is not None:
            self._journal.append(note)
        return self.log.labels

    def tool_started(self, call: ToolCall) -> Record:
        """Record that a tool begins to run. If the process is killed then, later requests say that it may have run."""
        return self._journal.tool_started(call)

    def tool_finished(
        self, call: ToolCall, outcome: Outcome = "ok", *, seconds: float = 0.0, reason: str = ""
    ) -> Record:
        """Record that a tool ended. Record its result with `tool_result`."""
        record = self._journal.record_of(call)
        return self._journal.append(ToolFinished(call.id, record, outcome_given(outcome), seconds, reason))[0]

    def media(self, data: bytes, mime: str, *, name: str = "") -> Media:
        """A media part with these bytes, for use in a message. The bytes are put into the store now."""
        part = media_of(data, mime, name)
        self._store.put_blob(data)
        return part

    def files(self, root: str | Path = ".") -> FileRecorder:
        """An object that records changes of files under `root`: one by one with `record`, or all during a `watch()`."""
        return self._parts.files(root)

    # -- configuration and decisions -------------------------------------------------------------

    def configure(
        self,
        *,
        tools: Sequence[Tool | Mapping[str, Any]] | None = None,
        budget: Budget | int | None = None,
        strategy: Strategy | str | None = None,
        **settings: Any,
    ) -> Record:
        """Set the tools, the budget, the strategy, or request settings of the target's provider, for later requests.
        Arguments that are not given change nothing; a setting given as None is removed. Returns the record of the
        configuration: the newest one, if nothing changes."""
        configured = self._configurer.configure(tools, budget, strategy, settings)
        self.prompt.settle()
        return next(self.log.of_kinds("configuration", reverse=True)) if configured is None else configured

    def switch(self, target: Target, *, reason: str = "") -> tuple[Loss, ...]:
        """Make later requests for another target. Settings that both providers know are kept; those in `target`
        override them. Returns what the new target cannot take. Nothing is deleted: after switching back, messages and
        tools are sent again. Not restored are decisions made for a smaller window (see `undo`) and settings that only
        one provider has; set those again with `configure`, or give them in the target."""
        losses = self._configurer.switch(target, reason)
        self.skills.follow()
        self.prompt.settle()
        return losses

    def clear(self, *, reason: str = "cleared") -> Record:
        """Start the conversation afresh: later requests contain the system text, but no earlier message. The log keeps
        every record."""
        self._context.refresh()
        return self._journal.append(Decision("clear", first=1, last=self._context.last, why=reason))[0]

    def rewind(
        self,
        *,
        turns: int | None = None,
        messages: int | None = None,
        to: int | None = None,
        reason: str = "",
        dry_run: bool = False,
    ) -> Rewind:
        """Take back the last `turns` user turns, the last `messages`, or everything after record `to`. The conversation
        is then as it was at that point; tools, settings and files on disk do not change. Returns what changes; with
        `dry_run` nothing is recorded. Raises InputError while a turn is open, and if `to` is between a tool call and
        its result; `messages=1` takes back a result and leaves the call."""
        return self._rewinder.rewind(turns, messages, to, reason, dry_run=dry_run)

    def compact(
        self,
        *,
        keep: int | None = None,
        target: Target | None = None,
        budget: Budget | int | None = None,
        strategy: Strategy | str | None = None,
        dry_run: bool = False,
    ) -> Compaction:
        """Make requests smaller now; returns what is left out. With `keep`, everything before the newest `keep` turns
        is summarised; without it, the strategy's steps are applied until requests are half as large. `target`, `budget`
        and `strategy` are used instead of the session's own; with `dry_run` nothing is recorded."""
        flag_given("dry_run", dry_run)
        terms = self._context.terms(budget, strategy)  # first, as in `preview`
        return self._compactor.compact(self._configurer.target_or(target), keep, terms, dry_run=dry_run)

    async def acompact(
        self,
        *,
        keep: int | None = None,
        target: Target | None = None,
        budget: Budget | int | None = None,
        strategy: Strategy | str | None = None,
        dry_run: bool = False,
    ) -> Compaction:
        """As `compact`, for `await`; see `arequest`."""
        return await in_thread(
            lambda: self.compact(keep=keep, target=target, budget=budget, strategy=strategy, dry_run=dry_run)
        )

    def undo(self, what: Literal["", "compaction", "exclusion", "rewind"] = "") -> Record:
        """Undo the last compaction, exclusion or rewind, or (by default) whichever came last: what it left out is sent
        again. Raises InputError if there is none, or if the conversation continued after the rewind."""
        self._context.refresh()
        match what or undone_last(self._context.decisions):
            case "compaction":
                return self._compactor.undo()
            case "exclusion":
                return self._journal.append(readmission_for(self._context.decisions))[0]
            case "rewind":
                return self._rewinder.undo()
        raise InputError(f"undo takes 'compaction', 'exclusion' or 'rewind', not {what!r}")

    def pin(self, n: int, *, reason: str = "pinned") -> Record:
        """Keep message record `n` in every request, whatever else is left out. Pinning does not bring back a message
        that is already left out; `undo` does. Raises InputError if the record is not a message, or was taken back."""
        return self._journal.append(pin_for(self._store, self.id, n, reason))[0]

    def unpin(self, n: int) -> tuple[Record, ...]:
        """Allow message record `n` to be left out of requests again. Raises InputError if it is not pinned."""
        self._context.refresh()
        return self._journal.append(*unpins_for(self._context.decisions, n))

    def exclude(self, n: int, *, part: int | tuple[int, int] | None = None, reason: str = "excluded") -> Record:
        """Show a part of message record `n`, for example an image that a provider refused, as a line of text. `part`:
        its index, or (index of its tool result, index inside it); None means the only image or file of the record.
        Raises InputError if there is no such part, or if it is a tool call or reasoning. `undo` takes it back."""
        return self._journal.append(exclusion_for(self._store, self.id, n, part, reason))[0]

    # -- views and requests ----------------------------------------------------------------------

    def request(self, target: Target | None = None, *, compact: bool = False) -> Request:
        """The next request: valid for its target and within the budget.

        If older messages must be left out, the strategy's decisions are recorded first, unless `target` differs from
        the session's, or the session is open for reading only. With `compact`, it asks the provider to compact the
        conversation. Raises BudgetError if the parts that cannot be left out do not fit, and InputError without a
        target, if the model cannot be asked to compact, if a turn was made but not entered with `with`, or if the
        newest turn has ended and waits for approvals."""
        flag_given("compact", compact)
        self._turn.check_begun()
        self._context.refresh()
        request_target = self._configurer.target_or(target)
        if isinstance(self._lease, ReadLease) and not compact:
            return self._compactor.preview(request_target, self._context.terms(None, None))
        if self._context.asks and not self._turn.id:
            self._check_approved()
        if compact:
            return self._journal.compactions.request(request_target, self._journal.append)
        return self._compactor.request(request_target, own=self.target)

    async def arequest(self, target: Target | None = None, *, compact: bool = False) -> Request:
        """As `request`, while other tasks go on. An asynchronous summarizer is awaited in this event loop. Meanwhile,
        other tasks must use the session only through methods that are awaited: any other method that records waits for
        the summary, and would stop the loop."""
        return await in_thread(lambda: self.request(target, compact=compact))

    def preview(
        self,
        target: Target | None = None,
        *,
        budget: Budget | int | None = None,
        strategy: Strategy | str | None = None,
    ) -> Request:
        """The request as it would be now, with another budget or strategy if one is given. Nothing is recorded, and no
        model is called for a summary. Raises the errors of `request`."""
        terms = self._context.terms(budget, strategy)  # first: it takes in what others recorded, such as another target
        return self._compactor.preview(self._configurer.target_or(target), terms)

    def view(self, target: Target | None = None) -> list[Shown]:
        """The messages of the next request, each with the numbers of the records it comes from. In a session without a
        target: the messages of the conversation, neither repaired nor shortened."""
        if target is None and self.target is None:
            return select(self.history())[0]
        self._context.refresh()
        return list((self.preview if self._context.asks and not self._turn.id else self.request)(target).view)

    def receive(self, answer: Any, target: Target | Request | None = None) -> Answer:
        """Record a model's answer: an SDK's response object, its JSON, or an iterable of stream chunks.

        `target` is the target of the request, if it was not the session's own, or the request itself, as for the answer
        to one with `compact`. A stream that ends early is recorded up to that point and marked as interrupted; an error
        raised by the stream is raised again after that. Raises FormatError, and records nothing, for an error body."""
        return self._journal.receive(answer, self._configurer.asked(target))

    async def areceive(self, answer: Any, target: Target | Request | None = None) -> Answer:
        """As `receive`, for `await`: an answer that is streamed asynchronously, or a whole one."""
        return await self._journal.areceive(answer, self._configurer.asked(target))

    def receiving(self, target: Target | Request | None = None) -> Receiving:
        """A context manager that records an answer as `receive` does, of chunks that are given to its `feed`."""
        return self._journal.receiving(self._configurer.asked(target))

    # -- looking ---------------------------------------------------------------------------------

    def history(self) -> list[Record]:
        """Every record, including notes and decisions, oldest first; `log` reads them one by one."""
        return list(self.log.records())

    def messages(self, target: Target | None = None) -> list[Any]:
        """The conversation in the format of `target`'s provider (None: the session's target), as it was recorded, and
        as `extend` takes it: nothing is repaired, added or left out for size. It is without what was cleared or taken
        back, and what the provider cannot take (see `preview(target).losses`)."""
        return recorded_messages(self.log, self._configurer.target_or(target))

    def read_back(self, n: int, *, lines: tuple[int, int] | None = None) -> str:
        """The whole text of message record `n`, even if requests shorten it or leave it out; with `lines`, only the
        lines from the first to the second number, counted from 1."""
        return read_back(self._store, self.id, n, lines)

    def answer_read_back(self, call: ToolCall) -> Record:
        """Record the result of a model's call of `turnlog.session.READ_BACK`: the text that it asks for, or a message
        about what is wrong with the call. Raises InputError for a call of another tool."""
        text, succeeded = read_back_for(self._store, self.id, call)
        return self.tool_result(call, text, outcome="ok" if succeeded else "failed")

    def answer_recall(
        self, call: ToolCall, *, max_tokens: int = MAX_TOKENS, where: Mapping[str, str] | None = None
    ) -> Record:
        """Record the result of a model's call of `turnlog.session.RECALL`: passages of other sessions, at most
        `max_tokens` tokens, quoted as data; or a message about what is wrong with the call. The sessions searched are
        those of the same owner (see the setting `owner`); with `where`, those with these labels instead, and with `{}`
        all sessions of the store. Raises InputError for a call of another tool."""
        counter, owner = self._context.counter, self._settings.owner
        text, succeeded = recalled_for(self._store, self.id, call, max_tokens, counter, owner=owner, where=where)
        return self.tool_result(call, text, outcome="ok" if succeeded else "failed")

    def explain(self, also: Mapping[int, Decision] | None = None, target: Target | None = None) -> Explanation:
        """For every message of the conversation: whether requests contain it, which decisions left it out or shortened
        it, and how many tokens that saves. Tokens are counted for `target` (None: the session's). `also`: decisions to
        count in although they are not on record, such as `decisions` of a dry run of compact()."""
        self._context.refresh()
        return explained(self._store, self.id, self.target if target is None else target_given(target), also)

    @property
    def message_count(self) -> int:
        """The number of messages in the log."""
        return self.log.message_count

    @property
    def memory(self) -> Memory:
        """What the conversation is about so far: files and what was done to them, commands, errors, and what the user
        requires. Made from the log when it is first asked for, and kept up to date from then on."""
        return self._memory.now(self._context.counter)

    @property
    def configuration(self) -> Configuration:
        """The tools, settings, budget and strategy in force."""
        return self._context.configuration

    @property
    def target(self) -> Target | None:
        """The target of requests if no other is given: the last one on record."""
        return self._configurer.target

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes since the configuration that was on record before this session was opened: those by the arguments
        of `turnlog.open`, and later ones."""
        return changes_of(self._found, self._parts.state)

    def _end_followers(self) -> None:
        for follower in tuple(self._followers):
            follower.finish()

    def _begin(
        self,
        configure: Callable[[], object] = lambda: None,
        *,
        created: bool = False,
        source: str = "",
        kept: tuple[Change, ...] = (),
        of: str = "",
    ) -> None:
        """Call `recovery.begin` for this session with these arguments, and keep what it returns as `resumed`."""
        self.resumed = begin(self._parts, self._found, configure, created=created, source=source, kept=kept, of=of)
        self._parts.checker.begin()
        if created:
            self._found = self._parts.state
