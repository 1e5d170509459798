"""Messages of Vercel's AI SDK: those for a user interface (`UIMessage`, as `useChat` keeps them; also of version 4),
and those for a model (`ModelMessage`); as a list, or as `{"id", "messages"}`. Streams are not read.

Checked against what npm's ai 6.0.326 and 4.3.19 write.
"""

from __future__ import annotations

from ..log.messages import Outcome, Part, ToolResult
from ..providers.openai_chat import PROVIDER
from .fields import Fields
from .framework_messages import ROLES, add_message, block_parts, kind_of_block
from .json_values import mapping, within, word
from .parts import called, media, shown
from .protocol import Imported, Origin, hashed_id
from .transcript import Transcript
from .writing import Handler, SessionWriter

_USAGE = {
    "input": "inputTokens",
    "output": "outputTokens",
    "cached": "inputTokenDetails.cacheReadTokens",
    "cache_write": "inputTokenDetails.cacheWriteTokens",
    "reasoning": "outputTokenDetails.reasoningTokens",
}
_USAGE_4 = {"input": "promptTokens", "output": "completionTokens"}
_OUTCOMES: dict[str, Outcome] = {"output-error": "failed", "output-denied": "canceled"}
_ENDED = {"output-available", "result", *_OUTCOMES}
"""States of calls that have a result."""
_BESIDE = ("source", "data-")
"""Parts for the page, not for the model; they become a note."""


def read(origin: Origin) -> list[Imported]:
    """The conversation."""
    file = Transcript(origin)
    whole = file.document_or_none()
    lines = file.entries("message", "messages")
    if not any(word(line.value.get("role")) in ROLES for line in lines):
        raise file.refused("message of Vercel's AI SDK", "give a list of messages, or an object with `messages`")
    writer = SessionWriter(file, "vercel-ui", PROVIDER, agent="", envelope=("id", "role"))
    chat = Fields(whole)
    chat.skip("messages")
    writer.id = chat.text("id", "chatId") or hashed_id("vercel-ui", lines[0].value)
    writer.title = chat.text("title")
    writer.at(chat.get("createdAt"))
    writer.note("chat", chat.unread())
    for line in lines:
        entry = Fields(line.value)
        role = word(entry.value.get("role"))
        writer.take(entry, line.number, ROLES.get(role, role or "unknown"), _HANDLERS)
    return [writer.done()]


def _said(writer: SessionWriter, entry: Fields, line: int) -> None:
    metadata = entry.inside("metadata")
    writer.at(entry.get("createdAt") or metadata.get("createdAt"))
    if "parts" in entry.value or "toolInvocations" in entry.value:
        _ui_message(writer, entry, line)
    else:
        add_message(writer, entry, line)
    if usage := metadata.get("usage", "totalUsage"):
        words = _USAGE_4 if "promptTokens" in mapping(usage) else _USAGE
        writer.usage(usage, words, model=metadata.text("model", "modelId"))


def _ui_message(writer: SessionWriter, entry: Fields, line: int) -> None:
    """A message with its steps: in each, what the model said and called; then the results of these calls."""
    role = ROLES[entry.text("role")]
    parts = entry.each("parts")
    results: list[ToolResult] = []
    is_first = True
    if not parts:  # the first versions had the calls before the text
        parts = [Fields({"toolInvocation": call.value}) for call in entry.each("toolInvocations")]
        entry.skip("toolInvocations")
        parts += [Fields({"type": "text", "text": entry.text("content")})]
    for part in parts:
        if part.text("type") == "step-start":
            _return(writer, results, line)
            is_first = True
        elif made := _made(part, writer, results, line):
            writer.say(role, made, line, joined=not is_first)
            is_first = False
    for each in entry.each("experimental_attachments"):
        attached = media(each.text("url"), each.text("contentType"), writer.log.blob, each.text("name"))
        writer.say(role, filter(None, [attached]), line, joined=True)
    _return(writer, results, line)
    if entry.value.get("content") in [part.value.get("text") for part in parts]:
        entry.skip("content")
    said = [within(part.value, "toolInvocation") for part in parts]
    if all(call.value in said for call in entry.each("toolInvocations")):
        entry.skip("toolInvocations")


def _made(part: Fields, writer: SessionWriter, results: list[ToolResult], line: int) -> list[Part]:
    """The parts that a part of a UI message is. The result of a call waits for the end of the step."""
    call = part.inside("toolInvocation") if "toolInvocation" in part.value else part
    if "toolCallId" not in call.value:
        made = block_parts(part, writer.log.blob, PROVIDER.name)
        kind = kind_of_block(part)
        if made is None and not kind.startswith(_BESIDE):
            writer.log.count(f"a part of type {kind!r}", line)
        return made or []
    part.skip("type", "step", "title", "providerExecuted", "preliminary")
    call.skip("step")
    call_id, state = call.text("toolCallId"), call.text("state")
    name = call.text("toolName") or part.text("type").removeprefix("tool-")
    if state in _ENDED:
        content = call.get("output", "result", "errorText")
        results.append(ToolResult(call_id, name, shown(content, writer.log.blob), _OUTCOMES.get(state, "ok")))
    return [called(call_id, name, call.get("input", "args", "rawInput"))]


def _return(writer: SessionWriter, results: list[ToolResult], line: int) -> None:
    writer.say("user", results, line, joined=True)
    results.clear()


_HANDLERS: dict[str, Handler | None] = dict.fromkeys(("user", "assistant", "system", "tool"), _said)
