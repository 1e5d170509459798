"""Tokens and dollars as `ls` and `show` print them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import asdict

from ..display.wording import at_least, charged, longer
from ..log.bills import Bills, total_usage
from ..models.catalog import own_file
from ..models.pricing import cost, dollars, total_cost
from ..providers.spelling import without
from .tables import table


def bill_lines(bills: Bills) -> Iterator[str]:
    """The bill of a session: one line for each model, and where to add unknown prices."""
    rows = [(name or "(no name)", usage, cost(usage, name)) for name, usage in bills.items()]
    rows.append(("all", total_usage(bills), total_cost(bills)))
    cells = [
        (
            name,
            *(f"{tokens:,}" for tokens in (usage.input, usage.cached, usage.cache_write)),
            at_least(usage, usage.output),
            dollars(amount),
        )
        for name, usage, amount in rows
    ]
    figures = ("INPUT", "CACHED", "WRITTEN", "OUTPUT", "COST")
    yield from table(("MODEL", *figures), cells, right=figures)
    if told := charged(rows[-1][2]):
        yield told
    yield from map(longer, rows[-1][2].longer)
    if rows[-1][2].unpriced:
        yield f"prices that are not known can be written to {own_file()}"
    if rows[-1][2].incomplete:
        yield "> more was billed: some figures are missing, or from before the end of an answer"


def bill_json(bills: Bills) -> dict[str, Any]:
    """A bill as JSON: tokens, and dollars as numbers; null if a price or a number of tokens is not known. `charged` and
    `listed` are there if a provider said what it charged."""
    bill, usage = total_cost(bills), total_usage(bills)
    is_told = usage.charged is not None
    amounts = {key: value for key, value in asdict(bill).items() if not isinstance(value, tuple)}
    if not is_told:
        amounts = without(amounts, "charged", "listed")
    return {
        "usage": without(asdict(usage), "charged", "apart") | ({"charged": float(bill.charged)} if is_told else {}),
        "cost": {
            "total": None if bill.total is None else float(bill.total),
            **{key: None if value is None else float(value) for key, value in amounts.items()},
            "unpriced": bill.unpriced,
            "assumed": bill.assumed,
            "longer": bill.longer,
            "incomplete": bill.incomplete,
        },
    }
