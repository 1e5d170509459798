"""Codex: `codex exec --json`.

Its events are `ThreadEvent` in codex-rs/exec/src/exec_events.rs of openai/codex. Versions before 0.44 print the events
of their protocol instead (codex-rs/protocol/src/protocol.rs, `EventMsg`), as session files still hold them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..._platform.lazy import lazy_pattern
from ...importers.codex_exec import CODEX_TOOLS, CODEX_USAGE, codex_call
from ...log.usage import Usage, tokens_billed
from .program import Program, ProgramEvent, mapping_at, text_at


class _Reader:
    def __init__(self) -> None:
        self._spoken = False
        self._streamed = False
        self._error = ""
        self._usage: Usage | None = None

    def read(self, event: Mapping[str, Any]) -> list[ProgramEvent]:
        """See `ProgramReader.read`."""
        match event.get("type"):
            case "thread.started":
                return [ProgramEvent(kind="session", text=text_at(event, "thread_id"))]
            case "item.completed":
                return self._item(mapping_at(event, "item"))
            case "turn.completed":
                return [ProgramEvent(kind="done", usage=_usage(mapping_at(event, "usage")))]
            case "turn.failed":
                return [ProgramEvent(kind="failed", text=text_at(event, "error", "message") or self._error)]
            case "error":  # it may still try again
                self._error = text_at(event, "message")
            case "event_msg":
                return self._message(mapping_at(event, "payload"))
            case None:
                return self._message(mapping_at(event, "msg"))
        return []

    def _item(self, item: Mapping[str, Any]) -> list[ProgramEvent]:
        kind = text_at(item, "type")
        if kind == "agent_message":
            return self._said(text_at(item, "text"))
        if kind == "reasoning":
            return [ProgramEvent(kind="reasoning", text=text_at(item, "text"))]
        if kind in CODEX_TOOLS:
            name, arguments = codex_call(item)
            return [ProgramEvent(kind="ran_tool", name=name, arguments=arguments)]
        return []

    def _message(self, message: Mapping[str, Any]) -> list[ProgramEvent]:
        """An event of older versions."""
        match message.get("type"):
            case "session_configured":
                return [ProgramEvent(kind="session", text=text_at(message, "session_id"))]
            case "agent_message_delta":
                self._streamed = self._spoken = True
                return [ProgramEvent(kind="text", text=text_at(message, "delta"))]
            case "agent_message":
                streamed, self._streamed = self._streamed, False
                return [] if streamed else self._said(text_at(message, "message"))
            case "agent_reasoning":
                return [ProgramEvent(kind="reasoning", text=text_at(message, "text"))]
            case "exec_command_begin":
                return [ProgramEvent(kind="ran_tool", name="shell", arguments={"command": message.get("command")})]
            case "mcp_tool_call_begin":
                call = mapping_at(message, "invocation")
                return [ProgramEvent(kind="ran_tool", name=text_at(call, "tool"), arguments=call.get("arguments"))]
            case "patch_apply_begin":
                return [
                    ProgramEvent(kind="ran_tool", name="apply_patch", arguments={"changes": message.get("changes")})
                ]
            case "token_count":
                told = mapping_at(message, "info", "total_token_usage") or message
                self._usage = _usage(told) or self._usage
            case "task_complete":
                last = text_at(message, "last_agent_message")
                text_events = [] if self._spoken or not last else [ProgramEvent(kind="text", text=last)]
                return [*text_events, ProgramEvent(kind="done", usage=self._usage)]
            case "error":
                return [ProgramEvent(kind="failed", text=text_at(message, "message"))]
        return []

    def _said(self, text: str) -> list[ProgramEvent]:
        text = f"\n\n{text}" if self._spoken else text
        self._spoken = True
        return [ProgramEvent(kind="text", text=text)]


def _usage(told: Mapping[str, Any]) -> Usage | None:
    if "input_tokens" not in told:
        return None
    figures: dict[str, Any] = {field: tokens_billed(told.get(key)) for field, key in CODEX_USAGE.items()}
    return Usage(**figures)


def _arguments(model: str, resumed: str) -> Sequence[str]:
    return [
        "exec",
        *(("resume", resumed) if resumed else ()),
        *("--json", "--skip-git-repo-check"),
        *(("--model", model) if model else ()),
        "-",
    ]


CODEX = Program(
    command="codex",
    install="npm install -g @openai/codex",
    login="run `codex login`, or set OPENAI_API_KEY and run `codex login --with-api-key`",
    maker="openai",
    models={"mini": "gpt-5.4-mini", "codex": "gpt-5.3-codex", "gpt": "gpt-5.6"},
    arguments=_arguments,
    reader=_Reader,
    lost=lazy_pattern(r"no rollout found|thread/resume failed|session not found", re.IGNORECASE),
    no_login=lazy_pattern(r"missing environment variable|missing bearer|not logged in|codex login", re.IGNORECASE),
    sums=True,
)
"""Codex."""
