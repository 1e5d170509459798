"""The difference of a file, and how git writes it: in the format of `git diff`, which `git apply` can apply and
reverse.

The format is described in git's Documentation/diff-format.txt and, for binary data, in apply.c and base85.c.
"""

from __future__ import annotations

import hashlib
import zlib
from base64 import b85encode
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from .hunks import Hunk, make_hunks, split_lines, write_hunks
from .matching import shared_runs
from .paths import quoted

Action = Literal["modified", "created", "deleted", "renamed"]

_MODE = "100644"
_NO_ID = "0" * 40
_LINES = 500_000
"""Contents with more lines than this on one side are not compared by lines."""

_BINARY_LINE = 52
"""The most bytes that git encodes in one line of base85."""


class FileDiff(Struct, frozen=True):
    """The difference of one file.

    `path` is its present path, or its last path if it was deleted; `old_path` is its earlier path, if it was renamed.
    Modes are as in git (`100644`, `100755`), empty if unknown. `before` and `after` are git's ids of the two contents,
    empty if unknown, or zeros if there is no file. `similarity` is in percent, for a renamed file. A difference of
    whole contents has no hunks; `contents` are then the old and the new content.
    """

    path: str
    action: Action
    old_path: str = ""
    old_mode: str = ""
    mode: str = ""
    before: str = ""
    after: str = ""
    similarity: int = 100
    hunks: tuple[Hunk, ...] = ()
    contents: tuple[bytes, bytes] | None = None

    @property
    def is_binary(self) -> bool:
        """Whether the difference consists of whole contents, because they are not text or have too many lines to
        compare."""
        return self.contents is not None

    @property
    def is_nothing(self) -> bool:
        """Whether the file is unchanged."""
        moded = self.old_mode and self.mode and self.old_mode != self.mode
        return self.action == "modified" and not self.hunks and not self.is_binary and not moded

    @property
    def additions(self) -> int:
        """The number of added lines; 0 for binary data."""
        return sum(hunk.additions for hunk in self.hunks)

    @property
    def deletions(self) -> int:
        """The number of deleted lines; 0 for binary data."""
        return sum(hunk.deletions for hunk in self.hunks)


def diff_contents(
    path: str,
    action: Action,
    before: bytes,
    after: bytes,
    *,
    old_path: str = "",
    old_mode: str = "",
    mode: str = "",
) -> FileDiff:
    """The difference of two contents. The content of a file that does not exist is given as empty."""
    binary = any(b"\0" in data or data.count(b"\n") > _LINES for data in (before, after))
    return FileDiff(
        path=path,
        action=action,
        old_path=old_path,
        old_mode=old_mode,
        mode=mode,
        before=_NO_ID if action == "created" else _object_id(before),
        after=_NO_ID if action == "deleted" else _object_id(after),
        similarity=_similarity(before, after, binary) if action == "renamed" else 100,
        hunks=() if binary else make_hunks(before, after),
        contents=(before, after) if binary and before != after else None,
    )


def diff_hunks(
    path: str, hunks: tuple[Hunk, ...], *, old_path: str = "", old_mode: str = "", mode: str = ""
) -> FileDiff:
    """A difference of which only the hunks are known. The file must exist before and after."""
    return FileDiff(
        path=path,
        action="renamed" if old_path else "modified",
        old_path=old_path,
        old_mode=old_mode,
        mode=mode,
        similarity=50 if hunks else 100,
        hunks=hunks,
    )


def _object_id(data: bytes) -> str:
    """Git's id of a content, in a repository with SHA-1."""
    return hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()


def _similarity(before: bytes, after: bytes, binary: bool) -> int:
    """The part of the longer content that both share, in percent; 100 only if they are equal, 50 if they are not
    compared."""
    if before == after or binary:
        return 100 if before == after else 50
    old = split_lines(before)
    shared = sum(sum(map(len, old[run.old : run.old + run.length])) for run in shared_runs(old, split_lines(after)))
    return min(99, 100 * shared // max(len(before), len(after)))


def patch_lines(diff: FileDiff) -> Iterator[bytes]:
    """The difference as git writes it, line by line (each with its line end)."""
    old_path = diff.old_path or diff.path
    old, new = quoted("a/" + old_path), quoted("b/" + diff.path)
    yield b"diff --git %b %b\n" % (old, new)
    yield from _modes(diff)
    if diff.action == "renamed":
        yield b"similarity index %d%%\n" % diff.similarity
        yield b"rename from %b\n" % quoted(old_path)
        yield b"rename to %b\n" % quoted(diff.path)
    if diff.before and diff.before != diff.after:
        same = diff.mode if diff.action in ("modified", "renamed") and diff.old_mode == diff.mode else ""
        yield f"index {diff.before}..{diff.after}{' ' + same if same else ''}\n".encode()
    if diff.contents is not None:
        yield b"GIT binary patch\n"
        for data in reversed(diff.contents):
            yield from _literal(data)
    elif diff.hunks:
        yield b"--- %b\n" % (b"/dev/null" if diff.action == "created" else _ended(old))
        yield b"+++ %b\n" % (b"/dev/null" if diff.action == "deleted" else _ended(new))
        yield from write_hunks(diff.hunks)


def _modes(diff: FileDiff) -> Iterator[bytes]:
    if diff.action == "created":
        yield f"new file mode {diff.mode or _MODE}\n".encode()
    elif diff.action == "deleted":
        yield f"deleted file mode {diff.old_mode or _MODE}\n".encode()
    elif diff.old_mode and diff.mode and diff.old_mode != diff.mode:
        yield f"old mode {diff.old_mode}\nnew mode {diff.mode}\n".encode()


def _ended(name: bytes) -> bytes:
    """A name, with a tab after it if it contains a space, because readers could take the rest for a time stamp."""
    return name + b"\t" if b" " in name and not name.startswith(b'"') else name


def _literal(data: bytes) -> Iterator[bytes]:
    """A whole content as git writes binary data: deflated, then base85 in lines that begin with their length."""
    yield b"literal %d\n" % len(data)
    packed = zlib.compress(data)
    for start in range(0, len(packed), _BINARY_LINE):
        piece = packed[start : start + _BINARY_LINE]
        length = bytes((len(piece) + (64 if len(piece) <= 26 else 70),))  # A to Z, then a to z
        yield length + b85encode(piece, pad=True) + b"\n"
    yield b"\n"
