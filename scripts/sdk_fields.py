"""Compares the types of the providers' SDKs with turnlog's schemas: which fields has nobody decided about?

    python scripts/sdk_fields.py [--update]

Walks the request types of each installed SDK beside the schema of that API (`providers/*/schema.py`). Each field, word
and type of a block is either known to the schema, passed through (the schema takes any JSON there), or listed in
scripts/sdk_fields.json with the reason why it is refused. Of responses, each field is listed in that file: as `read`,
as `kept` (it goes into the log unread), or as `left` with the reason. Prints what is undecided, and decisions about
fields that the SDK does not have; exits with 1 if there is any. `--update` adds undecided fields to the file with an
empty reason, which the test refuses.

tests/providers/test_sdk_fields.py runs it with the SDKs of constraints.txt: a newer SDK fails there until somebody has
decided about its new fields.
"""

from __future__ import annotations

import importlib
import json
import sys
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typing_extensions

from turnlog.providers.anthropic import schema as anthropic
from turnlog.providers.google import schema as google
from turnlog.providers.google_interactions import schema as interactions
from turnlog.providers.openai_chat import schema as openai_chat
from turnlog.providers.openai_responses import schema as openai_responses
from turnlog.providers.schema.shapes import (
    ANY,
    Each,
    Either,
    Many,
    NamedShape,
    ObjectShape,
    Read,
    Schema,
    Shape,
    Tagged,
    Value,
    WordShape,
)

DECISIONS = Path(__file__).with_suffix(".json")

_WRAPPERS = (
    typing.NotRequired, typing_extensions.NotRequired, typing.Required, typing_extensions.Required, typing.Annotated
)  # fmt: skip
_LISTS = (list, tuple, Iterable, Sequence)


class Api(NamedTuple):
    """One API: the module of its SDK, its request type with the schema, and its response types by the name under which
    their fields are listed."""

    sdk: str
    request: str
    schema: Shape
    responses: dict[str, str]


APIS: dict[str, Api] = {
    "anthropic": Api(
        "anthropic",
        "anthropic.types.beta.message_create_params:MessageCreateParamsStreaming",
        anthropic.BODY,
        {
            "message": "anthropic.types.beta:BetaMessage",
            "message_delta": "anthropic.types.beta.beta_raw_message_delta_event:Delta",
            "usage": "anthropic.types.beta:BetaUsage",
        },
    ),
    "openai-chat": Api(
        "openai",
        "openai.types.chat.completion_create_params:CompletionCreateParamsStreaming",
        openai_chat.BODY,
        {
            "completion": "openai.types.chat:ChatCompletion",
            "choice": "openai.types.chat.chat_completion:Choice",
            "message": "openai.types.chat:ChatCompletionMessage",
            "chunk": "openai.types.chat:ChatCompletionChunk",
            "delta": "openai.types.chat.chat_completion_chunk:ChoiceDelta",
            "usage": "openai.types:CompletionUsage",
        },
    ),
    "openai-responses": Api(
        "openai",
        "openai.types.responses.response_create_params:ResponseCreateParamsStreaming",
        openai_responses.BODY,
        {
            "response": "openai.types.responses:Response",
            "usage": "openai.types.responses:ResponseUsage",
        },
    ),
    "google": Api(
        "google.genai",
        "google.genai.types:GenerateContentConfig",
        google.BODY,
        {
            "response": "google.genai.types:GenerateContentResponse",
            "candidate": "google.genai.types:Candidate",
            "usage": "google.genai.types:GenerateContentResponseUsageMetadata",
        },
    ),
    "google-interactions": Api(
        "google.genai",
        "google.genai._gaos.types.interactions:CreateModelInteractionParam",
        interactions.BODY,
        {
            "interaction": "google.genai._gaos.types.interactions:Interaction",
            "usage": "google.genai._gaos.types.interactions:Usage",
        },
    ),
}


