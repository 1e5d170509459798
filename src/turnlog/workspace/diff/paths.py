r"""Paths of changed files: converts them to one spelling, checks whether they are inside a folder, quotes them as git
does.

Paths are texts as `os.fsdecode` returns them: bytes that are not UTF-8 are lone surrogates.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable

from ..._platform.lazy import lazy_pattern

_DRIVE = lazy_pattern(r"[A-Za-z]:[\\/]|\\\\")
_TOP = lazy_pattern(r"/?|[A-Za-z]:")
_PARTS_AT_BACKSLASH = os.sep == "\\"
"""Whether a backslash separates names on this system."""
_ESCAPES = {7: b"\\a", 8: b"\\b", 9: b"\\t", 10: b"\\n", 11: b"\\v", 12: b"\\f", 13: b"\\r", 34: b'\\"', 92: b"\\\\"}


def place_of(path: str, root: str = "") -> str:
    """A path in one spelling: with `/`, without `.` and `..`; absolute if `path` or `root` is.

    `root` is the folder that a relative path starts from. Windows paths keep their drive. In a path that is not a
    Windows path, a backslash is an ordinary character of a name.
    """
    windows = not root.startswith("/") and bool(_DRIVE.match(path) or _DRIVE.match(root))
    path, root = (text.replace("\\", "/") if windows else text for text in (path, root))
    if not path.startswith("/") and not (windows and _DRIVE.match(path)) and root:
        path = f"{root}/{path}"
    normal = posixpath.normpath(path) if path else ""
    return normal.replace("//", "/", 1) if normal.startswith("//") and not windows else normal


def relative_to(place: str, root: str) -> str:
    """`place` relative to the folder `root` if it is inside, otherwise unchanged. Both must be in the form of
    `place_of`."""
    return place.removeprefix(root.rstrip("/") + "/") if root else place


def common_root(roots: Iterable[str]) -> str:
    """The deepest folder that contains all these working folders. If that is the top of the disk, the first of them; ""
    if there are none."""
    places = list(dict.fromkeys(place_of(root) for root in roots if root))
    try:
        common = posixpath.commonpath(places)
    except ValueError:  # no places, or both relative and absolute ones
        common = ""
    return common if len(places) == 1 or not _TOP.fullmatch(common) else places[0] if places else ""


def is_inside(path: str) -> bool:
    """Whether a path in the form of `place_of` stays inside the folder that it is relative to, and outside of `.git`.

    A patch must not write anywhere else, so absolute paths, `..`, `.git` and drives are not inside. A backslash is part
    of a name, unless it separates names on this system.
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
    """Whether a file system may take this name for `.git`, by the rules of git's verify_path()."""
    plain = name.lower().rstrip(". ").partition(":")[0]
    return plain in (".git", "git~1")


def quoted(path: str) -> bytes:
    """A path as in the head of a patch: in C-style quotes if it contains a quote, a backslash, a control character or a
    byte above 127, otherwise unchanged (git's `core.quotePath`)."""
    try:
        raw = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a surrogate that does not represent a byte
        raw = path.encode("utf-8", "surrogatepass")
    if all(0x20 <= code < 0x7F and code not in _ESCAPES for code in raw):
        return raw
    return b'"%b"' % b"".join(_escaped(code) for code in raw)


def _escaped(code: int) -> bytes:
    if code in _ESCAPES:
        return _ESCAPES[code]
    return bytes((code,)) if 0x20 <= code < 0x7F else b"\\%03o" % code
