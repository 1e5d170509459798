"""File changes in a transcript: whole contents if it has them, else patches.

The last content that the transcript gave of each file is remembered, so that a later edit which only says what to
replace can be applied to it. An edit that does not fit was made to another content.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from ..errors import InputError
from ..log.records import Body, FileChange
from ..workspace.diff import Hunk, apply_hunks, place_of, read_hunks, reverse_hunks, write_hunks


def hunks_of(patch: Any) -> tuple[Hunk, ...]:
    """The hunks of a unified diff, or of Claude Code's list of such; empty where it is none."""
    if isinstance(patch, list):
        patch = _joined(patch)
    if not isinstance(patch, str):
        return ()
    try:
        return read_hunks(patch.encode("utf-8", "surrogatepass"))
    except InputError:
        return ()


def is_patch(patch: Any) -> bool:
    """Whether this is a patch with hunks."""
    return bool(hunks_of(patch))


def _joined(pieces: Sequence[Any]) -> str | None:
    """`structuredPatch` as text: objects of `oldStart`, `oldLines`, `newStart`, `newLines`, `lines`."""
    text = ""
    for piece in pieces:
        lines = piece.get("lines") if isinstance(piece, dict) else None
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            return None
        head = [piece.get(key) for key in ("oldStart", "oldLines", "newStart", "newLines")]
        text += "@@ -{},{} +{},{} @@\n".format(*head) + "".join(f"{line}\n" for line in lines)
    return text


class ChangedFiles:
    """Records what a session did to files. `add` appends a record, `blobs` are those kept so far. `root` is the
    folder that the agent works in, "" if the transcript does not say."""

    def __init__(self, add: Callable[[Body], int], blob: Callable[[bytes], str], blobs: Mapping[str, bytes]) -> None:
        self.root = ""
        self._add = add
        self._blob = blob
        self._blobs = blobs
        self._held: dict[str, str] = {}

    def work_in(self, folder: Any) -> None:
        """From here on the agent works in this folder; anything but a path is ignored."""
        if isinstance(folder, str) and folder:
            self.root = folder

    def held(self, path: str) -> bytes | None:
        """The content that the transcript last gave of a file, None if it gave none."""
        name = self._held.get(place_of(path, self.root))
        return None if name is None else self._blobs.get(name)

    def created(self, path: str, after: Any, call_record: int) -> None:
        """A file was created; `after` is its text, if it is known."""
        self._change(path, "created", None, _bytes(after), call_record)

    def modified(self, path: str, before: Any, after: Any, call_record: int) -> None:
        """The content of a file changed; `before` and `after` are texts, None if they are not known."""
        self._change(path, "modified", _bytes(before), _bytes(after), call_record)

    def deleted(self, path: str, before: Any, call_record: int) -> None:
        """A file was deleted. Its content is `before`, else the last known one."""
        known = _bytes(before)
        self._change(path, "deleted", self.held(path) if known is None else known, None, call_record)

    def patched(self, path: str, patch: Any, call_record: int, *, moved_to: str = "") -> None:
        """A unified diff was applied, and the file was moved if `moved_to` is given. If `patch` is no diff, the
        change is recorded without contents."""
        hunks, before = hunks_of(patch), self.held(path)
        after = before if not hunks and moved_to else _applied(before, hunks) if hunks else None
        text = b"".join(write_hunks(hunks)) if after is None and hunks else b""
        before = None if after is None else before
        action: Literal["modified", "renamed"] = "renamed" if moved_to else "modified"
        self._change(
            moved_to or path, action, before, after, call_record, patch=text, old_path=path if moved_to else ""
        )

    def replaced(self, path: str, edit: Callable[[bytes], bytes | None], call_record: int) -> None:
        """The last known content of a file was edited; `edit` returns None if it does not fit."""
        before = self.held(path)
        after = None if before is None else edit(before)
        self._change(path, "modified", None if after is None else before, after, call_record)

    def rewritten(self, path: str, patch: Any, after: str, call_record: int) -> None:
        """A file was overwritten with a known text; a unified diff, if there is one, tells what it was before."""
        hunks, content = hunks_of(patch), _bytes(after)
        before = _applied(content, reverse_hunks(hunks)) if hunks else None
        self._change(path, "modified", before, content, call_record)

    def _change(
        self,
        path: str,
        action: Literal["modified", "created", "deleted", "renamed"],
        before: bytes | None,
        after: bytes | None,
        call_record: int,
        *,
        patch: bytes = b"",
        old_path: str = "",
    ) -> None:
        names = ["" if data is None else self._blob(data) for data in (before, after)]
        self._held.pop(place_of(old_path or path, self.root), None)
        self._held.pop(place_of(path, self.root), None)
        if after is not None:
            self._held[place_of(path, self.root)] = names[1]
        self._add(
            FileChange(
                path=path,
                action=action,
                before=names[0],
                after=names[1],
                old_path=old_path,
                call_record=call_record,
                patch=self._blob(patch) if patch else "",
                root=self.root,
            )
        )


def _bytes(text: Any) -> bytes | None:
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else None


def _applied(content: bytes | None, hunks: Sequence[Hunk]) -> bytes | None:
    if content is None:
        return None
    try:
        return apply_hunks(content, hunks)
    except InputError:
        return None
