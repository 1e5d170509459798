"""What was billed: usage records summed by model."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from .records import Record, Usage, UsageRecord

Bills = dict[str, Usage]
"""What was billed, summed for each model by its name."""


def total_usage(bills: Bills) -> Usage:
    """All of `bills`, summed."""
    return reduce(Usage.__add__, bills.values(), Usage())


def usage_by_model(records: Iterable[Record]) -> Bills:
    """What the usage records among `records` say, summed for each model."""
    bills: Bills = {}
    for record in records:
        if isinstance(body := record.body, UsageRecord):
            bills[body.model] = bills[body.model] + body.usage if body.model in bills else body.usage
    return bills