def load(place: str) -> Any:
    """A type by `module:name`."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


# -- types of SDKs -------------------------------------------------------------------------------


def plain(type_: Any) -> Any:
    """A type without its alias and its wrappers."""
    while True:
        if isinstance(type_, typing_extensions.TypeAliasType):
            type_ = type_.__value__
        elif typing.get_origin(type_) in _WRAPPERS:
            type_ = typing.get_args(type_)[0]
        else:
            return type_


def members(type_: Any) -> list[Any]:
    """The types of a union, or the one type, without None."""
    type_ = plain(type_)
    if typing.get_origin(type_) in (typing.Union, types.UnionType):
        return [one for inner in typing.get_args(type_) for one in members(inner)]
    return [] if type_ is type(None) else [type_]


def fields_of(type_: Any) -> dict[str, Any] | None:
    """The fields of an object by their names on the wire; None if the type is no object."""
    if hasattr(type_, "model_fields"):
        return {field.alias or name: field.annotation for name, field in type_.model_fields.items()}
    if typing_extensions.is_typeddict(type_):
        return {
            name.removesuffix("_"): hint  # `schema_` is an SDK's name for `schema`
            for name, hint in typing.get_type_hints(type_, include_extras=True).items()
        }
    return None


# -- beside a schema -----------------------------------------------------------------------------


def shapes_in(shape: Shape) -> Iterator[Shape]:
    """The shapes that a value may have."""
    match shape:
        case NamedShape():
            yield from shapes_in(shape.get())
        case Read():
            yield from shapes_in(shape.sent)
        case Schema(of):
            yield from shapes_in(of)
        case Either(of):
            for inner in of:
                yield from shapes_in(inner)
        case _:
            yield shape


def undecided(type_: Any, shape: Shape, path: str, seen: set[tuple[int, int]]) -> Iterator[str]:
    """The paths of fields and words of a type that the schema neither knows nor passes through."""
    shapes = [*shapes_in(shape)]
    if ANY in shapes:
        return
    for member in members(type_):
        origin, inner = typing.get_origin(member), typing.get_args(member)
        if origin is typing.Literal:
            known = frozenset().union(*(one.words for one in shapes if isinstance(one, WordShape)))
            if known and not any(isinstance(one, Value) for one in shapes):
                yield from (f"{path}={word}" for word in inner if isinstance(word, str) and word not in known)
        elif origin in _LISTS:
            lists = [one for one in shapes if isinstance(one, Many)]
            for one in lists:
                yield from undecided(inner[0], one.of, f"{path}[]", seen)
            if not lists and not any(isinstance(one, Value) and one.kind == "array" for one in shapes):
                yield f"{path}[]"
        elif origin is dict:
            for one in shapes:
                if isinstance(one, Each):
                    yield from undecided(inner[1], one.of, f"{path}.*", seen)
        elif (fields := fields_of(member)) is not None:
            yield from _object(member, fields, shapes, path, seen)


def _object(
    type_: Any, fields: Mapping[str, Any], shapes: list[Shape], path: str, seen: set[tuple[int, int]]
) -> Iterator[str]:
    takers = [one for one in shapes if isinstance(one, (ObjectShape, Tagged, Each))]
    if any(isinstance(one, Value) and one.kind == "object" for one in shapes) or any(
        isinstance(one, Each) for one in takers
    ):
        return
    if not takers:
        yield f"{path}.{{}}"
        return
    for one in takers:
        if (id(type_), id(one)) in seen:
            continue
        seen.add((id(type_), id(one)))
        if isinstance(one, ObjectShape):
            yield from _record(fields, one, path, seen)
            continue
        tags = fields.get(one.tag)
        words = [word for tag in (members(tags) if tags is not None else ()) for word in typing.get_args(tag)]
        for word in words or [one.missing]:
            if word in one.shapes:
                for shape in shapes_in(one.shapes[word]):
                    if isinstance(shape, ObjectShape):
                        yield from _record(fields, shape, f"{path}<{word}>", seen)
            elif not one.leaves(str(word)):
                yield f"{path}<{word}>"


def _record(fields: Mapping[str, Any], record: ObjectShape, path: str, seen: set[tuple[int, int]]) -> Iterator[str]:
    for name, hint in fields.items():
        where = f"{path}.{name}" if path else name
        if name in record.keys:
            yield from undecided(hint, record.keys[name], where, seen)
        else:
            yield where


def request_of(name: str) -> set[str]:
    """The undecided fields of an API's requests."""
    api, seen = APIS[name], set[tuple[int, int]]()
    type_ = load(api.request)
    if name != "google":
        return {*undecided(type_, api.schema, "", seen)}
    # The SDK's configuration mixes what the body has at its top with what it has in `generationConfig`.
    assert isinstance(api.schema, ObjectShape)
    inner = api.schema.keys["generationConfig"]
    assert isinstance(inner, ObjectShape)
    found: set[str] = set()
    content = load("google.genai.types:Content")
    for key, hint in (fields_of(type_) or {}).items():
        record = api.schema if key in api.schema.keys else inner
        hint = content if key == "systemInstruction" else hint  # what else the SDK takes, it sends as a content
        found |= {*_record({key: hint}, record, "" if record is api.schema else "generationConfig", seen)}
    return found | {*undecided(content, api.schema.keys["contents"], "contents", seen)}


def response_of(name: str) -> set[str]:
    """The fields of an API's responses."""
    return {
        f"{group}.{field}" for group, place in APIS[name].responses.items() for field in fields_of(load(place)) or {}
    }


def decisions() -> dict[str, dict[str, dict[str, str]]]:
    """The decisions: by API, then `request` or `response`, then path, the reason or the word `read` or `kept`."""
    found: dict[str, dict[str, dict[str, str]]] = json.loads(DECISIONS.read_text("utf-8"))
    return found


def main() -> int:
    made = decisions() if DECISIONS.exists() else {}
    bad = 0
    for name in APIS:
        for side, found in (("request", request_of(name)), ("response", response_of(name))):
            decided = made.setdefault(name, {}).setdefault(side, {})
            for path in sorted(found - decided.keys()):
                print(f"{name} {side}: nobody decided about {path}")
                bad += 1
            for path in sorted(decided.keys() - found):
                print(f"{name} {side}: the SDK has no {path}, or the schema has it")
                bad += 1
            if "--update" in sys.argv:
                made[name][side] = {path: decided.get(path, "") for path in sorted(found)}
    if "--update" in sys.argv:
        DECISIONS.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
