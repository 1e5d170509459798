"""Messages of Vercel's AI SDK: those for a user interface (`UIMessage`, as `useChat` keeps them; also of version 4),
and those for a model (`ModelMessage`); as a list, or as `{"id", "messages"}`. Streams are not read.

Checked against what npm's ai 6.0.326 and 4.3.19 write.
"""

from __future__ import annotations

from typing import Any

from ..providers.openai_chat import PROVIDER
from .fields import Fields
from .framework_messages import ROLES, add_message
from .json_values import items, objects, within, without, word
from .protocol import Imported, Origin, hashed_id
from .transcript import Transcript
from .writing import Handler, SessionWriter

_USAGE = {
    "input": "inputTokens|promptTokens",
    "output": "outputTokens|completionTokens",
    "cached": "inputTokenDetails.cacheReadTokens",
    "cache_write": "inputTokenDetails.cacheWriteTokens",
    "reasoning": "outputTokenDetails.reasoningTokens",
}


def read(origin: Origin) -> list[Imported]:
    """The conversation."""
    file = Transcript(origin)
    lines = file.entries("message", "messages")
    if not any(word(line.value.get("role")) in ROLES for line in lines):
        raise file.refused("message of Vercel's AI SDK", "give a list of messages, or an object with `messages`")
    writer = SessionWriter(file, "vercel-ui", PROVIDER, agent="", envelope=("id", "role"))
    chat = Fields(file.document_or_none())
    chat.skip("messages")
    writer.id = chat.text("id", "chatId") or hashed_id("vercel-ui", lines[0].value)
    writer.title = chat.text("title")
    writer.at(chat.get("createdAt"))
    writer.note("chat", chat.unread())
    for line in lines:
        role = word(line.value.get("role"))
        writer.take(Fields(_newer(line.value)), line.number, ROLES.get(role, role or "unknown"), _HANDLERS)
    return [writer.done()]


def _newer(message: dict[str, Any]) -> dict[str, Any]:
    """A message of version 4 in the shape of version 5: its calls and attachments are parts; what repeats parts is left
    out."""
    calls, attached = items(message.get("toolInvocations")), objects(message.get("experimental_attachments"))
    parts = message.get("parts")
    if not parts and (calls or attached):  # the first versions had the calls before the text
        parts = [*({"toolInvocation": call} for call in calls), {"type": "text", "text": message.get("content")}]
    if not isinstance(parts, list):
        return message
    keys = {"url": "url", "mediaType": "contentType", "filename": "name"}
    files = [{"type": "file", **{key: each.get(older) for key, older in keys.items()}} for each in attached]
    said = [within(part, key) for part in parts for key in ("text", "toolInvocation")]
    repeated = ["toolInvocations"] * all(call in said for call in calls) + ["content"] * (
        message.get("content") in said
    )
    return {**without(message, ("experimental_attachments", *repeated)), "parts": [*parts, *files]}


def _said(writer: SessionWriter, entry: Fields, line: int) -> None:
    metadata = entry.inside("metadata")
    writer.at(entry.get("createdAt") or metadata.get("createdAt"))
    add_message(writer, entry, line)
    if usage := metadata.get("usage", "totalUsage"):
        writer.usage(usage, _USAGE, model=metadata.text("model", "modelId"))


_HANDLERS: dict[str, Handler | None] = dict.fromkeys(ROLES.values(), _said)
