"""`recall`: find how something was done before, in all sessions of a store."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

import msgspec

from .._platform.units import counted
from ..export.escapes import visible
from ..memory.recall import MAX_TOKENS, quoted, recall
from .arguments import add_command, add_labels, number
from .stores import is_missing, is_writable, opened, place
from .terminal import out, out_json, say


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, store, "recall")
    parser.add_argument("query", metavar="QUERY", nargs="+", help="a question, or a few words; rare words help most")
    text = f"passages of at most N tokens (default: {MAX_TOKENS:,})"
    parser.add_argument("--tokens", metavar="N", type=number("tokens", 1), default=MAX_TOKENS, help=text)
    add_labels(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.set_defaults(run=_recall)


def _recall(arguments: Namespace) -> int:
    if is_missing(arguments):
        say(f"nothing to search: there is no store at {place(arguments)}")
        return 0
    # A search first brings the index up to date. If the store is read-only, it reads all records instead.
    with opened(arguments, write=is_writable(arguments)) as store:
        passages = recall(store, " ".join(arguments.query), max_tokens=arguments.tokens, where=dict(arguments.label))
    if arguments.json:
        for passage in passages:
            out_json(msgspec.to_builtins(passage))
    elif passages:
        out(visible(quoted(passages)))
    say(counted(len(passages), "passage") if passages else "nothing found")
    return 0
