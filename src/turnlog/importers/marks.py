"""Recognise a format by the paths in its JSON values, or by the tables of a database.

A mark is a list of paths that the values of a file have together, separated by spaces: `a.b[].c`, or `type=word` for
the value of a key that names a kind. What a file is must show in its first bytes, so that a document that is cut off
there is closed and read as far as it goes.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from .._platform.lazy import lazy_pattern

SQLITE = b"SQLite format 3\0"
"""The first bytes of a SQLite database."""

_decoder = json.JSONDecoder(strict=False)
_KINDS = ("type", "kind", "from", "part_kind", "role", "sender", "method")
_DEPTH = 5
_ITEMS = 50
_TOKEN = lazy_pattern(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[][{},]', re.DOTALL)
_TABLE = lazy_pattern(rb"CREATE TABLE (?:IF NOT EXISTS )?[\"'`\[]?(\w+)", re.IGNORECASE)


def has_marks(head: bytes, marks: Sequence[str]) -> bool:
    """Whether the file with these first bytes has one of the marks."""
    return bool(marks) and _match(_paths_of(head), marks)


def are_marked(values: Iterable[Any], marks: Sequence[str]) -> bool:
    """Whether these JSON values have one of the marks: together, and at least a quarter of them a path of it."""
    return _match(_all_paths(values), marks)


def _match(paths: Sequence[frozenset[str]], marks: Sequence[str]) -> bool:
    together = frozenset().union(*paths)
    for mark in map(frozenset, map(str.split, marks)):
        if mark <= together and 4 * sum(not mark.isdisjoint(each) for each in paths) >= len(paths):
            return True
    return False


@lru_cache(maxsize=2)
def _paths_of(head: bytes) -> tuple[frozenset[str], ...]:
    """The paths in the JSON values at the beginning of a file; all formats ask for those of the same file."""
    text = head.decode("utf-8", "replace").strip("\0 \t\r\n")
    if text[:1] not in ("{", "["):
        if "\0" in text[:1024]:
            return ()
        text = text[text.find('{"') :]  # lines of a log before the first value
    try:
        document = _decoder.decode(_closed(text))
    except (ValueError, RecursionError) as error:
        lines = text.splitlines()
        if text[:1] not in ("{", "[") or any(_value(line) for line in lines if line[:1] in ("{", "[")):
            return _all_paths(filter(None, map(_value, lines)))
        document = _value(_closed(text[: getattr(error, "pos", 0)]))  # what is before the damage
    return _all_paths(document if isinstance(document, list) else [document])


def _closed(text: str) -> str:
    """The JSON with the brackets closed that are open behind its last comma; itself if none is."""
    open_brackets: list[str] = []
    cut, closing_brackets = len(text), ""
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "{" | "[" as bracket:
                open_brackets.append("}" if bracket == "{" else "]")
            case "}" | "]":
                if open_brackets:
                    open_brackets.pop()
                if not open_brackets:
                    return text  # whole, or lines
            case ",":
                cut, closing_brackets = token.start(), "".join(reversed(open_brackets))
    return text[:cut] + closing_brackets


def _value(line: str) -> Any:
    try:
        return _decoder.decode(line[max(line.find('{"'), 0) :])
    except (ValueError, RecursionError):
        return None


def _all_paths(values: Iterable[Any]) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(_paths(value, "", _DEPTH)) for value in islice(values, _ITEMS))


def _paths(value: Any, path: str, depth: int) -> Iterator[str]:
    if isinstance(value, dict) and depth:
        for key, inner in islice(value.items(), _ITEMS):
            inner_path = f"{path}.{key}" if path else str(key)
            yield inner_path
            if key in _KINDS and isinstance(inner, str):
                yield f"{inner_path}={inner}"
            yield from _paths(inner, inner_path, depth - 1)
    elif isinstance(value, list) and depth:
        yield f"{path}[]"
        for inner in value[:_ITEMS]:
            yield from _paths(inner, f"{path}[]", depth)


def has_tables(head: bytes, path: Path | None, tables: str) -> bool:
    """Whether a SQLite database has all of these tables, separated by spaces. Of bytes only the first pages are seen,
    which hold the list of tables of all but very large lists."""
    if not head.startswith(SQLITE):
        return False
    names = {name.decode("ascii", "replace") for name in _TABLE.findall(head)}
    if path is not None and not names.issuperset(tables.split()):
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
                names.update(name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))
        except (sqlite3.Error, ValueError):
            return False
    return names.issuperset(tables.split())
