"""Shapes answer at once for what is as it should be; what is not is walked, with the same result."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.errors import FormatError
from turnlog.log.messages import ARGUMENTS_DEPTH, nested_deeper, parse_arguments
from turnlog.providers.edits import Edits
from turnlog.providers.openai_chat.schema import MESSAGE, body_shape
from turnlog.providers.openai_responses.schema import BODY
from turnlog.providers.schema.shapes import (
    OBJECT,
    STRING,
    Each,
    Either,
    Many,
    Read,
    Shape,
    Tagged,
    Value,
    record,
    words,
)
from turnlog.providers.schema.walk import check_depth, check_types, fit, prune
from turnlog.requests.standalone import check, convert


class Odd(dict[str, Any]):
    """A dict that is walked: the quick answer is for plain ones."""


def walked(value: Any) -> Any:
    """`value` with every object such that no quick answer is given for it or what it stands in."""
    if isinstance(value, list):
        return [walked(item) for item in value]
    return Odd({key: walked(item) for key, item in value.items()}) if isinstance(value, dict) else value


SMALL = Tagged(
    "type",
    {
        "text": record("type! *text! *name? n:int *rate:num on:flag *id:id", {"*o": Read(STRING, (OBJECT,))}),
        "list": record("type", {"*items!": Many(Either((STRING, record("*a b?", needs="a b"))), 2), "w": words("x y")}),
        "each": record("type? o:object?", {"of?": Each(Value("integer", -1, 1, quoted=True), most=2, longest=3)}),
    },
    missing="text",
)
_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats()
    | st.sampled_from(["", "x", "y", "1", "2e3", "text", "list"])
)
_NAMES = st.sampled_from("type text name n rate on id items w of o a b role content tool_calls function".split())
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=12,
)
_MARKED = st.builds(
    lambda kind, rest: {"type": kind, **rest},
    st.sampled_from(["text", "list", "each"]),
    _VALUES.filter(lambda value: isinstance(value, dict)),
)
_SHAPES = st.sampled_from([SMALL, Many(SMALL), MESSAGE, BODY, body_shape("gpt-4o"), body_shape("qwq")])


def outcome(act: Any, value: Any, shape: Shape) -> tuple[str, list[str]]:
    """What `act` makes of a value, and its edits without the value they show: it is shown by its type."""
    edits = Edits()
    try:
        made = repr(act(value, shape, edits))
    except FormatError as error:
        made = str(error)
    return made, [f"{edit.kind} {edit.path} {edit.rule}" for edit in edits.made]


@given(_VALUES | _MARKED, _SHAPES)
def test_the_quick_answer_is_that_of_the_walk(value: Any, shape: Shape) -> None:
    """A value taken at a glance that the walk would have changed goes to the provider, which refuses it."""
    for act in (
        lambda value, shape, edits: fit(value, shape, "at", edits),
        lambda value, shape, edits: prune(value, shape),
        lambda value, shape, edits: check_types(value, shape, "at"),
    ):
        assert outcome(act, value, shape) == outcome(act, walked(value), shape)


MESSAGES = [
    {"role": "user", "content": "hello"},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "u"}}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "done"},
]


@pytest.mark.parametrize("shape", [body_shape("gpt-4o"), body_shape("deepseek-chat")])
def test_usual_messages_are_taken_at_a_glance(shape: Shape) -> None:
    """Walking every message of every request with its path costs ten times as much as making it."""
    assert shape.takes({"model": "m", "messages": MESSAGES, "temperature": 0.5})
    assert all(map(MESSAGE.reads, MESSAGES))


@given(st.integers(1, 250), st.integers(1, 250))
def test_depth_is_measured_exactly(depth: int, levels: int) -> None:
    """One level off, and what was admitted could not be recorded."""
    value: Any = [{"x": 1}]
    for _ in range(depth - 2):
        value = {"a": value}
    deepest = 2 + max(depth - 2, 0)
    assert (nested_deeper(value, levels) is not None) == (deepest > levels)


def test_too_deep_a_body_is_refused_with_its_path() -> None:
    """Python gives up in the middle of a deep value, and nobody learns where it stood."""
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]
    with pytest.raises(FormatError, match=r"messages\[0\]\.content\[0\]\[0\]"):
        check_depth({"messages": [{"content": deep}]})


@pytest.mark.parametrize("levels", [ARGUMENTS_DEPTH + 1, 190, 3_000, 100_000])
def test_deep_arguments_stay_text(levels: int) -> None:
    """Taken apart, they could neither be recorded nor written again."""
    raw = "[" * levels + "]" * levels
    assert parse_arguments(raw) == (None, raw)


@given(st.text() | _VALUES.map(json.dumps))
def test_arguments_come_back_as_they_were_written(raw: str) -> None:
    """A changed space in arguments breaks the prefix that a provider keeps."""
    value, kept = parse_arguments(raw)
    assert (json.dumps(value, ensure_ascii=False, separators=(",", ":")) if kept is None else kept) == raw


def test_a_key_inside_an_object_is_a_declared_loss() -> None:
    """A server's own key beside a call's arguments would vanish on the way to another provider, unnoticed."""
    function = {"name": "f", "arguments": "{}", "strictness": "high"}
    call = {"id": "call_1", "type": "function", "function": function}
    body = {
        "model": "gpt-4o",
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "done"},
        ],
    }
    losses = convert(body, to="anthropic", model="claude-sonnet-4-5", provider="openai-chat").losses
    assert [(loss.kind, loss.records) for loss in losses if "function.strictness" in loss.detail] == [("extra", (2,))]


@pytest.mark.parametrize("fallbacks", ["default", [{"model": "claude-opus-4-8"}]])
def test_fallbacks_are_taken_as_documented(fallbacks: Any) -> None:
    """Either form of the setting is sent on as it is."""
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    assert check({**body, "fallbacks": fallbacks}, "anthropic") == []
