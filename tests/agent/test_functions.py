"""Functions as tools: what is declared of them, how arguments are read, what results hold."""

from __future__ import annotations

import asyncio
import enum
import itertools
import math
import sys
import threading
from collections import UserDict, UserList, UserString, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from turnlog import Media, Text, ToolCall, agent
from turnlog.agent import FunctionTool
from turnlog.agent.functions import content_of, documented
from turnlog.errors import InputError
from turnlog.session.inputs import to_run


class Unit(enum.Enum):
    """A unit."""

    C = "celsius"
    F = "fahrenheit"


class Place(Struct):
    """A place on a map."""

    name: str
    height: int = 0


@dataclass
class Span:
    """Days."""

    first: int
    last: int = 7


class Options(TypedDict, total=False):
    """What else."""

    wind: bool


def forecast(
    city: str,
    places: list[Place],
    *,
    days: int = 1,
    unit: Unit = Unit.C,
    kind: Literal["short", "long"] = "short",
    within: Span | None = None,
    tags: Annotated[list[str], Meta(max_length=3, description="At most three.")] = ["a"],  # noqa: B006 - its own
    options: Options = {},  # noqa: B006
) -> str:
    """Look up the weather.

    Only for places in the table.

    Args:
        city: The name
            in English: Oslo.
        days (int): How many days.
        unknown: Of nothing.

    Returns:
        city: no parameter.
    """
    return f"{city} {places} {days} {unit} {kind} {within} {tags} {options}"


def test_a_declaration_says_what_the_function_says() -> None:
    """A model that is not told what a parameter is gives something else."""
    declared = FunctionTool(forecast).declaration
    assert (declared.name, declared.description) == (
        "forecast",
        "Look up the weather.\n\nOnly for places in the table.",
    )
    schema = declared.parameters
    assert schema is not None
    assert schema["required"] == ["city", "places"]
    assert schema["additionalProperties"] is False
    assert schema["properties"] == {
        "city": {"type": "string", "description": "The name in English: Oslo."},
        "places": {"type": "array", "items": {"$ref": "#/$defs/Place"}},
        "days": {"type": "integer", "description": "How many days."},
        "unit": {"$ref": "#/$defs/Unit"},
        "kind": {"enum": ["long", "short"]},
        "within": {"anyOf": [{"$ref": "#/$defs/Span"}, {"type": "null"}]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3, "description": "At most three."},
        "options": {"$ref": "#/$defs/Options"},
    }
    assert set(schema["$defs"]) == {"Place", "Unit", "Span", "Options"}


def test_arguments_come_as_their_types() -> None:
    """A function that is given a dict where it wants an object fails on the first attribute."""
    tool = FunctionTool(forecast)
    given_ = {"city": "Oslo", "places": [{"name": "Hill"}], "unit": "fahrenheit", "within": {"first": 1}, "days": "3"}
    read = tool.read(ToolCall("a", "forecast", given_))
    assert read == {"city": "Oslo", "places": [Place("Hill")], "unit": Unit.F, "within": Span(1), "days": 3}
    assert tool(**read) == f"Oslo {[Place('Hill')]} 3 {Unit.F} short {Span(1)} ['a'] {{}}"


@pytest.mark.parametrize(
    "arguments, says",
    [
        ({"city": "Oslo"}, "missing required field `places`"),
        ({"city": 1.5, "places": []}, r"Expected `str`, got `float` - at `\$.city`"),
        ({"city": "", "places": [], "kind": "odd"}, "Invalid enum value 'odd'"),
        ({"city": "", "places": [], "tags": list("abcd")}, "Expected `array` of length <= 3"),
        ({"city": "", "places": [], "town": 1}, "unknown field `town`"),
        ([], "Expected `object`, got `array`"),
    ],
)
def test_arguments_that_do_not_fit_are_told(arguments: Any, says: str) -> None:
    """The model has to read what is wrong in order to mend it."""
    with pytest.raises(InputError, match="The tool was not run, as its arguments do not fit: .*" + says):
        FunctionTool(forecast).read(ToolCall("a", "forecast", arguments or [1]))
    with pytest.raises(InputError, match="The tool was not run: the model wrote arguments that are no JSON"):
        FunctionTool(forecast).read(to_run(ToolCall("a", "forecast", raw="{")))


