"""Bodies of the Interactions API, drawn from the types of Google's SDK: none that were recorded are at hand.

`draw_body` draws every field that the SDK knows, `draw_conversation` one whose calls and results are in order, too.
"""

from __future__ import annotations

import base64
import random
import types
import typing
from collections.abc import Iterator
from typing import Any

import typing_extensions
from google.genai._gaos.types import interactions as sdk
from google.genai._gaos.types.interactions.content import ContentParam
from google.genai._gaos.types.interactions.step import StepParam

from turnlog.testing.histories import PIXEL

__all__ = ["draw_body", "draw_conversation", "union_of"]

_WORDS = ("plain words", "naïve 数据 🙂", "two\nlines", ' "quoted" ', "x")
_NAMES = ("read_file", "bash", "mcp.search:web", "_private-9")
_JSON = {"type": "object", "properties": {"path": {"type": ["string", "null"]}}, "required": ["path"], "$defs": {}}
_OPTIONAL = (typing.NotRequired, typing_extensions.NotRequired)
_WRAPPERS = (*_OPTIONAL, typing.Required, typing_extensions.Required, typing.Annotated)


def _plain(type_: Any) -> Any:
    """A type without its alias and its wrappers."""
    while True:
        if isinstance(type_, typing_extensions.TypeAliasType):
            type_ = type_.__value__
        elif typing.get_origin(type_) in _WRAPPERS:
            type_ = typing.get_args(type_)[0]
        else:
            return type_


def union_of(alias: Any) -> dict[str, Any]:
    """The members of a union of typed dicts, by their `type`."""
    members = map(_plain, typing.get_args(_plain(alias)))
    return {_tag(member): member for member in members if typing_extensions.is_typeddict(member)}


def _tag(member: Any) -> str:
    return str(typing.get_args(_plain(typing.get_type_hints(member, include_extras=True)["type"]))[0])


class _Drawing:
    """Draws values of the SDK's types."""

    def __init__(self, rng: random.Random, most: float) -> None:
        self.rng = rng
        self.most = most

    def value(self, type_: Any, key: str = "") -> Any:
        type_ = _plain(type_)
        origin, inner = typing.get_origin(type_), typing.get_args(type_)
        if origin in (typing.Union, types.UnionType):
            return self.value(self.rng.choice([one for one in inner if _is_json(one)]), key)
        if origin is typing.Literal:
            return self.rng.choice(inner)
        if origin is list:
            return [self.value(inner[0], key) for _ in range(self.rng.randint(1, 2))]
        if origin is dict:
            return {f"key_{n}": self.value(inner[1], key) for n in range(self.rng.randint(0, 2))}
        if typing_extensions.is_typeddict(type_):
            return self.object(type_)
        return self.scalar(type_, key)

    def object(self, type_: Any, **given: Any) -> dict[str, Any]:
        """An object with the keys that it must have, and some of the others."""
        hints = typing.get_type_hints(type_, include_extras=True)
        if not hints:  # any object
            return {"any": [1, None, {"deep": True}], "text": self.text()}
        made: dict[str, Any] = {}
        for name, hint in hints.items():
            key = name.removesuffix("_")  # `schema_` is the SDK's name for it
            if key == "filter":  # the judge knows it as `filter_`, as the SDK's type does
                continue
            if key in given:
                made[key] = given[key]
            elif typing.get_origin(hint) not in _OPTIONAL or self.rng.random() < self.most:
                made[key] = self.value(hint, key)
        if made.get("type") == "image" and "data" in made:  # bytes that are no image are not sent
            made |= {"data": base64.b64encode(PIXEL).decode(), "mime_type": "image/png"}
        if made.get("type") == "document" and "data" in made and made.get("mime_type", "") in ("", "application/pdf"):
            made["data"] = base64.b64encode(b"%PDF-1.4 %%EOF").decode()
        if made.get("type") in ("image", "document", "audio", "video") and not {"data", "uri"} & made.keys():
            if "Content" in type_.__name__:
                made["uri"] = self.scalar(str, "uri")
        return made

    def scalar(self, type_: Any, key: str) -> Any:
        if type_ is bool:
            return self.rng.random() < 0.5
        if type_ is int:
            return self.rng.randint(0, 9)
        if type_ is float:
            return self.rng.choice((0, 0.5, 1.0))
        if type_ is not str:
            return _JSON
        if key in ("data", "signature"):
            return base64.b64encode(self.rng.randbytes(self.rng.randint(1, 9))).decode()
        if key == "uri":
            return self.rng.choice(("https://a.example/b.png", "gs://bucket/c.pdf", "https://youtu.be/x"))
        if key == "name":
            return self.rng.choice(_NAMES)
        return self.text()

    def text(self) -> str:
        return f"{self.rng.choice(_WORDS)} {self.rng.randint(0, 999)}"


