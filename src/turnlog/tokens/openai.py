"""Counts for OpenAI's models, by their own vocabulary and framing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

from ..log.messages import (
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    compact_json,
    shown_apart,
)
from .encrypted import encrypted_in, texts_in
from .families import VERSION, OpenAIFamily
from .media import count_media, media_text
from .protocol import BlobReader, Certainty, Choice, Tally, last_turn
from .schemas import References, mapping
from .vocabulary import SAMPLED, count_pieces

# -- typescript ------------------------------------------------------------------------------------
#
# Tool declarations as OpenAI's models see them: a TypeScript namespace.
#
# The format is not documented; it was inferred from the bills of requests with tools (docs/counting.md).


def typescript(tools: Sequence[Tool]) -> str:
    """The namespace that declares these tools."""
    lines = ["namespace functions {\n"]
    for tool in tools:
        lines += _comment(tool.description)
        schema = mapping(tool.parameters)
        inner = _Declaration(schema).properties(schema, 0)
        title = schema.get("title")
        head = f"// {title}\n" if isinstance(title, str) and title else ""
        lines.append(
            f"type {tool.name} = (_: {head}{{\n{inner}\n}}) => any;\n" if inner else f"type {tool.name} = () => any;\n"
        )
    lines.append("} // namespace functions")
    return "\n".join(lines)


def _comment(text: Any) -> list[str]:
    """A comment line for each line of a description, without common indentation (as `inspect.cleandoc` does, which
    takes 9 ms to import)."""
    if not isinstance(text, str) or not text:
        return []
    first, *rest = text.expandtabs().split("\n")
    indents = [len(line) - len(line.lstrip()) for line in rest if line.strip()]
    lines = [first.lstrip(), *(line[min(indents, default=0) :] for line in rest)]
    return [f"// {line}".rstrip() for line in "\n".join(lines).strip("\n").split("\n")]


class _Declaration:
    """The types of one tool's parameters."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._references = References(schema)

    def properties(self, schema: Mapping[str, Any], depth: int) -> str:
        """A line for each property, after comments with its title and description."""
        required = schema.get("required")
        required = required if isinstance(required, list) else []
        lines: list[str] = []
        for name, value in mapping(schema.get("properties")).items():
            as_written = mapping(value)
            whole = self._references.resolved(as_written)
            title, text = (as_written.get(key) or whole.get(key) for key in ("title", "description"))
            if isinstance(title, str) and title:
                lines += [f"// {title}", *(["//"] if text else [])]
            lines += _comment(text)
            default = as_written.get("default")
            note = "" if default is None else f" // default: {json.dumps(default)}"
            lines.append(f"{name}{'' if name in required else '?'}: {self._type(whole, depth)},{note}")
        return "\n".join(lines)

    def _type(self, schema: Mapping[str, Any], depth: int) -> str:
        """The type of a schema; `any` if the type is unknown."""
        if not self._references.may_enter(depth):
            return "any"
        schema = self._references.resolved(schema)
        for key in ("anyOf", "oneOf"):
            choices = schema.get(key)
            if isinstance(choices, list):
                return " | ".join(self._type(mapping(choice), depth + 1) for choice in choices)
        if isinstance(schema.get("enum"), list):
            return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
        if "const" in schema:
            return json.dumps(schema["const"], ensure_ascii=False)
        kind = schema.get("type")
        if isinstance(kind, list):
            return " | ".join(self._type({**schema, "type": type_name}, depth + 1) for type_name in kind)
        if kind == "array":
            return (self._type(mapping(schema["items"]), depth + 1) if "items" in schema else "any") + "[]"
        if kind == "object" or "properties" in schema:
            inner = self.properties(schema, depth + 1)
            return f"{{\n{inner}\n}}" if inner else "object"
        if isinstance(kind, str):
            return "number" if kind == "integer" else kind
        return "any"


