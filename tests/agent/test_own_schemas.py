"""Tools with a JSON schema of their own: what is declared to five APIs, which arguments fit, what the function gets."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest
from hypothesis import event, given, reject
from hypothesis import strategies as st

import turnlog
from tool_types import as_arguments, built, drawn_kind
from turnlog import Tool, ToolCall, agent
from turnlog.agent.schemas import misfits
from turnlog.errors import InputError
from turnlog.log.messages import Message, ToolResult, text_of
from turnlog.runners import DEMO_MODEL, ScriptedRunner
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

PROVIDERS = ("openai-chat", "openai-responses", "anthropic", "google", "google-interactions")
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "max-days": {"type": "integer", "minimum": 1}},
    "required": ["city"],
    "additionalProperties": False,
}


def opened(provider: str = "openai-chat", **given: Any) -> Session:
    """A new session."""
    return turnlog.open("s", store=MemoryStore(), target=turnlog.target(provider, DEMO_MODEL), **given)


def told(session: Session) -> dict[str, tuple[str, str]]:
    """Outcome and text of each call's result."""
    parts = [part for record in session.history() if record.message for part in record.message.parts]
    return {
        part.call_id: (part.outcome, text_of(Message("user", part.parts)))
        for part in parts
        if isinstance(part, ToolResult)
    }


def found_in(body: Any, name: str) -> Any:
    """The declaration of a tool, wherever it stands in a request."""
    inner = body.values() if isinstance(body, dict) else body if isinstance(body, list) else ()
    if isinstance(body, dict) and body.get("name") == name:
        return body
    return next(filter(None, (found_in(one, name) for one in inner)), None)


def schema_in(declaration: dict[str, Any]) -> Any:
    """The schema in a declaration of any provider."""
    keys = ("parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema")
    return next(declaration[key] for key in keys if key in declaration)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_any_function_takes_what_a_schema_declares(provider: str) -> None:
    """A tool that comes with a schema (of an MCP server, a file, another framework) could not be run."""
    seen: list[Any] = []

    def forecast(**arguments: Any) -> str:
        seen.append(arguments)
        return "cold"

    tool = agent.tool("forecast", "Tell the weather.", parameters=CITY, call=forecast)
    calls = [
        ToolCall("a", "forecast", {"city": "Oslo", "max-days": 2}),
        ToolCall("b", "forecast", {"city": "Oslo", "max-days": 0}),
        ToolCall("c", "forecast", {"max-days": 1}),
        ToolCall("d", "forecast", {"city": "Oslo", "wind": True}),
    ]
    session, runner = opened(provider), ScriptedRunner([calls, "Cold."])
    assert agent.run(session, "go", runner, tools=[tool]).text == "Cold."
    assert seen == [{"city": "Oslo", "max-days": 2}]
    wrong = "The tool was not run, as its arguments do not fit: "
    assert told(session) == {
        "a": ("ok", "cold"),
        "b": ("failed", wrong + "Expected number >= 1, got 0 - at `$.max-days`"),
        "c": ("failed", wrong + "Object missing required field `city`"),
        "d": ("failed", wrong + "Object contains unknown field `wind`"),
    }
    declaration = found_in(runner.requests[0].body, "forecast")
    assert declaration["description"] == "Tell the weather."
    schema = schema_in(declaration)
    assert (set(schema["properties"]), schema["required"]) == ({"city", "max-days"}, ["city"])


def test_a_declaration_becomes_a_tool_with_a_function() -> None:
    """`turnlog.Tool` and dicts as providers document them are what people have; each is declared as it was given."""

    def look(city: str) -> str:
        """Look."""
        return city

    given = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    plain = Tool("see", "See it.", given, output="search", on_demand=True)
    assert agent.tool(plain, call=look).declaration == plain
    chat = {"type": "function", "function": {"name": "see", "parameters": given, "strict": True}}
    read = agent.tool(chat, call=look).declaration
    assert (read.name, read.description, read.parameters, read.form is not None) == ("see", "Look.", given, True)
    decorated = agent.tool("see", parameters=given, repeatable=True)(look)
    assert (decorated.declaration, decorated.repeatable) == (Tool("see", "Look.", given), True)
    without = agent.tool(Tool("see", "See it."), call=look)
    assert without.declaration.parameters == agent.FunctionTool(look).declaration.parameters


