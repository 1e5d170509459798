"""Where settings are written, and which place wins.

The order is: arguments, environment variables, the project's file, the user's file, defaults. The value of a key comes
from one place, except that the tables of `redact_patterns` and the lists of `sensitive_patterns` are put together; if a
project and the user name a pattern alike, the user's holds.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from .._platform.lazy import lazy_pattern
from .._platform.paths import config_folder, is_there
from .._platform.stdlib import difflib
from .._platform.texts import without_password
from .._platform.units import old_max_size
from ..config.settings import Settings, keys, read_key
from ..errors import InputError
from ..stores.encrypted.keys import placed_key
from ..stores.ownership import leads_out
from ..stores.places import local_path, placed

# -- settings files --------------------------------------------------------------------------------
#
# Configuration files: which there are, and what they say before it is checked.

VARIABLE = "TURNLOG_CONFIG"
"""Environment variable that names the user's file."""

_ENDINGS = (".toml", ".yaml", ".yml")
_YAML = _ENDINGS[1:]
_PROJECTS = tuple(f"turnlog{ending}" for ending in _ENDINGS)
_NEAR_PROJECTS = ("turnlog.json", *(f".{name}" for name in _PROJECTS))
_ROOM = 300  # characters of what a parser says


def user_file(environment: Mapping[str, str] | None = None) -> Path:
    """The user's file: what TURNLOG_CONFIG names, else `config.toml` or `config.yaml` in the user's configuration
    folder. Raises InputError if several are there, or one that is not read, and if the user of `~user` does not
    exist."""
    named = (os.environ if environment is None else environment).get(VARIABLE)
    try:
        if named:
            return Path(named).expanduser()
    except RuntimeError as error:
        raise InputError(f"{VARIABLE}: {named!r} names the home folder of a user that does not exist") from error
    folder = config_folder()
    return _only(folder, "config", ("config.json", *_PROJECTS)) or folder / "config.toml"


def project_file(folder: Path | None = None) -> Path | None:
    """The file of the project that `folder` (None: the working directory) belongs to: `turnlog.toml` or `turnlog.yaml`
    in it, or in the nearest folder above it, up to the top of its Git working tree. Raises InputError if a folder has
    several, or one that is not read."""
    try:
        start = Path.cwd() if folder is None else folder.absolute()
    except FileNotFoundError:  # the working directory was deleted
        return None
    above = [start, *start.parents]
    top = next((n for n, each in enumerate(above) if is_there(each / ".git")), 0)
    return next((path for each in above[: top + 1] if (path := _only(each, "turnlog", _NEAR_PROJECTS))), None)


def read_file(path: Path, why: str = "") -> dict[str, Any]:
    """The content of a settings file. Raises InputError if it cannot be read (`why` says why it should be), or is
    neither TOML nor YAML."""
    import tomllib  # 5 ms of import, which only who has such a file pays

    is_yaml = path.suffix.lower() in _YAML
    try:
        text = path.read_bytes().decode("utf-8-sig")
        return _yaml(path, text) if is_yaml else tomllib.loads(text)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}{why}") from error
    except (ValueError, RecursionError) as error:  # TOMLDecodeError and UnicodeDecodeError are ValueErrors
        problem = " ".join(str(error).split())[:_ROOM]
        raise InputError(f"{path}: not {'YAML' if is_yaml else 'TOML'}: {problem}") from error


