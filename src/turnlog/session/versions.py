"""What this version of turnlog shows otherwise than the version that recorded a session.

Requests are computed from the log, so a version that computes other bytes moves the cached prefix of every session that
it opens. Such a version has another number of `VIEWS`, and the first opening records a decision that says from where
on, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ..log.messages import Text, ToolCall, ToolResult
from ..log.records import Configuration, Decision
from ..view.compaction.situation import Item
from ..view.curate.curate import LEAST
from ..view.curate.recognise import kind_of

SHOWS_OTHERWISE = "version"
"""The action of the decision that this version shows some records otherwise."""

VIEWS = 1
"""The generation of the rules by which requests are made from a log (`Environment.views`). In generation 0, each output
of a tool was shortened when it came, whatever its size."""

_WHY = "an earlier version shortened tool outputs when they came; from here on they are whole until room is needed"


def version_decision(
    configuration: Configuration,
    decisions: Mapping[int, Decision],
    items: Sequence[Item],
    is_curated: Callable[[int], bool],
) -> Decision | None:
    """The decision that outputs which an earlier version may have shortened are shown otherwise; None if there are
    none, or if it is on record. `configuration` is the one in force before this opening, `is_curated` tells whether
    the outputs of a record are curated at all.

    What the earlier version made of an output is not on record. So the decision names the beginning of the first
    output that it may have shortened: everything before that byte is as it was.
    """
    made_by = configuration.environment
    if (
        made_by is None
        or made_by.views >= VIEWS
        or any(decision.action == SHOWS_OTHERWISE for decision in decisions.values())
    ):
        return None
    places = {item.n: place for item, place in _long_outputs(items) if is_curated(item.n)}
    if not places:
        return None
    records = sorted(places)
    detail = {"records": records, "changes_from": records[0], "place": places[records[0]], "byte": 0}
    return Decision(SHOWS_OTHERWISE, records[0], records[-1], _WHY, detail)


def _long_outputs(items: Sequence[Item]) -> Iterator[tuple[Item, str]]:
    """The items with a tool output that was long enough to be shortened and is no file, and the place of the first."""
    calls: dict[str, ToolCall] = {}
    for item in items:
        calls |= {part.id: part for part in item.raw.message.parts if isinstance(part, ToolCall)}
        results = ((i, part) for i, part in enumerate(item.raw.message.parts) if isinstance(part, ToolResult))
        for i, result in results:
            call = calls.get(result.call_id) or ToolCall(result.call_id, result.name)
            texts = ((j, inner.text) for j, inner in enumerate(result.parts) if isinstance(inner, Text))
            long = (j for j, text in texts if len(text) >= LEAST and kind_of(call, text) != "read")
            if not result.synthetic and (j := next(long, None)) is not None:
                yield item, f"message.parts[{i}].parts[{j}].text"
                break