class Model:
    """As pydantic's: it has a schema and a validator of its own."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        """The schema."""
        return {"type": "object", "properties": {"x": {"type": "integer"}}}

    @classmethod
    def model_validate(cls, value: Any) -> Model:
        """Read it."""
        if "x" not in value:
            raise ValueError("no x")
        return cls(**value)

    def model_dump(self, mode: str) -> dict[str, Any]:
        """Write it."""
        return self.fields


def test_models_with_a_schema_of_their_own_are_taken() -> None:
    """Many programs describe their tools' arguments with pydantic."""

    def add(model: Model) -> Model:
        return model

    tool = FunctionTool(add)
    assert tool.declaration.parameters is not None
    assert tool.declaration.parameters["properties"] == {"model": Model.model_json_schema()}
    read = tool.read(ToolCall("a", "add", {"model": {"x": 1}}))
    assert asyncio.run(tool.run(read)) == '{"x":1}'
    with pytest.raises(InputError, match="no x"):
        tool.read(ToolCall("a", "add", {"model": {}}))


class Callables:
    """Functions of other forms."""

    def __call__(self, x: int) -> int:
        """Double it."""
        return 2 * x

    async def later(self, x: int) -> int:
        """Later."""
        return x


def test_methods_and_objects_are_functions_too() -> None:
    """Tools often have a state."""
    made = agent.tool(name="double")(Callables())
    assert (made.name, made.declaration.description, made(2)) == ("double", "Double it.", 4)
    later = agent.tool(Callables().later)
    assert asyncio.run(later.run({"x": 3})) == "3"


def test_what_no_model_could_call_is_refused() -> None:
    """Better when the program starts than in the middle of its work."""

    def several(*numbers: int) -> None: ...

    def untyped(x) -> None: ...  # type: ignore[no-untyped-def]

    def of_set(x: complex) -> None: ...

    def positional(x: int, /) -> None: ...

    wrong = {
        "parameter \\*numbers.* cannot be given by name": several,
        "parameter 'x' has no type hint": untyped,
        "JSON has no form for the type of parameter .x., or for a default inside of it": of_set,
        "parameter x.* cannot be given by name": positional,
        "has no name": Callables(),
    }
    for says, function in wrong.items():
        with pytest.raises(InputError, match=says):
            FunctionTool(function)


NUMPY = """Do it.

Parameters
----------
city : str
    The name
    of it.
days
    How many.

Returns
-------
str
"""
SPHINX = """Do it.

:param str city: The name
    of it.
:param days: How many.
:returns: it
"""
GOOGLE = """Do it.

Args:
  city (str): The name
    of it.
  days: How many.

Raises:
  OSError: if not
"""


KEYWORDS = """Do it.

Args:
    city (tuple(str, str)): The name
        of it.

Keyword Args:
    days: How many.
"""
NUMPY_KEYWORDS = """Do it.

Parameters
----------
city : str
    The name of it.

Other Parameters
----------------
days : int, optional
    How many.
"""
EPYDOC = """Do it.

@param city: The name of it.
:keyword int days: How many.
"""


@pytest.mark.parametrize("text", [NUMPY, SPHINX, GOOGLE, KEYWORDS, NUMPY_KEYWORDS, EPYDOC])
def test_docstrings_of_many_styles_are_read(text: str) -> None:
    """A parameter that is described in the docstring and not in the declaration is a guess for the model."""

    def function() -> None: ...

    function.__doc__ = text
    assert documented(function) == ("Do it.", {"city": "The name of it.", "days": "How many."})


@pytest.mark.parametrize(
    "header", ["Args", "Arguments", "Keyword Arguments", "Other Parameters", "Params", "KEYWORD ARGS"]
)
def test_what_stands_behind_parameters_is_told_too(header: str) -> None:
    """The sentence that says when a tool may be called became part of what is said of its last parameter."""

    def function() -> None: ...

    function.__doc__ = f"Do it.\n\n{header}:\n    city: The name.\n\nOnly on Sundays.\n\nWarning:\n    Slow."
    assert documented(function) == ("Do it.\n\nOnly on Sundays.\n\nWarning:\n    Slow.", {"city": "The name."})


