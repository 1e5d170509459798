"""Many problems of one kind as one line, and none of them lost."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from turnlog._platform.alike import grouped

KINDS = st.sampled_from(("is_error", "form"))
FOUND = st.tuples(
    st.sampled_from(("a", "b")),
    st.builds("{} of the result of call 'c{}' left out".format, KINDS, st.integers(1, 9)),
    st.lists(st.integers(0, 30), max_size=3),
)


@given(st.lists(FOUND, max_size=40))
def test_each_problem_is_in_one_line(found: list[tuple[str, str, list[int]]]) -> None:
    """A kind that has no line, or is counted wrongly, would leave in silence."""
    lines = list(grouped(found))
    told = {place: 0 for place, _, _ in found}
    for place, what, _ in lines:
        alike = re.search(r"\(and (\d+) alike\)", what)
        told[place] += 1 + int(alike[1] if alike else 0)
    assert told == {place: len({what for other, what, _ in found if other == place}) for place in told}
    assert len(lines) <= 2 * 2 * 3


def test_records_are_named_and_counted() -> None:
    """Where to look must not be lost with the repetitions."""
    found = [("loss", f"is_error of 'c{n}' left out", (n,)) for n in range(1, 8)]
    assert list(grouped(found)) == [
        ("loss", "is_error of 'c1' left out (and 6 alike)", "records 1, 2, 3, 4, 5 and 2 more")
    ]
    assert list(grouped([("s", "gone", (0,)), ("s", "cut", (4, 4))])) == [("s", "gone", ""), ("s", "cut", "record 4")]


def test_a_request_tells_a_kind_of_loss_once(turnlog: Any) -> None:
    """43 lines of the same loss, one a record, hid the others. `--json` has each."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for n in range(5):
        call = {"type": "tool_use", "id": f"toolu_{n}", "name": "ls", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": "x", "is_error": False}
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    body = json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages}).encode()
    told = turnlog("request", "-", "--to", "google", stdin=body).err.splitlines()
    assert [line for line in told if line.startswith("loss ")] == [
        "loss extra: is_error of the result of 'toolu_0' left out (and 4 alike) (records 4, 6, 8, 10, 12)"
    ]
    rows = turnlog("request", "-", "--to", "google", "--explain", "--json", stdin=body).rows
    assert sum(row["change"] == "loss" for row in rows) == 5
