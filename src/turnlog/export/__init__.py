"""Sessions out of a store: as JSON, as JSON lines that turnlog reads back, as Markdown for people."""

from __future__ import annotations

from .lines import as_json, as_jsonl, record_json
from .markdown import as_markdown
from .visible import visible

__all__ = ["FORMATS", "as_json", "as_jsonl", "as_markdown", "record_json", "visible"]

FORMATS = {"json": as_json, "jsonl": as_jsonl, "markdown": as_markdown}
"""Each takes a store, a session id and a list that damage is reported to, and yields UTF-8 pieces."""
