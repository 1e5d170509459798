"""Sessions out of a store: JSON, JSON Lines that turnlog reads back, provider requests, Markdown, one HTML page.

Imported by `cli`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .bodies import as_body
    from .escapes import visible
    from .formats import FORMATS, save
    from .lines import as_json, as_jsonl, record_json
    from .markdown import as_markdown
    from .page import as_html
    from .wording import dollars, in_short, said_of, tokens_of

__all__ = [
    "FORMATS",
    "as_body",
    "as_html",
    "as_json",
    "as_jsonl",
    "as_markdown",
    "dollars",
    "in_short",
    "record_json",
    "said_of",
    "save",
    "tokens_of",
    "visible",
]

_MODULES = {
    **dict.fromkeys(("FORMATS", "save"), "formats"),
    **dict.fromkeys(("as_json", "as_jsonl", "record_json"), "lines"),
    **dict.fromkeys(("dollars", "in_short", "said_of", "tokens_of"), "wording"),
    "as_body": "bodies",
    "as_html": "page",
    "as_markdown": "markdown",
    "visible": "escapes",
}
"""Where each name is made. They are opened when first used: every command needs `visible`, few need a page."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    return value