@pytest.mark.parametrize("provider", PROVIDERS)
def test_free_text_reaches_the_function(provider: str) -> None:
    """A custom tool has no arguments, only a text, and is a function where an API has no such tools."""
    seen: list[str] = []

    def patch(input: str) -> None:
        seen.append(input)

    tool = agent.tool(Tool("patch", "Patch.", kind="custom"), call=patch)
    session = opened(provider)
    agent.run(session, "go", ScriptedRunner([ToolCall("a", "patch", {"input": "*** x"}), "so"]), tools=[tool])
    assert (seen, told(session)["a"]) == (["*** x"], ("ok", ""))
    assert tool.read(ToolCall("b", "patch", raw="*** y", kind="custom")) == {"input": "*** y"}


def test_a_tool_that_the_provider_defines_is_run_here() -> None:
    """The shell that a model was trained on could be declared, and nobody could run it."""

    def bash(command: str = "", restart: bool = False) -> str:
        return f"ran {command}"

    declared = {"type": "bash_20250124", "name": "bash"}
    session, runner = opened("anthropic"), ScriptedRunner([ToolCall("a", "bash", {"command": "ls"}), "so"])
    agent.run(session, "go", runner, tools=[agent.tool(declared, call=bash)])
    assert told(session) == {"a": ("ok", "ran ls")}
    assert found_in(runner.requests[0].body, "bash") == declared
    with pytest.raises(InputError, match="Object contains unknown field `x`"):
        agent.tool(declared, call=bash).read(ToolCall("a", "bash", {"x": 1}))


def test_what_the_schema_leaves_open_reaches_only_who_takes_it() -> None:
    """JSON Schema allows what it does not forbid; a function without the parameter would break."""
    schema = {"properties": {"city": {"type": "string"}}}
    open_ = agent.tool("f", parameters=schema, call=lambda **given: given)
    assert open_.read(ToolCall("a", "f", {"city": "Oslo", "x": 1})) == {"city": "Oslo", "x": 1}
    closed = agent.tool("f", parameters=schema, call=lambda city="": city)
    with pytest.raises(InputError, match="Object contains unknown field `x`"):
        closed.read(ToolCall("a", "f", {"city": "Oslo", "x": 1}))
    assert asyncio.run(closed.run({"city": "Oslo"})) == "Oslo"
    with pytest.raises(InputError, match="arguments must be a dict with keys of city"):
        asyncio.run(closed.run({"x": 1}))


def test_a_schema_is_not_changed_from_outside() -> None:
    """Whoever goes on working with the dict would change what is declared and checked."""
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    tool = agent.tool("f", parameters=schema, call=lambda **given: given)
    schema["properties"]["a"]["type"] = "integer"
    assert tool.read(ToolCall("c", "f", {"a": "x"})) == {"a": "x"}


def _needs(city: str, days: int) -> None: ...


def _positional(city: str, /) -> None: ...


@pytest.mark.parametrize(
    "call, parameters, says",
    [
        (_needs, CITY, "tool 'f': its schema declares 'max-days', which the function does not take: add it, or"),
        (_needs, {"properties": {"city": {}, "days": {}}}, "the function needs 'city', which the schema does not req"),
        (_positional, {"properties": {"city": {}}, "required": ["city"]}, "declares 'city', which the function does"),
        (lambda **given: given, {"type": "array"}, "tool 'f': parameters must be the JSON schema of an object"),
        (lambda **given: given, [], "tool 'f': parameters must be the JSON schema of an object"),
        (lambda **given: given, {"properties": {"a": {"default": {1, 2j}}}}, "tool 'f': .* this one is not JSON"),
    ],
)
def test_a_function_that_cannot_take_it_is_refused(call: Callable[..., Any], parameters: Any, says: str) -> None:
    """Better when the program starts than at the first call."""
    with pytest.raises(InputError, match=says):
        agent.tool("f", parameters=parameters, call=call)


def test_other_mistakes_say_what_to_do() -> None:
    """Who forgets the schema or the name is told what is missing."""
    with pytest.raises(InputError, match=r"what \*\*given takes, no model knows: give a schema, turnlog.agent.tool\("):
        agent.tool("f", call=lambda **given: given)
    with pytest.raises(InputError, match=r"a tool called '<lambda>': turnlog\.agent\.tool"):
        agent.tool(parameters=CITY, call=lambda **given: given)
    with pytest.raises(
        InputError, match=r"a tool is a function, .*, not str; a server is turnlog.agent.mcp_server\('npx x'\)"
    ):
        turnlog.run(opened(), "hi", ScriptedRunner(["ok"]), tools=["npx x"])  # type: ignore[list-item]
    several = {"functionDeclarations": [{"name": "a"}, {"name": "b"}]}
    with pytest.raises(InputError, match=r"one function is one tool: .* declares 2"):
        agent.tool(several, call=lambda: None)
    with pytest.raises(InputError, match=r"a function takes its options as @turnlog.agent.tool"):
        agent.tool(_needs, description="x")  # type: ignore[call-overload]


