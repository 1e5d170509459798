"""Takes away from turnlog what Windows lacks. Python imports this at its start if this folder is on `PYTHONPATH`.

turnlog's modules get copies of `os`, `signal`, `time`, `select` and `socket` with the names that they have on Windows,
and `os.name` is "nt" there; modules that Windows does not have cannot be imported. Opening a folder, or a file without
`O_BINARY` (it would be opened as text), names that Windows does not allow, and replacing or removing a file that is
open in this process fail. The rest of Python stays as it is on this system.

It cannot show: other paths (drives, backslashes), files that another process has open, `taskkill` and `cmd.exe`, the
console, and how Windows itself behaves where a name exists in both.
"""

from __future__ import annotations

import asyncio
import builtins
import errno
import os
import re
import select
import signal
import socket
import sys
import time
from collections.abc import Collection
from types import FrameType, ModuleType
from typing import Any

from lacking import LACKING, MISSING

_BINARY = 1 << 30
_FORBIDDEN = re.compile(r'[<>:"|?*\x00-\x1f]|[. ]\Z|(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z)', re.IGNORECASE)


class _Reduced(ModuleType):
    """A module without some of its names, and with others."""

    def __init__(self, module: ModuleType, without: Collection[str], **instead: Any) -> None:
        super().__init__(module.__name__)
        names = {name: value for name, value in vars(module).items() if name not in without}
        self.__dict__.update({**names, **instead})


def _opened(path: Any, flags: int, mode: int = 0o777) -> int:
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    by_python = flags & os.O_CLOEXEC  # through `opener=`: on Windows these flags have O_BINARY
    assert flags & _BINARY or by_python, f"{path} is opened without O_BINARY: Windows would change its line ends"
    return os.open(path, flags & ~_BINARY, mode)


_MODULES: dict[str, ModuleType] = {
    "os": _Reduced(os, LACKING["os"], name="nt", O_BINARY=_BINARY, open=_opened),
    "signal": _Reduced(signal, LACKING["signal"]),
    "time": _Reduced(time, LACKING["time"]),
    "select": _Reduced(select, LACKING["select"]),
    "socket": _Reduced(socket, LACKING["socket"]),
}
_import = builtins.__import__


def _imported(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    if not level and _is_ours((globals or {}).get("__name__")):
        if name in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if name.partition(".")[0] in _MODULES:
            return _MODULES[name.partition(".")[0]]
    return _import(name, globals, locals, fromlist, level)


def _is_ours(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] == "turnlog"


def _called_by_us() -> bool:
    """Whether turnlog called the function that is being audited, also through `pathlib`, `os` or `contextlib`."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.partition(".")[0] not in ("pathlib", "os", "io", "contextlib", __name__):
            return _is_ours(module)
        frame = frame.f_back
    return False


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in ("open", "os.mkdir", "os.rename", "os.remove") or not _called_by_us():
        return
    paths = [os.fsdecode(path) for path in arguments[: 2 if event == "os.rename" else 1] if isinstance(path, _PATHS)]
    for path in paths:
        if _FORBIDDEN.search(os.path.basename(path)) and not path.startswith("/proc/"):
            raise OSError(errno.EINVAL, "Windows does not allow this name", path)
        if event in ("os.rename", "os.remove") and _is_open(path):
            raise PermissionError(errno.EACCES, "another handle has this file open", path)


_PATHS = (str, bytes, os.PathLike)


def _is_open(path: str) -> bool:
    whole = os.path.realpath(path)
    for handle in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{handle}") == whole and os.path.isfile(whole):
                return True
        except OSError:
            continue
    return False


def _no_signal_handlers(self: object, *given: object) -> None:
    raise NotImplementedError


builtins.__import__ = _imported
sys.addaudithook(_audit)
asyncio.SelectorEventLoop.add_signal_handler = _no_signal_handlers  # type: ignore[assignment]
asyncio.SelectorEventLoop.remove_signal_handler = _no_signal_handlers  # type: ignore[assignment]
