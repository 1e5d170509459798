"""Messages of LangChain and LangGraph: what `messages_to_dict`, `model_dump` and `dumps` write, also under `messages`.

The three differ in what is around a message: `data` and `type`, nothing, or `kwargs` and the name of its class in `id`.
Content is text or blocks of Anthropic's and OpenAI's APIs, or LangChain's own; blocks repeat what is in `tool_calls`.
"""

from __future__ import annotations

from .conversations import take_rest
from .fields import Fields
from .framework_messages import LANGCHAIN_USAGE, ROLES, add_message, maker_named, message_of, provider_of, role_of
from .json_values import word
from .protocol import Imported, Origin, hashed_id
from .transcript import Transcript
from .writing import Handler, SessionWriter

_SILENT = ("stop_sequence", "role", "type", "service_tier", "system_fingerprint", "object", "created", "logprobs")


def read(origin: Origin) -> list[Imported]:
    """The one session of a list of messages."""
    file = Transcript(origin)
    lines = file.entries("message", "messages")
    messages = [message_of(line.value) for line in lines]
    roles = [role_of(Fields(message.value)) for message in messages]
    if not any(roles):
        raise file.refused("message of LangChain", "give what messages_to_dict() or dumps() returned")
    vendors = (_vendor(Fields(message.value).inside("response_metadata")) for message in messages)
    writer = SessionWriter(file, "langchain", provider_of(vendors))
    asked = roles.index("user") if "user" in roles else 0
    writer.id = hashed_id("langchain", [message.value for message in messages[: asked + 1]])
    take_rest(writer, "messages")
    for line, message, role in zip(lines, messages, roles, strict=True):
        writer.take(message, line.number, role or word(message.value.get("type")) or "unknown", _HANDLERS)
    return [writer.done()]


def _vendor(about: Fields) -> str:
    return about.text("model_provider") or maker_named(about.text("model_name", "model"))


def _said(writer: SessionWriter, message: Fields, line: int) -> None:
    about = message.inside("response_metadata")
    vendor = _vendor(about)
    writer.model = about.text("model_name", "model") or writer.model
    how = {"stop": about.text("finish_reason", "stop_reason"), "response_id": about.text("id")}
    about.skip(*_SILENT)
    add_message(writer, message, line, writer.api_of(vendor), **how)
    older = about.get("token_usage", "usage")
    writer.usage(message.get("usage_metadata") or older, LANGCHAIN_USAGE, vendor=vendor)


def _removed(writer: SessionWriter, message: Fields, line: int) -> None:
    """A message of LangGraph's that was to be taken out of the list."""
    writer.note("remove", {"message": message.get("id")})


_HANDLERS: dict[str, Handler | None] = {**dict.fromkeys(ROLES.values(), _said), "remove": _removed}
