"""The settings that ask for an answer by a JSON schema, or for how much reasoning: read and written by the form that
each provider has.

A form is a piece of settings with marks in it: where the schema is, its name, whether it is strict. All providers say
the same with it, so a schema goes from one to another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from .strict_schemas import is_strict

if TYPE_CHECKING:
    from .protocol import Provider

SCHEMA, NAMED, STRICT, TYPED, EFFORT = "<schema>", "<name>", "<strict>", "<typed schema>", "<effort>"
"""The marks of a form. `TYPED` is a schema with Google's types, in capitals."""

ANSWER = "answer"
"""The usual name of a schema, and of the tool that takes answers where there is no such setting."""


class AnswerSchema(Struct, frozen=True):
    """The schema that an answer follows. `strict`: the provider makes sure of it."""

    schema: dict[str, Any]
    name: str = ANSWER
    strict: bool = False


def answer_taken(source: Provider, settings: Mapping[str, Any]) -> tuple[AnswerSchema | None, dict[str, Any]]:
    """The schema for the answer in a provider's settings, None if there is none, and the settings without it."""
    for form in source.answer_forms:
        found: dict[str, Any] = {}
        rest = _taken(form, settings, found)
        schema = found.get(SCHEMA, found.get(TYPED))
        if rest is not None and isinstance(schema, dict):
            schema = _lower(schema) if TYPED in found else schema
            strict = found.get(STRICT, STRICT not in str(form) and is_strict(schema))
            return AnswerSchema(schema, str(found.get(NAMED) or ANSWER), strict is True), rest
    return None, dict(settings)


def _taken(form: Mapping[str, Any], given: Mapping[str, Any], found: dict[str, Any]) -> dict[str, Any] | None:
    """What a form leaves of settings, None if they do not have this form. Adds what stands at its marks to `found`."""
    rest = dict(given)
    for key, wanted in form.items():
        name = next((each for each in given if each.replace("_", "").lower() == key.replace("_", "").lower()), key)
        value = rest.pop(name, None)
        if isinstance(wanted, Mapping):
            inner = _taken(wanted, value, found) if isinstance(value, Mapping) else None
            if inner is None:
                return None
            if inner:
                rest[name] = inner
        elif wanted.startswith("<"):
            if value is None and wanted in (SCHEMA, TYPED, EFFORT):
                return None
            found[wanted] = value
        elif value not in (None, wanted):
            return None
    return rest


def _lower(schema: Any) -> Any:
    """A schema with Google's types as a JSON schema."""
    if isinstance(schema, list):
        return [_lower(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value.lower() if key == "type" and isinstance(value, str) else _lower(value)
        for key, value in schema.items()
    }


def with_answer(to: Provider, settings: Mapping[str, Any], answer: AnswerSchema) -> dict[str, Any]:
    """Settings that also ask for an answer by this schema."""
    marks = {SCHEMA: answer.schema, NAMED: answer.name, STRICT: answer.strict}
    return _put(settings, to.answer_forms[0], marks)


def _put(settings: Mapping[str, Any], form: Mapping[str, Any], marks: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(settings)
    for key, wanted in form.items():
        held = result.get(key)
        if isinstance(wanted, Mapping):
            result[key] = _put(held if isinstance(held, Mapping) else {}, wanted, marks)
        else:
            result[key] = marks.get(wanted, wanted)
    return result


def effort_taken(source: Provider, settings: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """How much a model is to reason by a provider's settings, "" if they do not say, and the settings without it."""
    found: dict[str, Any] = {}
    rest = _taken(source.effort_form, settings, found)
    word = found.get(EFFORT)
    return (word.lower(), rest) if rest is not None and isinstance(word, str) else ("", dict(settings))


def with_effort(to: Provider, settings: Mapping[str, Any], effort: str) -> dict[str, Any]:
    """Settings that also say how much a model is to reason."""
    return _put(settings, to.effort_form, {EFFORT: effort})
