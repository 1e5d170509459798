"""Puts the requests of one HTTP client on record, and says what to send instead."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from contextvars import ContextVar
from hashlib import blake2b
from itertools import chain, count
from pathlib import Path
from typing import Any
from weakref import WeakSet

import msgspec
from msgspec.structs import replace

from .._platform.exceptions import described
from .._platform.given import text_given
from .._platform.stdlib import LOG
from ..config.settings import Settings
from ..errors import BudgetError, InputError, SessionBusy, SessionNotFound
from ..log.budget import USUAL_STRATEGY, Budget, Strategy, read_budget, read_strategy
from ..log.store import Store
from ..models.makers import PROVIDER_ROWS
from ..models.target import Target
from ..providers import provider
from ..providers.protocol import Provider
from ..redaction import Redactor
from ..requests.request import Request
from ..requests.standalone import check
from ..session import Session
from ..session.absorbing import items_of, said_in
from ..session.answer import TRANSPORT
from ..session.open import open as open_session
from ..session.settings import settings_for
from ..stores import default_path, open_store
from ..stores.labels import FOLDER, labels_given, labels_of
from .answers import Answering
from .conversations import (
    EXCHANGE,
    NAMED,
    OPENING,
    Heard,
    OpenConversation,
    continued,
    labels_found_by,
    likeliest,
    on_record,
)
from .routes import Route

_CLIENT = "client"
"""The label with the name of the client that recorded a session."""

_SLOW, _REST = 5.0, 60.0
"""Seconds: after a failure that took so long, nothing is recorded for a while."""

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
    """What is sent instead of a request: what takes the answer (None: nothing), and the body (None: as it was)."""

    answering: Answering | None
    body: bytes | None


_recorders: WeakSet[Recorder] = WeakSet()


def _forked() -> None:
    for recorder in _recorders:
        recorder.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


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
        self._where = labels_given({**(labels or {}), _CLIENT: text_given("name", name)})
        self._owner = blake2b(msgspec.json.encode(sorted(self._where.items())), digest_size=16).digest()
        self._folder: dict[str, str] = {}
        with suppress(OSError):  # it may have been deleted
            self._folder[FOLDER] = os.getcwd()
        redactor = used.redactor
        self._hides = redactor if redactor is not None and not redactor.live else None
        self._lock = threading.RLock()
        self._open: list[OpenConversation] = []
        self._inherited: list[OpenConversation] = []
        self._rests_until = 0.0
        self.failures = 0
        _recorders.add(self)

    def forget(self) -> None:
        """Leave all sessions to the process that this one is a fork of."""
        self._lock = threading.RLock()  # another thread may have held it
        self._inherited, self._open = [*self._inherited, *self._open], []  # closing them is for their owner

    @property
    def looks_at_all(self) -> bool:
        """Whether requests that ask no model are looked at, too."""
        return self._hides is not None

    # -- requests --------------------------------------------------------------------------------

    def ask(self, route: Route | None, content: bytes, name: str) -> Outgoing | None:
        """Put a request on record. `name` is the id of the session that the request names, "" if it names none. None if
        it goes out as it is and is not recorded: the server holds a part of the conversation, or turnlog failed. Raises
        InputError only where secrets are kept from the model, for a request that cannot be read."""
        conversation, began = None, time.monotonic()
        try:
            body = msgspec.json.decode(content) if route is not None else {}
            target = route.target(body) if route is not None else None
            if target is not None and began < self._rests_until:
                raise InputError("the store was slow to fail; it is tried again in a minute")
            if target is not None:
                conversation = self._conversation(body, target, name or _named.get())
                return self._absorbed(conversation, body, target)
        except Exception as error:  # noqa: BLE001 - whatever it is, the request must not fail
            self._failed("a request is not on record", error, began)
            if conversation is not None:
                conversation.answering = None
                self._drop(conversation)
        return None if self._hides is None else Outgoing(None, _without_secrets(content, self._hides, route))

    def feed(self, answering: Answering, piece: bytes, *, look: bool = True) -> bool:
        """Take a piece of an answer. Returns whether a checkpoint is due; without `look`, none is made."""
        try:
            return answering.feed(piece, look=look)
        except Exception as error:  # noqa: BLE001 - as in `ask`
            self._failed("an answer is not on record as a whole", error)
            self.end(answering, described(error))
            return False

    def look(self, answering: Answering) -> None:
        """Make a checkpoint of an answer."""
        began = time.monotonic()
        try:
            answering.look()
        except Exception as error:  # noqa: BLE001 - as in `ask`
            self._failed("an answer is not on record as it comes", error, began)

    def end(self, answering: Answering, reason: str = "") -> None:
        """Record an answer that is over. `reason` says why it broke off, empty if it did not."""
        began = time.monotonic()
        try:
            answering.end(reason)
        except Exception as error:  # noqa: BLE001 - as in `ask`
            self._failed("an answer is not on record", error, began)

    def _failed(self, what: str, error: BaseException, began: float = math.inf) -> None:
        self.failures += 1
        now = time.monotonic()
        if now - began > _SLOW:  # a store that somebody blocks must not hold up each request
            self._rests_until = now + _REST
        LOG.warning("%s: %s", what, described(error), exc_info=LOG.isEnabledFor(10))

    def _absorbed(self, conversation: OpenConversation, body: dict[str, Any], target: Target) -> Outgoing:
        answering = conversation.answering
        assert answering is not None
        try:
            request = _absorb(conversation, body, target)
        except BudgetError as error:  # it is on record
            self._failed("a request is larger than the budget, also without what can be left out", error)
            request = conversation.session.preview(budget=Budget(max_tokens=int(1.1 * sum(error.floor.values())) + 1))
            conversation.is_shortened = True
        conversation.label()
        is_invalid = self._is_invalid(conversation, request, body)
        is_shortened = conversation.is_shortened and not (self._budget is not None and self._budget.unlimited)
        if not (is_invalid or is_shortened or self._hides):
            return Outgoing(answering, None)
        sent = request.body
        if not self._hides and conversation.mended_around != conversation.heard.around:
            telling = _telling(target)  # all else stays as the program made it
            others = {name: value for name, value in body.items() if name not in telling}
            sent = {**others, **{name: value for name, value in sent.items() if name in telling}}
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
        conversation.mended_around = around if found else 0
        return bool(found)

    # -- conversations ---------------------------------------------------------------------------

    def _conversation(self, body: dict[str, Any], target: Target, name: str) -> OpenConversation:
        """The conversation of a body, which is not free until the answer is there."""
        speaker = provider(target.provider)
        heard, beside, other = Heard.of(body, speaker), False, False
        with self._lock:
            own = [each for each in self._open if each.name == name]
            begun = continued(own, heard)
            several = len(begun) > 1 and len(begun[0].heard.items) == len(begun[1].heard.items)
            for found in begun:
                if other and heard.around not in found.arounds:
                    break
                if len(found.heard.items) == len(heard.items):
                    beside = not found.is_free or (heard.begins and found.is_answered)
                    if beside:  # the same is asked beside it, or asked anew
                        break
                elif not (found.is_free or heard.has_answer_to(found.heard)):
                    continue
                elif (several or found.heard.begins) and not self._answers(found, body, speaker):
                    other = heard.around in found.arounds  # another one that began in the same words
                    continue
                return self._taken(found, heard, target)
        heard = heard.read(body, speaker, self._settings.redactor)
        if not (beside or other):
            with self._lock:
                if (likely := likeliest([each for each in own if each.is_free], heard)) is not None:
                    return self._taken(likely, heard, target)
        session = self._opened(heard, target, name, search=not beside)
        conversation = OpenConversation(session, name, self._owner)
        with self._lock:
            self._open.append(conversation)
            return self._taken(conversation, heard, target)

    def _answers(self, found: OpenConversation, body: dict[str, Any], speaker: Provider) -> bool:
        """Whether what comes in a body after the last one is the answer that was recorded."""
        if not found.is_answered or found.answering is None:
            return True
        new = said_in({speaker.conversation: items_of(body, speaker)[len(found.heard.items) :]}, speaker, None)
        return new[:1] == [found.answering.says]

    def _taken(self, conversation: OpenConversation, heard: Heard, target: Target) -> OpenConversation:
        if conversation.answering is not None:
            self.end(conversation.answering)  # nobody closed its stream
        conversation.take(heard, target)
        self._open.remove(conversation)
        self._open.append(conversation)
        too_many = max(0, len(self._open) - _MOST_OPEN)
        for each in [each for each in self._open if each.is_free][:too_many]:
            self._drop(each)
        return conversation

    def _opened(self, heard: Heard, target: Target, name: str, *, search: bool) -> Session:
        """The session on record that a body goes on with, or a new one."""
        where = {**self._where, NAMED: name}
        with ExitStack() as opened:
            store = self._store
            if isinstance(store, (str, Path)):
                store = opened.enter_context(closing(open_store(store, key=self._settings.key)))
            here = {each.session.id for each in self._open}
            own = [name] if name and _has(store, name) and self._owns(store, name) else []
            for session_id in on_record(store, heard, where, self._owner, own) if search else ():
                if session_id not in here:
                    with suppress(SessionBusy):  # another process goes on with it
                        return self._session(session_id, target, where)
            # A program that is killed before its first message is labelled would not find its session again.
            labels = {**where, **labels_found_by(self._owner, heard.said)}
            if not name:
                return self._session("", target, labels)
            names = chain([name], (f"{name}-{i}" for i in count(2)))
            return self._session(next(each for each in names if not _has(store, each)), target, labels)

    def _owns(self, store: Store, session_id: str) -> bool:
        """Whether a session has the labels of this client and no others of an owner."""
        labels = labels_of(store, session_id)
        own = {key: labels[key] for key in labels.keys() - {FOLDER, OPENING, EXCHANGE, NAMED}}
        return own == {key: value for key, value in self._where.items() if value}

    def _session(self, session_id: str, target: Target, labels: Mapping[str, str]) -> Session:
        session = open_session(
            session_id,
            store=self._store,
            target=target,
            budget=self._budget,
            labels={**self._folder, **labels},
            settings=self._settings,
            override=True,
            wait=0,
        )
        if session.resumed is not None:  # of what it had, the strategy stays otherwise
            session.configure(budget=self._budget or Budget(), strategy=self._settings.strategy or USUAL_STRATEGY)
        return session

    def _drop(self, conversation: OpenConversation) -> None:
        """Close a session: it is found again by its labels when it goes on."""
        with self._lock, suppress(ValueError):
            self._open.remove(conversation)
        if conversation.answering is not None:
            self.end(conversation.answering, "" if conversation.is_free else "the client was closed")
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


def _without_secrets(content: bytes, redactor: Redactor, route: Route | None) -> bytes | None:
    """A body that is not recorded, with marks for secrets; None if it is no JSON, and asks no model. Raises
    InputError."""

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: clean(each) for key, each in value.items()}
        if isinstance(value, list):
            return [clean(each) for each in value]
        return redactor.text(value)[0] if isinstance(value, str) else value

    try:
        return msgspec.json.encode(clean(msgspec.json.decode(content)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if route is None:
            return None
        raise InputError("turnlog could not take the secrets out of a request, which was not sent") from error
