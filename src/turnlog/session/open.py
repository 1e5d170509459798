"""Opening sessions by id, in a store by path."""

from __future__ import annotations

import gc
import re
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial, wraps
from pathlib import Path
from types import NoneType
from typing import Any, ParamSpec

import msgspec

from .._platform.given import flag_given, text_given
from .._platform.stdlib import LOG, asyncio
from .._platform.texts import is_server
from ..config.settings import Settings
from ..errors import BlobMissing, CorruptRecord, InputError, SessionBusy, SessionExists, SessionNotFound, TurnlogError
from ..log.budget import Budget, read_budget
from ..log.messages import Tool
from ..log.records import Configuration
from ..log.store import Draft, Problem, SessionInfo, Store, utc_now
from ..log.validation import admitted
from ..models.target import Target
from ..models.target import target as make_target
from ..providers.tool_declarations import read_tools
from ..redaction import RedactingStore
from ..redaction.drafts import redacted
from ..stores import MemoryStore, SqliteStore, default_path, open_store
from ..stores.damaged import refusal
from ..stores.labels import labels_given
from ..stores.leases import WAIT, Locks, ReadLease
from ..stores.places import local_path, make_parents, store_given
from ..stores.records import blob_names, check_free
from ..stores.retention import Limits, is_over
from ..stores.wrapper import ReadingStore
from .approvals import append_beside
from .collect import collect, limits_of
from .configure import Change, changes_between, refuse_secrets
from .family import Given
from .inputs import target_given
from .session import Session
from .settings import settings_for
from .threads import in_thread


def wait_given(wait: Any) -> float:
    """`wait`, if it is a number of seconds. Raises InputError."""
    if isinstance(wait, bool) or not isinstance(wait, (int, float)) or not wait >= 0:
        raise InputError(f"wait must be a number of seconds, 0 or more, not {wait!r}")
    return float(wait)


# -- reading ---------------------------------------------------------------------------------------
#
# Opening a session to read it: nothing is written, nobody is kept away, and damaged records are left out.


def opened_to_read(place: Store | str | Path, session_id: str, settings: Settings, **given: Any) -> Session:
    """The session with that id, open for reading only. `given` are the arguments of `open` that would be recorded.
    Raises InputError for any of them, SessionNotFound, StoreError."""
    if not session_id:
        raise InputError("read_only: name the session that is to be read")
    for name, value in given.items():
        if value is not None:
            raise InputError(f"read_only: {name} cannot be set in a session that is open for reading only")
    home = open_store(place, key=settings.key, read_only=True) if isinstance(place, (str, Path)) else place
    met: list[Problem] = []
    store = ReadingStore(home, met.append)
    try:
        info = store.info(session_id)
        session = Session(store, info, settings, owns_store=home is not place, lease=ReadLease(session_id))
        session._beside = partial(append_beside, place, settings)
    except BaseException:
        if home is not place:
            home.close()
        raise

    def warn(problem: Problem) -> None:
        session._events.warn(f"record {problem.record} is damaged and left out: {problem.what}")

    store.tell = warn
    with session._events.opening():
        for problem in met:
            warn(problem)
    return session