# -- only what can be run --------------------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
def test_nothing_is_declared_that_nobody_can_run(provider: str) -> None:
    """A model calls a tool for nothing, and is told that it does not exist."""
    session = opened(provider, tools=[Tool("ghost", "Nobody runs it.", CITY)])
    warned: list[str] = []
    session.on_event(lambda event: warned.append(event.text) if event.kind == "warning" else None)
    runner = ScriptedRunner(["so", "so"])
    agent.run(session, "go", runner)
    assert found_in(runner.requests[0].body, "ghost") is None
    assert warned == ["this run has no function for ghost: no longer declared"]
    agent.run(session, "go on", runner)
    assert len(warned) == 1
    with pytest.raises(InputError, match=r"tool 'ghost' has no function: give turnlog.agent.tool\('ghost', ..., call="):
        agent.run(session, "go", runner, tools=[Tool("ghost", "Nobody runs it.", CITY)])


# -- what fits a schema ----------------------------------------------------------------------------


def fits(schema: Any, value: Any) -> str:
    """What does not fit, "" if all does."""
    return next(misfits(schema, value, schema), "")


TREE = {"$defs": {"N": {"properties": {"next": {"$ref": "#/$defs/N"}, "n": {"type": "integer"}}}}, "$ref": "#/$defs/N"}


@pytest.mark.parametrize(
    "schema, good, bad",
    [
        ({"type": "integer"}, [1, 2.0, -(10**40)], [1.5, True, "1", None]),
        ({"type": "number"}, [1, 1.5], [True, "1"]),
        ({"type": ["string", "null"]}, ["", None], [0, {}]),
        ({"type": "STRING", "nullable": True}, ["", None], [0]),
        ({"enum": [1, "a", None, {"k": [1]}]}, [1, 1.0, "a", None, {"k": [1]}], [True, "b", {"k": [True]}]),
        ({"const": False}, [False], [0, None]),
        ({"minimum": 1, "exclusiveMaximum": 3}, [1, 2.9, "text"], [0, 3]),
        ({"minLength": 1, "maxLength": 2}, ["a", "ab", 5], ["", "abc"]),
        ({"items": {"type": "string"}, "minItems": 1, "maxItems": 2}, [["a"], ["a", "a"]], [[], [1], ["a"] * 3]),
        ({"prefixItems": [{"type": "string"}], "items": False}, [["a"], []], [[1], ["a", 1]]),
        ({"additionalProperties": {"type": "integer"}, "maxProperties": 1}, [{"a": 1}], [{"a": "x"}, {"a": 1, "b": 2}]),
        ({"patternProperties": {"^x": {}}, "additionalProperties": False}, [{"x1": 1}], []),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, ["a", None], [1]),
        ({"oneOf": [{"type": "number"}, {"type": "integer"}]}, [1.5], [1, "a"]),
        ({"allOf": [{"minimum": 1}, {"maximum": 3}]}, [2], [0, 4]),
        ({"not": {"type": "string"}}, [1], ["a"]),
        (TREE, [{"next": {"next": {"n": 1}}}], [{"next": {"next": {"n": "x"}}}]),
        ({"$ref": "#"}, [1], []),
        ({"$ref": "#/$defs/none", "$defs": {}}, [1], []),
        ({"$ref": "https://example.org/a.json"}, [1], []),
        (True, [1, None], []),
        (False, [], [1]),
        ({"properties": {"a": False}}, [{}], [{"a": 1}]),
        ({"required": [["a"], 1, None], "properties": [], "type": [["x"]]}, [{}], []),
        ({"type": 5, "enum": 3, "required": "a", "items": 7, "minimum": "x", "$ref": 1, "anyOf": {}}, [1, [1], {}], []),
    ],
)
def test_a_value_fits_or_does_not(schema: Any, good: list[Any], bad: list[Any]) -> None:
    """An argument that is taken although the schema forbids it breaks the tool; one that is refused, the model."""
    assert [fits(schema, value) for value in good] == [""] * len(good)
    assert all(fits(schema, value) for value in bad)


