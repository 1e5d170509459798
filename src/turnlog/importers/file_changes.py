"""File changes in a transcript: whole contents if the transcript has them, else patches.

The last content of each file that the transcript contains is remembered, so that a later edit that has only the text to
replace can be applied to it. If an edit does not fit, the file had other content.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from ..errors import InputError
from ..log.records import Body, FileChange
from ..workspace.diff.hunks import Hunk, apply_hunks, read_hunks, reverse_hunks, write_hunks
from ..workspace.diff.paths import place_of


def hunks_of(patch: Any) -> tuple[Hunk, ...]:
    """The hunks of a unified diff, or of Claude Code's list of hunks; empty for anything else."""
    if isinstance(patch, list):
        patch = _joined(patch)
    if not isinstance(patch, str):
        return ()
    try:
        return read_hunks(patch.encode("utf-8", "surrogatepass"))
    except InputError:
        return ()


def is_patch(patch: Any) -> bool:
    """Whether this is a patch with at least one hunk."""
    return bool(hunks_of(patch))


def _joined(pieces: Sequence[Any]) -> str | None:
    """Claude Code's `structuredPatch` as text: its objects have `oldStart`, `oldLines`, `newStart`, `newLines`,
    `lines`."""
    text = ""
    for piece in pieces:
        lines = piece.get("lines") if isinstance(piece, dict) else None
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            return None
        head = [piece.get(key) for key in ("oldStart", "oldLines", "newStart", "newLines")]
        text += "@@ -{},{} +{},{} @@\n".format(*head) + "".join(f"{line}\n" for line in lines)
    return text


class ChangedFiles:
    """Records changes of files in a session. `add` appends a record, `blobs` are the bytes stored so far. `root` is the
    agent's working folder, "" if the transcript does not name it."""

    def __init__(self, add: Callable[[Body], int], blob: Callable[[bytes], str], blobs: Mapping[str, bytes]) -> None:
        self.root = ""
        self._add = add
        self._blob = blob
        self._blobs = blobs
        self._last_contents: dict[str, str] = {}

    def work_in(self, folder: Any) -> None:
        """Set the agent's working folder from now on; anything but a path is ignored."""
        if isinstance(folder, str) and folder:
            self.root = folder

    def last_content(self, path: str) -> bytes | None:
        """The last content of a file in the transcript, None if it contains none."""
        name = self._last_contents.get(place_of(path, self.root))
        return None if name is None else self._blobs.get(name)

    def seen(self, path: str, content: str) -> None:
        """Remember the content of a file, which the transcript shows before a change."""
        self._last_contents[place_of(path, self.root)] = self._blob(content.encode("utf-8", "surrogatepass"))

    def created(self, path: str, after: Any, call_record: int) -> None:
        """Record that a file was created; `after` is its text, if it is known."""
        self._change(path, "created", None, _bytes(after), call_record)

    def modified(self, path: str, before: Any, after: Any, call_record: int) -> None:
        """Record that the content of a file changed; `before` and `after` are texts, None if they are not known."""
        self._change(path, "modified", _bytes(before), _bytes(after), call_record)

    def deleted(self, path: str, before: Any, call_record: int) -> None:
        """Record that a file was deleted. Its content is `before`, else the last known content."""
        content = _bytes(before)
        self._change(path, "deleted", self.last_content(path) if content is None else content, None, call_record)

    def patched(self, path: str, patch: Any, call_record: int, *, moved_to: str = "") -> None:
        """Record that a unified diff was applied, and that the file was moved if `moved_to` is given. If `patch` is not
        a diff, the change is recorded without contents."""
        hunks, before = hunks_of(patch), self.last_content(path)
        after = before if not hunks and moved_to else _applied(before, hunks) if hunks else None
        text = b"".join(write_hunks(hunks)) if after is None and hunks else b""
        before = None if after is None else before
        action: Literal["modified", "renamed"] = "renamed" if moved_to else "modified"
        self._change(
            moved_to or path, action, before, after, call_record, patch=text, old_path=path if moved_to else ""
        )

    def replaced(self, path: str, edit: Callable[[bytes], bytes | None], call_record: int) -> None:
        """Record that the last known content of a file was edited; `edit` returns None if it does not fit."""
        before = self.last_content(path)
        after = None if before is None else edit(before)
        self._change(path, "modified", None if after is None else before, after, call_record)

    def rewritten(self, path: str, patch: Any, after: str, call_record: int) -> None:
        """Record that a file was overwritten with a known text; its content before is computed from a unified diff, if
        there is one."""
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
        place = place_of(path, self.root)
        self._last_contents.pop(place_of(old_path, self.root) if old_path else place, None)
        self._last_contents.pop(place, None)
        if after is not None:
            self._last_contents[place] = names[1]
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