def open(
    session_id: str = "",
    *,
    store: Store | str | Path | None = None,
    target: Target | None = None,
    system: str | None = None,
    tools: Sequence[Tool | Mapping[str, Any]] | None = None,
    budget: Budget | int | None = None,
    labels: Mapping[str, str] | None = None,
    settings: Settings | None = None,
    override: bool = False,
    create: bool = True,
    wait: float = WAIT,
    shared: bool = False,
    read_only: bool = False,
) -> Session:
    """Open a session, or create it if the store has no session with that id.

    Without an id, an id is made from the time and the `title` in the settings. Secrets are removed from it; encrypted
    stores do not use the title. `store` is an open store or the path of a store; None is the store that the settings
    name. `target` is the provider and model that requests are made for, `tools` are the tools that the model may call,
    and `budget` is the most tokens of a request, or a Budget. A new session starts with these three. A session that has
    a target keeps its own; a warning and `Session.resumed.kept` say how the arguments differ, and `override=True`
    replaces its own. `system` is the text that the conversation begins with; another one on record is replaced.
    `create=False` opens only a session that exists. `labels` are set as by `Session.label`.

    A session has one owner at a time: opening it waits up to `wait` seconds for another owner, and so does a turn for
    another open turn. With `shared`, all owners that pass it have the session together; then each turn is closed only
    by its own owner. With `read_only`, only `approve` and `deny` write, nobody is kept away, and damage is read past.

    Everything else is a setting (docs/configuration.md). Without `settings`, configuration files and environment
    variables apply; `turnlog.load_settings(strategy="mask")` reads these and changes one setting,
    `turnlog.Settings(strategy="mask")` is the defaults with that change. Raises InputError, SessionBusy, StoreError.
    """
    given = Given(target, system, tools, budget, labels)
    flags = {"override": override, "create": create, "shared": shared, "read_only": read_only}
    given = _checked(session_id, store, given, settings, wait, flags)
    used = settings_for(store, settings)
    _check_key(store, None if settings is None else used.key)
    place = _place(used, makes=create and used.save_history and not read_only) if store is None else store
    if read_only:
        return opened_to_read(place, session_id, used, **given._asdict())
    home = _home(place, used, session_id, create=create) if used.save_history else _in_memory(place, session_id, used)
    with ExitStack() as made:  # what is closed if the rest fails
        if owns := home is not place:
            made.callback(home.close)
        home = RedactingStore(home, redactor) if (redactor := used.redactor) else home
        session = _opened(
            home, session_id, used, given, create=create, override=override, wait=wait, shared=shared, owns=owns
        )
        made.pop_all()
    if used.save_history and used.gc_on_open:
        _clear_up(home, limits_of(used))
    return session


def _opened(
    home: Store,
    session_id: str,
    used: Settings,
    given: Given,
    *,
    wait: float,
    create: bool = True,
    override: bool = False,
    shared: bool = False,
    owns: bool = False,
    parent: str = "",
    told: Callable[[], object] = lambda: None,
) -> Session:
    """Open a session in a store, which it closes if it `owns` it. `parent` is the session that a new one belongs to;
    `told` is called before it is made."""
    with ExitStack() as opened, _damage_named(home, session_id):
        _check_new(home, session_id, used, given, create=create)
        locks = Locks(home, opened, shared=shared, wait=wait)
        if session_id:
            info, created = _found_or_made(home, session_id, used.title, locks, parent, told)
        else:
            info, created = _made(home, used, locks)
        session = Session(
            *(home, info, used), owns_store=owns, lease=locks.lease, hold=locks.hold, wait=wait, opener=_open_child
        )
        _begin(session, used, given, created=created, override=override)
        if shared:
            session._lease.share()
        opened.pop_all()
    return session


def _open_child(
    home: Store, session_id: str, settings: Settings, given: Given, *, wait: float, parent: str, told: Callable[[], Any]
) -> Session:
    """A session that belongs to an open one, in the same store: see `Session.child`."""
    given = _checked(session_id, home, given, settings, wait, {})
    own = msgspec.structs.replace(settings, title="", system=None)
    return _opened(home, session_id, own, given, wait=wait, parent=parent, told=told)


@contextmanager
def _damage_named(home: Store, session_id: str) -> Iterator[None]:
    """Name the session, the record and the remedy if a record is damaged: nothing is written to such a session."""
    try:
        yield
    except CorruptRecord as error:
        raise refusal(home, session_id, error) from error


