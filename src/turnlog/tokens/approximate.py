"""Counts for models whose vocabulary is not public: o200k's count, by the measured weights of a family."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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


def marked(tool: Tool) -> str:
    """A declaration as Gemini 3 and later see it, with `MARK` for each special token: bills agree to the token."""
    if tool.kind == "hosted":
        return compact_json(tool.data)
    declared: dict[str, Any] = {"description": tool.description}
    if tool.parameters is not None:
        schema = mapping(_flat(tool))
        declared["parameters"] = {}
        if schema.get("properties") or (tool.form is not None and tool.form.shape == "schema"):
            seen = {key: value for key, value in schema.items() if value or key not in ("properties", "required")}
            declared["parameters"] = _in_capitals({"type": "object", **seen})
    return f"{MARK}declaration:{tool.name}{_marked(declared)}{MARK}"


def _in_capitals(schema: Any) -> Any:
    """A schema with the names of its types in capitals."""
    if isinstance(schema, list):
        return [_in_capitals(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    capitals = {"type": kind.upper()} if isinstance(kind, str) else {}
    return {key: _in_capitals(value) for key, value in schema.items()} | capitals


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
    return _unfolded(tool.parameters, References(tool.parameters), ())


_UNFOLDED = 3
"""How often Gemini expands a schema within itself."""


def _unfolded(schema: Any, references: References, within: tuple[str, ...], *, names: bool = False) -> Any:
    """A schema with its references resolved; `within` are those that it is a part of. With `names`, its keys are names
    of properties, not keywords."""
    if isinstance(schema, list):
        return [_unfolded(item, references, within) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema and not names:
        within = (*within, str(schema["$ref"]))
        if within.count(within[-1]) > _UNFOLDED or not references.may_enter(0):
            return {}
        schema = {**references.resolved(schema), **{key: value for key, value in schema.items() if key != "$ref"}}
    return {
        key: _unfolded(value, references, within, names=key == "properties" and not names)
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


# -- calls -----------------------------------------------------------------------------------------
#
# Calls and results as the models see them, in pieces that are counted each by itself.

MARK = "\x00"
"""Stands for a special token in what is counted; a text that contains it counts a token too many."""


_NAMELESS = "name_of_a_tool"
"""Counts for the name of a result that has none yet: requests have it from the call."""


def _call_pieces(call: ToolCall, spelling: str) -> Sequence[str]:
    """The texts of a call: for Claude (`blocks`) its name, the names of its arguments, and their values as they are
    written between tags, strings without escapes."""
    arguments = call.arguments if isinstance(call.arguments, dict) else None
    match spelling:
        case "blocks" if arguments is not None:
            values = (value if isinstance(value, str) else compact_json(value) for value in arguments.values())
            return [call.name, *arguments, *values]
        case "leaves" if arguments is not None:
            return [call.name, *_leaves(arguments)]
        case "marked" if arguments is not None:
            return [f"{MARK}call:{call.name}{_marked(arguments)}{MARK}"]
        case _:
            return [call.name, call.raw_arguments]


def _result_pieces(result: ToolResult, spelling: str) -> Sequence[str]:
    """The texts of a result: for Gemini as JSON objects, in which others than objects are given as `output`, an empty
    one if there is no text."""
    texts = [part.text for part in result.parts if isinstance(part, Text)]
    if spelling == "blocks":
        return texts
    whole = "".join(texts)
    if spelling == "json":
        return [result.name or _NAMELESS, whole]
    given = _object_in(whole) or {"output": whole}
    if spelling == "leaves":
        return [result.name or _NAMELESS, *_leaves(given)]
    return [f"{MARK}response:{result.name or _NAMELESS}{_marked(given)}{MARK}"]


def _object_in(text: str) -> dict[str, Any]:
    """The JSON object that a text is; empty if it is none."""
    if not text.startswith("{") or len(text) > SAMPLED:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _leaves(value: Any) -> Iterator[str]:
    """All keys and values in a JSON value, in order."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield value if isinstance(value, str) else json.dumps(value)


