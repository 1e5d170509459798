"""Claude Code's records about a tool result: outcome, time, changed files, and the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ...log.messages import Message, ToolResult
from ...log.records import Approval, ToolFinished
from ..drafting import Drafting
from ..file_changes import is_patch
from ..json_values import mapping, objects, within, without
from ..repeats import result_text, without_repeats

_INTERRUPTED = "[Request interrupted by user"
_REFUSED = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
)
_TIMED_OUT = "Command timed out after"
_DURATIONS = {"durationMs": 0.001, "totalDurationMs": 0.001, "durationSeconds": 1.0}
"""Keys for the duration of a tool run, with their units in seconds."""


def judged(result: ToolResult, extra: Any) -> ToolResult:
    """The result with its outcome from the transcript."""
    text = result_text(result.parts)
    if text.startswith(_INTERRUPTED) or within(extra, "interrupted") is True:
        return replace(result, outcome="aborted")
    timed_out = result.outcome == "failed" and _TIMED_OUT in text[:200]
    return replace(result, outcome="timeout") if timed_out else result


def after_results(message: Message, extra: Any, known: Sequence[str], log: Drafting) -> None:
    """Record what is known of the tool runs whose results are in `message`. `extra` is the record's `toolUseResult`: a
    note keeps what is not in `known`, the texts of the call and its result."""
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    for result in results:
        text = result_text(result.parts)
        call_record = log.call_record(result.call_id)
        if text.startswith(_REFUSED):
            log.add(Approval(call_id=result.call_id, state="denied", call_record=call_record, by="user", reason=text))
        elif extra is not None:
            seconds = _seconds(extra) if len(results) == 1 else 0.0
            log.add(
                ToolFinished(call_id=result.call_id, call_record=call_record, outcome=result.outcome, seconds=seconds)
            )
    call_id = results[0].call_id if results else ""
    known = [*known, *(_unnumbered(text) for text in known)]
    if isinstance(extra, dict):
        kept, has_patch = _file_change(extra, log.call_record(call_id), log)
        known += kept
        if has_patch:
            extra = without(extra, ("structuredPatch",))
    elif isinstance(extra, str):
        # The text of an error; the result already contains it without the prefix "Error: ".
        extra = extra.removeprefix("Error: ")
    rest = without_repeats(extra, known, log.blobs)
    if rest is not None and not (isinstance(extra, str) and any(extra.strip() in text for text in known)):
        log.note("tool_result", {"call_id": call_id, "result": rest})


def _seconds(extra: Any) -> float:
    for key, unit in _DURATIONS.items():
        value = within(extra, key)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return round(value * unit, 6)
    return 0.0


def _unnumbered(text: str) -> str:
    """The text of a file without the line numbers that the Read tool puts before each line."""
    lines = text.split("\n")
    if "→" not in lines[0] and "\t" not in lines[0]:
        return text
    plain = []
    for line in lines:
        number, arrow, rest = line.partition("→" if "→" in line[:12] else "\t")
        plain.append(rest if arrow and number.strip().isdigit() else line)
    return "\n".join(plain)


def _file_change(extra: Mapping[str, Any], call_record: int, log: Drafting) -> tuple[list[str], bool]:
    """Record the file that an Edit, MultiEdit or Write changed. Returns the contents that were stored, and whether the
    patch can be computed from them."""
    path, old, new = extra.get("filePath"), extra.get("oldString"), extra.get("newString")
    before = extra.get("originalFile", extra.get("originalFileContents"))
    content, patch = extra.get("content"), extra.get("structuredPatch")
    if not isinstance(path, str) or not isinstance(before, (str, type(None))):
        return [], False
    if isinstance(old, str) and isinstance(new, str):
        edits: list[Any] = [{"old_string": old, "new_string": new, "replace_all": extra.get("replaceAll")}]
    elif isinstance(extra.get("edits"), list):
        edits = extra["edits"]
    elif isinstance(content, str) and extra.get("type") in ("create", "update"):
        if extra["type"] == "create":
            log.files.created(path, content, call_record)
        elif before is None:
            log.files.rewritten(path, patch, content, call_record)
        else:
            log.files.modified(path, before, content, call_record)
        return [content, before or ""], before is not None or extra["type"] == "create" or is_patch(patch)
    else:
        return [], False
    after = _edited(before, edits)
    if after is None and is_patch(patch) and _is_exact(patch, edits):
        log.files.patched(path, patch, call_record)
        return [] if before is None else [before], True
    # A file with unknown content is not a new file: the change is recorded without contents.
    log.files.modified(path, before, after, call_record)
    return [text for text in (before, after) if text is not None], after is not None


def _is_exact(patch: Any, edits: Sequence[Any]) -> bool:
    """Whether a `structuredPatch` has the exact bytes of its file. Claude Code writes a tab in it as two spaces (in 109
    of 147 real patches), so two spaces may be a tab; the texts of the edits show which."""
    lines = "".join(line[1:] for piece in patch for line in piece["lines"])
    if "\t" in lines or "  " not in lines:
        return True
    texts = "".join(str(edit.get(key)) for edit in objects(edits) for key in ("old_string", "new_string"))
    return "  " in texts and "\t" not in texts


def _edited(before: str | None, edits: Sequence[Any]) -> str | None:
    """`before` with the edits applied; None if one of them does not fit."""
    text = before
    for edit in map(mapping, edits):
        old, new = edit.get("old_string"), edit.get("new_string")
        if text is None or not isinstance(old, str) or not isinstance(new, str) or (old and old not in text):
            return None
        text = text.replace(old, new) if edit.get("replace_all") else text.replace(old, new, 1)
    return text
