"""The parameters of a function: how they are declared, and how the arguments of a call are read.

msgspec reads types and arguments. Parameters that only pydantic can read (`pydantic.Field`, its constraints, unions of
its models) are left to pydantic.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from functools import partial
from pathlib import PurePath
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from .._platform.exceptions import described
from ..errors import InputError
from ..log.references import with_references
from .context import is_context

_PYDANTIC = ("annotated_types", "pydantic", "pydantic_core")
"""The packages whose notes in `Annotated` only pydantic reads."""


class Parameter(Struct, frozen=True):
    """A parameter of a function.

    `adapter` is the pydantic.TypeAdapter that reads it, None if msgspec does. `default` makes the value for an absent
    argument; None if the parameter is required or the function itself has a default.
    """

    name: str
    kind: Any
    required: bool
    adapter: Any = None
    default: Callable[[], Any] | None = None


class Parameters:
    """The parameters of a function that a model fills in: their `names`, and the `schema` that declares them. `context`
    is the name of the one for the ToolContext, "" if there is none.

    Raises InputError for a function that no model could call: `*args`, a parameter without a type hint, or one of a
    type without a JSON form.
    """

    def __init__(self, function: Callable[..., Any], name: str, descriptions: Mapping[str, str]) -> None:
        self._parameters, self.context = _parameters_of(function, name, descriptions)
        self._struct = _struct_of(self._parameters, name)
        self.schema = _schema_of(self._parameters, name, descriptions)
        self.names = [parameter.name for parameter in self._parameters]

    def takes(self, name: Any) -> bool:
        """Whether the function takes an argument of this name from a model."""
        return name in self.names

    def read(self, arguments: Any, *, strict: bool = False) -> dict[str, Any]:
        """The arguments converted to the function's types. Raises InputError, worded for the model, for arguments that
        do not fit; with `strict` also for a text in place of a number, and the like. An exception of any kind that a
        type's own code raises is such an error, too."""
        values: dict[str, Any] = {}
        try:
            converted = msgspec.convert(arguments, self._struct, strict=strict, dec_hook=_decoded)
            for parameter in self._parameters:
                value = getattr(converted, parameter.name)
                if value is not UNSET:
                    values[parameter.name] = value if parameter.adapter is None else _validated(parameter, value)
                elif parameter.default is not None:
                    values[parameter.name] = parameter.default()
        except (Exception, SystemExit) as error:  # the latter would end the event loop
            says = str(error) if isinstance(error, (msgspec.ValidationError, ValueError)) else described(error)
            raise InputError(f"The tool was not run, as its arguments do not fit: {says}") from error
        return values


