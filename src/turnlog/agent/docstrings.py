"""Descriptions of a function and its parameters, read from its docstring.

Three styles are read: Google's (`Args:`), NumPy's (`Parameters` underlined) and Sphinx's (`:param name:`).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

_SECTION = re.compile(
    r"^(args|arguments|parameters|params|returns?|raises|yields?|examples?|notes?|see also)\s*:?\s*$", re.IGNORECASE
)
_PARAMETERS = ("args", "arguments", "parameters", "params")
_SPHINX = re.compile(r"^:(?:param|parameter|arg)\s+(?:[^:]*\s)?\**(\w+)\s*:\s*(.*)$")
_FIELD = re.compile(r"^:\w+[^:]*:")
_GOOGLE = re.compile(r"^\**(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY = re.compile(r"^\**(\w+)\s*(?::.*)?$")


def described(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """What a docstring says of a function, without its sections, and of each of its parameters."""
    lines = (inspect.getdoc(function) or "").splitlines()
    said: list[str] = []
    found: dict[str, list[str]] = {}
    section, name, depth = "", "", 0
    for i, line in enumerate(lines):
        text, indent = line.strip(), len(line) - len(line.lstrip())
        underlined = i + 1 < len(lines) and bool(re.fullmatch(r"\s*-{3,}\s*", lines[i + 1]))
        if indent == 0 and (header := _SECTION.match(text)) and (text.endswith(":") or underlined):
            section, name, depth = header[1].lower(), "", 0
        elif re.fullmatch(r"-{3,}", text):
            continue
        elif sphinx := _SPHINX.match(text):
            section, name, depth = "sphinx", sphinx[1], indent
            found[name] = [sphinx[2]]
        elif section == "sphinx" and _FIELD.match(text):
            name = ""
        elif section in _PARAMETERS or section == "sphinx":
            starts = _entry(text, indent, depth, section)
            if starts is not None:
                name, rest = starts
                depth = indent
                found[name] = [rest]
            elif name and text:
                found[name].append(text)
        elif not section:
            said.append(line)
    return "\n".join(said).strip(), {one: " ".join(filter(None, texts)) for one, texts in found.items()}


def _entry(text: str, indent: int, depth: int, section: str) -> tuple[str, str] | None:
    """The name and the first words of a parameter, if a line begins one; deeper lines continue the one before."""
    if not text or section == "sphinx" or (depth and indent > depth):
        return None
    if indent and (google := _GOOGLE.match(text)):
        return google[1], google[2]
    if not indent and (numpy := _NUMPY.match(text)):
        return numpy[1], ""
    return None
