"""Google: which result is whose, where calls have no ids."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import turnlog
from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.providers.google import PROVIDER

TARGET = turnlog.target("google", "gemini-2.5-pro")


def answer(calls: list[tuple[str, bool]]) -> dict[str, Any]:
    """A response that makes these calls, by name, some of them with an id."""
    made = [
        {"functionCall": {**({"id": f"id{i}"} if has_id else {}), "name": name, "args": {"path": str(i)}}}
        for i, (name, has_id) in enumerate(calls)
    ]
    return {"candidates": [{"content": {"role": "model", "parts": made}, "finishReason": "STOP"}]}


CALLS = st.lists(st.tuples(st.sampled_from(("read", "list")), st.booleans()), min_size=1, max_size=5)


@given(calls=CALLS, data=st.data())
def test_results_reach_their_calls_in_whatever_order_they_come(calls: list[tuple[str, bool]], data: Any) -> None:
    """Of two reads at once the faster was recorded first, and the model took the content of one file for that of the
    other: by the API's rules and ours nothing was wrong."""
    with turnlog.open("s", store=":memory:", target=TARGET) as session:
        session.user("Read these.")
        made = session.receive(answer(calls)).tool_calls
        order = data.draw(st.permutations(made))
        together = data.draw(st.booleans())
        results = [ToolResult(call.id, call.name, (Text(f"content {call.arguments['path']}"),)) for call in order]  # type: ignore[index,call-overload]
        for parts in [results] if together else [[result] for result in results]:
            session.add(Message("user", tuple(parts)))
        request = session.request()
        read = PROVIDER.parse(request.body).messages
        asked = {part.id: part.arguments for one in read for part in one.parts if isinstance(part, ToolCall)}
        told = {part.call_id: part.parts[0] for one in read for part in one.parts if isinstance(part, ToolResult)}
        assert told == {call: Text(f"content {given['path']}") for call, given in asked.items()}  # type: ignore[index,call-overload]
        moved = [edit for edit in request.edits if edit.kind == "moved"]
        assert not moved or (list(order) != list(made) and not all(has_id for _, has_id in calls))