def test_deep_arguments_are_an_answer_not_a_crash() -> None:
    """A model, or who writes for it, nests without end."""
    tool = agent.tool("f", parameters={**TREE, "type": "object"}, call=lambda **given: given)
    value: dict[str, Any] = {}
    for _ in range(100_000):
        value = {"next": value}
    with pytest.raises(InputError, match="nested too deeply"):
        tool.read(ToolCall("a", "f", value))
    while value:  # so that Python does not take it apart by recursion
        value = value.get("next", {})


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
)
WORDS = (
    *("type", "enum", "const", "properties", "required", "additionalProperties", "items", "prefixItems", "anyOf"),
    *("allOf", "oneOf", "not", "minimum", "multipleOf", "maxLength", "$ref", "nullable", "minItems"),
)
ODD_SCHEMAS = st.recursive(
    SCALARS | st.sampled_from(["#", "object", "#/items"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
)


@given(schema=ODD_SCHEMAS, value=VALUES)
def test_no_schema_breaks_the_check(schema: Any, value: Any) -> None:
    """A server's schema that is none at all would end the run with a KeyError."""
    assert isinstance(fits(schema, value), str)


@given(data=st.data(), by=st.sampled_from(["msgspec", "dataclass"]))
def test_what_a_type_takes_fits_its_schema(data: st.DataObject, by: str) -> None:
    """A check of ours that says no to what a schema declares: the model could not call at all."""
    kind = drawn_kind(data.draw, by)
    try:
        (schema,), parts = msgspec.json.schema_components(
            [kind], schema_hook=lambda path: {"type": "string"}, ref_template="#/$defs/{name}"
        )
    except KeyError:  # msgspec has no schema for two classes of one name
        reject()
    whole = {"type": "object", "properties": {"x": schema}, "required": ["x"], "$defs": parts}
    tool = agent.tool("f", parameters=whole, call=lambda **given: given)
    arguments = {"x": as_arguments(built(data.draw, schema, whole))}
    assert tool.read(ToolCall("a", "f", arguments)) == arguments


class Order(pydantic.BaseModel, extra="forbid", strict=True):
    """What pydantic checks by the same schema, with other code."""

    amount: Annotated[int, pydantic.Field(ge=1, lt=5)]
    size: Literal["x", "y"] | None = None
    names: list[Annotated[str, pydantic.Field(min_length=1, max_length=2)]] = []
    flags: dict[str, bool] = {}
    inner: Order | None = None
    other: Annotated[list[int], pydantic.Field(min_length=1, max_length=2)] | str = ""


ORDER = Order.model_json_schema()
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "size": st.sampled_from(["x", "y", "z", None]),
    "names": st.lists(st.sampled_from(["", "a", "abc", 1]), max_size=2),
    "flags": st.dictionaries(st.just("k"), st.sampled_from([True, 1, None]), max_size=1),
    "other": st.lists(st.integers(), max_size=3) | st.text(max_size=2) | st.integers(),
    "more": st.just(1),
}
AMOUNT = {"amount": st.integers(1, 5)}
ORDERS = st.recursive(
    st.fixed_dictionaries(AMOUNT, optional=FIELDS),
    lambda inner: st.fixed_dictionaries({**AMOUNT, "inner": inner}, optional=FIELDS),
    max_leaves=3,
)


@given(order=ORDERS)
def test_what_fits_is_what_another_library_takes(order: dict[str, Any]) -> None:
    """A check of ours that reads a keyword in its own way refuses good calls, or lets bad ones through."""
    try:
        Order.model_validate_json(json.dumps(order))
        is_good = True
    except pydantic.ValidationError:
        is_good = False
    event(f"good: {is_good}")
    assert (fits(ORDER, order) == "") == is_good


@pytest.mark.parametrize("name", ["my tool!", "a.b", "x" * 65, "é" * 65])
def test_a_name_that_no_provider_takes_is_refused_by_name(name: str) -> None:
    """Who gave a name was told that the tool has none; one that is too long was sent, and refused by the provider."""
    says = re.escape(f"a tool called {name!r}: turnlog.agent.tool(name=) takes 1 to 64 letters, digits, _ and -")
    with pytest.raises(InputError, match=says):
        agent.tool(name, "d", parameters=CITY, call=lambda **given: given)
    with pytest.raises(InputError, match=says):
        agent.as_tool(name, "d", runner=ScriptedRunner([]))
    with pytest.raises(InputError, match=says):
        agent.tool(turnlog.Tool(name), call=lambda: None)
