"""Sessions with models that bind their thinking, with the real SDK against a server that binds it."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from bound_sessions import ClientLife, lives

import turnlog
from draws import seeds
from thinking_sessions import MODELS, TOOLS

Start = Callable[..., Any]


@pytest.mark.parametrize("seed", seeds(4, 65))
def test_no_request_is_refused(fake_server: Start, binding: ModuleType, oracle: ModuleType, seed: int) -> None:
    """A session whose thinking is refused once is refused with every later request: it is stuck."""
    (life,) = lives(fake_server(bind_thinking=True), binding, oracle, [seed], 60)
    assert life.findings == []
    assert life.counts["requests"] > 10


@pytest.mark.parametrize("streamed", [False, True])
def test_what_the_api_drops_is_told(
    fake_server: Start, binding: ModuleType, oracle: ModuleType, streamed: bool
) -> None:
    """Who asks the API to drop thinking would not learn that it did, and pay for a model that forgets its plan."""
    life = ClientLife(fake_server(bind_thinking=True), binding, oracle, MODELS[0], "auto", drops=True)
    told: list[str] = []
    life.session.on_event(lambda event: told.append(event.text) if event.kind == "warning" else None)
    life.session.user("Port the billing module.")
    for number in (4, 4, 4):
        life.ask(number + streamed)
    assert told == []
    life.session.configure(tools=TOOLS)
    life.ask(4 + streamed)
    assert life.findings == []
    (note,) = [record for record in life.session.history() if isinstance(record.body, turnlog.log.records.Note)]
    assert len(note.body.data["input_transformations"]) == 3
    assert told == ["the provider left out 3 thoughts (prefix_binding_mismatch)"]
    life.client.close()
    life.other.close()
