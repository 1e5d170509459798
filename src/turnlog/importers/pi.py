"""pi sessions: `~/.pi/agent/sessions/<folder>/<time>_<id>.jsonl`.

A header line, then one entry a line. Since version 2 the entries form a tree: each entry has the id of its parent, and
after the user goes back to an earlier entry, a branch starts in the same file. The log keeps all branches in file
order; going back is a rewind. The meaning of entries follows pi's own code (github.com/badlogic/pi-mono,
packages/coding-agent/src/core/session-manager.ts and messages.ts; messages in packages/ai/src/types.ts).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ..log.messages import Media, Message, Outcome, Part, Reasoning, Text, ToolCall, ToolResult
from ..log.records import Configuration, MessageRecord, Note, PartialAnswer, UsageRecord
from ..log.usage import Usage
from ..models.makers import makers
from ..providers import PROVIDERS
from .drafting import billed
from .fields import Fields, kind_of
from .json_values import mapping, without, word
from .parts import called, media
from .protocol import Imported, Origin
from .transcript import Line, Transcript
from .writing import Handler, Maker, SessionWriter

_PLACE = ("type", "id", "parentId", "timestamp")
_ENDS = {"stop": "completed", "length": "completed", "aborted": "cancelled", "error": "failed"}
_CUT_SHORT = frozenset({"aborted", "error"})
"""Stop reasons of incomplete answers."""

_APIS = {
    "anthropic-messages": "anthropic",
    "bedrock-converse-stream": "anthropic",
    "openai-completions": "openai-chat",
    "openai-responses": "openai-responses",
    "openai-codex-responses": "openai-responses",
    "azure-openai-responses": "openai-responses",
    "google-generative-ai": "google",
    "google-gemini-cli": "google",
    "google-vertex": "google",
}


def read(origin: Origin) -> list[Imported]:
    """The one session of the file."""
    file = Transcript(origin)
    lines = file.objects("entry")
    if not any(word(line.value.get("type")) in _HANDLERS for line in lines):
        raise file.refused("entry of a pi session", "give a .jsonl of ~/.pi/agent/sessions")
    writer = SessionWriter(file, "pi-jsonl", PROVIDERS["anthropic"], agent="", envelope=_PLACE)
    tree = writer.state["tree"] = _Tree()
    for line in lines:
        tree.starts.append(writer.log.last)
        if (earlier := tree.repeated(line)) is not None:
            file.warn(line.number, f"left out: repeats line {earlier.number}", "nothing")
            continue
        entry = Fields(line.value)
        kind = kind_of(entry, "type")
        writer.at(line.value.get("timestamp"))
        entry_id = entry.text("id") if kind != "session" else ""
        if entry_id:
            parent = word(line.value["parentId"]) if "parentId" in line.value else tree.leaf
            writer.branch(entry_id, parent, line.number)
        writer.take(entry, line.number, kind, _HANDLERS)
        writer.flush()
        if entry_id:
            tree.add(entry_id, word(line.value.get("parentId")), range(tree.starts[-1], writer.log.last))
    writer.id = writer.id or f"pi-{file.digest}"
    return [writer.done()]


class _Tree:
    """The entries so far. `starts`: for each line, the number of records before it; `leaf`: the last entry."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.leaf = ""
        self._lines: dict[str, Line] = {}
        self._parents: dict[str, str] = {}
        self._records: dict[str, range] = {}

    def repeated(self, line: Line) -> Line | None:
        """The earlier line that this one repeats, None if it is new."""
        entry_id = word(line.value.get("id"))
        first = self._lines.setdefault(entry_id, line) if entry_id else line
        return first if first is not line and first.value == line.value else None

    def add(self, entry_id: str, parent: str, records: range) -> None:
        """Add an entry and its records. A damaged file may repeat an id or make an entry its own ancestor: the first
        entry of an id counts."""
        self._parents.setdefault(entry_id, parent)
        self._records.setdefault(entry_id, records)
        self.leaf = entry_id

    def kept(self, compaction: Mapping[str, Any], last: int) -> list[range]:
        """The records from the first kept entry to the compaction, on the compaction's branch."""
        path: list[str] = []
        entry_id = word(compaction.get("parentId"))
        while entry_id and entry_id not in path:
            path.append(entry_id)
            entry_id = self._parents.get(entry_id, "")
        path.reverse()
        first, index = word(compaction.get("firstKeptEntryId")), compaction.get("firstKeptEntryIndex")
        if first in path:
            return [self._records[each] for each in path[path.index(first) :] if each in self._records]
        # Version 1: no tree, but an index into the list of entries; the header has index 0.
        is_index = isinstance(index, int) and 0 < index < len(self.starts) and not path
        return [range(self.starts[index], last)] if is_index else []  # type: ignore[index]


# -- entries ---------------------------------------------------------------------------------------


def _keep(writer: SessionWriter, entry: Fields, line: int, *said: str) -> None:
    """Note an entry, without the keys that are in the conversation."""
    writer.add(Note(word(entry.value.get("type")), data=without(entry.value, (*_PLACE, *said))))
    entry.skip(*without(entry.value, said))


