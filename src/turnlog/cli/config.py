"""`config`: show the settings and where each comes from."""

from __future__ import annotations

import json
import math
from argparse import ArgumentParser, Namespace
from typing import Any

from .._platform.paths import is_there
from .._platform.texts import without_password
from ..config.settings import Settings, keys
from ..session.settings import loaded, project_file, unknown_variables, user_file
from .arguments import add_command
from .stores import is_missing, place, told_place
from .terminal import out_json, out_line, say


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, store, "config")
    parser.add_argument(
        "--path", action="store_true", help="print only the paths of your configuration file and the project's"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.set_defaults(run=_config)


def _config(arguments: Namespace) -> int:
    if arguments.path:
        return _paths(arguments.json)
    configuration = loaded({"store": arguments.store or None, "key": arguments.key or None})
    if not arguments.json:
        out_line(f"# the store is {told_place(arguments)}" + ", which does not exist yet" * is_missing(arguments))
    for name, key in keys().items():
        if not key.in_files:
            continue
        value = _plain(name, configuration.settings)
        if name == "store":
            value = without_password(value)
        if arguments.json:
            row = {"key": name, "value": value, "from": configuration.origins[name], "allowed": key.kind.allowed}
            out_json(row | ({"place": without_password(place(arguments))} if name == "store" else {}))
        elif value is None:
            out_line(f"# {name} is not set  # {configuration.origins[name]}")
        else:
            out_line(f"{name} = {_toml(value)}  # {configuration.origins[name]}")
    for name in unknown_variables():
        say(f"the environment variable {name} is set, but turnlog has no such setting")
    return 0


def _paths(as_json: bool) -> int:
    user, project = user_file(), project_file()
    places = [("user", user, is_there(user))] + ([("project", project, True)] if project else [])
    for kind, path, exists in places:
        if as_json:
            out_json({"kind": kind, "path": str(path), "exists": exists})
        else:
            out_line(str(path))
            if not exists:
                say(f"{path} does not exist yet")
    return 0


def _plain(name: str, settings: Settings) -> Any:
    """The value of a key as a configuration file has it."""
    value = getattr(settings, name)
    return None if value is None else keys()[name].kind.written(value)


def _toml(value: Any) -> str:
    """A value in TOML: like JSON, except for tables and infinity."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    return "inf" if value == math.inf else json.dumps(value, ensure_ascii=False)