def _only(folder: Path, name: str, unread: Iterable[str]) -> Path | None:
    """The file of that name in a folder, whatever its ending. A link counts even if it leads to nothing: what was meant
    to be read must not be passed over, and neither must files of the names `unread`, which are errors. (A folder with
    sessions is a store, whose `turnlog.json` is no configuration.)"""
    for near in unread:
        if is_there(path := folder / near) and not is_there(folder / "sessions"):
            raise InputError(f"{path} is not read: write its settings to {folder / name}.toml and delete it")
    paths = [path for ending in _ENDINGS if os.path.lexists(path := folder / f"{name}{ending}")]
    if len(paths) > 1:
        raise InputError(f"{' and '.join(map(str, paths))} both exist: keep one of them, with the settings of both")
    return paths[0] if paths else None


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
        root, values = yaml.compose(text), yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise ValueError("expected keys with a value each, as `max_age: 30d`")
    for names in _key_lists(root):
        if twice := next((key for n, key in enumerate(names) if key in names[:n]), None):
            raise ValueError(f"{twice} is set twice; remove one of them")
    return values


def _key_lists(root: Any) -> Iterator[list[str]]:
    """The keys of a YAML mapping, and of the mappings in it. (`safe_load` keeps the last of equal keys.)"""
    levels: Iterable[Any] = (root, *(value for _, value in root.value))
    for node in levels:
        if node.id == "mapping":
            yield [key.value for key, _ in node.value]


_PREFIX = "TURNLOG_"
_VARIABLES = "environment"
_PATTERNS, _SENSITIVE = "redact_patterns", "sensitive_patterns"
_OTHER_VARIABLES = (VARIABLE, "TURNLOG_MODELS")
_SHOWN = 200  # characters of what is no TOML at all
_TABLE = "history"
_IN_TABLE = {"max_size": "max_history_turns", "save_history": "save_history", _SENSITIVE: _SENSITIVE}
"""The keys of the table `[history]`, as other programs have it, and which settings they are."""
_DISK, _OLD_DISK = "max_disk", "max_size"
_CAPITAL = lazy_pattern(r"(?<=[a-z0-9])([A-Z])")


def _variable(key: str) -> str:
    return f"{_PREFIX}{key.upper()}"


_MEANT = {
    **{_variable(key): _variable(key) for key in keys()},
    _variable(_OLD_DISK): _variable(_DISK),
    _variable(_TABLE): _variable("save_history"),
    **{_variable(f"{_TABLE}_{name}"): _variable(key) for name, key in _IN_TABLE.items()},
}
"""Spellings of variables, and the variable that each of them means."""


class Loaded(Struct, frozen=True):
    """Settings, and where each was set: `default`, `user file PATH`, `project file PATH`, the name of a variable, or
    `argument`."""

    settings: Settings
    origins: dict[str, str]


class _Place(NamedTuple):
    """A place that sets keys: its name, its values by key, and whether it is a project's file."""

    name: str
    said: dict[str, Any]
    of_project: bool = False


def load_settings(**arguments: Any) -> Settings:
    """The settings from configuration files and environment variables. `arguments` override them; an argument that is
    None is ignored.

    Raises InputError, which names the file or variable, the key, the value found and the values allowed.
    """
    return loaded(arguments).settings


def settings_for(store: object, given: Settings | None = None) -> Settings:
    """The settings for `store`, a path or a Store; None is the store that the settings name. `given` are used if there
    are any, else configuration files and environment variables. Keys that a project's file sets for its own store do
    not apply to another store. Raises as `load_settings`."""
    settings = load_settings() if given is None else given
    return settings if store is None else settings.for_other_stores or settings


