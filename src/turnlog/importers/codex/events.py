"""Events of a Codex rollout: turns, usage, tool runs, and repetitions of items."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Mapping
from typing import Any

from ..._platform.lazy import lazy_pattern
from ...log.messages import Outcome
from ...log.records import Approval, ToolFinished, ToolStarted, UsageRecord
from ...log.usage import tokens_billed
from ...providers.openai_responses import PROVIDER
from ..drafting import Drafting, billed
from ..file_changes import hunks_of, is_patch
from ..json_values import mapping, within, without, word
from ..repeats import is_empty, without_repeats

_Payload = Mapping[str, Any]

_ECHOES = {
    "user_message": "message",
    "agent_message": "message",
    "agent_reasoning": "text",
    "agent_reasoning_raw_content": "text",
}
"""Events that repeat the text of an item, and the key of that text."""

_ECHO_EXTRAS = frozenset({"type", "message", "text", "kind", "phase", "client_id"})
_CUT = lazy_pattern(r"…\d+ (?:chars|tokens) truncated…")
_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cached": "cached_input_tokens",
    "cache_write": "cache_write_input_tokens",
    "reasoning": "reasoning_output_tokens",
}
_STATUS: dict[str, Outcome] = {"failed": "failed", "declined": "canceled", "timed_out": "timeout"}


class CodexEvents:
    """Records events one by one. `outcomes`: the outcomes of calls by id. `title`: the session's name. `patched`: the
    calls whose file changes are in an event. `is_copy`: these lines are copies of another session's, which has their
    usage."""

    def __init__(self, log: Drafting, texts_by_call: Mapping[str, list[str]], patched: Container[str] = ()) -> None:
        self.log = log
        self.patched = patched
        self.texts_by_call = texts_by_call
        self.item_texts = {text.strip() for text in texts_by_call.get("", ())}
        self.outcomes: dict[str, Outcome] = {}
        self.title = ""
        self.totals: Any = None
        self.is_copy = False
        self.handlers: dict[str, Callable[[_Payload], None]] = {
            "token_count": self._usage,
            "task_started": self._opened,
            "turn_started": self._opened,
            "task_complete": self._completed,
            "turn_complete": self._completed,
            "turn_aborted": self._aborted,
            "exec_command_begin": self._started,
            "mcp_tool_call_begin": self._started,
            "patch_apply_begin": self._started,
            "exec_command_end": self._finished,
            "mcp_tool_call_end": self._finished,
            "dynamic_tool_call_response": self._finished,
            "patch_apply_end": self._patched,
            "exec_approval_request": self._approval_requested,
            "apply_patch_approval_request": self._approval_requested,
            "thread_name_updated": self._named,
        }

    def take(self, payload: _Payload, line: int, model: str) -> None:
        """Record one event; an event of an unknown kind becomes a note."""
        self.line, self.model = line, model
        kind = str(payload.get("type", "unknown"))
        if kind in _ECHOES:
            self._echo(kind, payload)
        else:
            self.handlers.get(kind, self._noted)(payload)

    def _noted(self, payload: _Payload) -> None:
        self.log.note(str(payload.get("type", "unknown")), _rest(payload))

    def _echo(self, kind: str, payload: _Payload) -> None:
        text = payload.get(_ECHOES[kind])
        self.log.echo(kind, _ECHOES[kind])
        stripped = text.strip() if isinstance(text, str) else None
        if stripped is None or not (stripped in self.item_texts or any(stripped in item for item in self.item_texts)):
            if stripped:
                self.log.left_unread(
                    self.line, "", payload, is_empty=True, of=f"an event {kind!r}, which no item repeats"
                )
            self._noted(payload)
            return
        extras = {key: value for key, value in payload.items() if key not in _ECHO_EXTRAS and not is_empty(value)}
        images = without_repeats(extras.pop("images", None), self.texts_by_call.get("", ()), self.log.blobs)
        extras |= {"images": images} if images is not None else {}
        if extras:
            self.log.note(kind, extras)

    def _usage(self, payload: _Payload) -> None:
        """Record usage. Codex reports the same usage again when only its rate limits changed; the totals are then
        equal."""
        last = within(payload, "info", "last_token_usage")
        totals = within(payload, "info", "total_token_usage")
        if not isinstance(last, dict) and isinstance(totals, dict):
            before = mapping(self.totals)
            last = {key: tokens_billed(totals.get(key)) - tokens_billed(before.get(key)) for key in _USAGE.values()}
        if not isinstance(last, dict) or (totals is not None and totals == self.totals):
            self.log.note_changes("rate_limits", {"rate_limits": payload.get("rate_limits")})
            return
        self.totals = totals
        if self.is_copy:
            self.log.note("copied_usage", _rest(payload))
            return
        self.log.add(UsageRecord(PROVIDER.name, self.model, billed(last, _USAGE), _rest(payload)))

    def _opened(self, payload: _Payload) -> None:
        self.log.open_turn(str(payload.get("turn_id") or f"line-{self.line}"))
        self.log.note_changes("task_started", without(payload, ("type", "turn_id", "started_at")))

    def _completed(self, payload: _Payload) -> None:
        self._close(payload, "completed", "")
        self.log.note_rest("task_complete", _rest(payload, "turn_id"), self.texts_by_call.get("", ()))

    def _aborted(self, payload: _Payload) -> None:
        self._close(payload, "cancelled", str(payload.get("reason") or ""))

    def _close(self, payload: _Payload, status: str, reason: str) -> None:
        turn = str(payload.get("turn_id") or self.log.turn or f"line-{self.line}")
        self.log.close_turn(status, reason, turn_id=turn)

    def _started(self, payload: _Payload) -> None:
        call_id = str(payload.get("call_id", ""))
        call = self.log.call_record(call_id)
        self.log.add(ToolStarted(call_id=call_id, call_record=call, name=self.log.call_name(call_id)))
        self._rest_of_call(payload, call_id)

    def _finished(self, payload: _Payload) -> None:
        call_id = str(payload.get("call_id") or payload.get("callId") or "")
        outcome = _outcome(payload)
        self.outcomes[call_id] = outcome
        call = self.log.call_record(call_id)
        seconds = _seconds(payload.get("duration"), self.line, self.log)
        self.log.add(ToolFinished(call_id=call_id, call_record=call, outcome=outcome, seconds=seconds))
        self._rest_of_call(payload, call_id)

    def _rest_of_call(self, payload: _Payload, call_id: str) -> None:
        """Note what neither the call nor its result contains."""
        texts = [text for text in self.texts_by_call.get(call_id, ()) if text]
        texts += _unpacked(texts)
        fields = {key: None if _is_cut_of(item, texts) else item for key, item in _rest(payload, "duration").items()}
        self.log.note_rest(str(payload.get("type")), fields, texts)

    def _patched(self, payload: _Payload) -> None:
        changes = mapping(payload.get("changes")) if payload.get("success") is not False else {}
        self._finished({**payload, "changes": _without_patches(changes)} if changes else payload)
        call = self.log.call_record(str(payload.get("call_id", "")))
        for path, change in changes.items():
            if not isinstance(change, dict):
                continue
            kind, content, moved = change.get("type"), change.get("content"), change.get("move_path")
            patch = change.get("unified_diff")
            if kind == "add":
                self.log.files.created(path, content if isinstance(content, str) else _added(patch), call)
            elif kind == "delete":
                self.log.files.deleted(path, content, call)
            else:
                self.log.files.patched(path, patch, call, moved_to=word(moved))

    def _approval_requested(self, payload: _Payload) -> None:
        call_id, reason = str(payload.get("call_id", "")), word(payload.get("reason"))
        call = self.log.call_record(call_id)
        self.log.add(Approval(call_id=call_id, state="asked", call_record=call, reason=reason))
        self._rest_of_call(payload, call_id)

    def _named(self, payload: _Payload) -> None:
        self.title = word(payload.get("thread_name")).strip() or self.title
        self._noted(payload)


def _without_patches(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes without their patches, which the records of the file changes contain."""
    return {
        path: {key: None if key == "unified_diff" and is_patch(item) else item for key, item in change.items()}
        if isinstance(change, dict)
        else change
        for path, change in changes.items()
    }


