"""The files that a call changed, from its arguments: for programs that do not write down what they changed.

Patches have the format of Codex's `apply_patch`: files, and lines to replace. The format has no line numbers
(codex-rs/apply-patch/apply_patch_tool_instructions.md), so an update can be computed only if the file's content is
known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from .._platform.lazy import lazy_pattern
from ..log.messages import ToolCall
from ..view.file_edits import words_of
from .file_changes import ChangedFiles
from .json_values import objects, word

_BEGIN = "*** Begin Patch"
_PATCH = lazy_pattern(r"^\*\*\* Begin Patch[ \r]*\n(.*?)^\*\*\* End Patch", re.DOTALL | re.MULTILINE)
_COMMAND = lazy_pattern(r"\bapply_?patch\b")
_FILE = lazy_pattern(r"\*\*\* (Add|Delete|Update) File: (.+?)\s*")
_MOVE = lazy_pattern(r"\*\*\* Move to: (.+?)\s*")
_END = "*** End of File"


class PatchEdit(Struct):
    """The change of one file: `Add`, `Delete` or `Update`. Lines begin with their sign; a chunk begins with its `@@`
    line."""

    action: str
    path: str
    moved_to: str = ""
    chunks: list[list[str]] = []


def edits_in(call: ToolCall) -> list[PatchEdit]:
    """The edits of a call of `apply_patch`, or of a shell call whose command is `apply_patch`."""
    words = _words(call.arguments)
    if not any(_BEGIN in text for text in (call.raw or "", call.arguments, *words) if isinstance(text, str)):
        return []
    text = call.raw_arguments
    is_patch = words_of(call.name) == "apply_patch"
    candidates = [text, *([call.arguments] if isinstance(call.arguments, str) else [])] if is_patch else []
    if is_patch or _COMMAND.search(text):
        candidates += words
    patch = next((patch for text in candidates if (patch := _PATCH.search(text))), None)
    return [] if patch is None else _edits(patch[1].split("\n")[:-1])


def _words(arguments: Any) -> list[str]:
    """The texts in arguments, including texts in lists."""
    values = list(arguments.values()) if isinstance(arguments, dict) else []
    words = [word for value in values for word in (value if isinstance(value, list) else [value])]
    return [word for word in words if isinstance(word, str)]


def _edits(lines: list[str]) -> list[PatchEdit]:
    edits: list[PatchEdit] = []
    for line in lines:
        if header := _FILE.fullmatch(line):
            edits.append(PatchEdit(header[1], header[2], chunks=[]))
        elif not edits:
            return []
        elif header := _MOVE.fullmatch(line):
            edits[-1].moved_to = header[1]
        elif line.startswith("@@") or not edits[-1].chunks:
            edits[-1].chunks.append([line] if line.startswith("@@") else ["@@", line])
        else:
            edits[-1].chunks[-1].append(line)
    return edits


def record_edits(edits: Iterable[PatchEdit], files: ChangedFiles, call_record: int) -> None:
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


def _updated(before: bytes, edit: PatchEdit) -> bytes | None:
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
        start = next((n for n in starts if lines[n : n + len(old)] == old), None)
        if start is None:
            return None
        lines[start : start + len(old)] = new
        place = start + len(new)
    return _encoded("\n".join(lines) + "\n")


def _encoded(text: str) -> bytes:
    """The bytes of a text that was read with `surrogateescape`, and into which the model may have put surrogates."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


class KnownChange(Struct, frozen=True):
    """What a program says that a call did to its file: its whole text before and after, or a unified diff, or only that
    there was no such file before."""

    before: str | None = None
    after: str | None = None
    diff: str = ""
    is_new: bool = False


_PATHS = (
    *("file_path", "filepath", "path", "absolute_path", "target_file", "filename", "file", "target"),
    *("relative_workspace_path", "uri", "target_notebook", "notebook_path"),
)
_CONTENTS = ("content", "contents", "file_text", "file_content", "code_content", "new_content", "text")
_OLD = ("old_string", "old_str", "old_text", "search", "old_content", "target_content", "before")
_NEW = ("new_string", "new_str", "new_text", "replace", "replacement_content", "replacement", "after")
_WRITING = lazy_pattern(r"(?<![a-z])(?:write|create|save|overwrite)(?:file|text)?s?(?![a-z])")
_EDITING = lazy_pattern(
    r"(?<![a-z])(?:multi|str|search)?_?(?:edit(?:or)?|replace|update|modify)(?:file|text)?s?(?![a-z])"
)
_DELETING = lazy_pattern(r"(?<![a-z])(?:delete|remove)(?:file|path)?s?(?![a-z])|^rm$")
_CREATED = lazy_pattern(r"\b(?:created|new file|file created)\b", re.IGNORECASE)


def record_call(
    call: ToolCall, said: str, files: ChangedFiles, call_record: int, known: KnownChange | None = None
) -> None:
    """Record what a call changed that succeeded, as far as its tool's name and arguments tell. `said` is its result,
    `known` what the program says of the change."""
    if edits := edits_in(call):
        record_edits(edits, files, call_record)
        return
    name = words_of(call.name)
    named = {
        words_of(key): value for key, value in (call.arguments if isinstance(call.arguments, dict) else {}).items()
    }
    path = _first(named, _PATHS)
    if not path or "\n" in path:
        return
    known = known or KnownChange()
    if known.after is not None:
        if known.is_new:
            files.created(path, known.after, call_record)
        else:
            files.modified(path, known.before, known.after, call_record)
        return
    deed = word(named.get("command"))
    pairs = [(_first(each, _OLD), _first(each, _NEW)) for each in (named, *_within(named.get("edits")))]
    pairs = [(old, new) for old, new in pairs if old]
    is_all = named.get("replace_all") is True
    content = _first(named, _CONTENTS)
    if _DELETING.search(name):
        files.deleted(path, None, call_record)
    elif known.diff:
        files.patched(path, known.diff, call_record)
    elif pairs and (_EDITING.search(name) or deed == "str_replace"):
        files.replaced(path, lambda before: edited(before, pairs, is_all=is_all), call_record)
    elif content and (_WRITING.search(name) or deed in ("create", "write")):
        if files.last_content(path) is not None:
            files.replaced(path, lambda _: content.encode("utf-8", "surrogatepass"), call_record)
        elif known.is_new or _CREATED.search(said[:400]) or "create" in (deed, name.partition("_")[0]):
            files.created(path, content, call_record)
        else:
            files.modified(path, None, content, call_record)
    elif _EDITING.search(name) and (named.keys() & {*_NEW, *_CONTENTS, "code_edit", "instructions", "diff"}):
        files.patched(path, named.get("diff"), call_record)


def _first(named: Mapping[str, Any], keys: Iterable[str]) -> str:
    return next((named[key] for key in keys if isinstance(named.get(key), str) and named[key]), "")


def _within(edits: Any) -> list[dict[str, Any]]:
    return [{words_of(key): value for key, value in edit.items()} for edit in objects(edits)]


def edited(before: bytes, pairs: Iterable[tuple[str, str]], *, is_all: bool) -> bytes | None:
    """The content after replacements; None if one of them does not fit."""
    text = before.decode("utf-8", "surrogateescape")
    for old, new in pairs:
        if old not in text:
            return None
        text = text.replace(old, new) if is_all else text.replace(old, new, 1)
    return _encoded(text)
