"""Objects of SDKs in request bodies: as good as the dicts that they stand for, wherever they stand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from turnlog.errors import FormatError
from turnlog.providers.sdk_objects import plain_body

CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
BODIES: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "model": "gpt-4o",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Is it warm?"}]},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "call_1", "content": "4"},
        ],
    },
    "openai-responses": {
        "model": "gpt-5",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Is it warm?"}]},
            {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{}"},
        ],
    },
    "anthropic": {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "messages": [
            {"role": "user", "content": "Is it warm?"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t", "name": "weather", "input": {"city": None}}],
            },
        ],
        "tools": [{"name": "weather", "input_schema": {"type": "object", "properties": {}}}],
    },
    "google": {
        "contents": [
            {"role": "user", "parts": [{"text": "Is it warm?"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {"city": "Oslo"}}}]},
        ],
    },
}
"""Two of them with a call that nobody answers, so that there is something to mend."""


class Object:
    """What an SDK makes of a dict: it can be written as one again, and nothing else."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def model_dump(self, **settings: Any) -> dict[str, Any]:
        """The fields, those that are objects themselves too."""
        return {key: _written(value) for key, value in self._fields.items()}


def _written(value: Any) -> Any:
    if isinstance(value, Object):
        return value.model_dump()
    if isinstance(value, list):
        return [_written(item) for item in value]
    return {key: _written(item) for key, item in value.items()} if isinstance(value, dict) else value


def _with_objects(value: Any, wanted: Callable[[], bool], free: bool = False) -> Any:
    """A copy in which some dicts are objects; those whose keys are a user's own stay dicts, as SDKs have them."""
    if isinstance(value, list):
        return [_with_objects(item, wanted) for item in value]
    if not isinstance(value, dict):
        return value
    made = {key: _with_objects(item, wanted, key in ("input", "args", "properties")) for key, item in value.items()}
    return Object(made) if not free and wanted() else made


@pytest.mark.parametrize("provider", BODIES)
@given(data=st.data())
def test_an_object_is_as_good_as_its_dict_wherever_it_stands(provider: str, data: st.DataObject) -> None:
    """Who appends what an SDK returned is refused, counts another body, or is handed objects back."""
    body = BODIES[provider]
    mixed = {key: _with_objects(value, lambda: data.draw(st.booleans())) for key, value in body.items()}
    for made, meant in (
        (turnlog.repair(mixed, provider), turnlog.repair(body, provider)),
        (turnlog.convert(mixed, to="google"), turnlog.convert(body, to="google")),
    ):
        assert (made.body, made.edits, made.losses) == (meant.body, meant.edits, meant.losses)
        json.dumps(made.body)
    assert turnlog.check(mixed, provider) == turnlog.check(body, provider)
    assert turnlog.count(mixed) == turnlog.count(body)
    assert turnlog.fit(mixed) == turnlog.fit(body)
    assert turnlog.Fitter().fit(mixed).body == turnlog.fit(body).body


@pytest.mark.parametrize("provider", BODIES)
def test_a_body_of_dicts_is_not_copied(provider: str) -> None:
    """Each look at a history of megabytes would copy it."""
    body = BODIES[provider]
    assert plain_body(body) is body
    mixed = {**body, "tools": [Object({"type": "function"})]}
    told = plain_body(mixed)
    assert isinstance(mixed["tools"][0], Object)  # and what is handed over stays as it is
    assert all(told[key] is value for key, value in body.items() if key != "tools")


async def _answer() -> None:
    """A client's method, forgotten to be awaited."""


class _Raw:
    """What `with_raw_response` returns, as far as it can be told."""

    headers: dict[str, str] = {}

    def parse(self) -> None:
        """The answer."""


class _Manager:
    """What `messages.stream()` returns."""

    def __enter__(self) -> None:
        """The stream."""

    def __exit__(self, *_: object) -> None:
        """Nothing to do."""


@pytest.mark.parametrize("provider", BODIES)
@pytest.mark.parametrize(
    ("make", "kind", "what"),
    [
        (_answer, "coroutine", "await it"),
        (_Raw, "_Raw", ".parse()"),
        (_Manager, "_Manager", "enter it with `with`"),
        (lambda: Object, "type", "use only dicts, lists"),
        (object, "object", "use only dicts, lists"),
        (lambda: b"bytes", "bytes", "use only dicts, lists"),
    ],
)
def test_what_is_no_object_of_an_answer_is_told_by_its_place(
    provider: str, make: Callable[[], Any], kind: str, what: str
) -> None:
    """`expected an object` sends people looking for a mistake in what is one."""
    wrong = make()
    key = next(key for key in ("messages", "input", "contents") if key in BODIES[provider])
    body = {**BODIES[provider], key: [*BODIES[provider][key], wrong]}
    place = f"{key}[{len(body[key]) - 1}] is of type {kind}: "
    for made in (turnlog.count, turnlog.fit, turnlog.Fitter().fit, lambda body: turnlog.repair(body, provider)):
        with pytest.raises(FormatError) as caught:
            made(body)
        assert str(caught.value).startswith(place) and what in str(caught.value)
    [found] = turnlog.check(body, provider)
    assert found.kind == "format" and found.detail == str(caught.value)
    if hasattr(wrong, "close"):
        wrong.close()


class _Fetched:
    """What `requests.post` returns: it gives its bytes to whoever iterates over it."""

    status_code = 200
    headers: dict[str, str] = {}

    def json(self) -> dict[str, Any]:
        """The answer."""
        return {}

    def __iter__(self) -> Iterator[bytes]:
        return iter([b"{", b"}"])


@pytest.mark.parametrize("provider", BODIES)
def test_a_response_that_can_be_iterated_over_is_no_stream(provider: str) -> None:
    """An answer that broke off was put on record, and nothing said what to hand over."""
    with turnlog.open("s", target=turnlog.target(provider, "some-model"), store=":memory:") as session:
        session.user("Is it warm?")
        before = list(session.log.records())
        with pytest.raises(FormatError, match=r"hand over what its `\.json\(\)` gives"):
            session.receive(_Fetched())
        assert list(session.log.records()) == before
