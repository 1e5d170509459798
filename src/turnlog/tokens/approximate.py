"""Counts for models whose vocabulary is not public: o200k's count times a measured factor."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from math import ceil
from typing import Any

from .._platform.lazy import lazy_pattern
from ..log.messages import Media, Message, Opaque, Part, Reasoning, Text, Tool, ToolCall, ToolResult, compact_json
from .encrypted import texts_in
from .families import VERSION, FactoredFamily
from .media import count_media, media_text
from .protocol import BlobReader, Choice, Tally, last_turn, tokens_said
from .schemas import References, mapping
from .vocabulary import SAMPLED, count_pieces, estimated

# -- tool schemas ----------------------------------------------------------------------------------
#
# Tool declarations as Anthropic's and Google's models probably see them.

_UNSEEN = frozenset(
    "$defs definitions $schema additionalProperties title pattern minLength maxLength minItems maxItems uniqueItems "
    "minimum maximum prefixItems".split()
)
"""Keys of a schema that Gemini does not see, judging by bills."""


def spaced_json(tool: Tool) -> str:
    """A declaration as JSON with spaces, for Claude."""
    if tool.kind == "hosted":
        return compact_json(tool.data)
    return json.dumps({"name": tool.name, "description": tool.description, "parameters": tool.parameters})


def flat_json(tool: Tool) -> str:
    """A declaration as compact JSON with references resolved and without titles, for Gemini 2.5 and later."""
    if tool.kind == "hosted":
        return compact_json(tool.data)
    return compact_json({"name": tool.name, "description": tool.description, "parameters": _flat(tool)})


def nested_objects(tool: Tool) -> str:
    """The object schemas directly inside others, as compact JSON: Gemini 2.5 bills them again."""
    return "".join(map(compact_json, _nested(_flat(tool), top=True)))


def names_only(tool: Tool) -> str:
    """Names and descriptions of a tool and its parameters, for Gemini 2.0 and Vertex AI."""
    return "\n".join(filter(None, (tool.name, tool.description, *_names(_flat(tool)))))


def _flat(tool: Tool) -> Any:
    """A tool's schema with its references resolved, without keys that models do not see."""
    return _unfolded(tool.parameters, References(tool.parameters), 0)


