"""Marks in place of secrets that earlier requests showed: which records have them, and the decision that records it.

A session shows the text that it recorded as it was given, until it is closed. Whoever opens it again has only the log,
with its marks. The first such opening records a decision that names the first changed byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..log.messages import ToolCall, compact_json
from ..log.records import Decision, Record
from ..log.texts import texts_in
from ..redaction.redactor import counts_text, first_mark
from ..redaction.store import SHOWS_MARKS
from ..view.types import Edit

_WHY = "the session was opened again: marks stand in place of secrets from here on"


def marked(records: Iterable[Record]) -> dict[int, str]:
    """In words, by record: the secrets that are marks now, where earlier requests showed the text as it was given."""
    return {record.n: counts_text(record.redacted) for record in records if record.live and record.message is not None}


def mark_edits(marks: Mapping[int, str], shown: Iterable[int]) -> tuple[Edit, ...]:
    """An edit for each of these records that is shown."""
    seen = set(shown) if marks else set()
    return tuple(
        Edit("redacted", f"secrets are shown as marks: {counts}", (n,))
        for n, counts in sorted(marks.items())
        if n in seen
    )


def marks_decision(
    marks: Mapping[int, str], decisions: Mapping[int, Decision], read: Callable[[int], Iterable[Record]]
) -> Decision | None:
    """The decision that requests show these marks; None if earlier decisions say so. `read` reads the record with a
    number."""
    shown_already = {
        n
        for decision in decisions.values()
        if decision.action == SHOWS_MARKS
        for n in decision.detail.get("records", ())
    }
    new = sorted(marks.keys() - shown_already)
    if not new:
        return None
    detail: dict[str, Any] = {"records": new, "changes_from": new[0]}
    places = (
        (path, first_mark(_as_text(value), name=kind == "name"))
        for record in read(new[0])
        for path, kind, value in texts_in(record.body)
    )
    place, byte = next(((path, before) for path, before in places if before >= 0), ("", 0))
    if place:
        detail |= {"place": place, "byte": byte}
    return Decision(SHOWS_MARKS, new[0], new[-1], _WHY, detail)


def _as_text(value: Any) -> str:
    if isinstance(value, ToolCall):
        return value.raw_arguments
    return value if isinstance(value, str) else compact_json(value)
