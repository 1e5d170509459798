"""Opens stores by path, URL or `:memory:`. The code of a kind of store is loaded when the first one is opened."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import stores
from .._platform.given import flag_given, kind_given
from .._platform.lazy import lazy_pattern
from .._platform.paths import data_folder, from_here, from_home
from .._platform.stdlib import difflib
from .._platform.texts import is_server, without_password
from ..errors import InputError, SessionNotFound, StoreError, StoreNotFound
from ..log.store import Store
from .base import BaseStore, Log
from .blobs import Put
from .encrypted.keys import KeySource
from .folders import Durability, make_private

# -- absent ----------------------------------------------------------------------------------------
#
# A store that does not exist, open for reading: it has no sessions.


class AbsentStore(BaseStore):
    """The store that `open_store(place, read_only=True)` returns if there is none at `place`. `is_there` says whether a
    store has been created there since; this object, which would still report nothing, then raises StoreError."""

    def __init__(self, place: str, is_there: Callable[[], bool]) -> None:
        super().__init__()
        self._place = place
        self._is_there = is_there

    def _logs(self) -> tuple[Log, ...]:
        if self._is_there():
            raise StoreError(f"the store {self._place} was made after it was opened for reading here: open it again")
        return ()

    def _find(self, session_id: str) -> Log:
        self._logs()
        raise SessionNotFound(str(StoreNotFound(self._place)))

    def _blob(self, name: str) -> bytes | None:
        self._logs()
        return None

    def _blobs(self) -> Mapping[str, Put]:
        self._logs()
        return {}

    def _rows(self, key: int, first: int, last: int) -> Sequence[bytes]:
        return ()

    def _save(self, log: Log, rows: Mapping[int, bytes]) -> None:
        raise self._refusal()

    def _cut(self, key: int, after: int) -> None:
        raise self._refusal()

    def _save_blob(self, name: str, data: bytes) -> None:
        raise self._refusal()

    def _remove_blobs(self, names: Iterable[str]) -> None:
        raise self._refusal()

    def _refusal(self) -> StoreError:
        return StoreError(f"the store {self._place} is open for reading only, and does not exist")

    def close(self) -> None:
        """Do nothing, as nothing is open."""


_MEMORY = ":memory:"
_SQLITE_URL = "sqlite:///"
_FILES_URLS = ("files:///", "files:")

_SERVER_FORM = "postgresql://USER@HOST/DATABASE"
_NEAR = {  # what a word before a colon may be meant for, and how that is spelled
    "postgresql": _SERVER_FORM,
    "postgres": _SERVER_FORM,
    "psql": _SERVER_FORM,
    "pg": _SERVER_FORM,
    "sqlite": "{0} or sqlite:///{0}",
    "files": "{0} (one SQLite file) or files:{0} (a folder of JSON Lines)",
    "jsonl": "files:{0}",
    "memory": _MEMORY,
}
_CLOSE = 0.8
"""How similar a word must be to one of these words to be taken for it."""
_ENDS_OF_FOLDERS = tuple(filter(None, (os.sep, os.altsep)))
_VARIABLE = lazy_pattern(r"\$\w|\$\{|%\w+%")
_ON_WINDOWS = lazy_pattern(r"[A-Za-z]:[\\/]|\\\\")


def open_store(
    path_or_url: str | Path,
    *,
    durability: Durability = "normal",
    read_only: bool = False,
    key: KeySource | None = None,
) -> Store:
    """Open the store at a path (one SQLite file), at `sqlite:///path`, in a folder of JSON Lines at `files:folder` or
    `files:///folder`, in a database of a server at `postgresql://user@host/name`, or at `:memory:` (not on disk). A
    leading `~` is the home folder.

    Unless `read_only`, a missing file and its folder are created (but no folders above that; a folder of JSON Lines
    with all above it), and an older store is upgraded to this version. With `read_only`, a missing store is one without
    sessions. With `key` (see `KeySource`), a new store is encrypted and an encrypted store is opened; a store in memory
    ignores the key. Raises InputError, NewerStore, StoreKeyError, StoreGone, StoreError.
    """
    flag_given("read_only", read_only)
    place = str(kind_given("path_or_url", path_or_url, (str, Path), "the path or URL of a store"))
    if place == _MEMORY:
        return stores.MemoryStore()
    try:
        home = _kept(place, durability=durability, read_only=read_only, sealed=key is not None)
    except StoreNotFound:
        if not read_only:
            raise
        path = None if is_server(place) else local_path(place)
        if path is not None and path.exists() and not path.is_file():
            raise StoreError(
                f"{path} is no store: expected one SQLite file, or files:FOLDER for a folder of JSON Lines"
            ) from None
        return AbsentStore(without_password(place), lambda: path is not None and path.exists())
    if key is None:
        return home
    try:
        return stores.SealedStore.opened(home, key, read_only=read_only)
    except BaseException:
        home.close()
        raise


def rekey_store(path_or_url: str | Path, key: KeySource, new: KeySource) -> None:
    """Change the key that opens an encrypted store from `key` to `new`. The records are not encrypted again, so the old
    key still opens earlier copies of the store. Raises as `open_store`."""
    home = _kept(str(path_or_url), durability="full", read_only=False, sealed=True)
    try:
        stores.SealedStore.rekey(home, key, new)
    finally:
        home.close()


def _kept(
    place: str, *, durability: Durability, read_only: bool, sealed: bool
) -> stores.FilesStore | stores.SqliteStore | stores.PostgresStore:
    """The persistent store at a place. On a server, durability is the server's setting."""
    if is_server(place):
        try:
            server = stores.PostgresStore
        except ImportError as error:
            raise InputError(str(error)) from error
        return server(place, read_only=read_only, sealed=sealed)
    path = local_path(place)
    if path is None:
        raise InputError(
            f"store: {without_password(place)!r} does not name a store; give a file, {_SQLITE_URL}FILE, "
            "files:FOLDER or postgresql://USER@HOST/DATABASE"
        )
    if place.startswith(_FILES_URLS):
        return stores.FilesStore(path, durability=durability, read_only=read_only, sealed=sealed)
    return stores.SqliteStore(path, durability=durability, read_only=read_only, sealed=sealed)


