"""Which session a person means: a whole id, the beginning of one, `latest`, or `-2` for the last but one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from ..errors import CorruptRecord, SessionIdError, SessionNotFound
from ..log.store import LATEST, SessionInfo, Store, is_reference

_LEAST = 4
"""A short id has at least this many characters."""

_MEANT = 5
"""At most this many ids are suggested for an ambiguous one."""


class Family(Struct, frozen=True):
    """A row of `turnlog ls`: the session that somebody went on with last among a session and its forks, and the others,
    with all their subagents, which are folded under it."""

    info: SessionInfo
    folded: tuple[SessionInfo, ...] = ()

    @property
    def updated(self) -> str:
        """When any of these sessions changed last."""
        return max(each.updated for each in (self.info, *self.folded))


def families(infos: Iterable[SessionInfo]) -> list[Family]:
    """Sessions with their forks and subagents, the last changed first. `infos` are newest first."""
    by_id = {info.id: info for info in infos}
    members: dict[str, list[SessionInfo]] = {}
    for info in by_id.values():
        members.setdefault(_root(info, by_id), []).append(info)
    return [_family(root, each) for root, each in members.items()]


def _family(root: str, members: list[SessionInfo]) -> Family:
    shown = next((each for each in members if each.id == root or each.parent_records), members[0])
    return Family(shown, tuple(each for each in members if each is not shown))


def _root(info: SessionInfo, by_id: Mapping[str, SessionInfo]) -> str:
    """The id of the session at which a family begins."""
    seen = {info.id}
    while info.parent in by_id and info.parent not in seen:
        info = by_id[info.parent]
        seen.add(info.id)
    return info.id


def short_ids(wanted: Iterable[str], infos: Sequence[SessionInfo]) -> dict[str, str]:
    """For each of the `wanted` ids its shortest beginning that `session_named` takes for it, among all `infos`."""
    rest, short = set(wanted), {}
    names = {info.id for info in infos}
    size = _LEAST
    while rest:
        alike: dict[str, list[SessionInfo]] = {name[:size]: [] for name in rest}
        for info in infos:
            if (found := alike.get(info.id[:size])) is not None:
                found.append(info)
        for name in list(rest):
            begins = name[:size]
            if begins == name or (begins not in names and _meant(alike[begins]) == [name]):
                short[name] = begins
                rest.remove(name)
        size += 1
    return short


def _meant(alike: Iterable[SessionInfo]) -> list[str]:
    """The ids that the beginning of these ids may mean: not those of the forks and subagents of another of them."""
    alike = list(alike)
    names = {info.id for info in alike}
    return [info.id for info in alike if info.parent not in names]


def session_named(store: Store, name: str, *, exact: bool = False) -> str:
    """The id of the session that `name` means; with `exact`, only a whole id will do. Raises SessionNotFound, with the
    ids that begin with `name`."""
    try:
        return store.info(name).id
    except CorruptRecord:
        return name  # the command reports the damage
    except SessionNotFound:
        if exact:
            raise _not_whole(store, name) from None
        infos = store.sessions()
        if is_reference(name):
            return _nth(infos, name)
        meant = _meant(info for info in infos if name and info.id.startswith(name))
        if len(meant) == 1:
            return meant[0]
        if not meant:
            raise
        raise SessionNotFound(
            f"there is no session {name!r}, and {len(meant)} ids begin with it: {_listed(meant)}; give more of one"
        ) from None


def new_id(name: str) -> str:
    """`name` as the id of a new session. Raises SessionIdError if a person who gives it means the place of a session in
    the list."""
    if is_reference(name):
        raise SessionIdError(f"a session cannot be called {name!r}: that is the place of a session in `turnlog ls`")
    return name


def _nth(infos: list[SessionInfo], name: str) -> str:
    rows = families(infos)
    row = 1 if name == LATEST else int(name[1:])
    if row > len(rows):
        many = f"`turnlog ls` has {len(rows)} rows" if rows else "the store has no sessions"
        raise SessionNotFound(f"there is no session {name!r}: {many}")
    return rows[row - 1].info.id


def _not_whole(store: Store, name: str) -> SessionNotFound:
    meant = [info.id for info in store.sessions() if name and info.id.startswith(name)]
    whole = f"; these ids begin with it: {_listed(meant)}" if meant else ""
    return SessionNotFound(f"there is no session {name!r}{whole}; with --yes, give the whole id")


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_MEANT]) + (", ..." if len(names) > _MEANT else "")