def routine_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, also of a `partial`, or the `__call__` method of an object that is called."""
    while isinstance(function, partial):
        function = function.func
    routine: Callable[..., Any] = function if inspect.isroutine(function) else type(function).__call__
    return routine


# -- types ---------------------------------------------------------------------------------------


def signature_of(function: Callable[..., Any], name: str) -> tuple[list[inspect.Parameter], dict[str, Any], str]:
    """The parameters of a function without the one for the ToolContext, their type hints, and the name of that one, ""
    if there is none. Raises InputError for a function whose parameters cannot be read."""
    try:
        hints = get_type_hints(routine_of(function), include_extras=True)
        parameters = list(inspect.signature(function).parameters.values())
    except (NameError, TypeError, ValueError) as error:
        raise InputError(f"tool {name!r}: its parameters cannot be read: {error}") from error
    contexts = [
        one
        for one in parameters
        if is_context(hints.get(one.name)) and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    ]
    if len(contexts) > 1:
        raise InputError(f"tool {name!r}: {contexts[1].name!r} is a second ToolContext: a call has one")
    return [one for one in parameters if one not in contexts], hints, "".join(one.name for one in contexts)


def _parameters_of(
    function: Callable[..., Any], name: str, descriptions: Mapping[str, str]
) -> tuple[list[Parameter], str]:
    parameters, hints, context = signature_of(function, name)
    tool_parameters: list[Parameter] = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            says = f"what {parameter} takes, no model knows: give a schema, turnlog.agent.tool(..., parameters={{...}})"
            raise InputError(f"tool {name!r}: {says}")
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise InputError(f"tool {name!r}: parameter {parameter} cannot be given by name, as a model does")
        if parameter.name not in hints:
            raise InputError(
                f"tool {name!r}: parameter {parameter.name!r} has no type hint, so no model knows what to give"
            )
        tool_parameters.append(_parameter(parameter, hints[parameter.name], name, descriptions.get(parameter.name, "")))
    return tool_parameters, context


def _parameter(parameter: inspect.Parameter, kind: Any, tool: str, description: str) -> Parameter:
    """The Parameter for a type hint. A `pydantic.Field` may stand in the hint or in place of the default."""
    has_default = parameter.default is not parameter.empty
    if has_default and _is_field(parameter.default):
        kind, has_default = Annotated[kind, parameter.default], False
    field = next(filter(_is_field, reversed(_notes(kind))), None)
    default = None if has_default or field is None or field.is_required() else _default_of(field)
    required = not has_default and default is None
    adapter = _adapter(kind, tool, parameter.name) if _asks_pydantic(kind, set()) else None
    if adapter is None:
        note_description = next(filter(None, map(_said, reversed(_notes(kind)))), "")
        described_by_meta = any(isinstance(note, Meta) and note.description for note in _notes(kind))
        kind = _without_paths(kind)
        if (note_description or description) and not described_by_meta:
            kind = Annotated[kind, Meta(description=note_description or description)]
    return Parameter(parameter.name, kind, required, adapter, default)


def _notes(kind: Any) -> tuple[Any, ...]:
    return get_args(kind)[1:] if get_origin(kind) is Annotated else ()


def _is_field(note: Any) -> bool:
    """Whether this is a `pydantic.Field`."""
    return type(note).__name__ == "FieldInfo" and type(note).__module__.startswith("pydantic.")


def _default_of(field: Any) -> Callable[[], Any]:
    return lambda: field.get_default(call_default_factory=True)


def _said(note: Any) -> str:
    """The description in a note: a string, a typing_extensions.Doc, or an object with a `description`."""
    texts = (note, getattr(note, "documentation", None), getattr(note, "description", None))
    return next((text for text in texts if isinstance(text, str)), "")


def _without_paths(kind: Any) -> Any:
    """Drop path types from a union with `str`: text fits both, and msgspec reads only one of them."""
    members = get_args(kind) if get_origin(kind) in (Union, UnionType) else ()
    if str not in members or not any(map(_is_path, members)):
        return kind
    return Union[tuple(member for member in members if not _is_path(member))]  # noqa: UP007 - of a tuple


def _is_path(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, PurePath)


def _asks_pydantic(kind: Any, seen: set[Any]) -> bool:
    """Whether a type says something that only pydantic reads."""
    try:
        if kind in seen:
            return False
        seen.add(kind)
    except TypeError:  # not hashable, as some notes are not
        pass
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return False
    if origin is Annotated:
        return any(map(_is_pydantic, inner[1:])) or _asks_pydantic(inner[0], seen)
    if origin in (Union, UnionType):
        others = [member for member in inner if member is not NoneType]
        if len(others) > 1 and any(hasattr(member, "model_json_schema") for member in others):
            return True
    named = getattr(origin or kind, "__value__", None) or getattr(kind, "__supertype__", None)  # `type X = ...`
    return (
        (isinstance(kind, type) and not hasattr(kind, "model_json_schema") and _is_pydantic(kind))
        or any(_asks_pydantic(member, seen) for member in (*inner, *_fields_of(origin or kind)))
        or (named is not None and _asks_pydantic(named, seen))
    )


def _is_pydantic(note: Any) -> bool:
    is_of_pydantic = type(note).__module__.partition(".")[0] in _PYDANTIC
    return is_of_pydantic or hasattr(note, "__get_pydantic_core_schema__") or hasattr(note, "__pydantic_validator__")


def _fields_of(kind: Any) -> Iterable[Any]:
    """The types of the fields of a class that both msgspec and pydantic read."""
    named = is_dataclass(kind) or hasattr(kind, "_fields") or hasattr(kind, "__total__")  # the last: a TypedDict
    if not isinstance(kind, type) or not named:
        return ()
    try:
        return get_type_hints(kind, include_extras=True).values()
    except (NameError, TypeError):  # msgspec says so, too
        return ()


def _adapter(kind: Any, tool: str, name: str) -> Any:
    """The pydantic.TypeAdapter of a type; None if pydantic cannot read the type and would only add a description to
    it."""
    try:
        return importlib.import_module("pydantic").TypeAdapter(kind)
    except (ImportError, AttributeError, NameError, RuntimeError, TypeError, ValueError) as error:
        bare = get_args(kind)[0] if _notes(kind) else kind
        if not _asks_pydantic(bare, set()) and all(_is_field(note) and not note.metadata for note in _notes(kind)):
            return None
        says = str(error).splitlines()[0]
        raise InputError(f"tool {tool!r}: pydantic cannot read the type of parameter {name!r}: {says}") from error


# -- arguments -----------------------------------------------------------------------------------


def _struct_of(parameters: Iterable[Parameter], name: str) -> type[Struct]:
    """A struct type for the arguments; those that are not required may be absent."""
    kinds = ((parameter, parameter.kind if parameter.adapter is None else Any) for parameter in parameters)
    fields: list[Any] = [
        (parameter.name, kind) if parameter.required else (parameter.name, Union[kind, UnsetType], UNSET)  # noqa: UP007 - of any types
        for parameter, kind in kinds
    ]
    return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)


def _decoded(kind: type, value: Any) -> Any:
    """Convert an argument of a type that msgspec does not know: a path, or a class that reads itself, such as a
    pydantic model."""
    if _is_path(kind):
        if not isinstance(value, str):
            raise ValueError(f"Expected `str`, got `{type(value).__name__}`")
        return kind(value)
    from_json = getattr(kind, "model_validate_json", None)  # as strict models read a date only from JSON
    if from_json is not None:
        return from_json(json.dumps(value))
    return kind.model_validate(value)  # type: ignore[attr-defined]


def _validated(parameter: Parameter, value: Any) -> Any:
    try:
        return parameter.adapter.validate_json(json.dumps(value))
    except ValueError as error:
        listed = error.errors(include_url=False) if hasattr(error, "errors") else [{"msg": str(error), "loc": ()}]
        says = "; ".join(
            f"{mistake['msg']} - at `$.{'.'.join(map(str, (parameter.name, *mistake['loc'])))}`" for mistake in listed
        )
        raise ValueError(says) from error


# -- declaration ---------------------------------------------------------------------------------


def _schema_of(parameters: Iterable[Parameter], name: str, descriptions: Mapping[str, str]) -> dict[str, Any]:
    """The JSON schema of the arguments, with all its definitions at the root."""
    parameters = list(parameters)
    properties, parts = _by_msgspec([parameter for parameter in parameters if parameter.adapter is None], name)
    for parameter in parameters:
        if parameter.adapter is not None:
            parameter_schema, description = _by_pydantic(parameter, name), descriptions.get(parameter.name)
            is_described = not description or any(map(_said, _notes(parameter.kind)))
            properties[parameter.name] = (
                parameter_schema if is_described else {**parameter_schema, "description": description}
            )
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {parameter.name: properties[parameter.name] for parameter in parameters},
        "required": [parameter.name for parameter in parameters if parameter.required],
        "additionalProperties": False,
    }
    whole_schema: dict[str, Any] = with_references({**schema, "$defs": parts} if parts else schema)[0]
    return whole_schema


def _by_msgspec(parameters: list[Parameter], tool: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schemas of parameters by name, and the definitions that they share."""
    try:
        try:
            schemas, parts = _components([parameter.kind for parameter in parameters])
            return dict(zip((parameter.name for parameter in parameters), schemas, strict=True)), parts
        except KeyError:  # two classes have one name: their definitions are kept apart
            apart: dict[str, Any] = {}
            for parameter in parameters:
                (schema,), parts = _components([parameter.kind])
                apart[parameter.name] = {**schema, "$defs": parts} if parts else schema
            return apart, {}
    except KeyError as error:
        raise InputError(f"tool {tool!r}: two classes in one parameter are called {error}: rename one") from error
    except (NameError, TypeError) as error:  # NameError: a name that a class uses is not known
        names = ", ".join(repr(parameter.name) for parameter in parameters if not _has_schema(parameter.kind))
        says = f"JSON has no form for the type of parameter {names}, or for a default inside of it: {error}"
        raise InputError(f"tool {tool!r}: {says}") from error


def _has_schema(kind: Any) -> bool:
    try:
        return bool(_components([kind]))
    except (NameError, TypeError):
        return False


def _components(kinds: list[Any]) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    return msgspec.json.schema_components(kinds, schema_hook=_schema_of_class, ref_template="#/$defs/{name}")


def _schema_of_class(kind: type) -> dict[str, Any]:
    """The schema of a class that msgspec does not know: a path, or a class with its own schema, such as a pydantic
    model."""
    if _is_path(kind):
        return {"type": "string", "format": "path"}
    make_schema = getattr(kind, "model_json_schema", None)
    if make_schema is None:
        raise TypeError(f"{kind.__name__} is none of the types that msgspec or pydantic read")
    return dict(make_schema())


def _by_pydantic(parameter: Parameter, tool: str) -> dict[str, Any]:
    try:
        return dict(parameter.adapter.json_schema())
    except (RuntimeError, TypeError, ValueError) as error:
        says = f"JSON has no form for the type of parameter {parameter.name!r}: {error}"
        raise InputError(f"tool {tool!r}: {says}") from error
