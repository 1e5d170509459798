"""What turnlog put on record between the records of a transcript: a pin, a compaction, an opening.

Nobody's words stand in such an aside, so the conversation is still the transcript's, and goes on with what that says
next. What the transcript's own records then say by number is moved past the asides ahead of it.
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
from ...view.turns import LEFT_OPEN

_WORDLESS = (Configuration, Decision, Note, SessionOpened, SummaryRecord)


def is_aside(record: Record, told: Container[str]) -> bool:
    """Whether a record is nobody's words, and none out of the transcript: those have the times in `told`, which are the
    transcript's, or of the import where it tells none."""
    if isinstance(record.body, TurnClosed):  # by whoever opened the session: the transcript tells how the turn ended
        return record.body.reason.startswith(LEFT_OPEN)
    return isinstance(record.body, _WORDLESS) and record.time not in told


def may_follow(aside: Record, last: int) -> bool:
    """Whether an aside means the same behind records that are others by then, but for the first up to number `last`."""
    body = aside.body
    return not isinstance(body, Decision) or (body.action == "pin" and body.last <= last)


def may_be_moved(drafts: Iterable[Draft]) -> bool:
    """Whether the numbers that these drafts name records by can be moved. Not where they come out of an export of ours
    with what was decided there: summaries and stubs name records in words."""
    return not any(draft.raw is not None and isinstance(draft.body, Decision) and draft.body.detail for draft in drafts)


class Asides:
    """The asides of a session, each with how many records of the transcript stand ahead of it."""

    def __init__(self) -> None:
        self._found: list[tuple[int, Record]] = []

    def __len__(self) -> int:
        return len(self._found)

    def add(self, ahead: int, record: Record) -> None:
        """One more; they come in order."""
        self._found.append((ahead, record))

    def among(self, drafts: Sequence[Draft], behind: Iterable[Record] = ()) -> Iterator[Draft]:
        """The drafts of the transcript, moved, with the asides in their places, and those that come behind all."""
        waiting = list(reversed(self._found))
        for ahead, draft in enumerate(drafts):
            while waiting and waiting[-1][0] <= ahead:
                yield _again(waiting.pop()[1])
            yield self.moved(draft)
        yield from (_again(record) for _, record in reversed(waiting))
        yield from (_again(record) for record in behind)

    def moved(self, draft: Draft) -> Draft:
        """A draft with the numbers of the records that it names as they are in the session."""
        body = _moved(draft.body, self._place) if self._found else draft.body
        return draft if body is draft.body else replace(draft, body=body, raw=None)

    def _place(self, n: int) -> int:
        return n + sum(ahead < n for ahead, _ in self._found)


def unnumbered(body: Body) -> Body:
    """A body without the numbers of the records that it names, which say where those stood."""
    return _moved(body, lambda n: 0)


def _again(record: Record) -> Draft:
    return Draft(record.body, record.time, record.raw, record.redacted)


def _moved(body: Body, place: Callable[[int], int]) -> Body:
    match body:
        case ToolStarted() | ToolFinished() | FileChange() | Approval():
            return replace(body, call_record=place(body.call_record))
        case Decision():
            numbers = {name: place(getattr(body, name)) for name in ("first", "last", "supersedes")}
            return replace(body, **numbers, detail=_moved_detail(body.detail, place))
    return body


def _moved_detail(detail: Mapping[str, Any], place: Callable[[int], int]) -> dict[str, Any]:
    """The detail of a decision: `turnlog.view.decisions` says where numbers of records stand in one of ours."""

    def number(value: Any) -> Any:
        return place(value) if type(value) is int else value

    def led(value: Any) -> Any:
        return [number(value[0]), *value[1:]] if isinstance(value, list) and value else value

    ways = {
        **dict.fromkeys(("at", "changes_from", "summary"), number),
        "standing": _each(number),
        "kept": _each(_each(number)),
        **dict.fromkeys(("texts", "cuts"), _each(led)),
    }
    return {name: ways[name](value) if name in ways else value for name, value in detail.items()}


def _each(move: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: [move(one) for one in value] if isinstance(value, list) else value