class OpenAICounter:
    """Counts for one family of OpenAI's models, with Chat Completions or the Responses API. As recorded bills show, the
    Responses API bills each call separately, as part of the answer before it; Chat Completions bills parallel calls as
    one item, and their results too.

    Counts of text messages are exact. Calls, tools and media are estimates that are mostly exact: how they are shown to
    the model is not documented.
    """

    def __init__(self, family: OpenAIFamily, api: Literal["chat", "responses"] = "chat") -> None:
        self._family = family
        self._api = api
        self.id = f"{family.name}{'' if api == 'chat' else '-responses'}:{VERSION}"

    def text(self, text: str) -> int:
        """Tokens of a text: exactly, if it is not too long for that."""
        return count_pieces(self._family.vocabulary, text)

    def messages(self, messages: Sequence[Message], blob: BlobReader | None = None) -> Tally:
        """Messages with their framing."""
        total = Tally()
        open_calls = 0
        results: list[ToolResult] = []
        turn = last_turn(messages)
        for index, message in enumerate(messages):
            calls = [part for part in message.parts if isinstance(part, ToolCall)]
            answers = [part for part in message.parts if isinstance(part, ToolResult)]
            if not answers and results:
                total += self._results(results, open_calls, blob)
                results = []
            said_before = index > 0 and messages[index - 1].role == message.role == "assistant"
            joins = self._api == "responses" and bool(calls) and said_before and not _says_something(message)
            total += self._message(message, blob, thinking=index >= turn, opens=not joins)
            if calls and self._api == "responses":
                total = sum((self._calls([call]) for call in calls), total)
            elif calls:
                total += self._calls(calls)
                open_calls = len(calls)
            results += answers
        return total + self._results(results, open_calls, blob) if results else total

    def tools(self, tools: Sequence[Tool], choice: Choice = "auto") -> Tally:
        """All functions as one namespace; a hosted tool counts as its declaration."""
        if not tools:
            return Tally()
        functions = [tool for tool in tools if tool.kind != "hosted"]
        hosted = sum(self.text(compact_json(tool.data)) for tool in tools if tool.kind == "hosted")
        declared = self.text(typescript(functions)) if functions else 0
        around = self._family.tools_chat if self._api == "chat" else self._family.tools_responses
        forced = self._family.named if choice == "named" else 0
        return Tally(tools=declared + hosted + around + forced, certainty="estimated")

    def frame(self, *, system: bool, tools: bool) -> Tally:
        """The beginning of the answer, and the message that contains the tools if there is no system text."""
        alone = self._family.alone if tools and not system and self._api == "chat" else 0
        return Tally(framing=self._family.reply + alone)

    def settings(self, schemas: Sequence[Any], thinking: str) -> Tally:
        """The tokens that a request's settings add: schemas that the answer must match. Thinking adds none."""
        share = self._family.schema_chat if self._api == "chat" else self._family.schema_responses
        matched = sum(round(self.text(compact_json(schema)) * share) for schema in schemas)
        return Tally(framing=matched, certainty="estimated" if schemas else "exact")

    def _message(
        self, message: Message, blob: BlobReader | None, *, thinking: bool = False, opens: bool = True
    ) -> Tally:
        """The tokens of a message without its calls and results. Framing is counted if the message `opens` an item,
        reasoning if it is still billed (`thinking`)."""
        family = self._family
        counts = {"system": 0, "user": 0, "assistant": 0, "images": 0}
        certainty: Certainty = "exact" if self._api in family.sure else "estimated"
        spoken = not message.parts
        for part in message.parts:
            if isinstance(part, ToolResult) or (isinstance(part, Reasoning) and not thinking):
                if isinstance(part, Reasoning) and part.encrypted:  # sometimes billed, although its turn has ended
                    certainty = "estimated"
                continue
            kind, tokens, sure = self._part(part, message, blob)
            counts[kind] += tokens
            certainty = certainty if sure else "estimated"
            spoken = spoken or isinstance(part, (Text, Media, ToolCall))
        framing = 0
        if spoken and opens:
            framing = family.message + (family.assistant if message.role == "assistant" else 0)
            framing *= 1 + (_goes_on(message) if self._api == "responses" else 0)
            framing += self.text(message.name) + 1 if message.name else 0
        return Tally(**counts, framing=framing, certainty=certainty)

    def _part(self, part: Part, message: Message, blob: BlobReader | None) -> tuple[str, int, bool]:
        """The kind of a part (a field of Tally), its tokens, and whether they are exact."""
        match part:
            case Text(text=text):
                return message.role, self.text(text), len(text) <= SAMPLED
            case Media():
                document = media_text(part, blob)
                if document is not None:
                    return message.role, self.text(document), False
                family = self._family
                return "images", count_media(part, family.images, page=family.page, second=10, blob=blob), False
            case Reasoning(encrypted=encrypted):
                return "assistant", _decrypted(len(encrypted)), not encrypted
            case Opaque(data=data) if self._api == "responses":
                read = sum(map(self.text, texts_in(data)))
                return message.role, read + _decrypted(encrypted_in(data)), False
            case _:
                return message.role, 0, not isinstance(part, Opaque)

    def _calls(self, calls: Sequence[ToolCall]) -> Tally:
        family = self._family
        if len(calls) == 1:
            name, text = calls[0].name, calls[0].raw_arguments
            spelled = self.text(text) + self.text(name) + self.text(f"functions.{name}")
            return Tally(assistant=spelled, framing=family.call, certainty="estimated")
        uses = [{"recipient_name": f"functions.{call.name}", "parameters": _arguments(call)} for call in calls]
        spelled = self.text(compact_json({"tool_uses": uses}))
        return Tally(assistant=spelled, framing=family.parallel, certainty="estimated")

    def _results(self, results: Sequence[ToolResult], calls: int, blob: BlobReader | None) -> Tally:
        total = Tally(certainty="estimated")
        texts: list[str] = []
        for result in results:
            texts.append("".join(part.text for part in result.parts if isinstance(part, Text)))
            others = tuple(part for part in result.parts if not isinstance(part, Text))
            if others:
                seen = self._message(Message("user", others), blob)
                total += Tally(tool_results=seen.user, images=seen.images, certainty="estimated")
                label, instead = shown_apart(result)
                if self._api == "chat" and label:
                    label_tokens = self.text(label) + (0 if texts[-1] else self.text(instead))
                    total += Tally(tool_results=label_tokens, framing=seen.framing)
        if calls > 1:
            listed = json.dumps([_item(text) for text in texts], ensure_ascii=False)
            return total + Tally(tool_results=self.text(listed), certainty="estimated")
        spelled = sum(map(self.text, texts))
        return total + Tally(tool_results=spelled, framing=self._family.result * len(texts), certainty="estimated")


def _decrypted(characters: int) -> int:
    """Tokens of encrypted content, as observed: 850 characters of envelope, then 8 characters per token."""
    return max(0, characters - 850) // 8


def _says_something(message: Message) -> bool:
    return any(isinstance(part, (Text, Media)) for part in message.parts)


def _goes_on(message: Message) -> int:
    """How many texts of a message follow a call, or reasoning that is not at its beginning: each is billed as another
    item."""
    others = (ToolCall, Reasoning)
    kinds = [part for part in message.parts if isinstance(part, (Text, *others))]
    while kinds and isinstance(kinds[0], Reasoning):
        kinds.pop(0)
    return sum(isinstance(before, others) and isinstance(after, Text) for before, after in pairwise(kinds))


def _arguments(call: ToolCall) -> Any:
    return call.raw_arguments if call.arguments is None else call.arguments


def _item(text: str) -> Any:
    """A result as an element of the list by which parallel results are counted: a JSON object stays an object."""
    if not text.startswith("{"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
