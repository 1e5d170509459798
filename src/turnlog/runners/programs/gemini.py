"""Gemini CLI: `gemini --output-format stream-json`, since 0.11; older versions print one JSON object at the end.

From 0.39.1 on it works in no folder that it was not told to trust. The variable that tells it so is what its option
`--skip-trust` sets; versions before, which end at an option that they do not know, pass over a variable. Old
versions resume nothing (0.11), or not with what comes on standard input (0.17).

Its events are `JsonStreamEvent` in packages/core/src/output/types.ts of google-gemini/gemini-cli.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..._platform.lazy import lazy_pattern
from ...importers.gemini_stream import GEMINI_USAGE
from ...log.usage import Usage, tokens_billed
from .program import Program, ProgramEvent, mapping_at, text_at


class _Reader:
    def __init__(self) -> None:
        self._errors: list[str] = []

    def read(self, event: Mapping[str, Any]) -> list[ProgramEvent]:
        """See `ProgramReader.read`."""
        match event.get("type"):
            case "init":
                return [ProgramEvent(kind="session", text=text_at(event, "session_id"))]
            case "message" if event.get("role") == "assistant":
                return [ProgramEvent(kind="text", text=text_at(event, "content"))]
            case "tool_use":
                return [
                    ProgramEvent(kind="ran_tool", name=text_at(event, "tool_name"), arguments=event.get("parameters"))
                ]
            case "error":
                self._errors.append(text_at(event, "message"))
            case "result":
                return self._result(event)
            case None if "response" in event or "error" in event:
                return self._whole(event)
        return []

    def _result(self, event: Mapping[str, Any]) -> list[ProgramEvent]:
        if event.get("status") != "success":
            reason = text_at(event, "error", "message") or "; ".join(self._errors)
            return [ProgramEvent(kind="failed", text=reason, status=_status(mapping_at(event, "error").get("code")))]
        stats = mapping_at(event, "stats")
        figures: dict[str, Any] = {field: tokens_billed(stats.get(key)) for field, key in GEMINI_USAGE.items()}
        usage = Usage(**figures)
        return [ProgramEvent(kind="done", usage=usage if stats else None)]

    def _whole(self, document: Mapping[str, Any]) -> list[ProgramEvent]:
        """What older versions print: the answer, or an error."""
        session_events = (
            [ProgramEvent(kind="session", text=session)] if (session := text_at(document, "session_id")) else []
        )
        if error := mapping_at(document, "error"):
            return [
                *session_events,
                ProgramEvent(kind="failed", text=text_at(error, "message"), status=_status(error.get("code"))),
            ]
        models = mapping_at(document, "stats", "models")
        usage = None
        for model in models.values():
            tokens = mapping_at(model, "tokens")
            billed = Usage(
                input=tokens_billed(tokens.get("prompt")),
                output=tokens_billed(tokens.get("candidates")) + tokens_billed(tokens.get("thoughts")),
                cached=tokens_billed(tokens.get("cached")),
                reasoning=tokens_billed(tokens.get("thoughts")),
            )
            usage = billed if usage is None else usage + billed
        return [
            *session_events,
            ProgramEvent(kind="text", text=text_at(document, "response")),
            ProgramEvent(kind="done", usage=usage),
        ]


def _status(code: Any) -> int | None:
    return code if isinstance(code, int) and code >= 400 else None


def _arguments(model: str, resumed: str) -> Sequence[str]:
    return [
        *("--output-format", "stream-json"),
        *(("--model", model) if model else ()),
        *(("--resume", resumed) if resumed else ()),
    ]


GEMINI = Program(
    command="gemini",
    install="npm install -g @google/gemini-cli",
    login="run `gemini` and choose how to log in, or set GEMINI_API_KEY",
    maker="google",
    models={"flash-lite": "gemini-3.5-flash-lite", "flash": "gemini-3.8-flash", "pro": "gemini-pro-latest"},
    arguments=_arguments,
    reader=_Reader,
    env={"GEMINI_CLI_TRUST_WORKSPACE": "true"},
    lost=lazy_pattern(r"error resuming session|invalid session identifier", re.IGNORECASE),
    no_resume=lazy_pattern(r"unknown arguments?: resume|when resuming a session, you must provide", re.IGNORECASE),
    no_login=lazy_pattern(r"set an auth method|invalid auth method|api key not (?:found|valid)", re.IGNORECASE),
)
"""Gemini CLI."""
