"""Delete the oldest sessions of a store until it keeps its limits: the call that looks at settings and opens stores."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

from .._platform.given import flag_given, list_given, number_given
from ..config.settings import Settings
from ..errors import InputError
from ..log.store import SWEEP_GRACE_SECONDS, Store
from ..stores import default_path, open_store
from ..stores.encrypted.keys import KeySource
from ..stores.places import make_parents, store_given
from ..stores.retention import Collected, Limits, collect_within
from .settings import settings_for


def collect(
    store: Store | str | Path | None = None,
    limits: Limits | None = None,
    *,
    now: datetime | None = None,
    dry_run: bool = False,
    grace: float = SWEEP_GRACE_SECONDS,
    key: KeySource | None = None,
    among: Collection[str] | None = None,
) -> Collected:
    """Delete sessions until the store is within its limits, and then the media that no record refers to.

    `store` is a store, the path of a store, or None for the store that the settings name. With `limits` None, the
    limits of the settings apply; limits set in a project's file apply only to the store that this file names. `now` is
    the time up to which ages are counted, with its time zone (None: now); `grace` as for `Store.sweep`. With
    `dry_run` nothing is changed. `among` are the ids of the sessions that may be deleted (None: all), as those that
    somebody saw in a dry run and agreed to. `key` opens an encrypted store at a path, as for `turnlog.open`. Raises
    InputError without a limit or without a time zone, CorruptRecord if damage makes it impossible to find out what may
    be deleted.
    """
    if now is not None and (not isinstance(now, datetime) or now.utcoffset() is None):
        raise InputError(f"now must be a datetime with its time zone, such as datetime.now(UTC), not {now!r}")
    flag_given("dry_run", dry_run)
    number_given("grace", grace)
    if among is not None and any(
        not isinstance(session_id, str) for session_id in list_given("among", among, "ids of sessions")
    ):
        raise InputError(f"among must be ids of sessions, not {among!r:.100}")
    if store is not None:
        store_given(store)
    if limits is not None and not isinstance(limits, Limits):
        raise InputError(f"limits must be turnlog.Limits, not {type(limits).__name__}")
    if store is None or limits is None or isinstance(store, (str, Path)):
        settings = settings_for(store)
        key = settings.key if key is None else key
        if store is None:
            store = settings.store or default_path()
            if not dry_run:
                make_parents(store)
        limits = limits_of(settings) if limits is None else limits
    if not limits:
        raise InputError("no limit is set: give max_age, max_disk, max_sessions or compress_after, or configure one")
    current_time = now or datetime.now(UTC)
    if not isinstance(store, (str, Path)):
        return collect_within(store, limits, current_time, dry_run, grace, among)
    opened = open_store(store, read_only=dry_run, key=None if key == "none" else key)
    try:
        return collect_within(opened, limits, current_time, dry_run, grace, among)
    finally:
        opened.close()


def limits_of(settings: Settings) -> Limits:
    """The limits that settings have."""
    return Limits(settings.max_age, settings.max_disk, settings.max_sessions, settings.compress_after)
