"""Small records, tokens and dollars in a few words: the same for a terminal and for a page."""

from __future__ import annotations

from ..log.bills import Bills, total_usage
from ..log.records import (
    Approval,
    FileChange,
    SealedRecord,
    SessionOpened,
    ToolFinished,
    ToolStarted,
    TurnClosed,
    TurnOpened,
    UnknownRecord,
    Usage,
    UsageRecord,
)
from ..models.catalog import find_model
from ..models.pricing import Cost, cost, total_cost


def dollars(found: Cost) -> str:
    """A cost in a word: `$1.20`; `~$1.20` by the prices of another model, `>$1.20` where some are not
    known, `?` where none is."""
    if found.total is None and not found.at_least:
        return "?"
    sign = ">" if found.total is None else "~" if found.assumed else ""
    return f"{sign}${found.at_least:,.4f}"


def tokens_of(usage: Usage) -> str:
    """Usage in a few words."""
    written = f", {usage.cache_write:,} written to the cache" if usage.cache_write else ""
    return f"{usage.input:,} tokens in ({usage.cached:,} cached{written}), {usage.output:,} out"


def in_short(bills: Bills) -> str:
    """What was billed, on one line."""
    found = total_cost(bills)
    doubts = [f"no full price for {name or 'a model without a name'}" for name in found.unpriced]
    for name in found.assumed:
        like = find_model(name)
        doubts.append(f"{name} priced as {like.taken_for if like else name}")
    return f"{tokens_of(total_usage(bills))}, {dollars(found)}" + (f" ({'; '.join(doubts)})" if doubts else "")


def said_of(body: object) -> tuple[str, str]:
    """Records about tools, turns, files and money: a word for what it is, and what it says, in a line."""
    match body:
        case ToolStarted(name=name, call_id=call_id):
            return "started", f"{name}  ({call_id})"
        case ToolFinished(call_id=call_id, outcome=outcome, seconds=seconds, reason=reason):
            took = f" after {seconds:.1f} s" if seconds else ""
            return "finished", f"{outcome}{took}  ({call_id})" + (f": {reason}" if reason else "")
        case UsageRecord(provider=provider, model=model, usage=usage):
            return "usage", f"{provider} {model}: {tokens_of(usage)}, {dollars(cost(usage, model))}"
        case SessionOpened(source=source, resumed=resumed):
            return "session", f"{'resumed' if resumed else 'opened'}, {source}"
        case TurnOpened(turn_id=turn_id):
            return "turn", f"{turn_id} opened"
        case TurnClosed(turn_id=turn_id, status=status, reason=reason):
            return "turn", f"{turn_id} closed: {status} {reason}".rstrip()
        case FileChange(path=path, action=action, old_path=old_path):
            return "file", f"{action} {path}" + (f" from {old_path}" if old_path else "")
        case Approval(call_id=call_id, state=state, by=by, reason=reason):
            return "approval", " ".join(filter(None, (state, by and f"by {by}", f"({call_id})", reason)))
        case SealedRecord(of=of):
            return "sealed", f"an encrypted record of kind {of}"
        case UnknownRecord(name=name):
            return "unknown", f"a {name} record that a newer turnlog wrote"
        case _:
            return "record", type(body).__name__
