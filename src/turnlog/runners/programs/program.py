"""What the runner needs to know of a program: how it is started, and what the lines that it prints mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

from ...log.usage import Usage


class ProgramEvent(Struct, frozen=True, repr_omit_defaults=True, kw_only=True):
    """An event in the output of a program. `kind` says what:

    `session`: `text` is the id by which the program resumes the conversation. `text`, `reasoning`: the next piece.
    `ran_tool`: the program ran the tool `name` with `arguments`. `done`: the answer is complete, and `usage` is what it
    took. `failed`: there will be no answer; `text` says why, `status` is the HTTP status behind it, `wait` the seconds
    until the program may be asked again, both None if unknown.
    """

    kind: Literal["session", "text", "reasoning", "ran_tool", "done", "failed"]
    text: str = ""
    name: str = ""
    arguments: Any = None
    usage: Usage | None = None
    status: int | None = None
    wait: float | None = None


class ProgramReader(Protocol):
    """Reads the lines of one run."""

    def read(self, event: Mapping[str, Any]) -> list[ProgramEvent]:
        """The ProgramEvents of one line. Unknown events and values give none; never raises."""
        ...


class Program(Struct, frozen=True, kw_only=True):
    """A program: its `command`, how it is installed and logged in, the `maker` whose models it runs, and the short
    names of these models.

    `arguments` gives the command line for a model ("" for the program's own choice) and the id of a conversation to
    resume ("" for a new one). The prompt is written to its standard input. `lost` matches errors that say that the
    conversation to resume is gone, `no_resume` those of versions that resume none, `no_login` those that say that there
    is no key. If `sums`, usage is that of the whole conversation. `env` is set where the environment does not say
    otherwise.
    """

    command: str
    install: str
    login: str
    maker: str
    models: Mapping[str, str]
    arguments: Callable[[str, str], Sequence[str]]
    reader: Callable[[], ProgramReader]
    lost: re.Pattern[str]
    no_login: re.Pattern[str]
    sums: bool = False
    no_resume: re.Pattern[str] | None = None
    env: Mapping[str, str] = {}


def text_at(value: Any, *path: str) -> str:
    """The text at a path of keys; "" if there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""


def mapping_at(value: Any, *path: str) -> Mapping[str, Any]:
    """The object at a path of keys; an empty one if there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def items_at(value: Any, key: str) -> list[Any]:
    """The list under a key; an empty one if there is none."""
    items = value.get(key) if isinstance(value, Mapping) else None
    return items if isinstance(items, list) else []
