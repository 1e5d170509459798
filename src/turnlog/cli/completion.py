"""`completion`: scripts by which shells complete commands, options and sessions, and the ids for them.

`scripts/completions.py` makes the scripts from the parser. They call `turnlog completion ids` with the words of the
line.
"""

from __future__ import annotations

import os
from argparse import REMAINDER, SUPPRESS, ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from .._platform.times import ago
from .._platform.visible import visible
from ..errors import TurnlogError
from ..stores.encrypted.keys import ASK
from .arguments import KEY, STORE, add_command
from .stores import opened, settings_of
from .terminal import out, out_bytes

SHELLS = ("bash", "zsh", "fish")

_IDS = "ids"
_MOST = 200
"""At most this many sessions are offered, the newest: of more, a shell asks whether to show them."""


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, None, "completion")
    parser.add_argument("shell", metavar="SHELL", choices=(*SHELLS, _IDS), help=", ".join(SHELLS))
    parser.add_argument("words", metavar="WORDS", nargs=REMAINDER, help=SUPPRESS)
    parser.set_defaults(run=_completion)


def _completion(arguments: Namespace) -> int:
    if arguments.shell != _IDS:
        out_bytes([Path(__file__).with_name("data").joinpath(f"turnlog.{arguments.shell}").read_bytes()])
        return 0
    with suppress(TurnlogError, OSError):  # who completes a word cannot be told of a damaged store
        for name, told in _sessions(arguments.words):
            out(f"{visible(name, one_line=True)}\t{visible(told, one_line=True)}")
    return 0


def _sessions(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The ids that begin like the last of the words of a command line, the last changed first, with time and title."""
    begins = words[-1] if words else ""
    if "latest".startswith(begins):
        yield "latest", "the last session"
    place = Namespace(store=_given(words, "--store", STORE), key=_given(words, "--key", KEY))
    if settings_of(place).key == ASK:  # nobody wants to type a passphrase to see ids
        return
    with opened(place) as store:
        found = [info for info in store.sessions() if info.id.startswith(begins)]
    yield from ((info.id, f"{ago(info.updated)}  {info.title}") for info in found[:_MOST])


def _given(words: Sequence[str], option: str, variable: str) -> str:
    """What a command line, else the environment, says about the store or its key."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == option or word.startswith(f"{option}="):
            return os.path.expanduser(following if word == option else word.partition("=")[2])
    return os.environ.get(variable, "")
