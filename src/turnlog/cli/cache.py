"""`cache`: what the requests of a session read from the provider's prompt cache, and why they read less."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any

from msgspec import to_builtins

from .._platform.units import counted
from ..display.request_words import cache_words
from ..session.caches import CacheOutcome, CacheReport
from .arguments import AN_ID, add_command
from .stores import opened
from .tables import Column, folded, laid_out
from .terminal import out_json, out_lines, paged, say


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, store, "cache")
    parser.add_argument("id", metavar="ID", help=AN_ID)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.set_defaults(run=_cache)


def _cache(arguments: Namespace) -> int:
    with opened(arguments) as store:
        requests = list(CacheReport(store, arguments.id))
    if arguments.json:
        for request in requests:
            out_json(to_builtins(request))
    elif requests:
        with paged():
            out_lines(_table(requests))
        size, read = sum(each.input for each in requests), sum(each.read for each in requests)
        share = f" ({100 * read // size} %)" if size else ""
        written = sum(each.written for each in requests)
        told = f"{counted(len(requests), 'request')}: {read:,} of {size:,} tokens read from the cache{share}"
        out_lines(folded(f"{told}, {written:,} written to it", 2))
    else:
        say("no request of this session was billed")
    return 0


def _table(requests: Sequence[CacheOutcome]) -> Any:
    columns = [
        Column("RECORD", [str(each.n) for each in requests], 6, ">"),
        Column("MODEL", [each.model for each in requests], 5, may_go=True),
        Column("INPUT", [f"{each.input:,}" for each in requests], 9, ">"),
        Column("READ", [f"{each.read:,}" for each in requests], 9, ">"),
        Column("EXPECTED", ["-" if each.expected is None else f"{each.expected:,}" for each in requests], 9, ">"),
        Column("WRITTEN", [f"{each.written:,}" for each in requests], 9, ">"),
    ]
    return laid_out(columns, "WHY", [cache_words(each) for each in requests])