def _header(writer: SessionWriter, header: Fields, line: int) -> None:
    session_id, parent = header.text("id"), header.text("parentSession")
    if not writer.id:
        writer.id = session_id
        # A path to the file that this one was forked from; its name ends with the session's id.
        name = Path(parent.replace("\\", "/")).stem.rpartition("_")[2]
        writer.parent = name if name != session_id else ""
    writer.log.files.work_in(header.value.get("cwd"))
    writer.add(Note("session", data=without(header.value, ("type", "timestamp"))))
    header.skip(*header.value)


def _settings(writer: SessionWriter, entry: Fields, line: int) -> None:
    model, maker = entry.text("modelId"), _provider_of("", entry.text("provider"))
    # A configuration is recorded only for a provider that requests can be made for; the note has all of them.
    if model and maker in PROVIDERS:
        writer.add(Configuration(provider=maker, model=model, why="the user changed the model"))
    _keep(writer, entry, line)


def _compaction(writer: SessionWriter, entry: Fields, line: int) -> None:
    """From here on the model saw the summary, followed by the messages from the first kept entry on."""
    summary, last = entry.text("summary"), writer.log.last
    if not summary or not last:
        _keep(writer, entry, line)
        return
    kept = [writer.log.drafts[n].body for span in writer.state["tree"].kept(entry.value, last) for n in span]
    messages = [body.message for body in kept if isinstance(body, (MessageRecord, PartialAnswer))]
    shown = [Message("user", (Text(summary),)), *messages]
    writer.log.at(entry.value.get("timestamp"))
    writer.log.compacted(1, last, "pi compacted", without(entry.value, (*_PLACE, "summary")), shown)
    entry.skip(*entry.value)


def _branch_summary(writer: SessionWriter, entry: Fields, line: int) -> None:
    if summary := entry.text("summary"):
        _record(writer, entry, line, "user", [Text(summary)], by_program=True)
    _keep(writer, entry, line, "summary")


def _custom(writer: SessionWriter, entry: Fields, line: int) -> None:
    """Add a message from an extension to the model; pi sends it as a user message."""
    _record(writer, entry, line, "user", _parts(writer, entry, "content", line), by_program=True)
    _keep(writer, entry, line, "content")


def _named(writer: SessionWriter, entry: Fields, line: int) -> None:
    writer.title = entry.text("name").strip() or writer.title
    _keep(writer, entry, line)


def _message(writer: SessionWriter, entry: Fields, line: int) -> None:
    wire = entry.inside("message")
    wire.skip("timestamp")
    role = wire.text("role")
    if role == "assistant":
        _answer(writer, entry, wire, line)
    elif role == "bashExecution":
        _bash(writer, entry, wire, line)
    elif role == "toolResult":
        parts = _parts(writer, wire, "content", line)
        shown = tuple(part for part in parts if isinstance(part, (Text, Media)))
        outcome: Outcome = "failed" if wire.get("isError") is True else "ok"
        call_id = wire.text("toolCallId").partition("|")[0]
        _record(writer, entry, line, "user", [ToolResult(call_id, wire.text("toolName"), shown, outcome)])
        if details := wire.get("details"):
            writer.note("tool_result", {"call_id": wire.value.get("toolCallId"), "details": details})
    elif role in ("user", "custom", "hookMessage", "branchSummary", "compactionSummary"):
        parts = _parts(writer, wire, "content" if "content" in wire.value else "summary", line)
        if role == "user":
            writer.turn(entry.text("id") or f"line-{line}")
        _record(writer, entry, line, "user", parts, by_program=role != "user")
    else:
        writer.log.unreadable(line, f"a message of role {wire.value.get('role')!r}", entry.value, "entry")
        entry.skip(*entry.value)


def _bash(writer: SessionWriter, entry: Fields, wire: Fields, line: int) -> None:
    """A command that the user ran. pi sends it as a user message unless told not to."""
    if wire.get("excludeFromContext") is True:
        writer.add(Note("bash", data=dict(wire.value)))
        wire.skip(*wire.value)
        return
    code = wire.get("exitCode")
    end = "\n(cancelled)" if wire.get("cancelled") is True else f"\n(exit code {code})" if code else ""
    said = Text(f"$ {wire.text('command')}\n{wire.text('output')}{end}")
    _record(writer, entry, line, "user", [said], by_program=True)


def _answer(writer: SessionWriter, entry: Fields, wire: Fields, line: int) -> None:
    provider = _provider_of(wire.text("api"), wire.text("provider"))
    stop, model, error = wire.text("stopReason"), wire.text("model"), wire.text("errorMessage")
    fragments: list[ToolCall] = []
    parts = _parts(writer, wire, "content", line, provider, fragments)
    if stop in _CUT_SHORT or fragments:
        reason = error or stop or "cut off"
        writer.add(PartialAnswer(Message("assistant", tuple(parts)), reason, tuple(fragments), model=model))
        writer.note("cut", {"source": _source(entry, line), "stop": stop})
    else:
        _record(writer, entry, line, "assistant", parts, model=model, stop=stop, response_id=wire.text("responseId"))
    if (usage := _usage_of(wire, provider, model)) is not None:
        writer.add(usage)
    calls = any(isinstance(part, ToolCall) for part in parts)
    if stop in _ENDS and (stop in _CUT_SHORT or not calls):
        writer.end(_ENDS[stop], error)


