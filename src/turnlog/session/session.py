"""A session: one log, opened for work. Wiring only.

Everything said is appended as a record before anything else happens with it; requests are made from
the log, so that a session opened again after a crash makes the same one.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ..errors import InputError, text_given
from ..log.budget import Budget, Strategy, read_budget, read_strategy
from ..log.messages import Media, Message, Outcome, Tool, ToolCall
from ..log.records import Body, Configuration, Decision, MessageRecord, Note, Record, ToolFinished, ToolStarted
from ..log.store import SessionInfo, Store
from ..models.target import Target
from ..models.target import target as make_target
from ..providers.tool_declarations import read_tools
from ..requests.request import Request
from ..requests.translate import plan, translate
from ..summarize import TIMEOUT, Complete, Summarizer
from ..tokens.calibration import Drift, Prediction
from ..view.breakdown import Breakdown
from ..view.explain import Explanation
from ..view.fold import select
from ..view.types import Loss, Shown
from ..workspace.watch import FileRecorder, folder_given
from .answer import Answer
from .checkpoint import CHECKPOINT_SECONDS
from .compactor import Compaction, Compactor
from .history_edits import Rewind, Rewinder, pin_for, unpins_for
from .inputs import Content, media_of, message_given, messages_of, parts_of, settings_given, target_of
from .inspect import broken_down, explained
from .lifecycle import Lifecycle
from .read_back import read_back, read_back_for
from .recovery import environment_of
from .turn import Turn


class Session(Lifecycle):
    """One conversation. Use `turnlog.open` to get one; it is a context manager.

    Threads may share it, and several processes append to one session: what others appended is seen at the next
    request.
    """

    def __init__(
        self,
        store: Store,
        info: SessionInfo,
        *,
        owns_store: bool = False,
        summarizer: Summarizer | Complete | None = None,
        summary_timeout: float = TIMEOUT,
        checkpoint: float = CHECKPOINT_SECONDS,
    ) -> None:
        super().__init__(store, info.id, owns_store=owns_store, checkpoint=checkpoint)
        tell = self._events.tell
        self._compactor = Compactor(store, info.id, self._context, summarizer, summary_timeout, tell)
        self._services.on_close(self._compactor.close)
        self._usual: tuple[Configuration, Target] | None = None
        self._alike = partial(
            Session, store, summarizer=summarizer, summary_timeout=summary_timeout, checkpoint=checkpoint
        )
        self._rewinder = Rewinder(info.id, self.records, self._journal.append, self._living)

    # -- turns -----------------------------------------------------------------------------------

    def turn(self, content: Content, *, watch: str | Path | None = None) -> Turn:
        """A turn that begins with what the user says, to be used in `with` or `async with`. With `watch`, what
        changes in that folder during the turn is recorded. One turn is open at a time."""
        return self.made_turn(Turn(self, self._journal, content, watch))

    # -- recording -------------------------------------------------------------------------------

    def system(self, content: Content) -> Record:
        """Record system text."""
        return self.add(Message("system", parts_of(content)))

    def user(self, content: Content) -> Record:
        """Record what the user said."""
        return self.add(Message("user", parts_of(content)))

    def assistant(self, content: Content) -> Record:
        """Record an answer made elsewhere; answers of SDK calls go to `receive`."""
        return self.add(Message("assistant", parts_of(content)))

    def tool_result(self, call: ToolCall | str, content: Content = (), *, outcome: Outcome = "ok") -> Record:
        """Record the result of a call, given as the call itself or its id."""
        return self.add(Message("user", (self._journal.result_of(call, content, outcome),)))

    def add(self, message: Message, *, model: str = "") -> Record:
        """Record a canonical message."""
        return self._append(MessageRecord(message_given(message), model=model))[0]

    def extend(self, messages: Iterable[Any], aim: Target | None = None) -> tuple[Record, ...]:
        """Record several messages at once, all or none: canonical ones, or those of a request to the session's
        provider, `aim`'s if given, as they stand there, SDK objects too. Tools and settings go to `configure`."""
        found = messages_of(messages, lambda: self._aim(aim))
        for data in found.blobs.values():
            self._store.put_blob(data)
        return self._append(*map(MessageRecord, found.messages))

    def note(self, topic: str, text: str = "", data: Any = None) -> Record:
        """Record something that no model is ever sent."""
        return self._append(Note(topic, text, data))[0]

    def tool_started(self, call: ToolCall) -> Record:
        """Record that a tool begins to run: after a crash the call is known to perhaps have run."""
        record = self._journal.record_of(call)
        return self._append(ToolStarted(call.id, record, call.name))[0]

    def tool_finished(
        self, call: ToolCall, outcome: Outcome = "ok", *, seconds: float = 0.0, reason: str = ""
    ) -> Record:
        """Record that a tool ended. Its result is recorded with `tool_result`."""
        record = self._journal.record_of(call)
        return self._append(ToolFinished(call.id, record, outcome, seconds, reason))[0]

    def media(self, data: bytes, mime: str, *, name: str = "") -> Media:
        """A media part of these bytes, kept in the store, to be used in a message."""
        part = media_of(data, mime, name)
        self._store.put_blob(data)
        return part

    def files(self, root: str | Path = ".") -> FileRecorder:
        """What records changes of files under `root`: one by one, or all of a `watch()`."""
        return FileRecorder(folder_given(root), self._append, self._store.put_blob, self._watches)

    # -- configuration and decisions -------------------------------------------------------------

    def configure(
        self,
        *,
        tools: Sequence[Tool | Mapping[str, Any]] | None = None,
        budget: Budget | int | None = None,
        strategy: Strategy | str | None = None,
        **settings: Any,
    ) -> Record:
        """Set the tools, the budget, the strategy, or settings of the target's provider, for the requests from here on;
        those not named stay as they are, a setting given as None goes."""
        self._context.refresh()
        self._aim(None)  # first: who has no target is told so
        settings_given(settings, self.configuration.settings)
        given = {
            **({} if tools is None else {"tools": read_tools(tools)}),
            **({} if budget is None else {"budget": read_budget(budget)}),
            **({} if strategy is None else {"strategy": read_strategy(strategy)}),
        }

        def configured(_: int) -> tuple[Configuration]:  # with what others configured since
            aim, now = self._aim(None), self.configuration
            merged = {key: value for key, value in {**now.settings, **settings}.items() if value is not None}
            here = environment_of(aim.provider, aim.model)
            return (msgspec.structs.replace(now, settings=merged, why="", form=None, environment=here, **given),)

        return self._journal.append_at(configured, exact=False)[0]

    def switch(self, aim: Target, *, why: str = "") -> tuple[Loss, ...]:
        """Make requests for another target from here on. Settings that both providers have, whatever the model, are
        carried over, `aim.settings` laid over them. Returns what the target cannot take of settings and of the
        conversation so far. Switching back brings back what it could not take of the conversation and of the tools,
        but for what a request decided for a smaller window (`undo_compaction`); settings that only one provider has
        are to be given again, with `aim` or `configure`."""
        self._context.refresh()
        made = plan(self.configuration, target_of(aim))
        usual = make_target(aim.provider, aim.model)

        def switched(_: int) -> tuple[Configuration]:  # with what others configured since
            carried = translate(self.configuration, made.provider)[0]
            return (
                Configuration(
                    provider=aim.provider,
                    model=aim.model,
                    settings={**carried.settings, **aim.settings},
                    tools=carried.tools,
                    why=why,
                    input_limit=0 if aim.input_limit == usual.input_limit else aim.input_limit,
                    budget=self.configuration.budget,
                    strategy=self.configuration.strategy,
                    environment=environment_of(aim.provider, aim.model),
                ),
            )

        self._journal.append_at(switched, exact=False)
        with self._context.lock:
            return (*made.losses, *self._context.request(self._aim(None), sent=False).losses)

    def replace_system(self, text: str) -> Record:
        """Have this system text at the beginning of the conversation from here on, in place of what stands there;
        the log keeps that. A conversation that began without any has it where it is now, and the next in its place."""

        def replaced(n: int) -> tuple[Body, ...]:  # also what others recorded since
            old = [(shown, i) for shown in self._context.head for i, part in enumerate(shown.message.parts)]
            if not old:
                said = MessageRecord(Message("system", parts_of(text)))
                return (said, Decision("system", n, n, "system text")) if self._context.has_begun else (said,)
            first, last = old[0][0].records[0], old[-1][0].records[0]
            places = [[shown.records[0], [i], "" if k else text] for k, (shown, i) in enumerate(old)]
            detail = {"texts": places, "changes_from": first}
            return (Decision("system", first, last, "another system text", detail),)

        exact = self._context.has_begun and not self._context.head  # a decision names the number
        return self._journal.append_at(replaced, exact=exact)[0]

    def clear(self, *, why: str = "cleared") -> Record:
        """Start the conversation afresh: system text stays, all else leaves the view, not the log."""
        self._context.refresh()
        return self._append(Decision("clear", first=1, last=self._context.last, why=why))[0]

    def rewind(
        self, *, turns: int | None = None, to: int | None = None, why: str = "", dry_run: bool = False
    ) -> Rewind:
        """Take back the last `turns` user turns, or everything after record `to`: the conversation is as it was then,
        decisions included. Tools, settings and files on disk stay as they are. Says what that does; with `dry_run`,
        without doing it. Raises InputError while a turn is open, and where `to` is between a call and its result."""
        return self._rewinder.rewind(turns, to, why, dry_run=dry_run)

    def undo_rewind(self) -> Record:
        """Take back the last rewind: what it took back is shown again. Raises InputError if none is in force, or if the
        conversation has gone on since."""
        return self._rewinder.undo()

    def pin(self, n: int, *, why: str = "pinned") -> Record:
        """Keep message record `n` in every view, whatever has to be left out. What was left out already comes back when
        the decision that did it is taken back, not by this. Raises InputError if it is no message, or taken back."""
        return self._append(pin_for(self._store, self.id, n, why))[0]

    def unpin(self, n: int) -> tuple[Record, ...]:
        """Let message record `n` go again where something has to be left out. Raises InputError if it is not pinned."""
        self._context.refresh()
        return self._append(*unpins_for(self._context.decisions, n))

    def fork(self, new_id: str, *, at: int | None = None, title: str = "") -> Session:
        """A session of its own that begins with this one's records up to number `at` (None: all), what was taken back
        included. It has the same summarizer and checkpoints; a turn that is open there is closed as failed."""
        info = self._store.fork(self.id, new_id, at=at, title=text_given("title", title))
        made = self._alike(info)
        if (hold := self._store.hold(new_id)) is not None:
            made.attach(hold)
        made.begin(created=False)
        return made

    # -- views and requests ----------------------------------------------------------------------

    def view(self, aim: Target | None = None) -> list[Shown]:
        """The prompt view: the messages that the next request for a target shows, with the records they
        come from. In a session without a target: the conversation as it stands, unrepaired and uncut."""
        if aim is None and self.target is None:
            return select(self.history())[0]
        return list(self.request(aim).view)

    def request(self, aim: Target | None = None) -> Request:
        """The next request: valid for its target and within the budget.

        Where older messages have to give way, what the strategy decides is put on record first, unless `aim` is
        another target than the session's. Raises BudgetError if what cannot be left out does not fit, InputError
        without a target, or if a turn was made and never begun.
        """
        self.check_begun()
        self._context.refresh()
        own, found = self.target, self._aim(aim)
        ours = own is not None and (found.provider, found.model) == (own.provider, own.model)
        return self._compactor.request(found, on_record=ours)

    def preview(
        self, aim: Target | None = None, *, budget: Budget | int | None = None, strategy: Strategy | str | None = None
    ) -> Request:
        """The request as it would be now, for this once under another budget or strategy if one is given. Nothing
        is put on record and no model is asked for a summary. Errors as `request`."""
        terms = self._context.terms(budget, strategy)  # first: it takes in what others recorded, be it another target
        return self._compactor.preview(self._aim(aim), terms)

    def compact(
        self,
        *,
        keep: int | None = None,
        aim: Target | None = None,
        budget: Budget | int | None = None,
        strategy: Strategy | str | None = None,
        dry_run: bool = False,
    ) -> Compaction:
        """Make the view smaller now, and say what went. With `keep`, all before the newest `keep` turns is
        summarised; without, the strategy's steps are taken until the view is half as large. `aim`, `budget` and
        `strategy` hold for this once; with `dry_run` nothing is put on record."""
        terms = self._context.terms(budget, strategy)  # first, as in `preview`
        return self._compactor.compact(self._aim(aim), keep, terms, dry_run=dry_run)

    def undo_compaction(self) -> Record:
        """Take back the last decision that made the view smaller: what it left out is shown again."""
        return self._compactor.undo()

    def read_back(self, n: int, *, lines: tuple[int, int] | None = None) -> str:
        """The text of message record `n`, whatever the view shows of it; with `lines`, from line to line,
        counted from 1."""
        return read_back(self._store, self.id, n, lines)

    def answer_read_back(self, call: ToolCall) -> Record:
        """Answer a model's call of `turnlog.session.READ_BACK`: with the text it asked for, or with what is wrong with
        the call. Raises InputError for a call of another tool."""
        text, found = read_back_for(self._store, self.id, call)
        return self.tool_result(call, text, outcome="ok" if found else "failed")

    def explain(self, also: Mapping[int, Decision] | None = None, aim: Target | None = None) -> Explanation:
        """What became of every message in the conversation as it stands, by which decisions, and how many tokens
        that saves, for a target. `also` are decisions as if they were on record: those of a dry run."""
        self._context.refresh()
        return explained(self._store, self.id, self.target if aim is None else target_of(aim), also)

    def breakdown(
        self, aim: Target | None = None, *, budget: Budget | int | None = None, strategy: Strategy | str | None = None
    ) -> Breakdown:
        """What takes how many tokens of the conversation as it stands, beside the budget."""
        with self._context.lock:
            terms, found = self._context.terms(budget, strategy), self._aim(aim)  # in this order, as in `preview`
            return broken_down(self._store, self.id, self._context, found, self._compactor.marks(found, terms), terms)

    def receive(self, answer: Any, aim: Target | None = None) -> Answer:
        """Record a model's answer: an SDK's response object, its JSON, or an iterable of stream chunks.

        `aim` is the target that was asked, if it was not the session's own. A stream that ends early is
        recorded as far as it came, marked as interrupted; an error of the stream itself is raised again
        after that. Raises FormatError, and records nothing, for what is no answer: an error body, with what it says.
        """
        return self._journal.receive(answer, self._aim(aim))

    async def areceive(self, chunks: AsyncIterable[Any], aim: Target | None = None) -> Answer:
        """Record an answer that is streamed asynchronously, else as `receive`."""
        return await self._journal.areceive(chunks, self._aim(aim))

    # -- figures ---------------------------------------------------------------------------------

    @property
    def configuration(self) -> Configuration:
        """The tools and settings in force."""
        return self._context.configuration

    @property
    def target(self) -> Target | None:
        """What requests are made for, unless another target is named: the last one on record."""
        now = self.configuration
        if not (now.provider and now.model):
            return None
        if self._usual is None or self._usual[0] is not now:
            made = make_target(now.provider, now.model)
            self._usual = now, msgspec.structs.replace(made, input_limit=now.input_limit or made.input_limit)
        return self._usual[1]

    @property
    def token_count(self) -> int:
        """Tokens of the conversation as it stands, system text and tools included."""
        with self._context.lock:
            self._context.refresh()
            return self._context.tokens(self._aim(None)).tokens

    @property
    def tokens_available(self) -> int:
        """Tokens left of the budget before older messages have to give way."""
        self._context.refresh()
        return self._compactor.marks(self._aim(None)).trigger - self.token_count

    @property
    def prediction(self) -> Prediction:
        """What the next request is going to be billed, in tokens, as counts and past bills tell."""
        with self._context.lock:
            self._context.refresh()
            aim = self._aim(None)
            return self._context.calibration.predict(aim.provider, self._context.tokens(aim))

    @property
    def drift(self) -> Drift | None:
        """The warning that counts for the target's model no longer fit its bills, if there is one."""
        aim = self._aim(None)
        with self._context.lock:
            return self._context.calibration.drift(aim.provider, self._context.tokens(aim).counter)

    # -- inside ----------------------------------------------------------------------------------

    def _append(self, *bodies: Body) -> tuple[Record, ...]:
        return self._journal.append(*bodies)

    def _aim(self, aim: Target | None) -> Target:
        found = self.target if aim is None else target_of(aim)
        if found is None:
            raise InputError(
                "no target: open the session with target=turnlog.target(PROVIDER, MODEL), or name one here"
            )
        return found
