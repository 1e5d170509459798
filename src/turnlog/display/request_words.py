"""Requests and decisions in words: the same in the terminal and on the page."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import get_args

from .._platform.alike import grouped
from .._platform.texts import shorten
from .._platform.units import counted
from .._platform.visible import visible
from ..log.actions import HIDING, SHRINKING, action_of
from ..log.messages import Message, Part, Text, ToolCall, ToolResult
from ..log.records import Decision
from ..requests.request import Request
from ..session.caches import CacheOutcome
from ..view.explain import Account, Fate, Ruling
from ..view.types import Edit, Loss


def changes(prepared: Request) -> list[tuple[str, Edit | Loss]]:
    """Edits, then losses, each with the word for it."""
    return [("edit", edit) for edit in prepared.edits] + [("loss", loss) for loss in prepared.losses]


def change_lines(changed: Iterable[tuple[str, Edit | Loss]]) -> Iterator[str]:
    """Changes, each with the word for it, as lines; many that are alike share a line."""
    found = ((word, f"{change.kind}: {change}", change.records) for word, change in changed)
    for word, what, records in grouped(found):
        yield visible(f"{word} {what}" + (f" ({records})" if records else ""), one_line=True)


def request_changes(prepared: Request, source: str) -> Iterator[str]:
    """One line for each kind of change. A long session has hundreds of decisions of one kind that still hide something:
    the newest gets a line, the others share a line."""
    decided = [edit for edit in prepared.edits if edit.through]
    newest = {edit.kind: edit for edit in decided}
    for kind, number in Counter(edit.kind for edit in decided).items():
        if number > 1:
            yield f"edit {kind}: by {counted(number - 1, 'earlier decision')}, see `turnlog why {source}`"
    for edit in newest.values():
        numbers = ", ".join(map(str, edit.records))
        where = f"record {numbers}" if edit.records == (edit.through,) else f"records {numbers} to {edit.through}"
        yield visible(f"edit {edit.kind}: {edit} ({where})", one_line=True)
    yield from change_lines(each for each in changes(prepared) if not (isinstance(each[1], Edit) and each[1].through))


def fates(accounts: Iterable[Account]) -> str:
    """The number of messages, and how many were kept, masked, left out and so on."""
    counts = Counter(account.fate for account in accounts)
    parts = ", ".join(f"{counts[fate]:,} {fate}" for fate in get_args(Fate) if counts[fate])
    return f"{counted(counts.total(), 'message')}: {parts}" if parts else "no messages"


def newest_of(numbers: Sequence[int]) -> str:
    """The decision that says how a message is shown now, and the one that changed it first (`Account.by`)."""
    return f"{numbers[-1]}, first {numbers[0]}" if len(numbers) > 1 else str(numbers[0])


def saving(before: int, after: int) -> str:
    """The size of a request before and after a decision, in tokens."""
    return f"{before:,} -> {after:,} tokens"


def span(ruling: Ruling, rulings: Iterable[Ruling]) -> str:
    """The records that a decision covers, as text; `rulings` are all decisions of the session."""
    decision = ruling.decision
    if not decision.last:
        return ""
    if decision.first != decision.last:
        return f"records {decision.first} to {decision.last}"
    summary = _summary_that_leaves(ruling, rulings) if decision.action in HIDING else None
    # A summary is shown at the position of one of the records that it covers.
    return f"summary of records {summary.first} to {summary.last}" if summary else f"record {decision.first}"


def _summary_that_leaves(ruling: Ruling, rulings: Iterable[Ruling]) -> Decision | None:
    """The earlier decision whose summary this one leaves out, if this one covers only the position of that summary."""
    standing = ruling.decision.detail.get("standing", ())
    for earlier in sorted(rulings, key=attrgetter("n"), reverse=True):
        in_force = (
            earlier.n < ruling.n and (not earlier.ended_by or earlier.ended_by > ruling.n) and earlier.n not in standing
        )
        detail = earlier.decision.detail
        if in_force and detail.get("replacement") and detail.get("at", earlier.n) == ruling.decision.first:
            return earlier.decision
    return None


def undoing(session_id: str, decisions: Mapping[int, Decision]) -> dict[int, str]:
    """The commands that take back decisions; these are the ones in force, oldest first."""
    name, newest, commands = shlex.quote(session_id), [*decisions.items()][::-1], dict[int, str]()
    for i, n in enumerate(n for n, decision in newest if decision.action in SHRINKING):
        commands[n] = f"turnlog undo {name}" + (f" ({i + 1} times, the newest decision first)" if i else "")
    rewinds = (n for n, decision in newest if action_of(decision.action).undone == "rewind")
    return commands | {n: f"turnlog rewind {name} --undo" for n in islice(rewinds, 1)}


def gist(message: Message, *, characters: int = 100) -> str:
    """A message on one line, shortened."""
    words = " ".join(" ".join(map(part_words, message.parts)).split())
    return shorten(words, characters=characters)


def part_words(part: Part, *, whole: bool = False) -> str:
    """A part as text: the beginning of a text and the name of a call, or `whole`."""
    match part:
        case Text(text=text):
            return text if whole else text[:1_000]
        case ToolCall(name=name):
            return f"[calls {name}]" + (f" {part.raw_arguments}" if whole else "")
        case ToolResult(name=name, outcome=outcome):
            return f"[result {name} {outcome}]"
        case _:
            return f"[{type(part).__name__.lower()}]"


def cache_words(request: CacheOutcome) -> str:
    """What changed since the request before, and what the provider says."""
    changed = f"{request.changed}: {request.why}" if request.changed and request.why else request.changed or request.why
    return "; ".join(filter(None, (changed, request.reason and f"the provider says {request.reason}")))
