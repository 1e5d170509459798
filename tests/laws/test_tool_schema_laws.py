"""What a tool declares leads somewhere for every provider, and what is built for it reaches the function."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging import TARGETS, errors_of, numbered
from tool_types import Draw, as_arguments, built, drawn_kind, is_of
from turnlog import Message, Text, ToolCall, check, repair
from turnlog.agent import FunctionTool
from turnlog.log.messages import Tool
from turnlog.log.records import Configuration
from turnlog.models.target import Target
from turnlog.requests.build import build
from turnlog.requests.translate import plan

pydantic = pytest.importorskip("pydantic")

VIEW = numbered([Message("user", (Text("hi"),))])
WAYS = ("pydantic", "msgspec", "dataclass")


def request_of(tool: Tool, aim: Target) -> dict[str, Any]:
    """The body of a request that declares a tool."""
    return build(plan(Configuration(tools=(tool,)), aim), VIEW, lambda sha256: b"").body


def schema_in(body: dict[str, Any]) -> dict[str, Any]:
    """The schema of the only tool of a body."""
    tool = body["tools"][0]
    tool = tool.get("function", tool)
    tool = tool.get("functionDeclarations", [tool])[0]
    keys = ("parameters", "input_schema", "parametersJsonSchema")
    found: dict[str, Any] = next(tool[key] for key in keys if key in tool)
    return found


def drawn_function(draw: Draw, ways: tuple[str, ...]) -> tuple[FunctionTool, dict[str, Any], dict[str, Any]]:
    """A tool of a function with one to three parameters, their types, and the schema of each by itself."""
    kinds: dict[str, Any] = {}
    own: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from(["one", "two", "three"]), min_size=1, max_size=3, unique=True)):
        by = draw(st.sampled_from(ways))
        kinds[name] = drawn_kind(draw, by)
        if by == "pydantic":
            own[name] = pydantic.TypeAdapter(kinds[name]).json_schema()

    scope: dict[str, Any] = {f"{name}_": kind for name, kind in kinds.items()}
    exec(f"def function({', '.join(f'{name}: {name}_' for name in kinds)}): ...", scope)
    return FunctionTool(scope["function"]), kinds, own


@given(data=st.data())
def test_what_a_function_declares_is_what_it_takes(oracle: ModuleType, data: st.DataObject) -> None:
    """A reference that leads nowhere is refused, or the model guesses what it may give; a value that the schema allows
    and the tool refuses costs a step, and the model does not know why."""
    tool, kinds, _ = drawn_function(data.draw, WAYS)
    for aim in TARGETS:
        body = request_of(tool.declaration, aim)
        assert errors_of(oracle, aim, body) == []
        schema = schema_in(body)
        assert oracle.schema_refs(schema) == []
    arguments = as_arguments(built(data.draw, schema, schema))
    read = tool.read(ToolCall("a", "function", arguments))
    assert set(read) == set(kinds)
    assert all(is_of(value, kinds[name]) for name, value in read.items())


@given(data=st.data())
def test_schemas_that_were_put_together_mean_what_their_parts_mean(oracle: ModuleType, data: st.DataObject) -> None:
    """Programs that put a model's schema below a property declare other definitions than they meant."""
    tool, kinds, own = drawn_function(data.draw, ("pydantic",))
    nested = {"type": "object", "properties": own, "required": list(own)}
    declared = Tool("function", "", nested)
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
    body["tools"] = [{"type": "function", "function": {"name": "function", "parameters": nested}}]
    broken = oracle.schema_refs(nested)
    assert {one.kind for one in check(body)} >= ({"reference"} if broken else set())
    assert schema_in(repair(body).body) == schema_in(request_of(declared, TARGETS[0]))
    for aim in TARGETS:
        assert errors_of(oracle, aim, request_of(declared, aim)) == []
    schema = schema_in(request_of(declared, TARGETS[0]))
    read = tool.read(ToolCall("a", "function", as_arguments(built(data.draw, schema, schema))))
    assert all(is_of(value, kinds[name]) for name, value in read.items())
