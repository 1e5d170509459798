"""Tokens and dollars as the command line writes them: for `ls` and `show`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import asdict

from ..costs import Bills, Cost, cost, total_cost, total_usage
from ..facts import find_model, own_file
from ..records import Usage

__all__ = ["bill_json", "bill_lines", "dollars", "in_short", "tokens_of"]


def dollars(found: Cost) -> str:
    """A cost in a word: `$1.20`; `~$1.20` by the prices of another model, `>$1.20` where some are not
    known, `?` where none is."""
    if found.total is None and not found.at_least:
        return "?"
    sign = ">" if found.total is None else "~" if found.assumed else ""
    return f"{sign}${found.at_least:,.4f}"


def tokens_of(usage: Usage) -> str:
    """Usage in a few words."""
    written = f", {usage.cache_write:,} written to the cache" if usage.cache_write else ""
    return f"{usage.input:,} tokens in ({usage.cached:,} cached{written}), {usage.output:,} out"


def in_short(bills: Bills) -> str:
    """What a session was billed, on one line."""
    found = total_cost(bills)
    doubts = [f"no full price for {name or 'a model without a name'}" for name in found.unpriced]
    for name in found.assumed:
        like = find_model(name)
        doubts.append(f"{name} priced as {like.taken_for if like else name}")
    return f"{tokens_of(total_usage(bills))}, {dollars(found)}" + (f" ({'; '.join(doubts)})" if doubts else "")


def bill_lines(bills: Bills) -> Iterator[str]:
    """What a session was billed, a line for each model, and what can be done about unknown prices."""
    rows = [(name or "(no name)", usage, cost(usage, name)) for name, usage in bills.items()]
    rows.append(("all", total_usage(bills), total_cost(bills)))
    width = max(len(name) for name, _, _ in rows)
    yield f"{'MODEL':<{width}}  {'INPUT':>13}  {'CACHED':>13}  {'WRITTEN':>13}  {'OUTPUT':>11}  {'COST':>12}"
    for name, usage, found in rows:
        figures = f"{usage.input:>13,}  {usage.cached:>13,}  {usage.cache_write:>13,}  {usage.output:>11,}"
        yield f"{name:<{width}}  {figures}  {dollars(found):>12}"
    if rows[-1][2].unpriced:
        yield f"prices that are not known can be written to {own_file()}"


def bill_json(bills: Bills) -> dict[str, Any]:
    """What was billed as JSON: tokens, and dollars as numbers, null where a price is not known."""
    found = total_cost(bills)
    amounts = {key: value for key, value in asdict(found).items() if key not in ("unpriced", "assumed")}
    return {
        "usage": asdict(total_usage(bills)),
        "cost": {
            "total": None if found.total is None else float(found.total),
            **{key: None if value is None else float(value) for key, value in amounts.items()},
            "unpriced": found.unpriced,
            "assumed": found.assumed,
        },
    }
