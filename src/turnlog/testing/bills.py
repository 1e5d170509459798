"""Checks of a store's usage sums. Part of `check_store`."""

from __future__ import annotations

from ..errors import SessionNotFound
from ..log.bills import usage_by_model
from ..log.records import UsageRecord
from ..log.store import Draft, Store
from ..log.usage import Usage
from .probing import raises, said


def check_usage(store: Store) -> None:
    """Usage summed by model equals that of the records, also in forks, and after the parent session is deleted.
    `usages` counts what forks share, and copies of an answer, once."""
    message = said("x")
    store.create("s")
    bills = [UsageRecord("p", model, Usage(input=n, output=1)) for n, model in enumerate(("a", "b", "a", ""), 1)]
    store.append("s", [draft for bill in bills for draft in (message, Draft(bill))])
    store.create("free")
    store.append("free", [message])
    store.fork("s", "f", at=5)
    store.append("f", [Draft(bills[3])])
    store.fork("f", "g")
    expected = {name: usage_by_model(store.read(name)) for name in "sfg"}
    assert expected["f"] == {"a": Usage(input=1, output=1), "b": bills[1].usage, "": bills[3].usage}
    assert {name: store.usage(name) for name in "sfg"} == expected, "usage() differs from the records"
    added = {"s": expected["s"], "f": usage_by_model([list(store.read("f"))[-1]])}
    assert store.usages() == added, "usages() differs from what each session added"
    copied = UsageRecord("p", "a", Usage(input=9), response_id="r")
    for name in ("t", "u"):
        store.create(name, created=f"2001-01-0{'ut'.index(name) + 1}T00:00:00.000Z")
        store.append(name, [message, Draft(copied)])
    assert store.usages() == {**added, "u": {"a": copied.usage}}, "a copied answer is not counted once"
    for name in ("s", "t", "u"):
        store.delete(name)
    assert {name: store.usage(name) for name in "fg"} == {name: expected[name] for name in "fg"}
    assert (store.usage("free"), store.usages()) == ({}, {"f": expected["f"]})
    raises(SessionNotFound, "usage of an unknown session", store.usage, "s")
