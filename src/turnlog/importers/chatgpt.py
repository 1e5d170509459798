"""Data exports of ChatGPT: `conversations.json`, `conversations-000.json`, ..., or one conversation of its web page.

A conversation is a tree of messages by id; `current_node` ends the branch that is shown. Calls are messages to a
recipient, without ids; what tools answer follows them. Nothing tells tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from mimetypes import guess_type
from typing import Any

from .._platform.lazy import lazy_pattern
from ..log.messages import Media, Part, Reasoning, Text, ToolResult, media_kind
from ..providers.openai_responses import PROVIDER
from .conversations import in_order, read_conversations
from .drafting import as_utc
from .fields import Fields
from .json_values import items, mapping, within, without, word
from .parts import called, texts
from .protocol import Imported, Origin, hashed_id
from .transcript import Transcript
from .writing import Handler, SessionWriter

_ENVELOPE = ("id", "create_time", "update_time", "end_turn", "weight", "channel")
_CHANGING = ("update_time", "current_node", "is_archived", "is_starred", "async_status", "moderation_results")
_SILENT = (
    *("request_id", "turn_exchange_id", "timestamp_", "message_type", "can_save", "parent_id", "default_model_slug"),
    *("is_complete", "reasoning_status", "is_visually_hidden_from_conversation", "is_user_system_message"),
    "model_slug",  # of the answer, which says it too
)
_SHAPE = ("content_type", "language", "response_format_name", "source_analysis_msg_id", "domain")
_RUN = ("run_id", "start_time", "end_time", "update_time", "code", "timeout_triggered")
_TEXTS = ("title", "url", "name", "text", "result", "summary")
_CONTEXT = ("user_profile", "user_instructions", "model_set_context")
_THINKING = ("thoughts", "reasoning_recap")
_POINTED = lazy_pattern(r"\b(file[-_]\w+)")


def read(origin: Origin) -> Iterator[Imported]:
    """A session for each conversation, one after the other."""
    advice = "give the conversations.json of an export (Settings > Data controls)"
    return read_conversations(origin, "mapping", dict, _read_one, advice)


def _read_one(file: Transcript, conversation: dict[str, Any], number: int) -> Imported:
    nodes = mapping(conversation["mapping"])
    writer = SessionWriter(file, "chatgpt", PROVIDER, envelope=_ENVELOPE)
    writer.take(Fields(without(conversation, ("mapping",))), number, "conversation", {"conversation": _began})
    writer.id = writer.id or hashed_id("chatgpt", sorted(nodes))
    by_time = sorted(nodes, key=lambda node: _seconds(within(nodes[node], "message", "create_time")))
    parents = {node: word(within(nodes[node], "parent")) for node in by_time}
    for node in in_order(parents, word(conversation.get("current_node"))):
        message, said = within(nodes[node], "message"), mapping(within(nodes[node], "message"))
        role = word(within(said, "author", "role"))
        call = _call_before(node, nodes, parents) if role == "tool" else ""
        writer.branch(node, parents[node], number)
        if said:
            writer.state.update(node=node, call=call)
            writer.at(said.get("create_time"))
            writer.take(Fields(said), number, role or "unknown", _HANDLERS)
        elif message is not None or not isinstance(nodes[node], dict):
            writer.log.unreadable(number, f"message {node}", nodes[node], "entry")
    return writer.done()


def _began(writer: SessionWriter, conversation: Fields, line: int) -> None:
    writer.at(conversation.get("create_time"))
    writer.id = conversation.text("conversation_id", "id")
    writer.title = conversation.text("title")
    writer.model = conversation.text("default_model_slug")
    conversation.skip(*_CHANGING)


def _seconds(time: Any) -> float:
    return float(time) if as_utc(time) and not isinstance(time, str) else 0


def _call_before(node: str, nodes: dict[str, Any], parents: dict[str, str]) -> str:
    """The call that a tool's message answers: the one before it, with only thinking and the tool's other messages
    between; "" if there is none."""
    met: set[str] = set()
    while (node := parents.get(node, "")) and node not in met:
        met.add(node)
        message = within(nodes.get(node), "message")
        if _recipient(message):
            return node
        if within(message, "author", "role") != "tool" and within(message, "content", "content_type") not in _THINKING:
            break
    return ""


def _recipient(message: Any) -> str:
    """The tool that a message calls; "" if it is none of an assistant, or to all."""
    to = word(within(message, "recipient")) if within(message, "author", "role") == "assistant" else ""
    return "" if to == "all" else to


def _asked(writer: SessionWriter, entry: Fields, line: int) -> None:
    content = entry.inside("content")
    context = texts(*[content.text(key) for key in _CONTEXT if key in content.value])
    is_hidden = within(entry.value, "metadata", "is_visually_hidden_from_conversation") is True
    role = "system" if context or within(entry.value, "author", "role") == "system" else "user"
    _say(writer, entry, role, (*context, *_parts(writer, content, line)), line, by_program=is_hidden)


def _answered(writer: SessionWriter, entry: Fields, line: int) -> None:
    content, metadata = entry.inside("content"), entry.inside("metadata")
    kind, recipient = content.text("content_type"), _recipient(entry.value)
    writer.model = metadata.text("model_slug") or writer.model
    if kind == "reasoning_recap":  # "Thought for 11s": of the program
        writer.note(kind, {"text": content.get("content")})
    parts = _parts(writer, content, line)
    if recipient:
        text = "".join(part.text for part in parts if isinstance(part, Text))
        call = called(f"call-{writer.state['node']}", recipient, text)
        if call.arguments is None:
            call = called(call.id, recipient, {"code" if kind == "code" else "input": text})
        parts = (*(part for part in parts if not isinstance(part, Text)), call)
    _say(writer, entry, "assistant", parts, line, stop=metadata.inside("finish_details").text("type"))


def _returned(writer: SessionWriter, entry: Fields, line: int) -> None:
    content, call = entry.inside("content"), writer.state["call"]
    run = entry.inside("metadata", "aggregate_result")
    is_failed = content.value.get("content_type") == "system_error" or run.text("status").startswith("failed")
    parts = _parts(writer, content, line)
    run.skip(*_RUN)
    for printed in run.each("messages"):
        if printed.text("message_type") == "stream":
            printed.skip(*printed.value)  # it is in the content
    if not call:  # what a program adds, such as the text of uploaded files
        _say(writer, entry, "user", parts, line, by_program=True)
        return
    result = ToolResult(f"call-{call}", "", parts, "failed" if is_failed else "ok")  # type: ignore[arg-type]
    _say(writer, entry, "user", (result,), line, piece=True)


def _say(writer: SessionWriter, entry: Fields, role: str, parts: tuple[Part, ...], line: int, **about: Any) -> None:
    entry.skip("recipient", *["status"] * (entry.value.get("status") == "finished_successfully"))
    if not within(entry.value, "author", "metadata"):
        entry.skip("author")  # the name is that of the tool called, often only its first word
    entry.inside("content").skip(*_SHAPE)
    entry.inside("metadata").skip(*_SILENT)
    writer.say(role, parts, line, source=f"message {writer.state['node']}", **about)


def _parts(writer: SessionWriter, content: Fields, line: int) -> tuple[Part, ...]:
    parts: list[Part] = []
    for thought in content.each("thoughts"):
        summary, text = thought.text("summary"), thought.text("content")
        thought.skip("chunks", "finished")
        parts += [Reasoning(PROVIDER.name, text, (summary,) if summary else ())] if text or summary else []
    parts += texts(*[content.text(key) for key in _TEXTS if key in content.value])
    for part in items(content.get("parts")):
        if isinstance(part, str):
            parts += texts(part)
        elif said := Fields(part).text("text"):  # what was spoken
            parts += texts(said)
        elif file := _file_of(writer, word(within(part, "asset_pointer"))):
            parts.append(file)
        else:
            writer.log.count(f"a part of type {word(within(part, 'content_type')) or 'unknown'!r}", line)
            writer.note("part", part if isinstance(part, dict) else [part])
    return tuple(parts)


def _file_of(writer: SessionWriter, pointer: str) -> Media | None:
    """The file that a pointer names, if it lies beside the export; None if not."""
    name = _POINTED.search(pointer)
    folder = writer.file.path.parent if writer.file.path is not None else None
    for path in sorted(folder.glob(f"{name[1]}*")) if folder is not None and name is not None else ():
        mime = guess_type(path.name)[0] or ""
        with suppress(OSError):
            data = path.read_bytes()
            writer.files.append(str(path))
            return Media(media_kind(mime), mime, writer.log.blob(data), len(data), name=path.name)
    return None


_HANDLERS: dict[str, Handler | None] = {"user": _asked, "system": _asked, "assistant": _answered, "tool": _returned}
