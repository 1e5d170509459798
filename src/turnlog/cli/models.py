"""`models`: what is known of models, and where that comes from."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from msgspec import to_builtins

from ..errors import InputError
from ..models.catalog import Origin, find_model, known_models, model_origins, own_file
from .tables import table
from .terminal import out_json, out_line

_PRICES = ("input", "cached", "cache_write", "cache_write_1h", "output")


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("models", help="what is known of models: limits, prices, abilities, and their sources")
    parser.add_argument("name", metavar="NAME", nargs="?", default="", help="a model: all that is known, with sources")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.set_defaults(run=_models)


def _models(arguments: Namespace) -> int:
    if arguments.name:
        return _one(arguments.name, as_json=arguments.json)
    known = known_models()
    if arguments.json:
        for name, facts in known.items():
            out_json({"model": name, **to_builtins(facts)})
        return 0
    rows = [
        [name, facts.provider or "", *map(_tokens, (facts.input, facts.output)), *_dollars(facts.prices)]
        for name, facts in known.items()
    ]
    names = ["model", "maker", "in", "out", *(kind.replace("_", " ") for kind in _PRICES)]
    for line in table(names, rows, right=set(names[2:])):
        out_line(line)
    out_line(f"Limits in tokens, prices in dollars per million. Your own entries: {own_file()}")
    return 0


def _one(name: str, *, as_json: bool) -> int:
    """All about one model."""
    facts, found = model_origins(name), find_model(name)
    if not facts:
        wanted = f'write what it has to {own_file()}, e.g. {{"models": {{"{name}": {{"input": 128000}}}}}}'
        raise InputError(f"nothing is known of the model {name!r}; {wanted}")
    taken_for = found.taken_for if found else ""
    if as_json:
        told = {fact.name: {"value": to_builtins(fact.value), "source": fact.source} for fact in facts}
        out_json({"model": name, "known": found is not None, "taken_for": taken_for, "facts": told})
        return 0
    if found is None:
        out_line(f"{name} is not in the table of models, only its family is known.")
    elif taken_for:
        out_line(f"{name} is not in the table of models: taken for {taken_for}{', without prices' * found.newer}.")
    for line in _by_source(facts):
        out_line(line)
    return 0


def _by_source(facts: Iterable[Origin]) -> Iterator[str]:
    """The facts below the source of each."""
    sources: dict[str, list[Origin]] = {}
    for fact in facts:
        sources.setdefault(fact.source, []).append(fact)
    for source, told in sources.items():
        yield f"{source}:"
        yield from (f"  {fact.name}: {_said(fact.value)}" for fact in told)


def _said(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _tokens(limit: int | None) -> str:
    return "" if limit is None else f"{limit:,}"


def _dollars(prices: Any) -> list[str]:
    found: list[Decimal | None] = [getattr(prices, kind) for kind in _PRICES]
    return ["" if price is None else f"{price:f}" for price in found]
