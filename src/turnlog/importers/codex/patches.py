"""Patches in the format of Codex's `apply_patch`: files, and lines to replace.

The format has no line numbers (codex-rs/apply-patch/apply_patch_tool_instructions.md), so an update can be computed
only if the file's content is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from ...log.messages import ToolCall
from ..file_changes import ChangedFiles

_PATCH = re.compile(r"^\*\*\* Begin Patch[ \r]*\n(.*?)^\*\*\* End Patch", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"\bapply_?patch\b")
_FILE = re.compile(r"\*\*\* (Add|Delete|Update) File: (.+?)\s*")
_MOVE = re.compile(r"\*\*\* Move to: (.+?)\s*")
_END = "*** End of File"


class Edit(Struct):
    """The change of one file: `Add`, `Delete` or `Update`. Lines begin with their sign; a chunk begins with its `@@`
    line."""

    action: str
    path: str
    moved_to: str = ""
    chunks: list[list[str]] = []


def edits_in(call: ToolCall) -> list[Edit]:
    """The edits of a call of `apply_patch`, or of a shell call whose command is `apply_patch`."""
    text = call.raw_arguments
    candidates = [text] if call.name == "apply_patch" else []
    if call.name == "apply_patch" or _COMMAND.search(text):
        candidates += _words(call.arguments)
    found = next((found for text in candidates if (found := _PATCH.search(text))), None)
    return [] if found is None else _edits(found[1].split("\n")[:-1])


def _words(arguments: Any) -> list[str]:
    """The texts in arguments, including texts in lists."""
    values = list(arguments.values()) if isinstance(arguments, dict) else []
    words = [word for value in values for word in (value if isinstance(value, list) else [value])]
    return [word for word in words if isinstance(word, str)]


def _edits(lines: list[str]) -> list[Edit]:
    edits: list[Edit] = []
    for line in lines:
        if found := _FILE.fullmatch(line):
            edits.append(Edit(found[1], found[2], chunks=[]))
        elif not edits:
            return []
        elif found := _MOVE.fullmatch(line):
            edits[-1].moved_to = found[1]
        elif line.startswith("@@") or not edits[-1].chunks:
            edits[-1].chunks.append([line] if line.startswith("@@") else ["@@", line])
        else:
            edits[-1].chunks[-1].append(line)
    return edits


def record_edits(edits: Iterable[Edit], files: ChangedFiles, call_record: int) -> None:
    """Record the file changes of an applied patch."""
    for edit in edits:
        if edit.action == "Add":
            lines = [line[1:] for chunk in edit.chunks for line in chunk if line.startswith("+")]
            files.created(edit.path, "".join(f"{line}\n" for line in lines), call_record)
        elif edit.action == "Delete":
            files.deleted(edit.path, None, call_record)
        else:
            files.replaced(edit.path, lambda before, edit=edit: _updated(before, edit), call_record)  # type: ignore[misc]
            if edit.moved_to:
                files.patched(edit.path, None, call_record, moved_to=edit.moved_to)


def _updated(before: bytes, edit: Edit) -> bytes | None:
    """The content after an update, None if a chunk does not fit."""
    text = before.decode("utf-8", "surrogateescape")
    lines, place = text.removesuffix("\n").split("\n"), 0
    for head, *chunk in edit.chunks:
        chunk = [line for line in chunk if line != _END]
        after = head[2:].strip()
        if after:
            place = next((n + 1 for n in range(place, len(lines)) if lines[n].strip() == after), -1)
        old = [line[1:] for line in chunk if not line.startswith("+")]
        new = [line[1:] for line in chunk if not line.startswith("-")]
        starts = range(place, len(lines) - len(old) + 1) if place >= 0 else ()
        found = next((n for n in starts if lines[n : n + len(old)] == old), None)
        if found is None:
            return None
        lines[found : found + len(old)] = new
        place = found + len(new)
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")
