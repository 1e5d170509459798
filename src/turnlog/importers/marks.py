"""Recognise a format by the paths in its JSON values, or by the tables and columns of a database.

A mark is a list of paths that the values of a file have together, separated by spaces: `a.b[].c`, or `type=word` for
the value of a key that names a kind. What a file is must show in its first bytes, so that a document that is cut off
there is closed and read as far as it goes.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import cache, lru_cache
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
_STRING = lazy_pattern(r'("[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z))', re.DOTALL)  # or cut off
_BRACKET = lazy_pattern(r"[][{}]")
_TABLE = lazy_pattern(
    rb"CREATE TABLE (?:IF NOT EXISTS )?[\"'`\[]?(\w{1,100})([^\0]*?)"
    rb"(?=CREATE (?:TABLE|INDEX|UNIQUE|VIEW|TRIGGER|VIRTUAL) |\0|\Z)",
    re.IGNORECASE | re.DOTALL,
)


_Paths = tuple[tuple[frozenset[str], ...], frozenset[str]]
"""The paths in each of the values of a file, and in any of them."""


def has_marks(head: bytes, marks: Sequence[str]) -> bool:
    """Whether the file with these first bytes has one of the marks."""
    return bool(marks) and _match(*_paths_of(head), marks)


def _match(paths: Sequence[frozenset[str]], together: frozenset[str], marks: Sequence[str]) -> bool:
    for mark in map(_paths_in, marks):
        if mark <= together and 4 * sum(not mark.isdisjoint(each) for each in paths) >= len(paths):
            return True
    return False


@cache
def _paths_in(mark: str) -> frozenset[str]:
    return frozenset(mark.split())


@lru_cache(maxsize=2)
def _paths_of(head: bytes) -> _Paths:
    """The paths in the JSON values at the beginning of a file; all formats ask for those of the same file."""
    text = head.decode("utf-8", "replace").strip("\0 \t\r\n")
    if text[:1] not in ("{", "["):
        if "\0" in text[:1024]:
            return (), frozenset()
        text = text[text.find('{"') :]  # lines of a log before the first value
    try:
        document = _whole(text)
    except (ValueError, RecursionError) as error:
        lines = text.splitlines()
        if text[:1] not in ("{", "[") or any(_value(line) for line in lines if line[:1] in ("{", "[")):
            return _all_paths(filter(None, map(_value, lines)))
        document = _value(_closed(text[: getattr(error, "pos", 0)]))  # what is before the damage
    return _all_paths(document if isinstance(document, list) else [document])


def _whole(text: str) -> Any:
    """The single JSON value that a text is, or begins. Raises ValueError if another value follows it."""
    try:
        value, end = _decoder.raw_decode(text)
    except ValueError:
        return _decoder.decode(_closed(text))
    if end < len(text):
        raise ValueError("several values")
    return value


def _closed(text: str) -> str:
    """The JSON with the brackets closed that are open behind its last comma; itself if none is."""
    pieces = _STRING.split(text)  # in turn outside a string, and a string
    cut, last = len(text), len(pieces) - 1
    while last > 0 and "," not in pieces[last]:
        cut -= len(pieces[last]) + len(pieces[last - 1])
        last -= 2
    comma = pieces[last].rfind(",")
    cut = cut - len(pieces[last]) + comma if comma >= 0 else len(text)
    before = len(_BRACKET.findall("".join(pieces[:last:2]) + pieces[last][: max(comma, 0)]))
    open_brackets: list[str] = []
    closing_brackets = ""
    for number, bracket in enumerate(_BRACKET.findall("".join(pieces[::2])), 1):
        if bracket in "{[":
            open_brackets.append("}" if bracket == "{" else "]")
        elif open_brackets:
            open_brackets.pop()
        if not open_brackets:
            return text  # whole, or lines
        if number == before:
            closing_brackets = "".join(reversed(open_brackets))
    return text[:cut] + closing_brackets


def _value(line: str) -> Any:
    try:
        return _decoder.decode(line[max(line.find('{"'), 0) :])
    except (ValueError, RecursionError):
        return None


def _all_paths(values: Iterable[Any]) -> _Paths:
    paths = tuple(map(_paths, islice(values, _ITEMS)))
    return paths, frozenset().union(*paths)


def _paths(value: Any) -> frozenset[str]:
    paths: set[str] = set()
    _add_paths(paths, value, "", _DEPTH)
    return frozenset(paths)


def _add_paths(paths: set[str], value: Any, path: str, depth: int) -> None:
    if isinstance(value, dict) and depth:
        for key, inner in islice(value.items(), _ITEMS):
            inner_path = f"{path}.{key}" if path else str(key)
            paths.add(inner_path)
            if isinstance(inner, (dict, list)):
                _add_paths(paths, inner, inner_path, depth - 1)
            elif key in _KINDS and isinstance(inner, str):
                paths.add(f"{inner_path}={inner}")
    elif isinstance(value, list) and depth:
        paths.add(f"{path}[]")
        for inner in value[:_ITEMS]:
            _add_paths(paths, inner, f"{path}[]", depth)


def connected(path: Path, waiting: float = 1.0) -> sqlite3.Connection:
    """A database, opened read-only; it waits so many seconds for a program that writes."""
    with path.open("rb") as file:
        has_log = file.read(20)[18:] == b"\2\2"
    # If its write-ahead log is not there, nobody writes, and SQLite would make one, in a folder that is not ours.
    how = "&immutable=1" if has_log and not path.with_name(f"{path.name}-wal").exists() else ""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro{how}", uri=True, timeout=waiting)


def has_tables(head: bytes, path: Path | None, tables: str) -> bool:
    """Whether a SQLite database has all of these tables, and columns as `table.column`, separated by spaces. Of bytes
    only the first pages are seen, which hold the list of tables of all but very large lists."""
    if not head.startswith(SQLITE):
        return False
    names = _names_in(head, is_page=True)
    if path is not None and not names.issuperset(tables.split()):
        try:
            with closing(connected(path)) as db:
                made = db.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL")
                names |= _names_in("\n".join(sql for (sql,) in made).encode("utf-8", "surrogatepass"))
        except (sqlite3.Error, ValueError, OSError):
            return False
    return names.issuperset(tables.split())


def _names_in(statements: bytes, *, is_page: bool = False) -> set[str]:
    """The tables that these statements make, and `table.word` for each word in them, its columns among them. On a page,
    SQLite puts the kind, the name twice and up to nine bytes before each; a text in a row has not that."""
    names = set[str]()
    for made in _TABLE.finditer(statements):
        table, start = made[1], made.start()
        if is_page and b"table" + table * 2 not in statements[max(start - 2 * len(table) - 14, 0) : start]:
            continue
        name = table.decode("ascii", "replace")
        names |= {name, *(f"{name}.{word.decode('ascii', 'replace')}" for word in re.findall(rb"\w+", made[2]))}
    return names
