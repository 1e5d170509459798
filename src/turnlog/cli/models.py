"""`models`: the known facts about models, and their sources."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from msgspec import to_builtins

from ..errors import InputError
from ..models.catalog import ModelFacts, Origin, find_model, known_models, model_origins, own_file
from ..models.sellers import maker_named
from ..models.servers import Server, server_given, server_row, server_rows
from .arguments import add_command
from .tables import table
from .terminal import out_json, out_line, out_lines, paged

_PRICES = ("input", "cached", "cache_write", "cache_write_1h", "output")
_MAY_GO = ("maker", "cached", "cache write", "cache write 1h")
"""Columns that a terminal without room for them does not show, the last first."""


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, None, "models")
    parser.add_argument(
        "name", metavar="NAME", nargs="?", default="", help="a model: show all known facts; a word: list the models"
    )
    parser.add_argument("--servers", action="store_true", help="list the servers that imitate OpenAI's Chat API")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.set_defaults(run=_models)


def _models(arguments: Namespace) -> int:
    if arguments.servers:
        return _servers(arguments.name, as_json=arguments.json)
    if arguments.name:
        return _one(arguments.name, as_json=arguments.json)
    return _listed(known_models(), as_json=arguments.json)


def _listed(models: Mapping[str, ModelFacts], *, as_json: bool) -> int:
    """Print a line for each of these models."""
    if as_json:
        for name, facts in models.items():
            out_json({"model": name, **to_builtins(facts)})
        return 0
    rows = [
        [name, facts.provider or maker_named(name), *map(_tokens, (facts.input, facts.output)), *_dollars(facts.prices)]
        for name, facts in models.items()
    ]
    names = ["model", "maker", "in", "out", *(kind.replace("_", " ") for kind in _PRICES)]
    with paged():
        out_line("in and out: limits in tokens; the other columns: dollars per million tokens")
        out_lines(table(names, rows, right=set(names[2:]), may_go=_MAY_GO))
        out_line(f"Your own entries: {own_file()}")
    return 0


def _servers(name: str, *, as_json: bool) -> int:
    """Print the servers, or how one of them differs from OpenAI's."""
    if name:
        row = to_builtins(server_row(server_given(name), ""))
        if as_json:
            out_json({"server": server_given(name), **row})
        else:
            out_lines(f"{key}: {json.dumps(value)}" for key, value in row.items())
        return 0
    rows = server_rows()
    if as_json:
        for key, row in rows.items():
            out_json({"server": key, **to_builtins(row)})
        return 0
    found = [[key, row.title, *_found(row)] for key, row in rows.items()]
    out_lines(table(["server", "", "found at", "also"], found, right=set()))
    out_line(f"How one differs from OpenAI's: turnlog models --servers NAME. Your own rows: {own_file()}")
    return 0


def _found(row: Server) -> tuple[str, str]:
    """Where a server is found, and its other names."""
    return ", ".join(row.hosts) or (f"localhost:{row.port}" if row.port else ""), ", ".join(row.words)


def _one(name: str, *, as_json: bool) -> int:
    """Print all known facts about one model; for a word that is in names of models, list those. Raises InputError if
    there are none."""
    facts, model = model_origins(name), find_model(name)
    named = {each: known for each, known in known_models().items() if name.lower() in each.lower()}
    if named and not (facts and (model or as_json)):
        return _listed(named, as_json=as_json)
    if not facts:
        entry = json.dumps({"models": {name: {"input": 128_000}}})
        raise InputError(f"nothing is known about the model {name!r}; add an entry to {own_file()}, e.g. {entry}")
    taken_for = model.taken_for if model else ""
    if as_json:
        sourced = {fact.name: {"value": to_builtins(fact.value), "source": fact.source} for fact in facts}
        names = {"id": model.id if model else "", "seller": model.seller if model else ""}
        out_json({"model": name, "known": model is not None, "taken_for": taken_for, **names, "facts": sourced})
        return 0
    if model is None:
        out_line(f"{name} is not in the table of models, only its family is known.")
    elif taken_for:
        out_line(f"{name} is not in the table of models: taken for {taken_for}{', without prices' * model.newer}.")
    elif model.id != name:
        out_line(f"{name} is {model.id}" + (f", sold by {model.seller}." if model.seller else "."))
    for line in _by_source(facts):
        out_line(line)
    return 0


def _by_source(facts: Iterable[Origin]) -> Iterator[str]:
    """Lines of facts, grouped by source: the source, then its facts."""
    sources: dict[str, list[Origin]] = {}
    for fact in facts:
        sources.setdefault(fact.source, []).append(fact)
    for source, listed in sources.items():
        yield f"{source}:"
        yield from (f"  {fact.name}: {_value_text(fact.value)}" for fact in listed)


def _value_text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _tokens(limit: int | None) -> str:
    return "" if limit is None else f"{limit:,}"


def _dollars(prices: Any) -> list[str]:
    amounts: list[Decimal | None] = [getattr(prices, kind) for kind in _PRICES]
    return ["" if price is None else f"{price:f}" for price in amounts]
