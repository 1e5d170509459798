"""Output of `codex exec --json`: one event a line.

Events are `ThreadEvent` in codex-rs/exec/src/exec_events.rs of openai/codex. They have no times, no model and not the
prompt. An item comes again when it changes; when it is complete, it is recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..log.messages import Outcome, ToolCall
from ..providers.openai_responses import PROVIDER
from .fields import Fields
from .parts import texts, thoughts
from .printed import read_printed
from .protocol import Imported, Origin
from .writing import Handler, SessionWriter

CODEX_TOOLS = {
    "command_execution": ("shell", ("command",)),
    "web_search": ("web_search", ("query", "action")),
    "file_change": ("apply_patch", ("changes",)),
    "collab_tool_call": ("", ("receiver_thread_ids", "prompt")),
    "mcp_tool_call": ("", ("arguments",)),
}
"""Items of `codex exec --json` that are tool calls: the name of the tool ("": the item says it), and the keys of its
arguments (`ThreadItem` in codex-rs/exec/src/exec_events.rs)."""


def codex_call(item: Mapping[str, Any]) -> tuple[str, Any]:
    """The name of the tool that an item called, and its arguments."""
    name, keys = CODEX_TOOLS[item["type"]]
    tool = item.get("tool")
    arguments: Any = {key: item[key] for key in keys if item.get(key) is not None}
    named = name or (tool if isinstance(tool, str) else "")
    return named, arguments.get("arguments", {}) if keys == ("arguments",) else arguments


CODEX_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cached": "cached_input_tokens",
    "cache_write": "cache_write_input_tokens",
    "reasoning": "reasoning_output_tokens",
}
"""The figures of Codex's usage: input includes what was cached, output the reasoning."""

_OUTCOMES: dict[str, Outcome] = {"completed": "ok", "declined": "canceled", "in_progress": "aborted"}


def read(origin: Origin) -> list[Imported]:
    """A session for each thread."""
    return read_printed(
        origin, "codex-exec", "codex", PROVIDER, ("thread.started", "thread_id"), _HANDLERS, _unfinished
    )


def _began(writer: SessionWriter, event: Fields, line: int) -> None:
    thread = event.text("thread_id").replace("-", "")
    if len(thread) == 32 and thread[12] == "7" and all(each in "0123456789abcdef" for each in thread):
        writer.at(int(thread[:12], 16))  # a UUID of version 7 begins with its time


def _opened(writer: SessionWriter, event: Fields, line: int) -> None:
    writer.turn(f"line-{line}")


def _started(writer: SessionWriter, event: Fields, line: int) -> None:
    """Remember an item until it is complete; other items than tools say nothing before."""
    writer.state[event.inside("item").text("id")] = (event.inside("item"), line)
    event.skip("item")


def _unfinished(writer: SessionWriter) -> None:
    """Record the calls that have no end, because the run was broken off."""
    for item, line in writer.state.values():
        if (kind := item.text("type")) in CODEX_TOOLS:
            _call(writer, item, kind, line)
    writer.state.clear()


def _item(writer: SessionWriter, event: Fields, line: int) -> None:
    item = event.inside("item")
    kind = item.text("type")
    writer.state.pop(item.text("id"), None)
    if kind in ("agent_message", "plan"):
        writer.say("assistant", texts(item.text("text")), line, joined=True)
    elif kind == "reasoning":
        writer.say("assistant", thoughts(item.text("text"), PROVIDER.name), line, joined=True)
    elif kind in CODEX_TOOLS:
        _ran(writer, item, kind, line)
    elif kind in ("error", "todo_list"):
        writer.note(kind, {"message": item.text("message"), "items": item.get("items")})
    else:
        writer.log.count(f"an item of type {kind or None!r}", line, "entry" if "text" in item.value else "part")


def _call(writer: SessionWriter, item: Fields, kind: str, line: int) -> None:
    name, arguments = codex_call(item.value)
    item.skip("tool", *CODEX_TOOLS[kind][1])
    writer.say("assistant", [ToolCall(item.text("id"), name, arguments)], line, joined=True)


def _ran(writer: SessionWriter, item: Fields, kind: str, line: int) -> None:
    _call(writer, item, kind, line)
    status, code = item.text("status"), item.get("exit_code")
    outcome = _OUTCOMES.get(status, "failed") if status else "ok"
    outcome = "failed" if outcome == "ok" and code not in (0, None) else outcome
    result = item.inside("result")
    content = item.get("aggregated_output") or item.inside("error").text("message") or result.get("content")
    content = content or result.get("structured_content") or item.get("agents_states")
    writer.result(item.text("id"), content, line, outcome=outcome)
    writer.flush()
    for change in item.each("changes") if outcome == "ok" else ():
        _changed(writer, change, writer.log.call_record(item.text("id")))


def _changed(writer: SessionWriter, change: Fields, call_record: int) -> None:
    path, files = change.text("path"), writer.log.files
    match change.text("kind"):
        case "add" if path:
            files.created(path, None, call_record)
        case "delete" if path:
            files.deleted(path, None, call_record)
        case "update" if path:
            files.modified(path, None, None, call_record)


def _completed(writer: SessionWriter, event: Fields, line: int) -> None:
    _unfinished(writer)
    writer.usage(event.get("usage"), CODEX_USAGE)
    writer.end("completed")


def _failed(writer: SessionWriter, event: Fields, line: int) -> None:
    _unfinished(writer)
    writer.end("failed", event.inside("error").text("message"))


_HANDLERS: dict[str, Handler | None] = {
    "thread.started": _began,
    "turn.started": _opened,
    "turn.completed": _completed,
    "turn.failed": _failed,
    "item.completed": _item,
    "item.started": _started,
    "item.updated": _started,
    **dict.fromkeys(("item.plan.delta", "request_user_input", "error")),
}
