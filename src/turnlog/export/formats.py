"""The formats in which a session can be written, by name."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from ..errors import InputError
from ..log.store import Problem, Store
from ..providers import PROVIDERS
from .bodies import as_body
from .lines import as_json, as_jsonl
from .markdown import as_markdown
from .page import as_html

_Format = Callable[[Store, str, list[Problem]], Iterator[bytes]]

FORMATS: dict[str, _Format] = {
    "html": as_html,
    "markdown": as_markdown,
    "json": as_json,
    "jsonl": as_jsonl,
    **{name: partial(as_body, name) for name in PROVIDERS},
}
"""Each function takes a store, a session id and a list to which it adds what it leaves out, and yields chunks of
UTF-8."""


def save(store: Store, session_id: str, form: str, path: str | Path) -> list[Problem]:
    """Write a session to a file, in one of `FORMATS`; returns what was left out or changed.

    Only the user can read the file (mode 0600), and it is written completely or not at all. Raises InputError for an
    unknown format and for a path that is not a file, SessionNotFound, CorruptRecord, OSError.
    """
    if not isinstance(form, str) or form not in FORMATS:
        raise InputError(f"unknown format {form!r}; use one of {', '.join(FORMATS)}")
    problems: list[Problem] = []
    place = Path(path)
    _check_file(place)
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
    try:
        with open(handle, "wb") as file:
            file.writelines(FORMATS[form](store, session_id, problems))
        os.replace(name, place)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(name)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(place)  # the error of a full disk has no file name; this shows which disk is full
        raise
    return problems


def _check_file(place: Path) -> None:
    """Raises InputError if the path is something other than a file (a device, a pipe or a link), which would be
    replaced."""
    with suppress(FileNotFoundError, NotADirectoryError):
        mode = place.lstat().st_mode
        if stat.S_ISLNK(mode):
            raise InputError(f"{place} is a link, which would be replaced; name the file that it leads to")
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "a device or a pipe"
            raise InputError(f"{place} is {kind}; name a file, or send standard output there")
