"""Claude Code: `claude -p --output-format stream-json`.

Its lines are declared in npm @anthropic-ai/claude-agent-sdk, sdk.d.ts. Versions before 1.0.109 print whole messages
only; newer ones also stream pieces of them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..._platform.lazy import lazy_pattern
from ...log.usage import Usage, tokens_billed
from .program import Program, ProgramEvent, items_at, mapping_at, text_at

_RESETS = lazy_pattern(r"limit reached\|(\d{9,11})\b")
"""Older versions give the end of a limit in seconds since 1970."""


class _Reader:
    """Text comes in pieces, or whole from versions that do not stream. Lines with a parent belong to a subagent."""

    def __init__(self) -> None:
        self._streamed = False
        self._spoken = False
        self._resets: float | None = None

    def read(self, event: Mapping[str, Any]) -> list[ProgramEvent]:
        """See `ProgramReader.read`."""
        if event.get("parent_tool_use_id"):
            return []
        match event.get("type"):
            case "system" if event.get("subtype") == "init":
                return [ProgramEvent(kind="session", text=text_at(event, "session_id"))]
            case "stream_event":
                return self._piece(mapping_at(event, "event"))
            case "assistant":
                return self._message(event)
            case "rate_limit_event":
                limit = mapping_at(event, "rate_limit_info")
                if limit.get("status") == "rejected" and isinstance(resets_at := limit.get("resetsAt"), (int, float)):
                    self._resets = float(resets_at)
            case "result":
                return self._result(event)
        return []

    def _piece(self, event: Mapping[str, Any]) -> list[ProgramEvent]:
        match event.get("type"):
            case "content_block_start" if text_at(event, "content_block", "type") == "text" and self._spoken:
                return [ProgramEvent(kind="text", text="\n\n")]
            case "content_block_delta":
                self._streamed = True
                if text := text_at(event, "delta", "text"):
                    self._spoken = True
                    return [ProgramEvent(kind="text", text=text)]
                if thought := text_at(event, "delta", "thinking"):
                    return [ProgramEvent(kind="reasoning", text=thought)]
        return []

    def _message(self, event: Mapping[str, Any]) -> list[ProgramEvent]:
        message = mapping_at(event, "message")
        if event.get("error") or message.get("model") == "<synthetic>":
            return []  # an error in the form of an answer; the result says it, too
        events = []
        for block in items_at(message, "content"):
            kind = text_at(block, "type")
            if kind == "tool_use":
                events.append(ProgramEvent(kind="ran_tool", name=text_at(block, "name"), arguments=block.get("input")))
            elif kind == "text" and not self._streamed and (text := text_at(block, "text")):
                events.append(ProgramEvent(kind="text", text=f"\n\n{text}" if self._spoken else text))
                self._spoken = True
            elif kind == "thinking" and not self._streamed and (thought := text_at(block, "thinking")):
                events.append(ProgramEvent(kind="reasoning", text=thought))
        return events

    def _result(self, event: Mapping[str, Any]) -> list[ProgramEvent]:
        text = text_at(event, "result")
        if event.get("is_error") is True or text_at(event, "subtype").startswith("error"):
            errors = [error for error in items_at(event, "errors") if isinstance(error, str)]
            status = event.get("api_error_status")
            reason = text or "; ".join(errors) or text_at(event, "subtype").replace("_", " ")
            return [
                ProgramEvent(
                    kind="failed",
                    text=reason,
                    status=status if isinstance(status, int) else None,
                    wait=self._wait(reason),
                )
            ]
        text_events = [] if self._spoken or not text else [ProgramEvent(kind="text", text=text)]
        return [*text_events, ProgramEvent(kind="done", usage=_usage(mapping_at(event, "usage")))]

    def _wait(self, reason: str) -> float | None:
        told = _RESETS.search(reason)
        resets_at = float(told[1]) if told else self._resets
        return None if resets_at is None else max(0.0, resets_at - time.time())


def _usage(told: Mapping[str, Any]) -> Usage | None:
    if not told:
        return None
    read, written = (tokens_billed(told.get(f"cache_{name}_input_tokens")) for name in ("read", "creation"))
    return Usage(
        input=tokens_billed(told.get("input_tokens")) + read + written,
        output=tokens_billed(told.get("output_tokens")),
        cached=read,
        cache_write=written,
    )


def _arguments(model: str, resumed: str) -> Sequence[str]:
    return [
        *("-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"),
        *(("--model", model) if model else ()),
        *(("--resume", resumed) if resumed else ()),
    ]


CLAUDE = Program(
    command="claude",
    install="npm install -g @anthropic-ai/claude-code",
    login="run `claude` and type /login, or set ANTHROPIC_API_KEY",
    maker="anthropic",
    models={"haiku": "claude-haiku-5-5", "sonnet": "claude-sonnet-5-5", "opus": "claude-opus-5-5"},
    arguments=_arguments,
    reader=_Reader,
    lost=lazy_pattern(r"no conversation found", re.IGNORECASE),
    no_login=lazy_pattern(r"not logged in|invalid api key|/login", re.IGNORECASE),
)
"""Claude Code."""