def _checked(session_id: Any, store: Any, given: Given, settings: Any, wait: Any, flags: Mapping[str, Any]) -> Given:
    """What is given, with the tools as the log has them. Raises InputError for wrong arguments of `open` before a
    session is created, so that a mistake leaves no empty session."""
    if not isinstance(session_id, str):
        raise InputError(f"session_id must be a string, not {type(session_id).__name__}")
    if not (session_id or flags.get("create", True)):
        raise InputError("create=False opens a session that exists: name it")
    if store is not None:
        store_given(store)
    if not isinstance(settings, (Settings, NoneType)):
        raise InputError(f"settings must be turnlog.Settings, not {type(settings).__name__}")
    if given.target is not None:
        target_given(given.target)
    if given.system is not None:
        text_given("system", given.system)
    if given.budget is not None:
        read_budget(given.budget)
    for name, flag in flags.items():
        flag_given(name, flag)
    wait_given(wait)
    labels_given(given.labels or {})
    return given if given.tools is None else given._replace(tools=read_tools(given.tools))


def _begin(session: Session, settings: Settings, given: Given, *, created: bool, override: bool) -> None:
    """Record what the session starts with, and what was left unfinished in it."""
    differences: tuple[Change, ...] = ()
    if not (created or override) and session.target is not None:
        differences = _kept(session, given)
        given = given._replace(target=None, budget=None, tools=None)
    asked = given._replace(system=settings.system if given.system is None else given.system)
    configure = partial(_configure, session, settings if created else Settings(), asked)
    session._begin(configure, created=created, source=settings.source, kept=differences)
    if given.labels:
        session.label(given.labels)


def _check_key(store: Any, key: Any) -> None:
    """Raises InputError for a key that would do nothing: the store is open already, and not encrypted."""
    if (
        key is not None
        and not isinstance(store, (str, Path, NoneType, MemoryStore, RedactingStore))
        and not store.encrypted
    ):
        raise InputError(
            "key: a key has no effect on a store object that is already open; pass the key to open_store(), pass the "
            "store's path instead of the object, or switch the configured key off with "
            "settings=load_settings(key='none')"
        )


def _check_names(home: Store, session_id: str, labels: Mapping[str, str]) -> None:
    """Raises InputError, before the session is created, if the id or the labels of a new session contain a secret."""
    if not isinstance(home, RedactingStore):
        return
    try:
        home.redactor.refuse("session_id", session_id)
        home.redactor.refuse("labels", dict(labels))
    except InputError:
        if session_id:
            with suppress(SessionNotFound):
                home.info(session_id)
                return  # it is on record; Session.label looks at new labels
        raise


def _check_new(home: Store, session_id: str, settings: Settings, given: Given, *, create: bool) -> None:
    """Raises InputError, before it is created, for a new session that could not be configured: with tools or a budget
    but no target, with values that cannot be recorded, or with a secret in its id or labels. Raises SessionNotFound for
    one that must not be created."""
    _check_names(home, session_id, given.labels or {})
    target, tools = given.target, given.tools
    needs = "budget" if given.budget is not None else "tools" if tools else ""
    if create and target is None and not needs:
        return
    try:
        if session_id:
            home.info(session_id)
            return  # it stays as it is
    except SessionNotFound as error:
        if not create:
            raise _absent(str(error)) from error
    if target is None and not settings.provider:
        raise InputError(
            f"{needs}: a new session needs a target before it can have {needs}; give "
            "target=turnlog.target(PROVIDER, MODEL), or set `provider` and `model` in your configuration"
        )
    configuration = Configuration(
        model="" if target is None else target.model,
        settings={} if target is None else target.settings,
        tools=tools or (),
    )
    admitted(configuration)
    refuse_secrets(home.redactor if isinstance(home, RedactingStore) else None, configuration, Configuration())


def _absent(reason: str) -> SessionNotFound:
    return SessionNotFound(
        f"{reason}, and create=False makes none; `turnlog ls` lists the sessions, create=True begins a new one"
    )


def _kept(session: Session, given: Given) -> tuple[Change, ...]:
    """How the configuration of a session would differ if it took over these arguments, without secrets."""
    recorded, redactor = session.configuration, session.log.redactor
    ready = None if given.tools is None else session._configurer.with_ready_tools(given.tools)
    wanted = recorded if ready is None else msgspec.structs.replace(recorded, tools=ready)
    if given.budget is not None:
        wanted = msgspec.structs.replace(wanted, budget=read_budget(given.budget))
    if (target := given.target) is not None:
        usual = make_target(target.provider, target.model)
        wanted = msgspec.structs.replace(
            wanted,
            provider=target.provider,
            model=target.model,
            base_url=target.base_url,
            server=target.server,
            settings={**recorded.settings, **target.settings},
            input_limit=0 if target.input_limit == usual.input_limit else target.input_limit,
        )
    if redactor is not None:  # before values are cut short, perhaps in the middle of a secret
        recorded, wanted = redacted(recorded, redactor)[0], redacted(wanted, redactor)[0]
    return tuple(changes_between(_spelled(recorded), _spelled(admitted(wanted))))


