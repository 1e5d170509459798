"""An answer of a type: its schema is one that every provider takes, and what the model writes by it is the value."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import turnlog
from draws import examples
from judging import errors_of, numbered
from tool_types import as_arguments, built, drawn_kind
from turnlog import ToolCall
from turnlog.agent import FunctionTool
from turnlog.log.messages import Message, Text
from turnlog.log.records import Configuration
from turnlog.providers import provider
from turnlog.providers.answer_forms import AnswerSchema, answer_taken, effort_taken, with_effort
from turnlog.providers.strict_schemas import is_strict, schemas_in, strict_schema
from turnlog.requests.build import build
from turnlog.requests.request import Request
from turnlog.requests.translate import plan
from turnlog.runners import ScriptedRunner
from turnlog.session.session import Session

pydantic = pytest.importorskip("pydantic")

FORMATS = (
    turnlog.target("openai-chat", "o4-mini"),
    turnlog.target("openai-responses", "gpt-5"),
    turnlog.target("anthropic", "claude-opus-4-6"),
    turnlog.target("google", "gemini-3-pro"),
    turnlog.target("google-interactions", "gemini-3-pro"),
)
"""A model of each format that has a setting for answers."""
OTHERS = (
    *FORMATS,
    turnlog.target("openai-chat", "gpt-4"),  # has no such setting
    turnlog.target("anthropic", "claude-opus-5-5"),  # thinks, and cannot be forced
    turnlog.target("google", "gemini-2.5-pro"),
)
ALLOWED = frozenset(
    "$defs $ref additionalProperties anyOf description enum format items properties required type".split()
)
"""The keywords that strict modes of all providers document."""


def asked(request: Request) -> tuple[dict[str, Any], bool]:
    """The schema that a request asks for, and whether a tool takes the answer."""
    speaker = provider(request.target.provider)
    read = speaker.parse(request.body).configuration
    answer = answer_taken(speaker, read.settings)[0]
    if answer is not None:
        return answer.schema, False
    (tool,) = (tool for tool in read.tools if tool.name == "answer")
    assert tool.parameters is not None
    return tool.parameters, True


class Judged:
    """A model that writes `values` in order, as each request asks for it; the oracle judges every request."""

    def __init__(self, oracle: ModuleType, values: list[Any]) -> None:
        self._oracle = oracle
        self._values = values

    def __call__(self, request: Request) -> Any:
        """The next answer."""
        schema, by_tool = asked(request)
        assert errors_of(self._oracle, request.target, request.body) == []
        assert self._oracle.schema_refs(schema) == []
        value = self._values.pop(0)
        if schema["properties"].keys() == {"answer"}:
            value = {"answer": value}
        return ToolCall("", "answer", value) if by_tool else json.dumps(value)


def read_by_others(kind: Any, by: str, value: Any) -> Any:
    """The value as its own library reads it."""
    if by == "pydantic":
        return pydantic.TypeAdapter(kind).validate_json(json.dumps(value))

    def inner(kind: Any, value: Any) -> Any:
        return kind.model_validate(value) if hasattr(kind, "model_validate") else kind(value)

    return msgspec.json.decode(json.dumps(value), type=kind, dec_hook=inner)


@settings(max_examples=examples(30, 2000), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_is_written_by_the_schema_is_the_value(oracle: ModuleType, data: st.DataObject) -> None:
    """A schema that is refused, a value that is changed on the way, a wrong answer that is not asked for again, or one
    that is forgotten where the provider changes in mid-way."""
    by = data.draw(st.sampled_from(["pydantic", "msgspec", "dataclass"]))
    kind = drawn_kind(data.draw, by)
    schema = FunctionTool(_with_answer(kind)).declaration.parameters
    assert schema is not None
    value = as_arguments(built(data.draw, schema["properties"]["answer"], schema))
    wrong, to = data.draw(st.booleans()), data.draw(st.sampled_from(OTHERS))
    expected = read_by_others(kind, by, value)
    for first in FORMATS:
        with turnlog.open("s", store=":memory:", target=first) as session:
            model = Judged(oracle, [value])
            script = [_switching(session, to), model] if wrong else [model]
            result = turnlog.run(session, "Answer.", ScriptedRunner(script), output=kind)
            assert (result.output, result.stop, result.steps) == (expected, "end", len(script))
            assert session.configuration.answer_schema is None
            assert session.log.validate() == []


def _switching(session: Session, to: turnlog.Target) -> Any:
    def model(request: Request) -> Any:
        session.switch(to)
        return "Not so fast: {"

    return model


def _with_answer(kind: Any) -> Any:
    def function(answer: Any) -> None: ...

    function.__annotations__ = {"answer": kind}
    return function


@given(data=st.data())
def test_a_strict_schema_says_all_and_nothing_that_is_refused(data: st.DataObject) -> None:
    """A keyword that a strict mode does not have, an object that may have more, a property that may be missing: 400.
    Made strict again it stays as it is, so that no request changes."""
    kind = drawn_kind(data.draw, data.draw(st.sampled_from(["pydantic", "msgspec", "dataclass"])))
    schema = strict_schema(FunctionTool(_with_answer(kind)).declaration.parameters)
    assert strict_schema(schema) == schema
    for each in schemas_in(schema):
        assert each.keys() <= ALLOWED
        if "properties" in each:
            assert each["additionalProperties"] is False
            assert each["required"] == list(each["properties"])
    if not is_strict(schema):
        loose = [each for each in schemas_in(schema) if each.get("type") in ("object", "array") or not each]
        assert loose != []


@pytest.mark.parametrize("one", FORMATS, ids=str)
@pytest.mark.parametrize("other", FORMATS, ids=str)
def test_what_a_user_set_goes_along(oracle: ModuleType, one: turnlog.Target, other: turnlog.Target) -> None:
    """A program that asked for JSON, or for little thinking, gets prose and a bill after a switch."""
    schema = {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"], "additionalProperties": False}
    settings = plan(Configuration(answer_schema=schema), one).local.settings
    settings = with_effort(provider(one.provider), settings, "low")
    configuration = Configuration(provider=one.provider, model=one.model, settings=settings)
    made = plan(configuration, other)
    assert answer_taken(provider(other.provider), made.local.settings)[0] == AnswerSchema(schema, strict=True)
    assert [loss for loss in made.losses if "max_tokens" not in loss.detail and "store" not in loss.detail] == []
    assert effort_taken(provider(other.provider), made.local.settings)[0] == "low"
    body = build(made, numbered([Message("user", (Text("hi"),))]), lambda sha256: b"").body
    assert errors_of(oracle, other, body) == []
