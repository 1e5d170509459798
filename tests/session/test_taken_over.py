"""A session that goes on from the messages of a request that somebody else made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import turnlog
from turnlog.errors import FormatError

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQAY3Y2wAAAAAElFTkSuQmCC"
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
IMAGE = {"type": "base64", "media_type": "image/png", "data": PIXEL}
USE = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}}
LISTS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "openai-chat": (
        "messages",
        [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Warm there?"},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
                ],
            },
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "call_1", "content": "4"},
        ],
    ),
    "openai-responses": (
        "input",
        [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "input_text", "text": "Warm there?"}]},
            {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "4"},
        ],
    ),
    "anthropic": (
        "messages",
        [
            {"role": "user", "content": [{"type": "text", "text": "Warm there?"}, {"type": "image", "source": IMAGE}]},
            {"role": "assistant", "content": [USE]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "4"}]},
        ],
    ),
    "google": (
        "contents",
        [
            {
                "role": "user",
                "parts": [{"text": "Warm there?"}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}}],
            },
            {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"output": "4"}}}]},
        ],
    ),
}
AIMS = {
    "openai-chat": turnlog.target("openai-chat", "gpt-4o"),
    "openai-responses": turnlog.target("openai-responses", "gpt-5"),
    "anthropic": turnlog.target("anthropic", "claude-sonnet-4-5"),
    "google": turnlog.target("google", "gemini-2.5-pro"),
}


WEATHER = {"name": "weather", "parameters": {"type": "object", "properties": {}}}


class _Object:
    """What an SDK returned of it."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def to_dict(self) -> dict[str, Any]:
        """The fields."""
        return self._fields


@pytest.mark.parametrize("provider", LISTS)
@pytest.mark.parametrize("wrap", [dict, _Object])
def test_a_session_goes_on_from_the_messages_of_a_request(provider: str, wrap: Callable[[Any], Any]) -> None:
    """Who has a conversation already could only tell it anew, text by text, and would lose calls and images."""
    key, wires = LISTS[provider]
    for cut in range(len(wires) + 1):  # at once, or as it grew
        with turnlog.open("s", target=AIMS[provider], tools=[WEATHER], store=":memory:") as session:
            session.extend(map(wrap, wires[:cut]))
            records = session.extend([wrap(wire) for wire in wires[cut:]])
            assert len(records) == len(wires) - cut
            made = session.request()
            assert (made.body[key], made.edits) == (wires, ())


@pytest.mark.parametrize("provider", LISTS)
def test_another_providers_messages_are_taken_with_its_target(provider: str) -> None:
    """A session on one provider could not take what another's agent had."""
    key, wires = LISTS[provider]
    for other, aim in AIMS.items():
        with turnlog.open("s", target=aim, store=":memory:") as session:
            session.extend(wires, AIMS[provider])
            assert turnlog.check(session.request().body, other) == []
            assert session.request(AIMS[provider]).body[key] == wires
    with turnlog.open("s", store=":memory:") as session:
        with pytest.raises(turnlog.InputError, match="no target"):
            session.extend(wires)
        session.extend(wires, AIMS[provider])


@pytest.mark.parametrize("provider", LISTS)
def test_all_messages_are_taken_or_none(provider: str) -> None:
    """Half a conversation on record would be taken for the whole of it."""
    key, wires = LISTS[provider]
    with turnlog.open("s", target=AIMS[provider], store=":memory:") as session:
        before = len(session.history())
        for wrong in ({"role": "robot", "type": 5, "parts": 5}, object(), turnlog.Message("user", ()), "text", None):
            with pytest.raises(turnlog.InputError):
                session.extend([*wires, wrong])
        with pytest.raises(FormatError, match=rf"{key}\[1\] is of type object"):
            session.extend([wires[0], object()])
        with pytest.raises(turnlog.InputError, match=r"body\['messages'\]"):
            session.extend({key: wires})
        assert len(session.history()) == before


def test_add_names_what_takes_a_providers_message() -> None:
    """`'dict' object has no attribute 'form'` says nothing of where to go."""
    with turnlog.open("s", target=AIMS["openai-chat"], store=":memory:") as session:
        for wrong in ({"role": "user", "content": "hi"}, "hi", None):
            with pytest.raises(turnlog.InputError, match=r"extend\(\[message\]\)"):
                session.add(wrong)  # type: ignore[arg-type]
