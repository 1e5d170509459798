"""Sessions out of a store: as JSON, as JSON lines that turnlog reads back, as Markdown or a page of HTML for people."""

from __future__ import annotations

from .lines import as_json, as_jsonl, record_json
from .markdown import as_markdown
from .page import as_html
from .visible import visible
from .wording import dollars, in_short, said_of, tokens_of

__all__ = [
    "FORMATS",
    "as_html",
    "as_json",
    "as_jsonl",
    "as_markdown",
    "dollars",
    "in_short",
    "record_json",
    "said_of",
    "tokens_of",
    "visible",
]

FORMATS = {"json": as_json, "jsonl": as_jsonl, "markdown": as_markdown, "html": as_html}
"""Each takes a store, a session id and a list that damage is reported to, and yields UTF-8 pieces."""