def loaded(
    arguments: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Loaded:
    """The settings in force, and where each was set. `environment` stands for the process's own, `folder` for its
    working directory. Raises as `load_settings`."""
    around = os.environ if environment is None else environment
    places = [*_files(around, folder), _variables(around), _place("argument", arguments or {}, of_program=True)]
    names_store = next((place for place in reversed(places) if place.said.get("store")), None)
    values, origins = _merged(places, names_store)
    elsewhere, _ = _merged(places, None)
    try:
        others = None if elsewhere == values else Settings(**elsewhere)
        return Loaded(Settings(**values, for_other_stores=others), origins)
    except InputError as error:  # keys that are right one by one and do not go together
        key = str(error).partition(":")[0]
        raise InputError(f"{origins.get(key, 'settings')}: {error}") from error


def _merged(places: Iterable[_Place], names_store: _Place | None) -> tuple[dict[str, Any], dict[str, str]]:
    """The values of all places together, and the place of each. What a project's file sets for its own store holds only
    if that file names the store."""
    values: dict[str, Any] = {}
    origins = dict.fromkeys(keys(), "default")
    for place in places:
        for key, value in place.said.items():
            if place.of_project and keys()[key].of_store and place is not names_store:
                continue
            if key == _PATTERNS:
                value = _patterns(values.get(key, {}), value, place)
            elif key == _SENSITIVE:
                value = tuple(dict.fromkeys((*values.get(key, ()), *value)))
            values[key] = value
            origins[key] = f"{_PREFIX}{key.upper()}" if place.name == _VARIABLES else place.name
    return values, origins


def _patterns(before: dict[str, str], more: dict[str, str], place: _Place) -> dict[str, str]:
    """The patterns with those of one more place added. A project's file cannot replace a pattern of the user's by
    another one of the same name."""
    return {**before, **{kind: each for kind, each in more.items() if not (place.of_project and kind in before)}}


def unknown_variables(environment: Mapping[str, str] | None = None) -> list[str]:
    """Variables with turnlog's prefix, in capitals or not, that are no settings. A near miss is an error where settings
    are loaded: whoever mistyped TURNLOG_SAVE_HISTORY must not have a history kept."""
    around = os.environ if environment is None else environment
    known_names = _known_variables()
    return sorted(name for name in around if name.upper().startswith(_PREFIX) and name not in known_names)


def _known_variables() -> list[str]:
    return [*(f"{_PREFIX}{key.upper()}" for key in (*keys(), _OLD_DISK)), *_OTHER_VARIABLES]


def _files(environment: Mapping[str, str], folder: Path | None) -> Iterator[_Place]:
    """The user's file and the project's, if they exist."""
    user_path, named = user_file(environment), bool(environment.get(VARIABLE))
    if named or os.path.lexists(user_path):
        values = read_file(user_path, f" ({VARIABLE} names this file)" if named else "")
        yield _place(f"user file {user_path}", values, user_path.parent)
    path = project_file(folder)
    if path is not None:
        place = _place(f"project file {path}", read_file(path), path.parent, of_project=True)
        _check_project(place, path.parent)
        yield place


def _place(
    name: str,
    said: Mapping[str, Any],
    folder: Path | None = None,
    *,
    of_project: bool = False,
    of_program: bool = False,
) -> _Place:
    """A place with its values, each of them checked. Stores and keys that a file names are found from its `folder`;
    what only a program can give is refused unless it is `of_program`."""
    where = name.removeprefix("user file ").removeprefix("project file ")
    values: dict[str, Any] = {}
    try:
        for spelled, key, value in _keys_said(said, where):
            if key not in keys():
                allowed_names = [name for name, about in keys().items() if of_program or about.in_files]
                raise InputError(f"there is no key {spelled!r}; {_nearest(key, allowed_names)}")
            if key in values:
                raise InputError(f"{key} is set twice, also as {spelled!r}; remove one of them")
            if not (of_program or keys()[key].in_files):
                raise InputError(_only_in_programs(key))
            if value is None:
                continue
            values[key] = read_key(key, value, in_program=of_program, spelled=spelled if "." in spelled else "")
            if key == "store" and folder is not None and value:
                values[key] = placed(value, folder)
            elif key == "key" and folder is not None and values[key]:
                values[key] = placed_key(value, folder)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    return _Place(name, values, of_project)


def _keys_said(said: Mapping[str, Any], where: str) -> Iterator[tuple[str, str, Any]]:
    """Each key as it is spelled, the setting that it is, and its value. Raises InputError."""
    for spelled, value in said.items():
        key = _snake(spelled)
        if key == _TABLE:
            yield from _table_said(value)
        elif key == _OLD_DISK and value is not None:
            yield spelled, _DISK, old_max_size(value, spelled, where=where)
        else:
            yield spelled, key, value


def _table_said(table: Any) -> Iterator[tuple[str, str, Any]]:
    """The same for the keys of the table `[history]`."""
    if not isinstance(table, Mapping):
        raise InputError(f"{_TABLE}: {table!r} is not allowed; allowed: a table with {', '.join(_IN_TABLE)}")
    for spelled, value in table.items():
        if _snake(str(spelled)) not in _IN_TABLE:
            near = _nearest(_snake(str(spelled)), _IN_TABLE)
            raise InputError(f"there is no key {spelled!r} in the table {_TABLE!r}; {near}")
        yield f"{_TABLE}.{spelled}", _IN_TABLE[_snake(str(spelled))], value


def _snake(spelled: str) -> str:
    """A key in the spelling of `Settings`: maxDisk is max_disk."""
    return _CAPITAL.sub(r"_\1", spelled).lower()


def _variables(environment: Mapping[str, str]) -> _Place:
    """The values that environment variables set. An empty variable sets nothing."""
    for name in unknown_variables(environment):
        capitals = name.upper()
        near = difflib.get_close_matches(capitals, _MEANT, 1, 0.85)
        if capitals in _known_variables() or near:
            meant = capitals if capitals in _known_variables() else _MEANT[near[0]]
            raise InputError(
                f"the environment variable {name} is set, but turnlog has no such setting; did you mean {meant}?"
            )
    values: dict[str, Any] = {}
    for name in (*keys(), _OLD_DISK):
        variable, key = f"{_PREFIX}{name.upper()}", _DISK if name == _OLD_DISK else name
        text = environment.get(variable)
        if not text:
            continue
        if not keys()[key].in_files:
            raise InputError(f"{variable}: {_only_in_programs(key)}")
        if key in values:
            raise InputError(f"{variable}: {key} is set twice, also as {_PREFIX}{key.upper()}; unset one of them")
        if name == _OLD_DISK:
            text = old_max_size(text, variable, f"{_PREFIX}{_DISK.upper()}")
        try:
            values[key] = read_key(key, keys()[key].kind.of_text(text), in_program=False)
            if key == "store":
                values[key] = placed(text, Path())
        except (ValueError, RecursionError, InputError) as error:  # TOMLDecodeError is a ValueError
            raise InputError(f"{variable}: {_said_of(key, text, error)}") from error
    return _Place(_VARIABLES, values)


def _only_in_programs(key: str) -> str:
    return f"{key} is given by a program alone: load_settings({key}=...) or Settings({key}=...)"


def _said_of(key: str, text: str, error: Exception) -> str:
    if isinstance(error, InputError):
        return str(error)
    short = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return f"{key}: {short!r} is not allowed; allowed: {keys()[key].kind.allowed}"


def _check_project(place: _Place, folder: Path) -> None:
    """Raises InputError if a project's file names a store outside of the project's folder, or sets what applies to a
    store without naming one. Others may have written the file: it must not delete the user's sessions, or keep secrets
    in them."""
    where = place.name.removeprefix("project file ")
    store = place.said.get("store")
    if store is not None and store != ":memory:":
        path = local_path(store) if store else None
        try:
            outside = leads_out(path, folder) if path else None
        except OSError as error:
            raise InputError(f"{where}: store: {error.filename} cannot be looked into: {error.strerror}") from error
        if path is None or outside == path:
            shown = without_password(store)
            raise InputError(f"{where}: store: {shown!r} is not allowed; allowed: a place inside the project's folder")
        if outside:
            raise InputError(f"{where}: store: {outside} leads out of the project's folder; remove that link")
    for key in place.said:
        if keys()[key].of_store and not store:
            raise InputError(
                f"{where}: {key}: a project's file may set this only for the project's own store; name one as `store` "
                f"in this file, or write it to {user_file()}"
            )


def _nearest(key: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(key, known, 1, 0.5)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