def local_path(path_or_url: str | Path) -> Path | None:
    """The file or folder of a store, a leading `~` being the home folder; None for `:memory:` and for other URLs.

    Raises InputError if the name is empty, is no file name, is almost the URL of a store, or names a new file by a path
    that was meant for a shell or for another system.
    """
    place = str(path_or_url)
    _check_spelling(place)
    for url in (_SQLITE_URL, *_FILES_URLS):
        if place.startswith(url):
            place = place.removeprefix(url)
            break
    else:
        if "://" in place or place == _MEMORY:
            return None
        url = ""
    if not place:
        raise InputError("store: the name is empty; give a file, or a folder after files:")
    if "\0" in place:
        raise InputError(f"store: {path_or_url!r} contains a NUL character, which file names cannot have")
    try:
        os.fsencode(place)
    except UnicodeEncodeError as error:
        raise InputError(f"store: {path_or_url!r} contains characters that file names cannot have here") from error
    if not os.path.lexists(place) and (wrong := _unlike_a_path(place, of_file=url not in _FILES_URLS)):
        raise InputError(f"store: {place!r} {wrong}")
    try:
        path = from_home(place)
    except InputError as error:
        raise InputError(f"store: {error}") from error
    return from_here(path) if str(path).startswith("~") else path  # ./~x, which is ~x as a Path


def _check_spelling(place: str) -> None:
    """Raises InputError, with the right spelling, for a misspelled URL of a store, which would otherwise become a file
    of that name."""
    word, colon, rest = place.partition(":")
    name = rest.removeprefix("///" if word.startswith("sqlite") else "").removeprefix("//")
    if not colon or "/" in word or place == _MEMORY or is_server(place):
        return
    near = difflib.get_close_matches(word.lower().partition("+")[0], _NEAR, 1, _CLOSE)
    if name.strip(":").lower() == "memory" and near in ([], ["sqlite"]) and (near or not word):
        near = ["memory"]
    elif place.startswith((_SQLITE_URL, "files:")) and not (place.startswith("files://") and rest[:3] != "///"):
        return
    if near:
        shown = f"{word}:..." if _NEAR[near[0]] == _SERVER_FORM else place  # it may have a password
        raise InputError(
            f"store: {shown!r} does not name a store; did you mean {_NEAR[near[0]].format(name or 'NAME')}? (To "
            f"name a file that begins with {f'{word}:'!r}, put ./ before it.)"
        )


def _unlike_a_path(place: str, *, of_file: bool) -> str:
    """The reason why a text is hardly the path of a new store, "" if there is none. As a path it would become a file of
    that name."""
    if place != place.strip():
        return "begins or ends with white space, which is no part of a store's name: take it away"
    if of_file and place.endswith(_ENDS_OF_FOLDERS):
        return f"names a folder; name the store's file in it, or write files:{place} for a folder of JSON Lines"
    if _VARIABLE.match(place):
        return "begins with a variable, which is not replaced here: write the path itself; ~ is the home folder"
    if os.name != "nt" and _ON_WINDOWS.match(place):
        return "is a path on Windows, and would be the name of a file here: write a path of this system"
    return ""


def make_parents(path_or_url: str | Path) -> None:
    """Create the folder of a store that the settings name, and all folders above it. Raises StoreError."""
    if is_server(str(path_or_url)) or (path := local_path(path_or_url)) is None:
        return
    try:
        make_private(path.parent)
    except OSError as error:
        raise StoreError(f"cannot create the folder {path.parent} of the store: {error.strerror}") from error


def store_given(place: Any, name: str = "store", *, opened: bool = False) -> None:
    """Raises InputError if `place` is neither a path nor a store; with `opened`, if it is no store."""
    if isinstance(place, (str, Path)) and not opened:
        return
    if isinstance(place, type) or not hasattr(place, "hold"):
        kinds = (
            "an open store, such as turnlog.stores.open_store(PATH)"
            if opened
            else "a path (str or Path) or an open store"
        )
        raise InputError(f"{name} must be {kinds}, not {place!r:.200}")


def default_path() -> Path:
    """The path of the user's own store: `turnlog/turnlog.db` in the user's data folder (`XDG_DATA_HOME`,
    `~/.local/share` or `LOCALAPPDATA`)."""
    return data_folder() / "turnlog.db"


def placed(path_or_url: str, folder: Path) -> str:
    """The path of a store that is named in a file in `folder`: relative paths start there, `~` is the home folder.
    Raises InputError as `local_path`, and if the user of `~user` does not exist."""
    kind = next((url for url in (_SQLITE_URL, *_FILES_URLS) if path_or_url.startswith(url)), "")
    path = local_path(path_or_url)
    return path_or_url if path is None else f"{kind}{folder / path}"