def _spelled(made: Configuration) -> Configuration:
    """A configuration without the spellings of tools (`Tool.form`) that only other providers read."""
    tools = (
        msgspec.structs.replace(tool, form=None) if tool.form and tool.form.provider != made.provider else tool
        for tool in made.tools
    )
    return msgspec.structs.replace(made, tools=tuple(tools))


def _place(settings: Settings, *, makes: bool) -> str | Path:
    """The store that the settings name. With `makes`, all folders above it are created: nobody typed its path just
    now."""
    place = settings.store or default_path()
    if makes:
        make_parents(place)
    return place


def _home(place: Store | str | Path, settings: Settings, session_id: str, *, create: bool) -> Store:
    """The store that the session is kept in. Raises SessionNotFound, and makes no store, if nothing may be created."""
    if not isinstance(place, (str, Path)):
        return place
    if not create and (path := local_path(str(place))) is not None and not path.exists():
        raise _absent(f"there is no session {session_id!r} (nor a store at {path})")
    return open_store(place, durability=settings.durability, key=settings.key)


def _in_memory(place: Store | str | Path, session_id: str, settings: Settings) -> Store:
    """A store in memory with a copy of the session from `place`, if it is there. Nothing is written to `place`."""
    memory = MemoryStore()
    if not isinstance(place, (str, Path)):
        _copy(place, session_id, memory)
    elif is_server(str(place)) or ((path := local_path(str(place))) is not None and path.exists()):
        with closing(open_store(place, read_only=True, key=settings.key)) as source:
            _copy(source, session_id, memory)
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
    to.append(session_id, list(map(Draft.of, records)))


def _configure(session: Session, usual: Settings, given: Given) -> None:
    """Record the configuration asked for, as far as it differs; `usual` are the values used if an argument is not
    given."""
    target = usual.target if given.target is None else given.target
    if target is not None and not _has(session, target):
        session.switch(target, reason="resumed with another target" if session.target else "opened")
    configuration = session.configuration
    budget, strategy = given.budget, None
    if session.target is not None:
        budget, strategy = usual.budget if budget is None else budget, usual.first_strategy
    wanted = (
        configuration.budget if budget is None else read_budget(budget),
        strategy or configuration.strategy,
        configuration.tools if given.tools is None else session._configurer.with_ready_tools(given.tools),
    )
    if given.system is not None:
        session._configurer.begin_with(given.system)  # ahead of the section that lists tools on demand
    if wanted != (configuration.budget, configuration.strategy, configuration.tools):
        session.configure(budget=wanted[0], strategy=wanted[1], tools=wanted[2])


def _clear_up(store: Store, limits: Limits) -> None:
    """Delete the sessions beyond the limits. An error here does not prevent a session from being opened."""
    current_time = datetime.now(UTC)
    try:
        if limits and is_over(store, limits, current_time):
            done = collect(store, limits, now=current_time)
            LOG.info("gc: %d sessions went, %d bytes are left", len(done.gone), done.after)
    except (TurnlogError, OSError) as error:
        LOG.warning("gc: %s", error)


def _found_or_made(
    store: Store, session_id: str, title: str, locks: Locks, parent: str, told: Callable[[], object]
) -> tuple[SessionInfo, bool]:
    """The session of that id, and whether it was made."""
    try:
        locks.take(session_id)
    except SessionBusy:  # on some disks, ids that differ by case have the same lock
        for info in store.sessions():
            if info.id != session_id:
                check_free(session_id, info.id)
        raise
    try:
        return store.info(session_id), False
    except SessionNotFound:
        pass
    told()
    try:
        return store.create(session_id, title=title, parent=parent), True
    except SessionExists:  # another process was quicker, or an id that differs by case alone
        return store.info(session_id), False


