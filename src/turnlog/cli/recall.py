"""`recall`: find how something was done before, in all sessions of a store."""

from __future__ import annotations

import shlex
import textwrap
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any

import msgspec

from .._platform.times import ago
from .._platform.units import counted
from .._platform.visible import visible
from ..log.store import Store
from ..memory.recall import MAX_TOKENS, Recalled, quoted, recall
from ..session.titles import shown_title
from ..stores.ids import short_ids
from .arguments import add_command, add_labels, number
from .drawing import clipped, colours
from .stores import is_missing, is_writable, opened, place
from .tables import terminal_width
from .terminal import out, out_json, out_line, out_pieces, paged, say

_LINES = 6
"""Lines of a passage that a terminal shows."""


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, store, "recall")
    parser.add_argument("query", metavar="QUERY", nargs="+", help="a question, or a few words; rare words help most")
    text = f"passages of at most N tokens (default: {MAX_TOKENS:,})"
    parser.add_argument("--tokens", metavar="N", type=number("tokens", 1), default=MAX_TOKENS, help=text)
    add_labels(parser)
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--for-model", action="store_true", help="quoted as data, as the model's tool shows it")
    shown.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.set_defaults(run=_recall)


def _recall(arguments: Namespace) -> int:
    if is_missing(arguments):
        say(f"nothing to search: there is no store at {place(arguments)}")
        return 0
    # A search first brings the index up to date. If the store is read-only, it reads all records instead.
    with opened(arguments, write=is_writable(arguments)) as store:
        passages = recall(store, " ".join(arguments.query), max_tokens=arguments.tokens, where=dict(arguments.label))
        first = ""
        if arguments.json:
            for passage in passages:
                out_json(msgspec.to_builtins(passage))
        elif arguments.for_model and passages:
            out(visible(quoted(passages)))
        elif passages:
            with paged():
                first = _print(store, passages)
    follow = f".  turnlog show {shlex.quote(first)} --at {passages[0].record}" if first else ""
    say(counted(len(passages), "passage") + follow if passages else "nothing found")
    return 0


def _print(store: Store, passages: Sequence[Recalled]) -> str:
    """Print the passages below their sessions, at a terminal the beginning of each, wrapped at its width; returns the
    short id of the first."""
    infos = store.sessions()
    short = short_ids({passage.session for passage in passages}, infos)
    titles = {info.id: shown_title(store, info) for info in infos if info.id in short}
    room = terminal_width()
    last = ""
    for passage in passages:
        name = short[passage.session]
        if passage.session != last:
            last = passage.session
            heading = f"{name}  {ago(passage.time)}  {titles.get(last, '')}".rstrip()
            out_pieces([(clipped(heading, room).rstrip() if room else heading, "1" if colours() else "")])
        out_line(f"  record {passage.record}, {passage.role}")
        lines = [visible(line.expandtabs(2), one_line=True) for line in passage.text.splitlines() if line.strip()]
        if room:
            lines = [part for line in lines for part in textwrap.wrap(line, room - 4)]
        for line in lines[:_LINES] if room else lines:
            out_line(f"    {clipped(line, room - 4).rstrip() if room else line}")
        if room and len(lines) > _LINES:
            out_line(f"    … {counted(len(lines) - _LINES, 'more line')}: turnlog show {name} --at {passage.record}")
    return short[passages[0].session]
