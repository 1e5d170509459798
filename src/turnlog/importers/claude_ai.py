"""Data exports of Claude.ai: `conversations.json`, or one conversation as its web page gets it.

A message has blocks in the shape of Anthropic's API, with calls and their results in one message. The parent of each
message is named since 2025-12; before, the messages stand in order. Nothing tells models and tokens of an export.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._platform.lazy import lazy_pattern
from ..log.messages import Outcome, compact_json
from ..providers.anthropic import PROVIDER
from .conversations import in_order, read_conversations
from .fields import Fields, kind_of
from .framework_messages import block_parts
from .json_values import items, without, word
from .parts import texts
from .protocol import Imported, Origin, hashed_id
from .transcript import Transcript
from .writing import Handler, SessionWriter

_ENVELOPE = ("uuid", "sender", "created_at", "updated_at", "parent_message_uuid", "index", "start_timestamp", "flags")
_CHANGING = ("updated_at", "current_leaf_message_uuid", "is_starred", "summary", "account")
_SHOWN = (
    *("start_timestamp", "stop_timestamp", "flags", "type", "message", "display_content"),
    *("integration_name", "integration_icon_url", "icon_name", "alternative_display_type"),
)
"""Fields of blocks for whoever looks at the page: they repeat the block."""
_NO_PARENT = "00000000-0000-4000-8000-000000000000"
_PLACEHOLDER = lazy_pattern(r"This block is not supported on your current device yet\.")


def read(origin: Origin) -> Iterator[Imported]:
    """A session for each conversation, one after the other."""
    advice = "give the conversations.json of an export (Settings > Privacy)"
    return read_conversations(origin, "chat_messages", list, _read_one, advice)


def _read_one(file: Transcript, conversation: dict[str, Any], number: int) -> Imported:
    writer = SessionWriter(file, "claude-ai", PROVIDER, envelope=_ENVELOPE)
    writer.take(Fields(without(conversation, ("chat_messages",))), number, "conversation", {"conversation": _began})
    messages: dict[str, dict[str, Any]] = {}
    for place, message in enumerate(conversation["chat_messages"], 1):
        if not isinstance(message, dict) or not message:
            writer.log.unreadable(number, f"message {place}", message, "entry")
            continue
        uuid = word(message.get("uuid"))
        messages[uuid if uuid and uuid not in messages else f"message-{place}"] = message
    writer.id = writer.id or hashed_id("claude-ai", next(iter(messages.values()), None))
    is_tree = any(message.get("parent_message_uuid") for message in messages.values())
    before = ("", *messages)
    parents = {
        uuid: word(message.get("parent_message_uuid")).replace(_NO_PARENT, "") if is_tree else previous
        for (uuid, message), previous in zip(messages.items(), before, strict=False)
    }
    leaf = word(conversation.get("current_leaf_message_uuid"))
    for uuid in in_order(parents, leaf if leaf in parents else next(reversed(parents), "")):
        writer.branch(uuid, parents[uuid], number)
        writer.at(messages[uuid].get("created_at"))
        writer.state["source"] = f"message {uuid}"
        entry = Fields(messages[uuid])
        writer.take(entry, number, kind_of(entry, "sender"), _HANDLERS)
    return writer.done()


def _began(writer: SessionWriter, conversation: Fields, line: int) -> None:
    writer.at(conversation.get("created_at"))
    writer.id, writer.title = conversation.text("uuid"), conversation.text("name")
    writer.model = conversation.text("model")
    writer.facts("conversation", {"project": conversation.get("project")})
    conversation.skip(*_CHANGING)


def _said(writer: SessionWriter, entry: Fields, line: int) -> None:
    role = "user" if entry.text("sender") == "human" else "assistant"
    about = {"source": writer.state["source"], "model": entry.text("model"), "stop": entry.text("stop_reason")}
    writer.flush()
    written = word(entry.value.get("text"))
    for block in entry.each("content"):
        writer.at(block.value.get("start_timestamp"))
        kind = block.text("type")
        if kind == "tool_result":
            _returned(writer, block, line)
        elif (made := block_parts(block, writer.log.blob, PROVIDER.name)) is not None:
            writer.say(role, made, line, joined=True, **about)
        elif kind != "token_budget":
            writer.log.count(f"a block of type {kind!r}", line)
        block.skip(*["summaries"] * ("thinking" in block.value))
        written = written.replace(word(block.value.get("text")), "")
        block.skip(*_SHOWN)
    if not items(entry.value.get("content")):
        writer.say(role, texts(entry.text("text")), line, joined=True, **about)
    elif not any(map(str.isalnum, _PLACEHOLDER.sub("", written))):
        entry.skip("text")  # it repeats the blocks
    for attached in entry.each("attachments"):
        name, text = attached.text("file_name"), attached.text("extracted_content")
        writer.say(role, texts(f"[{name}]\n{text}" if text else ""), line, joined=True, **about)
    for _ in entry.each("files"):
        writer.log.count("a file, which is not in the export", line)
    writer.flush()


def _returned(writer: SessionWriter, block: Fields, line: int) -> None:
    content = block.get("content")
    blocks = [_read_by(item) for item in content] if isinstance(content, list) else content
    outcome: Outcome = "failed" if block.get("is_error") is True else "ok"
    about = {"name": block.text("name"), "outcome": outcome, "source": writer.state["source"]}
    writer.result(block.text("tool_use_id"), blocks, line, **about)


def _read_by(item: Any) -> Any:
    """What the model read of an item of a result: of a page that was found, its title, address and text; of an item of
    another kind, its JSON."""
    found = Fields(item)
    if found.text("type") == "knowledge":
        return "\n".join(filter(None, (found.text("title"), found.text("url"), found.text("text"))))
    return item if isinstance(found.value.get("text"), str) else compact_json(item)


_HANDLERS: dict[str, Handler | None] = {"human": _said, "assistant": _said}