def _is_json(type_: Any) -> bool:
    """Whether a member of a union is JSON: not an open file, nor the SDK's word for what it does not know."""
    plain = _plain(type_)
    origin = typing.get_origin(plain)
    if origin in (list, dict, typing.Union, typing.Literal) or typing_extensions.is_typeddict(plain):
        return True
    return plain in (str, int, float, bool, Any)


def _settings(drawing: _Drawing) -> dict[str, Any]:
    # Cached content excludes instructions and tools; the background, not storing.
    hidden = {"input": [], "model": "gemini-3-pro", "tools": [], "cached_content": None, "background": None}
    body = drawing.object(sdk.CreateModelInteractionParam, **hidden)
    return {key: value for key, value in body.items() if value not in (None, [])}


def _tools(drawing: _Drawing) -> list[dict[str, Any]]:
    kinds = union_of(typing.get_args(_plain(_hint("tools")))[0])
    chosen = drawing.rng.sample(sorted(kinds), drawing.rng.randint(0, 3))
    tools = [drawing.object(kinds[kind]) for kind in chosen]
    return [{**tool, "name": "read_file"} if tool["type"] == "function" else tool for tool in tools]


def _hint(key: str) -> Any:
    return typing.get_type_hints(sdk.CreateModelInteractionParam, include_extras=True)[key]


def draw_body(seed: int, most: float = 0.5) -> dict[str, Any]:
    """A body of any fields and steps, in no order. `most` is the share of optional fields that it has."""
    drawing = _Drawing(random.Random(seed), most)
    rng, steps, contents = drawing.rng, union_of(StepParam), union_of(ContentParam)
    body = _settings(drawing)
    match rng.randrange(6):
        case 0:
            body["input"] = drawing.text()
        case 1:
            body["input"] = drawing.object(contents[rng.choice(sorted(contents))])
        case 2:
            body["input"] = [drawing.object(contents[kind]) for kind in rng.sample(sorted(contents), 2)]
        case _:
            body["input"] = [drawing.object(steps[kind]) for kind in rng.choices(sorted(steps), k=rng.randint(1, 6))]
    tools = _tools(drawing)
    return {**body, "tools": tools} if tools else body


def draw_conversation(seed: int) -> dict[str, Any]:
    """A body that the API accepts: each call is answered, and a user speaks last."""
    drawing = _Drawing(random.Random(seed), 0.6)
    body = _settings(drawing)
    body.get("generation_config", {}).pop("tool_choice", None)
    body.pop("previous_interaction_id", None)
    body["input"] = list(_turns(drawing))
    tools = _tools(drawing)
    return {**body, "tools": tools} if tools else body


def _turns(drawing: _Drawing) -> Iterator[dict[str, Any]]:
    rng, steps = drawing.rng, union_of(StepParam)
    own = [kind.removesuffix("_call") for kind in steps if kind.endswith("_call") and kind != "function_call"]
    count = 0
    for _ in range(rng.randint(1, 3)):
        yield {"type": "user_input", "content": [_content(drawing)]}
        for _ in range(rng.randint(0, 2)):
            if rng.random() < 0.5:
                yield drawing.object(steps["thought"])
            if rng.random() < 0.3:
                count, kind = count + 1, rng.choice(own)
                yield drawing.object(steps[f"{kind}_call"], id=f"own_{count}")
                yield drawing.object(steps[f"{kind}_result"], call_id=f"own_{count}")
            calls = []
            for _ in range(rng.randint(1, 3)):
                count += 1
                calls.append(drawing.object(steps["function_call"], id=f"call-{count}", name=rng.choice(_NAMES)))
            yield from calls
            for call in calls:
                yield drawing.object(steps["function_result"], call_id=call["id"], name=call["name"])
        yield {"type": "model_output", "content": [_content(drawing) for _ in range(rng.randint(1, 2))]}
    yield {"type": "user_input", "content": [_content(drawing)]}


def _content(drawing: _Drawing) -> dict[str, Any]:
    contents = union_of(ContentParam)
    kind = drawing.rng.choice(("text", "text", "text", *sorted(contents)))
    made = drawing.object(contents[kind])
    if kind != "text":
        made = {key: value for key, value in made.items() if key not in ("data", "mime_type")}
        made["uri"] = "https://a.example/b"
    return made
