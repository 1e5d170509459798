"""Opening sessions by id, in a store by path."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any

import msgspec

from ..config.settings import Settings
from ..errors import BlobMissing, InputError, SessionExists, SessionNotFound, TurnlogError, text_given
from ..log.budget import Budget, Strategy, read_budget, read_strategy
from ..log.messages import Tool
from ..log.records import Configuration
from ..log.store import Draft, Held, SessionInfo, Store, utc_now
from ..log.validation import admitted
from ..models.target import Target
from ..providers.tool_declarations import read_tools
from ..redaction import RedactingStore, Redactor
from ..stores import KeySource, MemoryStore, SealedStore, default_path, local_path, open_store, store_given
from ..stores.records import blob_names
from ..stores.retention import Limits, is_over
from ..summarize import Complete, Summarizer, as_ladder
from .checkpoint import CHECKPOINT_SECONDS
from .collect import collect, limits_of
from .inputs import target_given
from .reader import SOURCES
from .recovery import begin
from .session import Session
from .settings import settings_for

_LOG = logging.getLogger("turnlog")


def open(
    session_id: str = "",
    *,
    title: str = "",
    target: Target | None = None,
    store: Store | str | Path | None = None,
    budget: Budget | int | None = None,
    strategy: Strategy | str | None = None,
    tools: Sequence[Tool | Mapping[str, Any]] | None = None,
    system: str | None = None,
    summarizer: Summarizer | Complete | None = None,
    summary_timeout: float | None = None,
    redact: bool | Redactor | None = None,
    save_history: bool | None = None,
    settings: Settings | None = None,
    source: str = "",
    checkpoint: float = CHECKPOINT_SECONDS,
    key: KeySource | None = None,
) -> Session:
    """Open a session, or create it if there is none of that id.

    What is None here is as `settings` say: those given, or what files and the environment say (docs/configuration.md).
    Without an id, one is made from the time and `title`: without its secrets, in an encrypted store without any of it.
    `store` is a store or a path to one, which `key` opens if it is encrypted. `target` is what requests are made for; a
    session opened again keeps the target it had unless another is given. So it is with `budget` (tokens of a whole
    request, or a Budget), `strategy` (what gives way first: a Strategy or the name of a preset) and `tools`, all three
    for a target, and with `system`, the text that the conversation begins with. What differs from then is told by
    `Session.changes`, what was half-done by `Session.resumed`. `summarizer` writes the summaries of what has to leave:
    a Summarizer, or a function that asks a model, from a prompt to the text of its answer, within `summary_timeout`
    seconds; where it fails, as where none is given, the summary is made without a model. `redact` puts marks in place
    of secrets before anything is stored: True for those of known shapes and names and of the settings' patterns, a
    `Redactor` for your own choice, False to record everything as it is said. With `save_history` False the session
    lives in memory: it goes on from what the store has of it, if anything, and nothing of it is written. `source` is
    put on record: from where it is opened, `interactive`, `non-interactive` or `embedded-server`. What came of a stream
    is put on record every `checkpoint` seconds at most. Raises InputError, and StoreError for what the store cannot do.
    """
    _check(session_id, title, store, redact, settings, source, checkpoint)
    tools = _checked(target, budget, strategy, tools, system, summarizer, summary_timeout)
    said, place, opens = _place(settings, store, key)
    saved = said.save_history if save_history is None else save_history
    home = _home(place, said, opens) if saved else _in_memory(place, session_id, opens)
    wait = said.summary_timeout if summary_timeout is None else summary_timeout
    with ExitStack() as opened:  # what is closed if the rest fails
        if owns := home is not place:
            opened.callback(home.close)
        home = _redacting(home, said, redact)
        _check_new(home, session_id, said, target, tools, budget=budget, strategy=strategy)
        info, created, hold = _found_or_made(home, session_id, title) if session_id else _made(home, title)
        session = Session(
            home, info, owns_store=owns, summarizer=summarizer, summary_timeout=wait, checkpoint=checkpoint
        )
        if hold is not None:
            opened.callback(session.attach(hold).close)
        given = (said if created else Settings(), target, budget, strategy, tools, system)
        begin(session, partial(_configure, session, *given), created=created, source=source)
        opened.pop_all()
    if saved and said.gc_on_open:
        _clear_up(home, limits_of(said))
    return session


def _check(session_id: Any, title: Any, store: Any, redact: Any, settings: Any, source: Any, checkpoint: Any) -> None:
    """Raises InputError for what is no argument of `open`."""
    for what, value in (("session id", session_id), ("title", title)):
        if not isinstance(value, str):
            raise InputError(f"a {what} is a string, not {type(value).__name__}")
    if store is not None:
        store_given(store)
    if not isinstance(settings, (Settings, NoneType)):
        raise InputError(f"settings are turnlog.Settings, not {type(settings).__name__}")
    if not isinstance(redact, (bool, Redactor, NoneType)):
        raise InputError(f"redact is True, False or a turnlog.Redactor, not {type(redact).__name__}")
    if source and source not in SOURCES:
        raise InputError(f"source is one of {', '.join(map(repr, SOURCES))}, not {source!r}")
    if not (_is_number(checkpoint) and checkpoint >= 0):
        raise InputError(f"checkpoint is a number of seconds, at least 0, not {checkpoint!r}")


def _checked(
    target: Any, budget: Any, strategy: Any, tools: Any, system: Any, summarizer: Any, summary_timeout: Any
) -> tuple[Tool, ...] | None:
    """The tools of a session. Raises InputError for whatever it cannot be like, before there is one: a mistake leaves
    no empty session behind."""
    for value, read in (
        (target, target_given),
        (budget, read_budget),
        (strategy, read_strategy),
        (summarizer, as_ladder),
    ):
        if value is not None:
            read(value)
    if system is not None:
        text_given("system", system)
    if summary_timeout is not None and not (_is_number(summary_timeout) and 0 < summary_timeout < 1e9):
        raise InputError(f"summary_timeout is a number of seconds, more than 0, not {summary_timeout!r}")
    return None if tools is None else read_tools(tools)


def _check_new(
    home: Store, session_id: str, said: Settings, aim: Target | None, tools: tuple[Tool, ...] | None, **terms: Any
) -> None:
    """Raises InputError for a new session that could not be configured so, before it is made: with tools or `terms` for
    no target, or with what no record can hold."""
    given = next((name for name, value in {**terms, "tools": tools or None}.items() if value is not None), "")
    if aim is None and not given:
        return
    try:
        if session_id:
            home.info(session_id)
            return  # it stays as it is
    except SessionNotFound:
        pass
    if aim is None and not said.provider:
        raise InputError(
            f"{given}: a new session has no target that this could be for; open it with "
            "target=turnlog.target(PROVIDER, MODEL), or set `provider` and `model` in your configuration"
        )
    admitted(Configuration(settings={} if aim is None else aim.settings, tools=tools or ()))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _place(
    settings: Settings | None, store: Store | str | Path | None, key: KeySource | None
) -> tuple[Settings, Store | str | Path, KeySource | None]:
    """The settings in force, the store or its path, and what opens that. Raises InputError if a key is given for a
    store that is open already."""
    said = settings_for(store) if settings is None else settings
    place = said.store or default_path() if store is None else store
    if key is not None and not isinstance(place, (str, Path)):
        raise InputError("key: this store is open already; give the key to open_store, or a path as the store")
    wanted = said.key if key is None else key
    return said, place, None if wanted == "none" else wanted


def _home(place: Store | str | Path, said: Settings, key: KeySource | None) -> Store:
    """The store, in which the session is kept."""
    return open_store(place, durability=said.durability, key=key) if isinstance(place, (str, Path)) else place


def _in_memory(place: Store | str | Path, session_id: str, key: KeySource | None) -> Store:
    """A store in memory that holds the session as far as `place` has it. Nothing is written to that."""
    memory = MemoryStore()
    if not isinstance(place, (str, Path)):
        _copy(place, session_id, memory)
    elif (path := local_path(str(place))) is not None and path.exists():
        source = open_store(place, read_only=True, key=key)
        try:
            _copy(source, session_id, memory)
        finally:
            source.close()
    return memory


def _copy(source: Store, session_id: str, to: Store) -> None:
    if not session_id:  # one is made for a new session
        return
    try:
        info = source.info(session_id)
    except SessionNotFound:
        return
    records = list(source.read(session_id))
    for name in sorted(set().union(*map(blob_names, records))):
        with suppress(BlobMissing):  # it is missing there as well
            to.put_blob(source.get_blob(name))
    to.create(session_id, title=info.title, created=info.created, parent=info.parent)
    to.append(session_id, [Draft(record.body, record.time, record.raw, record.redacted) for record in records])


def _redacting(home: Store, said: Settings, redact: bool | Redactor | None) -> Store:
    """The store, behind one that replaces secrets if that is wanted."""
    wanted = said.redact if redact is None else redact
    redactor = wanted if isinstance(wanted, Redactor) else Redactor(said.redact_patterns) if wanted else None
    return RedactingStore(home, redactor) if redactor else home


def _configure(
    session: Session,
    usual: Settings,
    aim: Target | None,
    budget: Budget | int | None,
    strategy: Strategy | str | None,
    tools: Sequence[Tool | Mapping[str, Any]] | None,
    system: str | None,
) -> None:
    """Put on record what the session is to be like, as far as it is not; `usual` is for what nobody names."""
    aim = usual.target if aim is None else aim
    if aim is not None and not _holds(session, aim):
        session.switch(aim, reason="resumed with another target" if session.target else "opened")
    now = session.configuration
    if session.target is not None:  # what a budget is of
        budget = usual.budget if budget is None else budget
        strategy = (usual.strategy or None) if strategy is None else strategy
    wanted = (
        now.budget if budget is None else read_budget(budget),
        now.strategy if strategy is None else read_strategy(strategy),
        now.tools if tools is None else read_tools(tools),
    )
    if wanted != (now.budget, now.strategy, now.tools):
        session.configure(budget=wanted[0], strategy=wanted[1], tools=wanted[2])
    if system is not None and system != session._configurer.system_text:
        session.system(system, replace=True)


def _clear_up(store: Store, limits: Limits) -> None:
    """Delete what has to go. A session that can be opened is not kept from anybody because that fails."""
    now = datetime.now(UTC)
    try:
        if limits and is_over(store, limits, now):
            done = collect(store, limits, now=now)
            _LOG.info("gc: %d sessions went, %d bytes are left", len(done.gone), done.after)
    except (TurnlogError, OSError) as error:
        _LOG.warning("gc: %s", error)


def _found_or_made(store: Store, session_id: str, title: str) -> tuple[SessionInfo, bool, Held | None]:
    """The session of that id, whether it was made, and the hold on it."""
    hold = store.hold(session_id)  # before it is looked for: `gc` must not come between
    try:
        return store.info(session_id), False, hold
    except SessionNotFound:
        pass
    try:
        return store.create(session_id, title=title), True, hold
    except SessionExists:  # another process was quicker, or an id that differs by case alone
        return store.info(session_id), False, hold


def _made(store: Store, title: str) -> tuple[SessionInfo, bool, Held | None]:
    """A session of its own, under an id that is made for it: two that are opened in the same moment are two."""
    made, number = _new_id(store, title), 1
    while True:
        session_id = made if number == 1 else f"{made}-{number}"
        hold = store.hold(session_id)
        try:
            return store.create(session_id, title=title), True, hold
        except SessionExists:
            if hold is not None:
                hold.close()
        number += 1


def _holds(session: Session, target: Target) -> bool:
    """Whether a session already makes requests for this target, with these settings."""
    now = session.configuration
    same = session.target is not None and session.target == msgspec.structs.replace(target, settings={})
    return same and target.settings.items() <= now.settings.items()


def _new_id(store: Store, title: str) -> str:
    """An id of the title and the time. Ids stand in the clear: of what `store` keeps from view they tell nothing."""
    while isinstance(store, RedactingStore):
        title, store = store.redactor.text(title)[0], store.store
    if isinstance(store, SealedStore):
        title = ""
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].strip("-") or "session"
    stamp = re.sub(r"[^0-9]", "", utc_now())
    return f"{words}-{stamp}"
