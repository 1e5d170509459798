"""The middleware of `examples/frameworks/langchain_middleware.py`, under LangChain."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from framework_pythons import EXAMPLES, environment, pinned

import turnlog

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]


@pytest.fixture(scope="module")
def python() -> Path:
    """The Python that has LangChain."""
    return pinned("langchain")


def test_the_program_of_the_page_talks(python: Path, fake_server: Callable[..., Any]) -> None:
    """Whoever copies the program must get answers, and no request over the budget or refused."""
    cities = ("Oslo", "Rome", "Lima")
    script = [
        reply
        for city in cities
        for reply in ({"tool_calls": [{"name": "weather", "args": {"city": city}}]}, {"text": f"No, not in {city}."})
    ]
    server = fake_server(script=script)
    program = [python, EXAMPLES / "langchain_middleware.py"]
    told = subprocess.check_output(program, env=environment(server.url), text=True)
    assert told == "".join(f"No, not in {city}.\n" for city in cities)
    assert server.rejections() == [] and len(server.requests) == 6
    assert all(turnlog.count(request.body).tokens <= 5_000 for request in server.requests)


def test_no_request_is_over_the_budget_and_thinking_stays(python: Path) -> None:
    """A long conversation must never outgrow the model, every call must have its result, and what Chat messages cannot
    hold must reach the model all the same: thinking with its signature, without which Anthropic refuses a tool loop,
    and cache marks, without which all is paid anew."""
    limit = 5_000
    words = [python, Path(__file__).parent / "langchain_run.py", str(limit), "12"]
    told = json.loads(subprocess.check_output(words, env=environment(), text=True))
    assert told["messages"] == 78 and len(told["bodies"]) == 36
    counted = []
    for body in told["bodies"]:
        counted.append(turnlog.count(body, "openai-chat", model="claude-sonnet-4-5").tokens)
        calls = [call["id"] for message in body["messages"] for call in message.get("tool_calls", ())]
        results = [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
        assert sorted(calls) == sorted(results)
    assert max(counted) <= limit
    assert (told["changed"], told["unmarked"]) == ([], [])
