"""The Responses API: streams of servers that do not number what they send."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from turnlog.log.messages import ToolCall, text_of
from turnlog.providers.openai_responses import PROVIDER
from turnlog.providers.protocol import Reply


def collected(events: list[Any]) -> Reply:
    """The reply of the events so far."""
    assembler = PROVIDER.assembler()
    for event in events:
        assembler.feed(event)
    return assembler.reply()


@pytest.mark.parametrize("ids", [True, False])
@pytest.mark.parametrize("numbered", [{"output_index": 0}, {}])
def test_items_that_are_all_of_one_index_are_all_kept(numbered: dict[str, int], ids: bool) -> None:
    """A server that numbers every item 0, or none, lost all but the last if its last event does not tell them again."""
    text = {"type": "output_text", "text": "I look.", "annotations": []}
    said = {"type": "message", "role": "assistant", "status": "completed", "content": [text]}
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}", "status": "completed"}
    other = {**call, "call_id": "c2"}
    items = [{**item, "id": f"x_{i}"} if ids else item for i, item in enumerate((said, call, other))]
    done = [{"type": "response.output_item.done", **numbered, "item": item} for item in items]
    whole = PROVIDER.parse_response({"status": "completed", "output": items})
    end = {"type": "response.completed", "response": {"status": "completed", "output": []}}
    assert collected([*done, end]) == replace(whole, stop="completed")
    assert collected([done[0], *done, done[-1]]).message == whole.message  # said twice is said once
    begun = {"type": "response.created", "response": {"status": "in_progress", "output": []}}
    again = [{**event, "item": {**items[i], "id": f"y_{i}"}, "output_index": i} for i, event in enumerate(done)]
    first = [{**event, "output_index": i} for i, event in enumerate(done)]
    assert collected([begun, *first, begun, *again, end]) == collected([begun, *again, end])


def test_half_an_item_stays_where_another_begins_under_its_index() -> None:
    """What the model had said by then would be gone."""
    began = {"type": "message", "id": "m", "role": "assistant", "content": []}
    delta = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0}
    call = {"type": "function_call", "id": "f", "call_id": "c", "name": "look", "arguments": ""}
    piece = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"at"'}
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": began},
        {**delta, "delta": "I "},
        {**delta, "delta": "look."},
        {"type": "response.output_item.added", "output_index": 0, "item": call},
        piece,
    ]
    reply = collected(events)
    assert (text_of(reply.message), reply.fragments) == ("I look.", (ToolCall("c", "look", raw='{"at"'),))
