"""Parameters of functions: paths, notes of pydantic, names that clash, and what cannot be declared."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple

import pydantic
import pytest
import typing_extensions
from msgspec import Struct, defstruct

from turnlog import ToolCall
from turnlog.agent import FunctionTool
from turnlog.errors import InputError


def read(tool: FunctionTool, **arguments: Any) -> dict[str, Any]:
    """What the function of a tool is given."""
    return tool.read(ToolCall("a", tool.name, arguments))


def properties(tool: FunctionTool) -> dict[str, Any]:
    """The declared parameters."""
    assert tool.declaration.parameters is not None
    found: dict[str, Any] = tool.declaration.parameters["properties"]
    return found


@dataclass
class Files:
    """Some."""

    first: Path
    others: list[PurePosixPath] = field(default_factory=list)


def test_paths_are_texts_for_the_model_and_paths_for_the_function() -> None:
    """Most tools that touch files take a path; a function that is given a text fails on its first method."""

    def copy(at: Path, files: Files, to: Path | None = None, either: str | Path = "") -> None: ...

    tool = FunctionTool(copy)
    path = {"type": "string", "format": "path"}
    assert properties(tool) == {
        "at": path,
        "files": {"$ref": "#/$defs/Files"},
        "to": {"anyOf": [path, {"type": "null"}]},
        "either": {"type": "string"},
    }
    assert read(tool, at="a", files={"first": "b", "others": ["c"]}, to="d", either="e") == {
        "at": Path("a"),
        "files": Files(Path("b"), [PurePosixPath("c")]),
        "to": Path("d"),
        "either": "e",
    }
    with pytest.raises(InputError, match=r"Expected `str`, got `int` - at `\$.files.first`"):
        read(tool, at="a", files={"first": 1})


class Unit(enum.Enum):
    """A unit."""

    C = "celsius"


class Cat(pydantic.BaseModel):
    """A cat."""

    kind: Literal["cat"]
    unit: Unit = Unit.C


class Dog(pydantic.BaseModel):
    """A dog."""

    kind: Literal["dog"]
    puppies: list[Dog] = []


class Place(Struct):
    """A place, of msgspec."""

    name: str


def test_notes_of_pydantic_are_declared_and_kept() -> None:
    """A limit that is declared nowhere is exceeded; one that is not kept lets the function fail."""

    def feed(
        pet: Annotated[Cat | Dog, pydantic.Field(discriminator="kind")],
        amount: Annotated[int, pydantic.Field(ge=1, description="Spoons.")],
        place: Annotated[Place, pydantic.Field(description="Where.")],
        how: Annotated[str, "In which way."] = "slowly",
        times: int = pydantic.Field(2, description="How often."),
        names: list[str] = pydantic.Field(default_factory=lambda: ["Tom"]),
    ) -> None:
        """Feed.

        Keyword Args:
            pet: Which.
            times: Not this.
        """

    tool = FunctionTool(feed)
    mapping = {"cat": "#/$defs/Cat", "dog": "#/$defs/Dog"}
    assert properties(tool) == {
        "pet": {
            "oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}],
            "discriminator": {"propertyName": "kind", "mapping": mapping},
            "description": "Which.",
        },
        "amount": {"type": "integer", "minimum": 1, "description": "Spoons."},
        "place": {"$ref": "#/$defs/Place", "description": "Where."},
        "how": {"type": "string", "description": "In which way."},
        "times": {"type": "integer", "default": 2, "description": "How often."},
        "names": {"type": "array", "items": {"type": "string"}},
    }
    assert tool.declaration.parameters is not None
    assert tool.declaration.parameters["required"] == ["pet", "amount", "place"]
    assert set(tool.declaration.parameters["$defs"]) == {"Cat", "Dog", "Place", "Unit"}
    pet = {"kind": "dog", "puppies": [{"kind": "dog"}]}
    assert read(tool, pet=pet, amount=1, place={"name": "Oslo"}) == {
        "pet": Dog(kind="dog", puppies=[Dog(kind="dog")]),
        "amount": 1,
        "place": Place("Oslo"),
        "times": 2,
        "names": ["Tom"],
    }
    with pytest.raises(InputError, match=r"greater than or equal to 1 - at `\$.amount`"):
        read(tool, pet=pet, amount=0, place={"name": "Oslo"})


@pytest.mark.parametrize("way", ["dataclass", "NamedTuple", "TypedDict"])
def test_notes_of_pydantic_count_inside_of_classes_too(way: str) -> None:
    """A class that msgspec reads may hold what only pydantic reads."""
    pet = Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]
    kinds: dict[str, Any] = {
        "dataclass": make_dataclass("Owner", [("pet", pet)]),
        "NamedTuple": NamedTuple("Owner", [("pet", pet)]),
        "TypedDict": typing_extensions.TypedDict("Owner", {"pet": pet}),
    }

    def function(x: Any) -> None: ...

    function.__annotations__ = {"x": kinds[way]}
    cat = Cat(kind="cat")
    given = [{"kind": "cat"}] if way == "NamedTuple" else {"pet": {"kind": "cat"}}
    made = read(FunctionTool(function), x=given)["x"]
    assert made == ({"pet": cat} if way == "TypedDict" else kinds[way](cat))


def test_strict_models_are_read_from_json() -> None:
    """A strict model takes a date only from JSON, as the model wrote it."""

    class Strict(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(strict=True)
        day: datetime.date
        unit: Unit

    def on(when: Strict, others: list[Strict]) -> None: ...

    on.__annotations__ = {"when": Strict, "others": list[Strict]}
    day = {"day": "2026-11-28", "unit": "celsius"}
    strict = Strict(day=datetime.date(2026, 11, 28), unit=Unit.C)
    assert read(FunctionTool(on), when=day, others=[day]) == {"when": strict, "others": [strict]}


def _place(kind: Any) -> Any:
    return defstruct("Place", [("inside", kind)])


def test_names_that_clash_stay_apart() -> None:
    """With the schema of another class of the same name, the model gives what the tool refuses."""
    one, other = _place(int), _place(str)

    def place(one: Any, other: Any, mine: Any) -> None: ...

    place.__annotations__ = {"one": one, "other": other, "mine": Place}
    place.__name__ = "Place"
    tool = FunctionTool(place)
    assert tool.declaration.parameters is not None
    definitions = tool.declaration.parameters["$defs"]
    assert [
        definitions[properties(tool)[name]["$ref"].rpartition("/")[2]]["properties"]
        for name in ("one", "other", "mine")
    ] == [
        {"inside": {"type": "integer"}},
        {"inside": {"type": "string"}},
        {"name": {"type": "string"}},
    ]
    given = read(tool, one={"inside": 1}, other={"inside": "a"}, mine={"name": "b"})
    assert given == {"one": one(1), "other": other("a"), "mine": Place("b")}


def test_what_cannot_be_declared_names_the_parameter() -> None:
    """A bare KeyError says nothing to who wrote the tool."""
    one, other = _place(int), _place(str)

    @dataclass
    class With:
        at: Path = Path("x")

    class Unfinished(Struct):
        later: Missing  # type: ignore[name-defined]  # noqa: F821 - on purpose

    wrong: dict[str, Any] = {
        "JSON has no form for the type of parameter 'x', .*complex is none of the types": complex,
        "two classes in one parameter are called .*Place": tuple[one, other],
        "JSON has no form for the type of parameter 'x', or for a default inside of it: Encoding": With,
        "JSON has no form for the type of parameter 'x', .*name 'Missing' is not defined": Unfinished,
        "pydantic cannot read the type of parameter 'x'": Annotated[list[Place], pydantic.Field(max_length=3)],
    }
    for says, kind in wrong.items():

        def function(x: Any) -> None:
            """Do it.

            Args:
                x: Described, which once had any class declared as anything.
            """

        function.__annotations__ = {"x": kind}
        with pytest.raises(InputError, match=says):
            FunctionTool(function)