_HANDLERS: dict[str, Handler | None] = {
    "session": _header,
    "message": _message,
    **dict.fromkeys(("model_change", "thinking_level_change"), _settings),
    "compaction": _compaction,
    "branch_summary": _branch_summary,
    **dict.fromkeys(("custom", "label"), _keep),
    "custom_message": _custom,
    "session_info": _named,
}


# -- messages --------------------------------------------------------------------------------------


def _record(writer: SessionWriter, entry: Fields, line: int, role: str, parts: Iterable[Part], **about: Any) -> None:
    """Record a message, also an empty one."""
    source = _source(entry, line)
    if parts := list(parts):
        writer.say(role, parts, line, source=source, **about)
        writer.flush()
    else:
        by_program = about.pop("by_program", False)
        message = Message(role, by_program=by_program)  # type: ignore[arg-type]
        writer.add(MessageRecord(message, source=source, **about))


def _source(entry: Fields, line: int) -> str:
    return f"line {line}" + (f" id {entry.text('id')}" if entry.text("id") else "")


def _parts(
    writer: SessionWriter, holder: Fields, key: str, line: int, provider: str = "", broken: list[ToolCall] | None = None
) -> list[Part]:
    """The parts of the content under a key. `broken` takes calls whose arguments are incomplete: pi deletes
    `partialJson` when a call is complete."""
    if isinstance(holder.value.get(key), str):
        return [Text(holder.text(key))]

    def call(block: Fields) -> list[Part]:
        if "partialJson" not in block.value or broken is None:
            return _call(block, provider)
        block.skip("arguments")
        name, raw = block.text("name"), block.text("partialJson")
        broken.append(ToolCall(id=block.text("id").partition("|")[0], name=name, raw=raw))
        return []

    kinds: dict[str, Maker | None] = {
        "text": lambda block: [Text(block.text("text"))] if isinstance(block.value.get("text"), str) else [],
        "image": lambda block: _image(block, writer),
        "thinking": lambda block: _thinking(block, provider),
        "toolCall": call,
    }
    return writer.parts_of(holder.each(key), kinds, line)


def _image(block: Fields, writer: SessionWriter) -> list[Part]:
    mime = word(block.value.get("mimeType")) or "image/png"
    part = media(word(block.value.get("data")), mime, writer.log.blob)
    block.skip(*(("data", "mimeType") if part is not None else ()))
    return [part] if part is not None else []


def _thinking(block: Fields, provider: str) -> list[Part]:
    if not isinstance(block.value.get("thinking"), str):
        return []
    text, proof = block.text("thinking"), block.text("thinkingSignature")
    if provider == "openai-responses" and proof.startswith("{"):
        try:
            item = mapping(json.loads(proof))  # the whole reasoning item
        except (ValueError, RecursionError):
            item = {}
        summary, encrypted = (text,) if text else (), word(item.get("encrypted_content"))
        return [Reasoning(provider=provider, summary=summary, encrypted=encrypted, id=word(item.get("id")))]
    if provider == "openai-chat":  # here the signature is the name of the field that contained the text
        return [Reasoning(provider=provider, text=text)]
    if block.get("redacted") is True:
        return [Reasoning(provider=provider, encrypted=proof)]
    return [Reasoning(provider=provider, text=text, signature=proof)]


def _call(block: Fields, provider: str) -> list[Part]:
    """A call; pi writes its id as `call_id|item_id` for OpenAI's Responses."""
    if not isinstance(block.value.get("name"), str):
        return []
    call_id, _, item_id = block.text("id").partition("|")
    signature = block.text("thoughtSignature")
    call = called(call_id, block.text("name"), block.get("arguments"))
    return [replace(call, signature=signature, item_id=item_id, provider=provider if signature or item_id else "")]


def _provider_of(api: str, vendor: str) -> str:
    """turnlog's name for the provider, from pi's names of the API and the vendor."""
    maker = makers().get(vendor)
    return _APIS.get(api) or (maker.provider if maker else vendor or api)


def _usage_of(wire: Fields, provider: str, model: str) -> UsageRecord | None:
    """The usage of the answer, None if it was aborted before the provider reported usage."""
    raw = wire.get("usage")
    if not isinstance(raw, dict):
        return None
    usage = billed(raw, {"input": "input", "output": "output", "cached": "cacheRead", "cache_write": "cacheWrite"})
    # pi does not include cached tokens in `input`.
    usage = replace(usage, input=usage.input + usage.cached + usage.cache_write)
    return None if usage == Usage() else UsageRecord(provider=provider, model=model, usage=usage, raw=raw)
