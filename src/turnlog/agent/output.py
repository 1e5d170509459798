"""Typed answers: the schema that a type asks a model for, and the value that its answer is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, get_type_hints

from msgspec import UNSET

from .._platform.lazy import lazy_pattern
from ..errors import InputError
from ..log.messages import ToolCall
from ..providers.answer_forms import ANSWER
from ..providers.strict_schemas import schemas_in, strict_schema
from ..session.inputs import InvalidArguments, to_run
from ..view.tool_calls import CallInfo
from .parameters import Parameters
from .values import RunStop

_FENCED = lazy_pattern(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL)


class Output:
    """The type that the answer of a run has. `value` is the answer, once it fits."""

    def __init__(self, kind: Any, retries: int) -> None:
        self._parameters = _as_parameter(kind)
        held, self._is_bare = _root(self._parameters.schema)
        self.schema: dict[str, Any] = strict_schema(held)
        """The schema for the model, as strict as it can be."""
        self.retries_left = retries
        self.value: Any = UNSET

    def take_text(self, text: str) -> str:
        """Take an answer's text. Returns "" if it fits, else what is wrong with it, worded for the model."""
        fenced = _FENCED.fullmatch(text)
        try:
            return self._take(json.loads(fenced[1] if fenced else text))
        except (RecursionError, ValueError) as error:
            return self._wrong(f"it is no JSON: {error}")

    def take_call(self, call: ToolCall) -> str:
        """Take the arguments of a call of the tool for answers, as `take_text`."""
        arguments = call.arguments
        return self._wrong(str(arguments)) if isinstance(arguments, InvalidArguments) else self._take(arguments or {})

    def ended_by(self, calls: Iterable[CallInfo]) -> RunStop | None:
        """How the run ended, if one of a turn's calls gave the answer, or did not fit too often."""
        for info in calls:
            if self.value is UNSET and info.call.name == ANSWER and info.outcome == "ok":
                with suppress(InputError):  # of a run that asked for another type
                    self.value = self._read(to_run(info.call).arguments)
        return "end" if self.value is not UNSET else "output" if self.retries_left < 0 else None

    def _take(self, value: Any) -> str:
        try:
            self.value = self._read(value)
        except InputError as error:
            return self._wrong(str(error).removeprefix("The tool was not run, as its arguments do not fit: "))
        return ""

    def _read(self, value: Any) -> Any:
        """The answer as its type. What fits as it is is read so; only then is a text read as a number."""
        arguments = {"answer": value} if self._is_bare else value
        try:
            return self._parameters.read(arguments, strict=True)["answer"]
        except InputError:
            return self._parameters.read(arguments)["answer"]

    def _wrong(self, why: str) -> str:
        self.retries_left -= 1
        why = why.replace("$.answer", "$") if self._is_bare else why
        return f"This answer does not fit: {why}. Answer again by the schema, with the tool `{ANSWER}` if there is one."


def output_given(kind: Any, retries: Any) -> Output | None:
    """The type of the answer, as it is given to a run; None if none is. Raises InputError."""
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InputError(f"output_retries must be a whole number from 0 on, not {retries!r}")
    if isinstance(kind, (str, bytes, int, float, list, tuple, dict, set)):
        raise InputError(f"output must be a type, such as a dataclass or list[int], not {kind!r:.100}")
    return None if kind is None else Output(kind, retries)


def _as_parameter(kind: Any) -> Parameters:
    """A type, as the parameter of a function that answers would be given to. Raises InputError, which names the field
    that JSON has no form for."""
    try:
        return _parameters(kind)
    except InputError as error:
        where = _without_form(kind)
        at = f" (its field {where!r})" if where else ""
        says = str(error).removeprefix("tool 'output': ").replace("the type of parameter 'answer'", "this type")
        raise InputError(f"output: {getattr(kind, '__name__', kind)!s}{at} cannot be asked for: {says}") from error


def _parameters(kind: Any) -> Parameters:
    def answer(answer: Any) -> None: ...

    answer.__annotations__ = {"answer": kind}
    return Parameters(answer, "output", {})


def _without_form(kind: Any) -> str:
    """The path of the field that has no JSON schema, "" if it is none of a field."""
    try:
        hints = get_type_hints(kind, include_extras=True)
    except (NameError, TypeError):
        return ""
    for name, inner in hints.items():
        try:
            _parameters(inner)
        except InputError:
            return ".".join(filter(None, (name, _without_form(inner))))
    return ""


def _root(schema: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The schema of the answer, and whether it is that of the type itself. Providers want an object at the root: a list
    or a number is the property `answer` of one."""
    held: Mapping[str, Any] = schema["properties"]["answer"]
    parts = schema.get("$defs", {})
    name = str(held.get("$ref", "")).removeprefix("#/$defs/")
    root = parts.get(name, held)
    if not isinstance(root, dict) or root.get("type") != "object" or "properties" not in root:
        return schema, False
    used = {each.get("$ref") for part in (root, *parts.values()) for each in schemas_in(part)}
    left = {key: part for key, part in parts.items() if key != name or f"#/$defs/{key}" in used}
    return ({**root, "$defs": left} if left else dict(root)), True
