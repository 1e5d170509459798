"""Descriptions of a function and its parameters, read from its docstring.

Four styles are read: Google's (`Args:`, `Keyword Args:`), NumPy's (`Parameters` underlined), Sphinx's (`:param name:`)
and Epydoc's (`@param name:`). What stands behind such a section belongs to the description again, and so do all other
sections, such as `Note:`; only what is returned or raised is left out, and what else there is to see.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

_PARAMETERS = r"(?:(?:keyword|other)\s+)?(?:args|arguments|parameters|params)|receives"
_OTHERS = r"returns?|raises?|yields?|see\s+also"
_SECTION = re.compile(rf"^(?:(?P<parameters>{_PARAMETERS})|{_OTHERS})\s*:?\s*$", re.IGNORECASE)
_SPHINX = re.compile(
    r"^[:@](?:param|parameter|arg|argument|key|keyword|kwarg|kwparam)\s+(?:[^:]*\s)?\**(\w+)\s*:\s*(.*)$"
)
_FIELD = re.compile(r"^[:@]\w+[^:]*:")
_GOOGLE = re.compile(r"^\**(\w+)\s*(?:\(.*?\))?\s*:\s*(.*)$")
_NUMPY = re.compile(r"^(\**\w+(?:\s*,\s*\**\w+)*)\s*(?::.*)?$")


def described(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """What a docstring says of a function, without its sections, and of each of its parameters."""
    lines = (inspect.getdoc(function) or "").splitlines()
    said: list[str] = []
    found: dict[str, list[str]] = {}
    names: list[str] = []
    section, depth = "", 0
    for i, line in enumerate(lines):
        text, indent = line.strip(), len(line) - len(line.lstrip())
        underlined = i + 1 < len(lines) and bool(re.fullmatch(r"\s*-{3,}\s*", lines[i + 1]))
        if indent == 0 and (header := _SECTION.match(text)) and (text.endswith(":") or underlined):
            kind = "numpy" if underlined else "google"
            section, names, depth = kind if header["parameters"] else f"other {kind}", [], 0
        elif re.fullmatch(r"-{3,}", text):
            continue
        elif sphinx := _SPHINX.match(text):
            section, names, depth = "sphinx", [sphinx[1]], indent
            found[sphinx[1]] = [sphinx[2]]
        elif section == "sphinx" and _FIELD.match(text):
            names = []
        elif text and not indent and _is_over(section, underlined, blank=i > 0 and not lines[i - 1].strip()):
            section = ""
            said += ["", line] if said and said[-1] else [line]
        elif section in ("google", "numpy", "sphinx"):
            starts = None if underlined else _entry(text, indent, depth, section)
            if starts is not None:
                names, rest = starts
                depth = indent
                found.update({name: [rest] for name in names})
            elif text:
                for name in names:
                    found[name].append(text)
        elif not section:
            said.append(line)
    return "\n".join(said).strip(), {one: " ".join(filter(None, texts)) for one, texts in found.items()}


def _is_over(section: str, underlined: bool, *, blank: bool) -> bool:
    """Whether a line without indentation ends a section. Only a header ends one of NumPy's, and what stands behind a
    blank line one of Sphinx's."""
    return bool(section) and (underlined or section.endswith("google") or (section == "sphinx" and blank))


def _entry(text: str, indent: int, depth: int, section: str) -> tuple[list[str], str] | None:
    """The names and the first words of parameters, if a line begins such; deeper lines continue the one before."""
    if not text or section == "sphinx" or (depth and indent > depth):
        return None
    if indent and (google := _GOOGLE.match(text)):
        return [google[1]], google[2]
    if not indent and section == "numpy" and (numpy := _NUMPY.match(text)):
        return [name.strip(" *") for name in numpy[1].split(",")], ""
    return None
