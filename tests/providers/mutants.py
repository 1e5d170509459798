"""Bodies and responses as nobody would write them: small changes at random places of a sound one."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from turnlog.errors import FormatError

__all__ = ["attempted", "deep", "mutant"]

T = TypeVar("T")

ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    10**30,
    "",
    " ",
    "x",
    "a b/c",
    "9" * 300,
    "data:image/png;base64,!!!!",
    [],
    {},
    [None],
    [[]],
    [{}],
    ["x"],
    {"type": "zzz", "text": "kept?"},
    {"type": "text", "text": 5},
    {"text": "spoken", "thought": True},
    {"role": "user", "content": "hello"},
    {"role": "model", "parts": [{"functionCall": {"name": "w", "args": {}}}]},
    {"type": "tool_use", "id": "call_9", "name": "w", "input": {}},
    {"functionResponse": {"name": "w", "response": {}}},
)
KEYS = ("type", "id", "name", "role", "text", "content", "parts", "signature", "cache_control", "x_unknown")


def mutant(body: Mapping[str, Any], rng: random.Random) -> dict[str, Any]:
    """A copy of `body` with one to three changes."""
    changed: dict[str, Any] = copy.deepcopy(dict(body))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        _change(changed, rng)
    return changed


def attempted(call: Callable[[], T]) -> T | FormatError:
    """What `call` returns, or the FormatError that it raises; anything else it raises goes on."""
    try:
        return call()
    except FormatError as error:
        return error


def deep(levels: int) -> Any:
    """A value nested that deeply, in objects and lists by turns."""
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def _change(body: dict[str, Any], rng: random.Random) -> None:
    places = list(_places(body))
    if not places:
        return
    holder, key = rng.choice(places)
    value = holder[key]
    match rng.randrange(7):
        case 0 | 1 | 2:
            holder[key] = copy.deepcopy(rng.choice(ODD))
        case 3:
            del holder[key]
        case 4:
            other, name = rng.choice(places)
            holder[key] = copy.deepcopy(other[name])
        case 5 if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(value))
        case 6 if isinstance(value, dict):
            value[rng.choice(KEYS)] = copy.deepcopy(rng.choice(ODD))
        case _:
            holder[key] = rng.choice(([value], {"text": value}))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a value that can be changed, as the object or list it is in and its key there."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(inner):
        yield value, key
        yield from _places(item)
