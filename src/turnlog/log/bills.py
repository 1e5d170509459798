"""What providers billed: usage records summed by model."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from .records import Record, UsageRecord
from .usage import Usage

Bills = dict[str, Usage]
"""What was billed: the usage of each model, by the model's name."""


def total_usage(bills: Bills) -> Usage:
    """The sum of all usage in `bills`."""
    return reduce(Usage.__add__, bills.values(), Usage())


def usage_by_model(records: Iterable[Record]) -> Bills:
    """The usage records among `records`, summed by model. Other records are ignored."""
    bills: Bills = {}
    for record in records:
        if isinstance(body := record.body, UsageRecord):
            bills[body.model] = bills[body.model] + body.usage if body.model in bills else body.usage
    return bills