def _made(store: Store, settings: Settings, locks: Locks) -> tuple[SessionInfo, bool]:
    """A new session under an id that is made for it. Two sessions opened at the same moment get different ids."""
    base_id, number = _new_id(store, settings.title), 1
    while True:
        session_id = base_id if number == 1 else f"{base_id}-{number}"
        try:
            locks.take(session_id, wait=0)
            return store.create(session_id, title=settings.title), True
        except (SessionBusy, SessionExists):
            locks.release()
        number += 1


def _has(session: Session, target: Target) -> bool:
    """Whether a session already makes requests for this target, with these settings."""
    configuration = session.configuration
    same = session.target is not None and session.target == msgspec.structs.replace(target, settings={})
    return same and target.settings.items() <= configuration.settings.items()


def _new_id(store: Store, title: str) -> str:
    """An id made from the title and the time. Ids are not encrypted, so an id contains nothing that `store` hides."""
    while isinstance(store, RedactingStore):
        title, store = store.redactor.text(title)[0], store.store
    if store.encrypted:
        title = ""
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].strip("-") or "session"
    stamp = re.sub(r"[^0-9]", "", utc_now())
    return f"{words}-{stamp}"


# -- aopen -----------------------------------------------------------------------------------------
#
# Opening a session without blocking an event loop.

_P = ParamSpec("_P")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.1
"""Seconds between two attempts to open a session that somebody else has."""


class _Opening:
    """A session that is opened in a thread, and closed there if the task that waits for it is cancelled."""

    def __init__(self, call: Callable[[], Session]) -> None:
        self._call = call
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._unwanted = False

    def run(self) -> Session:
        """Open the session."""
        session = self._call()
        with self._lock:
            self._session = session
            unwanted = self._unwanted
        if unwanted:
            session.close()
        return session

    def give_up(self) -> None:
        """Close the session, now or as soon as it is open: nobody waits for it any more."""
        with self._lock:
            self._unwanted, opened = True, self._session
        if opened is not None:
            opened.close()


def _in_turns(opens: Callable[_P, Session]) -> Callable[_P, Coroutine[Any, Any, Session]]:
    """`opens` as a coroutine function. It tries again and again without waiting, so that no thread waits for another
    owner."""

    @wraps(opens)
    async def opened(*given: _P.args, **named: _P.kwargs) -> Session:
        wait = wait_given(named.get("wait", WAIT))
        at_once: Any = opens
        call = partial(at_once, *given, **{**named, "wait": 0})
        end, pause = time.monotonic() + wait, _FIRST_PAUSE
        while True:
            opening = _Opening(call)
            try:
                session = await in_thread(opening.run)
            except asyncio.CancelledError:
                opening.give_up()
                raise
            except SessionBusy:
                if time.monotonic() >= end:
                    raise
            else:
                session._wait = session._turn.wait = wait
                return session
            await asyncio.sleep(min(pause, max(0.0, end - time.monotonic())))
            pause = min(pause * 2, _LONGEST_PAUSE)

    return opened


aopen = _in_turns(open)
aopen.__doc__ = """As `turnlog.open`, for `await`: reading from disk and waiting for another owner do not stop the event
loop. A session that comes when the task was cancelled is closed again."""


# -- warm ------------------------------------------------------------------------------------------
#
# Loading ahead of time what the first use would load.


def warm(target: Target | None = None) -> None:
    """Load what the first session, and with a `target` the first request, would load: modules, the table of models, the
    vocabulary that counts tokens. Call it when a service starts, so that the first user does not wait. Nothing is read
    from or written to a store."""
    _ = SqliteStore
    with open("warm", store=MemoryStore(), target=target, settings=Settings()) as session:
        with session.turn("Are you there?"):
            session.assistant("Yes.")
        if target is not None:
            session.request().json()
    gc.collect()