STYLES = {
    "google": "Do it.\n\nArgs:\n    city: The name.\n\nReturns:\n    It.\n\n{note}:\n    Slow.\n\nRaises:\n    No.",
    "numpy": "Do it.\n\nParameters\n----------\ncity\n    The name.\n\nReturns\n-------\nstr\n\n{note}\n-----\nSlow.\n",
    "sphinx": "Do it.\n\n:param city: The name.\n:returns: it.\n\n{note}:\n    Slow.\n",
    "before": "Do it.\n\n{note}:\n    Slow.\n\nArgs:\n    city: The name.\n",
}


@pytest.mark.parametrize("style", sorted(STYLES))
@pytest.mark.parametrize("note", ["Note", "Notes", "Example", "Examples", "Warning", "Caution"])
def test_notes_and_examples_are_told(style: str, note: str) -> None:
    """`Note: never call this twice` was left out of what the model is told."""

    def function() -> None: ...

    function.__doc__ = STYLES[style].replace("{note}", note)
    said = f"{note}\nSlow." if style == "numpy" else f"{note}:\n    Slow."
    assert documented(function) == (f"Do it.\n\n{said}", {"city": "The name."})


def test_what_stands_behind_what_is_returned_is_told() -> None:
    """The last sentence of a docstring went with the section before it."""

    def function() -> None: ...

    function.__doc__ = "Do it.\n\nReturns:\n    It.\n\nOnly on Sundays."
    assert documented(function) == ("Do it.\n\nOnly on Sundays.", {})


def test_several_parameters_may_be_described_at_once() -> None:
    """NumPy's style names them on one line."""

    def function() -> None: ...

    function.__doc__ = "Do it.\n\nParameters\n----------\nx, y : int\n    Both.\n\nWarnings\n--------\nSlow."
    assert documented(function) == ("Do it.\n\nWarnings\nSlow.", {"x": "Both.", "y": "Both."})


@given(st.text(alphabet="Args: \n-x:paramReturns()", max_size=200))
def test_any_docstring_is_read(text: str) -> None:
    """A docstring is prose: no form of it may stop a program."""

    def function() -> None: ...

    function.__doc__ = text
    said, parameters = documented(function)
    assert isinstance(said, str) and all(isinstance(one, str) for one in parameters.values())


@pytest.mark.parametrize(
    "value, content",
    [
        (None, ""),
        ("text", "text"),
        (Text("part"), Text("part")),
        ([Text("a"), 1], [Text("a"), "1"]),
        ([1, 2], "[1,2]"),
        (Place("Hill"), '{"name":"Hill","height":0}'),
        (Unit.C, '"celsius"'),
        (3 + 1j, '"(3+1j)"'),
        (Media("image", url="https://x/y"), Media("image", url="https://x/y")),
    ],
)
def test_results_are_text_or_parts(value: Any, content: Any) -> None:
    """What a function returns has to become what a model can read."""
    assert content_of(value) == content


class Reason(Exception):
    """An object with a text of its own."""


class Inner:
    """A class without a text of its own, whose functions have names with dots and brackets."""

    @classmethod
    def make(cls) -> Inner:
        """Make one."""
        return cls()

    def closure(self) -> Callable[[], Any]:
        """A function whose name holds `<locals>`."""

        def called() -> Inner:
            return self

        return called


class Amount(float):
    """A number of a class of its own, as numpy's."""


class Count(int):
    """A whole number of a class of its own."""


class Raising:
    """An object whose text cannot be made."""

    def __str__(self) -> str:
        return str(1 / 0)


class Broken:
    """An object whose own JSON cannot be made."""

    def model_dump(self, mode: str) -> Any:
        """Fail."""
        raise OSError("gone")


class Column(list[Any]):
    """A column of values, as numpy's."""

    def __init__(self, *values: Any) -> None:
        super().__init__(values)


class Array:
    """Numbers behind an object, as numpy's, whose text leaves out most of them."""

    def tolist(self) -> list[float]:
        """All of them."""
        return [Amount(0.5), 2]

    def __repr__(self) -> str:
        return "[0.5 ...]"


def itself() -> list[Any]:
    """A list that contains itself twice."""
    made: list[Any] = []
    made += [made, made]
    return made


