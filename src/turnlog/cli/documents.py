"""JSON documents that a command line names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .._platform.texts import plain_utf8
from ..errors import FormatError, InputError
from .terminal import stdin_bytes


def document(name: str) -> bytes:
    """The bytes of a file; `-` is standard input. Raises InputError if it cannot be read."""
    if name == "-":
        return stdin_bytes()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror}); name a readable file") from error


def json_object(name: str) -> dict[str, Any]:
    """The JSON object in a file. Raises InputError, FormatError."""
    data = document(name)
    try:
        value = json.loads(plain_utf8(data).decode("utf-8"))
    except UnicodeDecodeError as error:
        if data.startswith(b"SQLite format 3"):
            raise FormatError("a store, not a request; name it with --store", path=name) from error
        raise FormatError(f"byte {error.start} is not UTF-8; save the file as UTF-8", path=name) from error
    except json.JSONDecodeError as error:
        raise FormatError(f"not JSON: {error}", path=name) from error
    except RecursionError as error:
        raise FormatError(
            "the JSON is nested too deeply to be read; give a request body with fewer levels", path=name
        ) from error
    if not isinstance(value, dict):
        raise FormatError(f"a request must be a JSON object, not {type(value).__name__}", path=name)
    return value
