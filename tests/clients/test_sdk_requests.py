"""Requests of damaged histories, sent by the real SDKs: a server that judges them says 200."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from sdk_clients import sdk_client

from draws import seeds
from judging import TARGETS, shown
from turnlog.log.records import Configuration
from turnlog.models.target import Target
from turnlog.requests.build import build
from turnlog.requests.translate import plan
from turnlog.testing import damaged_history

HISTORIES = seeds(25, 200)


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
def test_each_sdk_sends_damaged_histories_that_are_answered(aim: Target, fake_server: Callable[..., Any]) -> None:
    """A request that the SDK itself refuses, or spells anew into what the API refuses, fails here."""
    server = fake_server()
    client = sdk_client(aim.provider, server.url)
    for seed in HISTORIES:
        history = damaged_history(random.Random(seed))
        request = build(plan(Configuration(), aim), shown(history), history.blobs.__getitem__).body
        client.send(request, aim.model)
        assert server.requests[-1].body == {**_ADDED.get(aim.provider, {}), **request}
    assert [(one.status, one.errors) for one in server.requests] == [(200, [])] * len(HISTORIES)


_ADDED: dict[str, dict[str, Any]] = {"google": {"generationConfig": {}}}
"""What an SDK writes into every body on its own account."""
