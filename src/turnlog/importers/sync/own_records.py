"""Records that turnlog itself added between those of a transcript, for example a pin, a compaction, an opening.

They contain no messages, so the conversation is still that of the transcript, and the next messages of the transcript
continue it. The records of the transcript that follow them have other numbers in the session than in the transcript:
references to record numbers are adjusted.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ...log.records import (
    Approval,
    Body,
    Configuration,
    Decision,
    FileChange,
    Note,
    Record,
    SessionOpened,
    SummaryRecord,
    ToolFinished,
    ToolStarted,
    TurnClosed,
)
from ...log.store import Draft
from ...view.decisions import EARLIER
from ...view.turns import LEFT_OPEN

_WITHOUT_MESSAGE = (Configuration, Decision, Note, SessionOpened, SummaryRecord)


def is_own(record: Record, times: Container[str]) -> bool:
    """Whether turnlog itself made a record: it contains no message, and its time is not in `times`, the times of the
    transcript or, if the transcript has none, of its import."""
    if closes_left_open(record.body):  # made when the session was opened: the transcript has the real end of the turn
        return True
    return isinstance(record.body, _WITHOUT_MESSAGE) and record.time not in times


def closes_left_open(body: Body) -> bool:
    """Whether this record closed a turn because it was open when the session was opened."""
    return isinstance(body, TurnClosed) and body.reason.startswith(LEFT_OPEN)


def can_follow(record: Record, last: int) -> bool:
    """Whether an own record keeps its meaning when the records after number `last` that precede it are replaced."""
    body = record.body
    return not isinstance(body, Decision) or (body.action == "pin" and body.last <= last)


def can_be_renumbered(drafts: Iterable[Draft]) -> bool:
    """Whether the record numbers that these drafts refer to can be changed. Those of decisions in our own exports
    cannot: summaries and placeholders contain record numbers in their text."""
    return not any(draft.raw is not None and isinstance(draft.body, Decision) and draft.body.detail for draft in drafts)


class OwnRecords:
    """The own records of a session, each with the number of transcript records before it."""

    def __init__(self) -> None:
        self._found: list[tuple[int, Record]] = []

    def __len__(self) -> int:
        return len(self._found)

    def add(self, ahead: int, record: Record) -> None:
        """Add an own record; records are added in their order."""
        self._found.append((ahead, record))

    def merged(self, drafts: Sequence[Draft], behind: Iterable[Record] = ()) -> Iterator[Draft]:
        """The renumbered drafts of the transcript, with the own records in their positions; `behind` follow all of
        them."""
        waiting = list(reversed(self._found))
        for ahead, draft in enumerate(drafts):
            while waiting and waiting[-1][0] <= ahead:
                yield Draft.of(waiting.pop()[1])
            yield self.renumbered(draft)
        yield from (Draft.of(record) for _, record in reversed(waiting))
        yield from map(Draft.of, behind)

    def renumbered(self, draft: Draft) -> Draft:
        """A draft whose references are the record numbers in the session."""
        body = _renumbered(draft.body, self._number) if self._found else draft.body
        return draft if body is draft.body else replace(draft, body=body, raw=None)

    def _number(self, n: int) -> int:
        return n + sum(ahead < n for ahead, _ in self._found)


def unnumbered(body: Body) -> Body:
    """A body without the record numbers that it refers to."""
    return _renumbered(body, lambda n: 0)


def _renumbered(body: Body, number: Callable[[int], int]) -> Body:
    match body:
        case ToolStarted() | ToolFinished() | FileChange() | Approval():
            return replace(body, call_record=number(body.call_record))
        case Decision():
            numbers = {name: number(getattr(body, name)) for name in ("first", "last", "supersedes")}
            return replace(body, **numbers, detail=_renumbered_detail(body.detail, number))
    return body


def _renumbered_detail(detail: Mapping[str, Any], number: Callable[[int], int]) -> dict[str, Any]:
    """The detail of a decision; `turnlog.view.decisions` documents which of its fields contain record numbers."""

    def one(value: Any) -> Any:
        return number(value) if type(value) is int else value

    def first(value: Any) -> Any:
        return [one(value[0]), *value[1:]] if isinstance(value, list) and value else value

    def files(value: Any) -> Any:
        changed = value.get("changed") if isinstance(value, dict) else None
        if not isinstance(changed, dict):
            return value
        return {**value, "changed": {folder: _each(first)(named) for folder, named in changed.items()}}

    moves = {
        **dict.fromkeys(("at", "changes_from", "summary"), one),
        "standing": _each(one),
        "kept": _each(_each(one)),
        **dict.fromkeys(("texts", "cuts", "orders"), _each(first)),
        **dict.fromkeys(("more_orders", "untold_orders"), _each(_each(one))),
        "files": files,
    }
    fields = {name: value for name, value in detail.items() if name != EARLIER}  # other records may precede it now
    return {name: moves[name](value) if name in moves else value for name, value in fields.items()}


def _each(move: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: list(map(move, value)) if isinstance(value, list) else value