def _added(patch: Any) -> str | None:
    """The content of a new file, from its patch; None if the patch does not contain the whole file."""
    hunks = hunks_of(patch)
    lines = [line for hunk in hunks for line in hunk.lines]
    whole = len(hunks) == 1 and all(line[:1] == b"+" for line in lines)
    return b"".join(line[1:] for line in lines).decode("utf-8", "surrogatepass") if whole else None


def _rest(payload: _Payload, *keys: str) -> dict[str, Any]:
    return without(payload, ("type", *keys))


def _whole(duration: _Payload, key: str) -> int:
    value = duration.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _seconds(duration: Any, line: int, log: Drafting) -> float:
    """A Rust duration, `{secs, nanos}`, in seconds."""
    if not isinstance(duration, dict):
        return 0.0
    try:
        return _whole(duration, "secs") + _whole(duration, "nanos") / 1e9
    except OverflowError:
        log.warn(line, "a duration was left out: it is too large for a number", "nothing")
        return 0.0


def _outcome(payload: _Payload) -> Outcome:
    code, status = payload.get("exit_code"), payload.get("status")
    result = payload.get("result")
    if code == 124 or payload.get("timed_out") is True:
        return "timeout"
    if isinstance(status, str) and status in _STATUS:
        return _STATUS[status]
    broken = "Err" in mapping(result) or within(result, "Ok", "isError") is True
    if code not in (0, None) or payload.get("success") is False or broken:
        return "failed"
    return "ok"


def _is_cut_of(value: Any, texts: list[str]) -> bool:
    """Whether an event's text is a result whose middle was cut out."""
    pieces = _CUT.split(value) if isinstance(value, str) else []
    return len(pieces) > 1 and any(all(piece.strip() in text for piece in pieces) for text in texts)


def _unpacked(texts: list[str]) -> list[str]:
    """The `output` inside results that are JSON text, and every text inside arguments."""
    inner_texts: list[str] = []
    for text in texts:
        if text.startswith("{"):
            try:
                value = mapping(json.loads(text))
            except (ValueError, RecursionError):
                continue
            inner_texts.extend(item for item in value.values() if isinstance(item, str))
    return inner_texts