def _unfolded(schema: Any, references: References, depth: int, *, names: bool = False) -> Any:
    """A schema with its references resolved. With `names`, its keys are names of properties, not keywords."""
    if isinstance(schema, list):
        return [_unfolded(item, references, depth) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema and not names:
        depth += 2  # Gemini expands a recursive schema at most three times
        if not references.may_enter(depth):
            return {}
        schema = {**references.resolved(schema), **{key: value for key, value in schema.items() if key != "$ref"}}
    return {
        key: _unfolded(value, references, depth, names=key == "properties" and not names)
        for key, value in schema.items()
        if names or key not in _UNSEEN
    }


def _nested(schema: Any, *, top: bool) -> Iterator[Any]:
    inner = mapping(mapping(schema).get("properties"))
    if inner and not top:
        yield schema
    for value in inner.values():
        yield from _nested(value, top=False)


def _names(schema: Any) -> Iterator[str]:
    """The names and descriptions in a schema, in order."""
    if isinstance(schema, list):
        for item in schema:
            yield from _names(item)
    for key, value in mapping(schema).items():
        if key == "properties":
            for name, inner in mapping(value).items():
                yield name
                yield from _names(inner)
        elif key == "description" and isinstance(value, str):
            yield value
        elif key in ("required", "enum") and isinstance(value, list):
            yield from map(str, value)
        elif isinstance(value, (dict, list)):
            yield from _names(value)


_VOCABULARY = "o200k_base"

# A run of so many characters without a space is treated as encoded data: no language has words of that length.
_BLOB = lazy_pattern(r"[A-Za-z0-9+/_=-]{256,}")


class FactoredCounter:
    """Counts for one family of models by factors. Never exact.

    `texts`, if given, is a tokenizer that counts texts instead; `name` is its name and version. Framing, tools and
    media are counted in the same way with it.
    """

    def __init__(self, family: FactoredFamily, texts: Callable[[str], int] | None = None, *, name: str = "") -> None:
        self._family = family
        self._texts = texts
        self.id = f"{family.name}:{VERSION}" + (f"+{name}" if name else "")

    def text(self, text: str) -> int:
        """Tokens of a text."""
        return self._spelled(text, self._family.said)

    def messages(self, messages: Sequence[Message], blob: BlobReader | None = None) -> Tally:
        """Messages with their framing."""
        total = Tally(certainty="estimated")
        turn = last_turn(messages)
        for index, message in enumerate(messages):
            total += self._message(message, blob)
            total += self._signatures(message, self._family.signature if index >= turn else self._family.earlier)
        return total

    def tools(self, tools: Sequence[Tool], choice: Choice = "auto") -> Tally:
        """All declarations, and the hidden prompt that the provider adds to requests with tools."""
        if not tools:
            return Tally(certainty="estimated")
        each = sum(self._defined(tool) or self._declared(tool) + self._family.tool for tool in tools)
        return Tally(tools=each + self._family.hidden.get(choice, 0), certainty="estimated")

    def frame(self, *, system: bool, tools: bool) -> Tally:
        """The framing of the whole request."""
        return Tally(framing=self._family.request + (self._family.system if system else 0), certainty="estimated")

    def settings(self, schemas: Sequence[Any], thinking: str) -> Tally:
        """The tokens that a request's settings add: schemas that the answer must match, and the type of thinking."""
        matched = sum(self._family.keeping + self._spelled(json.dumps(schema), self._family.kept) for schema in schemas)
        return Tally(framing=matched + self._family.thinking.get(thinking, 0), certainty="estimated")

    def _spelled(self, text: str, factor: float) -> int:
        if len(text) > SAMPLED:
            return estimated(text, lambda sample: self._spelled(sample, factor))
        if self._texts is not None:
            return tokens_said(self._texts(text), "texts()")
        blobs = sum(count_pieces(_VOCABULARY, run) for run in _BLOB.findall(text))
        rest = count_pieces(_VOCABULARY, _BLOB.sub("", text) if blobs else text)
        return ceil(rest * factor + blobs * self._family.base64 - 0.5)

    def _defined(self, tool: Tool) -> int:
        """The tokens of a tool that the provider defines; 0 if they are not known."""
        kind = str(tool.data.get("type")) if isinstance(tool.data, dict) else ""
        return next((tokens for start, tokens in self._family.defined.items() if kind.startswith(start)), 0)

    def _declared(self, tool: Tool) -> int:
        data = self._family.data
        match self._family.schema:
            case "flat":
                return self._spelled(flat_json(tool), data) + self._spelled(nested_objects(tool), data)
            case "names":
                return self._spelled(names_only(tool), data)
            case _:
                return self._spelled(spaced_json(tool), data)

    def _message(self, message: Message, blob: BlobReader | None) -> Tally:
        counts = {"system": 0, "user": 0, "assistant": 0, "tool_results": 0, "images": 0, "framing": 0}
        if message.role != "system" and message.parts:
            counts["framing"] += self._family.message
        for part in message.parts:
            if isinstance(part, ToolResult):
                counts["framing"] += self._family.result
                for inner in part.parts:
                    self._add(inner, "tool_results", self._family.data, counts, blob)
            else:
                self._add(part, message.role, self._family.said, counts, blob)
        return Tally(**counts, certainty="estimated")

    def _signatures(self, message: Message, each: float) -> Tally:
        """The signatures of calls, `each` for a character: the reasoning that led to the calls is billed again."""
        length = sum(len(part.signature) for part in message.parts if isinstance(part, ToolCall))
        return Tally(assistant=ceil(length * each), certainty="estimated")

    def _add(self, part: Part, kind: str, factor: float, counts: dict[str, int], blob: BlobReader | None) -> None:
        family = self._family
        match part:
            case Text(text=text):
                counts[kind] += self._spelled(text, factor)
            case Reasoning(text=text, summary=summary):
                counts[kind] += self._spelled(text or "\n".join(summary), factor)
            case ToolCall():
                arguments = part.arguments if isinstance(part.arguments, dict) else {}
                counts[kind] += self._spelled(part.name, family.data) + self._spelled(part.raw_arguments, family.data)
                counts["framing"] += family.call + family.argument * len(arguments)
            case Opaque(data=data):
                counts[kind] += sum(self._spelled(text, factor) for text in texts_in(data))
            case Media():
                document = media_text(part, blob)
                if document is not None:
                    counts[kind] += self._spelled(document, factor)
                else:
                    counts["images"] += count_media(
                        part, family.images, page=family.page, second=family.second, blob=blob
                    )