def _marked(value: Any) -> str:
    """A JSON value with bare keys and with special tokens as quotation marks."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{_marked(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_marked, value)) + "]"
    return f"{MARK}{value}{MARK}" if isinstance(value, str) else json.dumps(value)


def _made_by_stream(signature: str) -> bool:
    """Whether a signature of Gemini was made by a streamed answer: it then consists of several fields, one for each
    chunk, where that of a whole answer has one."""
    try:
        plain = base64.b64decode(signature.replace("-", "+").replace("_", "/") + "==")
    except (binascii.Error, ValueError):
        return False
    length, head = 0, 1
    for byte in plain[1:6]:
        length |= (byte & 127) << 7 * (head - 1)
        head += 1
        if byte < 128:
            break
    return head + length < len(plain)


_VOCABULARY = "o200k_base"

# A run of so many characters without a space is treated as encoded data: no language has words of that length.
_BLOB = lazy_pattern(r"[A-Za-z0-9+/_=-]{256,}")
_BLOCK = 128
"""A run of 256 characters covers one block of so many, wherever it begins."""


def _blobs_in(text: str) -> list[str]:
    """The runs of encoded data in a text. In most texts each block has a space or a line end, which is seen at once."""
    blocks = (text[at : at + _BLOCK] for at in range(0, len(text) - _BLOCK + 1, _BLOCK))
    return _BLOB.findall(text) if any(" " not in block and "\n" not in block for block in blocks) else []


def _whole(tokens: float) -> int:
    """Tokens as a whole number; halves are rounded down."""
    return ceil(tokens - 0.5)


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
        return _whole(self._spelled(text))

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
        family = self._family
        each = sum(self._defined(tool) or self._declared(tool) + family.tool for tool in tools)
        named = self.text(tools[0].name) + family.named if choice == "named" and family.named else 0
        return Tally(tools=each + named + family.hidden.get(choice, 0), certainty="estimated")

    def frame(self, *, system: bool, tools: bool) -> Tally:
        """The framing of the whole request."""
        return Tally(framing=self._family.request, certainty="estimated")

    def settings(self, schemas: Sequence[Any], thinking: str) -> Tally:
        """The tokens that a request's settings add: schemas that the answer must match, and the type of thinking."""
        kept = self._family.kept
        spelled = [json.dumps(schema, indent=2) for schema in schemas] if kept else []
        matched = sum(_whole(self._spelled(text) * kept) for text in spelled) + len(schemas) * self._family.keeping
        return Tally(framing=matched + self._family.thinking.get(thinking, 0), certainty="estimated")

    def _spelled(self, text: str) -> float:
        if len(text) > SAMPLED:
            return estimated(text, self.text)
        if self._texts is not None:
            return tokens_said(self._texts(text), "texts()") if text else 0
        blobs = sum(count_pieces(_VOCABULARY, run) for run in _blobs_in(text))
        rest = _BLOB.sub("", text) if blobs else text
        return self._family.weights.tokens(rest, count_pieces(_VOCABULARY, rest)) + blobs * self._family.base64

    def _pieces(self, pieces: Iterable[str]) -> int:
        """The tokens of texts that are counted each by itself, and of the special tokens in them."""
        if self._family.spelling != "marked":
            return _whole(sum(map(self._spelled, pieces)))
        return _whole(sum(sum(map(self._spelled, piece.split(MARK))) + piece.count(MARK) for piece in pieces))

    def _defined(self, tool: Tool) -> int:
        """The tokens of a tool that the provider defines; 0 if they are not known."""
        kind = str(tool.data.get("type")) if isinstance(tool.data, dict) else ""
        return next((tokens for start, tokens in self._family.defined.items() if kind.startswith(start)), 0)

    def _declared(self, tool: Tool) -> int:
        match self._family.spelling:
            case "marked":
                return self._pieces([marked(tool)])
            case "json":
                return self._pieces([flat_json(tool), nested_objects(tool)])
            case "leaves":
                return self._pieces([names_only(tool)])
            case _:
                return self._pieces([spaced_json(tool)])

    def _message(self, message: Message, blob: BlobReader | None) -> Tally:
        family = self._family
        counts = {"system": 0, "user": 0, "assistant": 0, "tool_results": 0, "images": 0, "framing": 0}
        if message.role == "system":  # each part, as some APIs take all system texts as parts of one
            counts["framing"] += family.system * len(message.parts)
        elif message.parts:
            counts["framing"] += family.message
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        if len(calls) > 1 and family.parallel:  # the results of parallel calls repeat their names
            counts["framing"] += family.parallel + len(calls) * family.each_parallel
            counts["assistant"] += self._pieces(call.name for call in calls)
        for part in message.parts:
            if isinstance(part, ToolResult):
                counts["framing"] += family.result
                counts["tool_results"] += self._pieces(_result_pieces(part, family.spelling))
                for inner in part.parts:
                    if not isinstance(inner, Text):
                        self._add(inner, "tool_results", counts, blob)
            else:
                self._add(part, message.role, counts, blob)
        return Tally(**counts, certainty="estimated")

    def _signatures(self, message: Message, each: float) -> Tally:
        """The signatures of calls, `each` for a character: the reasoning that led to the calls is billed again."""
        if not each:
            return Tally(certainty="estimated")
        signed = [part.signature for part in message.parts if isinstance(part, ToolCall) and part.signature]
        if self._family.streamed:
            signed = list(filter(_made_by_stream, signed))
        length = sum(max(0, len(signature) - self._family.envelope) for signature in signed)
        return Tally(assistant=ceil(length * each), certainty="estimated")

    def _add(self, part: Part, kind: str, counts: dict[str, int], blob: BlobReader | None) -> None:
        family = self._family
        match part:
            case Text(text=text):
                counts[kind] += self.text(text)
            case Reasoning(text=text, summary=summary):
                counts[kind] += self.text(text or "\n".join(summary))
            case ToolCall():
                arguments = part.arguments if isinstance(part.arguments, dict) else {}
                counts[kind] += self._pieces(_call_pieces(part, family.spelling))
                counts["framing"] += family.call + family.argument * len(arguments)
            case Opaque(data=data):
                counts[kind] += sum(map(self.text, texts_in(data)))
            case Media():
                document = media_text(part, blob)
                if document is not None:
                    counts[kind] += self.text(document)
                else:
                    counts["images"] += count_media(
                        part, family.images, page=family.page, second=family.second, blob=blob
                    )
