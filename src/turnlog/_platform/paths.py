"""The user's folders, by the conventions of each system."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import InputError


def from_here(path: str | Path) -> Path:
    """`path` as an absolute path. Raises InputError if it is relative and the working directory was deleted."""
    try:
        return Path(path).absolute()
    except FileNotFoundError as error:
        raise InputError(
            f"{str(path)!r} is a relative path, and the working directory was deleted: give an absolute path"
        ) from error


def from_home(path: str | Path) -> Path:
    """`path` with a leading `~` or `~user` as that home folder. Raises InputError if there is no such user."""
    text = str(path)
    expanded = os.path.expanduser(text)  # a Path would take ./~x for ~x
    if text.startswith("~") and expanded == text:
        raise InputError(
            f"{text!r} names the home folder of a user that does not exist; a file of that name is ./{text}"
        )
    return Path(expanded)


def _home() -> Path:
    """The user's home folder; the top of the disk if there is none, as in containers where the user has no name."""
    try:
        return Path.home()
    except RuntimeError:
        return Path(os.sep)


def config_folder() -> Path:
    """The folder for files that the user writes: `turnlog` in the configuration folder (`XDG_CONFIG_HOME`, `~/.config`,
    `APPDATA` on Windows)."""
    return (_named("XDG_CONFIG_HOME", "APPDATA") or _home() / ".config") / "turnlog"


def data_folder() -> Path:
    """The folder of the user's own store: `turnlog` in the data folder (`XDG_DATA_HOME`, `~/.local/share`,
    `LOCALAPPDATA` on Windows)."""
    return (_named("XDG_DATA_HOME", "LOCALAPPDATA") or _home() / ".local" / "share") / "turnlog"


def cache_folder() -> Path:
    """The folder for what can be made again at any time: `turnlog` in the cache folder (`XDG_CACHE_HOME`, `~/.cache`,
    `LOCALAPPDATA` on Windows)."""
    return (_named("XDG_CACHE_HOME", "LOCALAPPDATA") or _home() / ".cache") / "turnlog"


def state_folder() -> Path:
    """The folder for what should outlive a restart but is nobody's data: `turnlog` in the state folder
    (`XDG_STATE_HOME`, `~/.local/state`, `LOCALAPPDATA` on Windows)."""
    return (_named("XDG_STATE_HOME", "LOCALAPPDATA") or _home() / ".local" / "state") / "turnlog"


def _named(variable: str, on_windows: str) -> Path | None:
    """The folder that a variable names. A relative one is ignored, as the XDG Base Directory Specification requires:
    it would be another folder for each working directory. Elsewhere than on Windows, its variables may come from
    another system, as under WSL."""
    for name in (variable, *((on_windows,) if os.name == "nt" else ())):
        folder = Path(os.environ.get(name, ""))
        if folder.is_absolute():
            return folder
    return None


def is_there(place: Path) -> bool:
    """Whether a file or folder is there that this user may look for: nothing in a folder that is closed to the user is
    (the home folder of another, as in many containers)."""
    try:
        return place.exists()
    except PermissionError:
        return False
