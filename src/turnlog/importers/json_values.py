"""Reading JSON of unknown types: each function returns the type that its name names."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any
from urllib.parse import unquote


def word(value: Any) -> str:
    """The value if it is text; "" for anything else."""
    return value if isinstance(value, str) else ""


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is an object; an empty object for anything else."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """The value if it is a list; an empty list for anything else."""
    return value if isinstance(value, list) else []


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a list."""
    return [item for item in items(value) if isinstance(item, dict)]


def within(value: Any, *path: str) -> Any:
    """The value at a path of keys; None if the path does not exist."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def without(values: Mapping[str, Any], keys: Container[str]) -> dict[str, Any]:
    """An object without some of its keys."""
    return {key: value for key, value in values.items() if key not in keys}


def path_of(place: Any) -> str:
    """The path of a place: of a path or a URI, as text or as VS Code's object; "" for anything else."""
    if isinstance(place, dict):
        return word(place.get("fsPath")) or word(place.get("path")) or path_of(place.get("uri"))
    path = word(place)
    if path.startswith(("file://", "vscode-remote://")):
        path = unquote("/" + path.partition("://")[2].partition("/")[2])
    return path[1:] if path[2:3] == ":" and path[:1] == "/" else path  # /c:/w
