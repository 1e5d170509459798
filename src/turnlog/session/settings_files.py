"""Configuration files: which there are, and what they say before it is checked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from .._platform.paths import config_folder, is_there
from ..errors import InputError

VARIABLE = "TURNLOG_CONFIG"
"""Environment variable that names the user's file."""

_ENDINGS = (".toml", ".yaml", ".yml")
_YAML = _ENDINGS[1:]
_ROOM = 300  # characters of what a parser says


def user_file(environment: Mapping[str, str] | None = None) -> Path:
    """The user's file: what TURNLOG_CONFIG names, else `config.toml` or `config.yaml` in the user's configuration
    folder. Raises InputError if several are there, and if the user of `~user` does not exist."""
    named = (os.environ if environment is None else environment).get(VARIABLE)
    try:
        if named:
            return Path(named).expanduser()
    except RuntimeError as error:
        raise InputError(f"{VARIABLE}: {named!r} names the home folder of a user that does not exist") from error
    folder = config_folder()
    unread = folder / "config.json"
    if is_there(unread):
        raise InputError(f"{unread} is not read: write its settings to {folder / 'config.toml'} and delete it")
    return _only(folder, "config") or folder / "config.toml"


def project_file(folder: Path | None = None) -> Path | None:
    """The file of the project that `folder` (None: the working directory) belongs to: `turnlog.toml` or `turnlog.yaml`
    in it, or in the nearest folder above it, up to the top of its Git working tree. Raises InputError if a folder has
    several."""
    try:
        start = Path.cwd() if folder is None else folder.absolute()
    except FileNotFoundError:  # the working directory was deleted
        return None
    above = [start, *start.parents]
    top = next((n for n, each in enumerate(above) if is_there(each / ".git")), 0)
    return next((path for each in above[: top + 1] if (path := _only(each, "turnlog"))), None)


def read_file(path: Path, why: str = "") -> dict[str, Any]:
    """What a file says. Raises InputError if it cannot be read (`why` says why it should be), or is neither TOML nor
    YAML."""
    import tomllib  # 5 ms of import, which only who has such a file pays

    is_yaml = path.suffix.lower() in _YAML
    try:
        text = path.read_bytes().decode("utf-8-sig")
        return _yaml(path, text) if is_yaml else tomllib.loads(text)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}{why}") from error
    except (ValueError, RecursionError) as error:  # TOMLDecodeError and UnicodeDecodeError are ValueErrors
        said = " ".join(str(error).split())[:_ROOM]
        raise InputError(f"{path}: no {'YAML' if is_yaml else 'TOML'}: {said}") from error


def _only(folder: Path, name: str) -> Path | None:
    """The file of that name in a folder, whatever its ending. A link counts even if it leads to nothing: what was meant
    to be read must not be passed over."""
    found = [path for ending in _ENDINGS if os.path.lexists(path := folder / f"{name}{ending}")]
    if len(found) > 1:
        raise InputError(f"{' and '.join(map(str, found))} are both there: keep one of them, with the settings of both")
    return found[0] if found else None


def _yaml(path: Path, text: str) -> dict[str, Any]:
    try:
        yaml = import_module("yaml")
    except ImportError as error:
        raise InputError(
            f"{path}: reading it needs PyYAML, which is not installed: pip install pyyaml, or write the settings to "
            f"{path.with_suffix('.toml')}"
        ) from error
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text)):
            raise ValueError("aliases (*name) are not read here")
        root, said = yaml.compose(text), yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    if said is None:
        return {}
    if not isinstance(said, dict) or not all(isinstance(key, str) for key in said):
        raise ValueError("expected keys with a value each, as `max_age: 30d`")
    for keys in _key_lists(root):
        if twice := next((key for n, key in enumerate(keys) if key in keys[:n]), None):
            raise ValueError(f"{twice} is said twice; take one of them out")
    return said


def _key_lists(root: Any) -> Iterator[list[str]]:
    """The keys of a YAML mapping, and of the mappings in it. (`safe_load` keeps the last of equal keys.)"""
    levels: Iterable[Any] = (root, *(value for _, value in root.value))
    for node in levels:
        if node.id == "mapping":
            yield [key.value for key, _ in node.value]
