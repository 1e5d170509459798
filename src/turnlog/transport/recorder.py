"""Puts the requests of one HTTP client on record, and says what to send instead."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from contextvars import ContextVar
from itertools import chain, count
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from .._platform.exceptions import described
from .._platform.given import text_given
from .._platform.stdlib import LOG
from ..config.settings import Settings
from ..errors import BudgetError, InputError, SessionBusy, SessionNotFound
from ..log.budget import Budget, Strategy, read_budget, read_strategy
from ..log.store import Store
from ..models.makers import PROVIDER_ROWS
from ..models.target import Target
from ..providers import provider
from ..requests.request import Request
from ..requests.standalone import check
from ..session import Session
from ..session.absorbing import items_of
from ..session.open import open as open_session
from ..session.settings import settings_for
from ..stores import default_path, open_store
from ..stores.labels import labels_given, labels_of
from .answers import TRANSPORT, Answering
from .conversations import NAMED, Heard, OpenConversation, continued, likeliest, on_record
from .routes import Route

_CLIENT = "client"
"""The label with the name of the client that recorded a session."""

_MOST_OPEN = 64
"""How many sessions a client keeps open. One that is closed is found again by its labels."""

_LOG_ONLY = Strategy("log-only", max_history_turns=None, cache_marks=False)

_named: ContextVar[str] = ContextVar("turnlog_session", default="")


@contextmanager
def session(session_id: str) -> Iterator[None]:
    """Put the requests that are sent in this block on record in the session of that id, which is made if it is not
    there. Subagents and other conversations beside it get sessions with this id and a number."""
    before = _named.set(text_given("session_id", session_id))
    try:
        yield
    finally:
        _named.reset(before)


class Outgoing(msgspec.Struct, frozen=True):
    """A recorded request: what takes its answer, and the body to send; None: as it is."""

    answering: Answering
    body: bytes | None


class Recorder:
    """Records requests and answers. A failure of turnlog is counted and logged, and the request goes out as it was."""

    def __init__(
        self,
        store: Store | str | Path | None,
        budget: Budget | int | None,
        strategy: Strategy | str | None,
        name: str,
        labels: Mapping[str, str] | None,
        settings: Settings | None,
    ) -> None:
        used = settings_for(store, settings)
        if budget is None and settings is not None:
            budget = settings.budget
        if budget is None and strategy is None:
            budget, strategy = Budget(unlimited=True), _LOG_ONLY
        self._budget = None if budget is None else read_budget(budget)
        self._settings = used if strategy is None else replace(used, strategy=read_strategy(strategy))
        self._store = (used.store or default_path()) if store is None else store
        self._labels = labels_given(labels or {})
        self._where = {**self._labels, _CLIENT: text_given("name", name)}
        self._lock = threading.RLock()
        self._open: list[OpenConversation] = []
        self.failures = 0

    # -- requests --------------------------------------------------------------------------------

    def ask(self, route: Route, content: bytes, name: str) -> Outgoing | None:
        """Put a request on record. `name` is the id of the session that the request names, "" if it names none. None if
        the server holds a part of the conversation, or the request cannot be recorded. Raises InputError only where
        secrets are kept from the model, for a request that cannot be read."""
        conversation = None
        try:
            body = msgspec.json.decode(content)
            target = route.target(body)
            if target is None:
                return None
            conversation = self._conversation(body, target, name or _named.get())
            return self._absorbed(conversation, body, target)
        except Exception as error:  # whatever it is, the request must not fail
            self.failed("a request is not on record", error)
            if conversation is not None:
                self._drop(conversation)
            if self._hides:
                raise InputError("turnlog could not take the secrets out of a request, which was not sent") from error
            return None

    def feed(self, answering: Answering, piece: bytes) -> None:
        """Take a piece of an answer."""
        try:
            answering.feed(piece)
        except Exception as error:  # noqa: BLE001 - as in `ask`
            self.failed("an answer is not on record as a whole", error)
            self.end(answering, described(error))

    def end(self, answering: Answering, reason: str = "") -> None:
        """Record an answer that is over. `reason` says why it broke off, empty if it did not."""
        try:
            answering.end(reason)
        except Exception as error:  # noqa: BLE001 - as in `ask`
            self.failed("an answer is not on record", error)

    def failed(self, what: str, error: BaseException) -> None:
        """Count and log a failure."""
        self.failures += 1
        LOG.warning("%s: %s", what, described(error), exc_info=LOG.isEnabledFor(10))

    @property
    def _hides(self) -> bool:
        redactor = self._settings.redactor
        return redactor is not None and not redactor.live

    def _absorbed(self, conversation: OpenConversation, body: dict[str, Any], target: Target) -> Outgoing:
        answering = conversation.answering
        assert answering is not None
        request = None
        try:
            request = _absorb(conversation, body, target)
        except BudgetError as error:  # it is on record, and only cannot be made smaller
            self.failed("the request is larger than the budget, and was sent whole", error)
        conversation.label()
        if request is None or not (
            self._hides or conversation.is_shortened or self._is_invalid(conversation, request, body)
        ):
            return Outgoing(answering, None)
        sent = request.body
        if not self._hides and conversation.mended_around != conversation.heard.around:
            others = {*body} - _telling(target)  # as the program made them, also those that turnlog does not know
            sent = {
                **{name: body[name] for name in others},
                **{name: sent[name] for name in sent if name not in others},
            }
        return Outgoing(answering, msgspec.json.encode(sent))

    def _is_invalid(self, conversation: OpenConversation, request: Request, body: dict[str, Any]) -> bool:
        """Whether the provider would refuse the body. It is looked at as a whole only where something new in it has to
        be changed, or the request made of the same messages. What turnlog does not know may be newer than turnlog."""
        around, (known, last_around) = conversation.heard.around, conversation.checked
        if conversation.is_mended or conversation.mended_around == around:
            return True
        target, speaker = request.target, provider(request.target.provider)
        rest = body if around != last_around else {"model": target.model}
        new = {**rest, speaker.conversation: items_of(body, speaker)[known:]}
        if not (request.edits or speaker.sanitize(new, target).edits):
            return False
        found = check(body, target.provider, model=target.model, server=target.server)
        found = [each for each in found if each.kind != "unknown_key"]
        conversation.is_mended = any(each.messages or each.path.startswith(speaker.conversation) for each in found)
        conversation.mended_around = around if found else b""
        return bool(found)

    # -- conversations ---------------------------------------------------------------------------

    def _conversation(self, body: dict[str, Any], target: Target, name: str) -> OpenConversation:
        """The conversation of a body, which is not free until the answer is there."""
        speaker = provider(target.provider)
        heard = Heard.of(body, speaker)
        with self._lock:
            own = [each for each in self._open if each.name == name]
            found = continued(own, heard)
            is_same = found is not None and len(found.heard.items) == len(heard.items)
            if found is not None and found.answering is not None and heard.has_answer_to(found.heard):
                self.end(found.answering)  # nobody closed its stream
            if found is not None and found.is_free and not (is_same and heard.begins and found.is_answered):
                return self._taken(found, heard, target)
        heard = heard.read(body, speaker, self._settings.redactor)
        if not is_same:  # else the same was asked beside it, or asked anew: a conversation of its own
            with self._lock:
                free = [each for each in own if each.is_free]
                found = likeliest(free, heard)
                if found is None and name:  # all of its past may have become a summary
                    found = next((each for each in free if each.heard.around == heard.around), None)
                if found is not None:
                    return self._taken(found, heard, target)
        conversation = OpenConversation(self._opened(heard, target, name, search=not is_same), name)
        with self._lock:
            self._open.append(conversation)
            return self._taken(conversation, heard, target)

    def _taken(self, conversation: OpenConversation, heard: Heard, target: Target) -> OpenConversation:
        self._open.remove(conversation)
        self._open.append(conversation)
        for idle in [each for each in self._open if each.is_free][: max(0, len(self._open) - _MOST_OPEN)]:
            self._drop(idle)
        return conversation.take(heard, target)

    def _opened(self, heard: Heard, target: Target, name: str, *, search: bool) -> Session:
        """The session on record that a body goes on with, or a new one."""
        where = {**self._where, NAMED: name}
        with ExitStack() as opened:
            store = self._store
            if isinstance(store, (str, Path)):
                store = opened.enter_context(closing(open_store(store, key=self._settings.key)))
            here = {each.session.id for each in self._open}
            own = [name] if name and _has(store, name) and self._owns(store, name) else []
            for session_id in on_record(store, heard, where, own) if search else ():
                if session_id not in here:
                    with suppress(SessionBusy):  # another process goes on with it
                        return self._session(session_id, target, where)
            if not name:
                return self._session("", target, where)
            names = chain([name], (f"{name}-{i}" for i in count(2)))
            return self._session(next(each for each in names if not _has(store, each)), target, where)

    def _owns(self, store: Store, session_id: str) -> bool:
        """Whether a session has no other values for the labels of this client."""
        labels = labels_of(store, session_id)
        return all(labels.get(key, value) == value for key, value in self._labels.items())

    def _session(self, session_id: str, target: Target, labels: Mapping[str, str]) -> Session:
        return open_session(
            session_id,
            store=self._store,
            target=target,
            budget=self._budget,
            labels=labels,
            settings=self._settings,
            override=True,
            wait=0,
        )

    def _drop(self, conversation: OpenConversation) -> None:
        """Close a session: it is found again by its labels when it goes on."""
        with self._lock, suppress(ValueError):
            self._open.remove(conversation)
        with suppress(Exception):  # what cannot be written now was told already
            conversation.session.close()

    def close(self) -> None:
        """Record what has come of answers, and close all sessions."""
        for conversation in [*self._open]:
            self._drop(conversation)


def _has(store: Store, session_id: str) -> bool:
    try:
        store.info(session_id)
    except SessionNotFound:
        return False
    return True


def _telling(target: Target) -> set[str]:
    """The keys of a body with its conversation."""
    row = PROVIDER_ROWS[target.provider]
    return {"model", row.conversation, *row.system_keys}


def _absorb(conversation: OpenConversation, body: dict[str, Any], target: Target) -> Request:
    """Take in a body. Settings that turnlog does not know are not recorded, nor are settings and tools if they contain
    secrets; a note tells so."""
    session, known, left_out = conversation.session, body, ""
    unknown = {*body} - {*provider(target.provider).settings} - _telling(target)
    if unknown and not target.compatible:
        known = {name: value for name, value in body.items() if name not in unknown}
        left_out = f"not recorded, as turnlog does not know them: {', '.join(sorted(unknown))}"
    try:
        request = session.absorb(known, target)
    except InputError as error:
        left_out = f"tools and settings are not recorded: {error}"
        request = session.absorb({name: body[name] for name in _telling(target) if name in body}, target)
    if left_out and left_out not in conversation.told:
        conversation.told.add(left_out)
        session.note(TRANSPORT, left_out)
    return request
