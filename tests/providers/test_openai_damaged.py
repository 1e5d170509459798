"""Both OpenAI APIs: arguments and bodies that are nested without end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from turnlog.errors import FormatError
from turnlog.models.target import target
from turnlog.providers import provider
from turnlog.requests.standalone import repair

names = pytest.mark.parametrize("name", ["openai-chat", "openai-responses"])


@names
@pytest.mark.parametrize("depth", [150, 450, 900, 5_000])
def test_deep_arguments_stay_text(name: str, depth: int) -> None:
    """Arguments that a model nested without end must not take the process with them."""
    deep = '{"a":' * depth + "1" + "}" * depth
    if name == "openai-chat":
        calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": deep}}]
        body = {"model": "m", "messages": [{"role": "assistant", "tool_calls": calls}]}
    else:
        body = {"model": "m", "input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": deep}]}
    request = repair(body, name).body
    assert json.dumps(deep)[1:-1] in json.dumps(request)


@pytest.mark.slow
@names
def test_deep_bodies_are_refused(name: str) -> None:
    """Objects nested without end are a FormatError, not a RecursionError."""
    deep: dict[str, Any] = {}
    for _ in range(50_000):
        deep = {"a": deep}
    call = {"id": "c", "call_id": "c", "name": "f", "type": "function", "function": {"name": "f", "arguments": deep}}
    body = {
        "messages": [{"role": "assistant", "tool_calls": [call]}],
        "input": [{**call, "type": "function_call", "arguments": deep}],
    }
    for taker in (provider(name).parse, lambda body: provider(name).sanitize(body, target(name, "gpt-4o"))):
        with pytest.raises(FormatError):
            taker(body)
