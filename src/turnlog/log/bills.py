"""What providers billed: usage records summed by model."""

from __future__ import annotations

from collections.abc import Iterable

from .records import Record, UsageRecord
from .usage import Usage, summed

Bills = dict[str, Usage]
"""What was billed: the usage of each model, by the model's name (`UsageRecord.sold_as`)."""


def total_usage(bills: Bills) -> Usage:
    """The sum of all usage in `bills`."""
    return summed(bills.values())


def added(bills: Iterable[Bills]) -> Bills:
    """Several bills as one."""
    usages: dict[str, list[Usage]] = {}
    for bill in bills:
        for model, usage in bill.items():
            usages.setdefault(model, []).append(usage)
    return {model: some[0] if len(some) == 1 else summed(some) for model, some in usages.items()}


def usage_by_model(records: Iterable[Record]) -> Bills:
    """The usage records among `records`, summed by model. Other records are ignored."""
    return added({body.sold_as: body.usage} for record in records if isinstance(body := record.body, UsageRecord))
