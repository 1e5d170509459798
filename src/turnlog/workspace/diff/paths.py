r"""Paths of changed files: brought to one spelling, told inside from outside, quoted as git does it.

A path is a text as `os.fsdecode` makes it: bytes that are no UTF-8 stand as lone surrogates.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable

_DRIVE = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_TOP = re.compile(r"/?|[A-Za-z]:")
_PARTS_AT_BACKSLASH = os.sep == "\\"
"""Whether this system takes a backslash in a name for a separator."""
_ESCAPES = {7: b"\\a", 8: b"\\b", 9: b"\\t", 10: b"\\n", 11: b"\\v", 12: b"\\f", 13: b"\\r", 34: b'\\"', 92: b"\\\\"}


def place_of(path: str, root: str = "") -> str:
    """Where a file is, in one spelling: with `/`, without `.` and `..`; absolute if `path` or `root` is.

    `root` is the folder that a relative path starts from. Windows paths keep their drive; where `root` is none, a
    backslash is a letter of a name like any other.
    """
    windows = not root.startswith("/") and bool(_DRIVE.match(path) or _DRIVE.match(root))
    path, root = (text.replace("\\", "/") if windows else text for text in (path, root))
    if not path.startswith("/") and not (windows and _DRIVE.match(path)) and root:
        path = f"{root}/{path}"
    normal = posixpath.normpath(path) if path else ""
    return normal.replace("//", "/", 1) if normal.startswith("//") and not windows else normal


def relative_to(place: str, root: str) -> str:
    """`place` as seen from the folder `root` if it is inside, else as it is. Both as `place_of` has them."""
    return place.removeprefix(root.rstrip("/") + "/") if root else place


def common_root(roots: Iterable[str]) -> str:
    """The deepest folder that holds all folders that work was done in; the first of them if that is none but the
    top of the disk; "" if there are none."""
    places = list(dict.fromkeys(place_of(root) for root in roots if root))
    try:
        common = posixpath.commonpath(places)
    except ValueError:  # none, or some relative and some not
        common = ""
    return common if len(places) == 1 or not _TOP.fullmatch(common) else places[0] if places else ""


def is_inside(path: str) -> bool:
    """Whether a path, as `place_of` has it, stays inside the folder that it is relative to, and out of git's own.

    What is applied must not write anywhere else: no absolute path, no `..`, no `.git`, no drive. A backslash is part
    of a name, but where this system separates by it.
    """
    names = path.split("/")
    return (
        bool(path)
        and "\0" not in path
        and not (_PARTS_AT_BACKSLASH and "\\" in path)
        and not (len(names) > 1 and _TOP.fullmatch(names[0]))
        and not any(name in ("", ".", "..") or _is_git(name) for name in names)
    )


def _is_git(name: str) -> bool:
    """Whether a file system may take this name for `.git`, as git's verify_path() has it."""
    plain = name.lower().rstrip(". ").partition(":")[0]
    return plain in (".git", "git~1")


def quoted(path: str) -> bytes:
    """A path as it stands in the head of a patch: C-style in quotes where it holds a quote, a backslash, a
    control character or a byte above 127, else as it is (git's `core.quotePath`)."""
    try:
        raw = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a surrogate that stands for no byte
        raw = path.encode("utf-8", "surrogatepass")
    if all(0x20 <= code < 0x7F and code not in _ESCAPES for code in raw):
        return raw
    return b'"%b"' % b"".join(_escaped(code) for code in raw)


def _escaped(code: int) -> bytes:
    if code in _ESCAPES:
        return _ESCAPES[code]
    return bytes((code,)) if 0x20 <= code < 0x7F else b"\\%03o" % code