@pytest.mark.parametrize(
    "value, says",
    [
        (object(), "an object of type object, which has no text of its own"),
        ({"a": [object()]}, "an object of type object, which has no text of its own"),
        (iter([1]), "an object of type list_iterator, which has no text of its own"),
        (itself, "an object of type function, which has no text of its own"),
        (float("nan"), "the number nan, which JSON does not have"),
        (Span(1, float("inf")), "the number inf, which JSON does not have"),  # type: ignore[arg-type]
        (b"png", r"bytes \(decode text; for media return session.media\(data, mime\)\)"),
        ({"image": bytearray(b"png")}, "bytearray"),
        (itself(), "a value that contains itself, or is nested too deeply"),
        ([Text("a"), object()], "an object of type object"),
        (Inner, "an object of type type"),
        (Inner.make, "an object of type method"),
        (Inner().closure(), "an object of type function"),
        ({"f": Inner().closure()}, "an object of type function"),
        ([lambda: 1], "an object of type function"),
        (partial(print), "an object of type partial"),
        (print, "an object of type builtin_function_or_method"),
        (asyncio, "an object of type module"),
        ((one for one in "ab"), "an object of type generator"),
        (itertools.count(1), "an object of type count"),
        (StringIO("a"), "an object of type StringIO"),
        (sys.stdout.buffer, "an object of type "),
        (threading.Lock(), "an object of type lock"),
        (KeyError(Inner()), "an object of type KeyError"),
        (Amount(math.nan), "the number nan"),
        ({Amount(math.inf): 1}, "the number inf"),
        (Decimal("NaN"), "the number NaN"),
        ([Decimal("-Infinity")], "the number -Infinity"),
        (deque([math.nan]), "the number nan"),
        ({1: "a", "1": "b"}, "a dict with two keys that are both '1' in JSON"),
        ([10**5000], r"a list, whose text cannot be made \(ValueError: Exceeds the limit"),
        (Raising(), r"a Raising, whose text cannot be made \(ZeroDivisionError: division by zero\)"),
        ([Model(x=Raising())], r"a list, whose text cannot be made \(ZeroDivisionError"),
        (Broken(), r"a Broken, whose text cannot be made \(OSError: gone\)"),
    ],
)
def test_what_cannot_be_told_to_a_model_is_refused(value: Any, says: str) -> None:
    """A model was told `<object object at 0x7f...>`, null for NaN, base64 for bytes, and took that for the result."""
    with pytest.raises(InputError, match=f"^{says}.* cannot be told to a model; return text, values that JSON has"):
        content_of(value)


@pytest.mark.parametrize(
    "value, content",
    [
        (Reason("too dear"), '"too dear"'),
        ({"at": datetime(2026, 1, 2, tzinfo=UTC), "path": Path("a/b")}, '{"at":"2026-01-02T00:00:00Z","path":"a/b"}'),
        (["half \ud800"], '["half \ud800"]'),
        ("<p> at 0x1f>", "<p> at 0x1f>"),
        (Amount(3.5), "3.5"),
        (Count(7), "7"),
        ({"x": Amount(0.5), Count(2): [Count(3)]}, '{"x":0.5,"2":[3]}'),
        (Span(Count(1), Amount(2)), '{"first":1,"last":2.0}'),  # type: ignore[arg-type]
        (Decimal("1.50"), '"1.50"'),
        (deque([1, deque([2])]), "[1,[2]]"),
        (range(3), "[0,1,2]"),
        ({"a": 1, "b": 2}.keys(), '["a","b"]'),
        ({"a": 1}.values(), "[1]"),
        ({"a": 1}.items(), '[["a",1]]'),
        (MappingProxyType({"a": range(1)}), '{"a":[0]}'),
        (UserDict({"a": UserList([1])}), '{"a":[1]}'),
        (UserString("as it is"), '"as it is"'),
        (Column(Amount(1), "a"), '[1.0,"a"]'),
        (Array(), "[0.5,2]"),
        ({(1, "a"): 1, None: 2, True: 3}, '{"[1,\\"a\\"]":1,"null":2,"true":3}'),
        (10**400, "1" + "0" * 400),
    ],
)
def test_what_has_a_text_of_its_own_is_told(value: Any, content: str) -> None:
    """A tool that returns a path, a date or an error in words was understood; so it stays."""
    assert content_of(value) == content


def test_a_tool_that_takes_too_long_is_ended() -> None:
    """One call that hangs holds up the agent for ever."""

    @agent.tool(seconds=0.01)
    async def hangs() -> None:
        await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        asyncio.run(hangs.run({}))
