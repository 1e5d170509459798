"""`memory`: print what a session is about."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any, get_args

import msgspec

from .._platform.units import counted
from .._platform.visible import visible
from ..memory import Entity, Memory
from ..memory.entities import Kind
from ..session.memory import memory_of
from .arguments import AN_ID, add_command, number
from .drawing import shortened_line, shortened_path
from .stores import opened
from .tables import table, terminal_width
from .terminal import out_json, out_lines, paged, say

_KINDS = get_args(Kind)
_LEAST = 20
"""Columns that a thing has at least."""


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, store, "memory")
    parser.add_argument("id", metavar="ID", help=AN_ID)
    text = "only those that contain this text, or what a reference such as 'that file' stands for"
    parser.add_argument("entity", metavar="ENTITY", nargs="?", help=text)
    parser.add_argument("--kind", metavar="KIND", choices=_KINDS, help=f"only one kind: {', '.join(_KINDS)}")
    parser.add_argument(
        "--limit", metavar="N", type=number("things", least=1), default=50, help="at most N things (default: 50)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.set_defaults(run=_memory)


def _memory(arguments: Namespace) -> int:
    with opened(arguments) as store:
        memory = memory_of(store, arguments.id)
    entities = _chosen(memory, arguments.entity, arguments.kind)
    shown = entities[: arguments.limit]
    if arguments.json:
        for entity in shown:
            out_json(msgspec.to_builtins(entity))
    elif shown:
        with paged():
            _print(shown)
    limit_note = f" of {len(entities):,}; see --limit" if len(entities) > len(shown) else ""
    say(counted(len(shown), "thing") + limit_note if shown else "nothing found")
    return 0


def _chosen(memory: Memory, text: str | None, kind: str | None) -> Sequence[Entity]:
    """The entities of this kind that contain `text`, the last mentioned first; if none does, those that it refers
    to."""
    entities = [entity for entity in memory.entities if kind in (None, entity.kind)]
    if text is None:
        return entities
    named = [entity for entity in entities if text.lower() in entity.value.lower()]
    return named or [match.entity for match in memory.resolve(text) if kind in (None, match.entity.kind)]


def _state(entity: Entity) -> str:
    return f"{entity.state} [{entity.at}]" if entity.state else ""


def _print(entities: Sequence[Entity]) -> None:
    """Print a table. At a terminal, things are cut until it fits: paths so that the name of the file stays."""
    cells = [(_state(entity), f"{entity.first}-{entity.last}", str(entity.mentions)) for entity in entities]
    values = [visible(" ".join(entity.value.split()), one_line=True) for entity in entities]
    if room := terminal_width():
        names = ("KIND", "STATE", "RECORDS", "MENTIONS")
        others = [(entity.kind, *cell) for entity, cell in zip(entities, cells, strict=True)]
        widths = [max(map(len, column)) for column in zip(names, *others, strict=True)]
        width = max(_LEAST, room - sum(widths) - 2 * len(widths))
        values = [_fitting(entity, value, width) for entity, value in zip(entities, values, strict=True)]
    rows = [(e.kind, value, *cell) for e, value, cell in zip(entities, values, cells, strict=True)]
    out_lines(table(("KIND", "ENTITY", "STATE", "RECORDS", "MENTIONS"), rows, right=("MENTIONS",)))


def _fitting(entity: Entity, text: str, width: int) -> str:
    return shortened_path(text, width) if entity.kind in ("file", "url") else shortened_line(text, width)
