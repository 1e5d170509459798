"""Export sessions from a store: JSON, JSON Lines that turnlog reads back, provider requests, Markdown, one HTML page.

Imported by `cli`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._platform.lazy import lazy_names

if TYPE_CHECKING:
    from .bodies import as_body
    from .description import ContentBlock, Description, RecordBadges, describe, describe_part
    from .escapes import visible
    from .formats import FORMATS, save
    from .lines import as_json, as_jsonl, record_json
    from .markdown import as_markdown
    from .page import as_html
    from .trajectory_page import as_trajectory
    from .trajectory_picture import as_trajectory_picture
    from .wording import at_least, dollars, in_short, is_priced, tokens_of
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "bodies": "as_body",
            "description": "ContentBlock describe describe_part Description RecordBadges",
            "escapes": "visible",
            "formats": "FORMATS save",
            "lines": "as_json as_jsonl record_json",
            "markdown": "as_markdown",
            "page": "as_html",
            "trajectory_page": "as_trajectory",
            "trajectory_picture": "as_trajectory_picture",
            "wording": "at_least dollars in_short is_priced tokens_of",
        },
    )

__all__ = [
    "ContentBlock",
    "Description",
    "FORMATS",
    "RecordBadges",
    "as_body",
    "as_html",
    "as_json",
    "as_jsonl",
    "as_markdown",
    "as_trajectory",
    "as_trajectory_picture",
    "at_least",
    "describe",
    "describe_part",
    "dollars",
    "in_short",
    "is_priced",
    "record_json",
    "save",
    "tokens_of",
    "visible",
]
