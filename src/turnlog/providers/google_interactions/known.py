"""Which steps and tool declarations belong to the Interactions API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...log.messages import Opaque
from ..schema import fits
from .form import FORMS
from .schema import MEDIA, OWN_CALLS, OWN_RESULTS, STEP, TOOL

_ELSEWHERE = ("file_search", "function", "tool_search")
"""Types of tools that the Responses API has as well."""
_STORES = "file_search_store_names"


def knows(part: Opaque) -> bool:
    """Whether an opaque part is a step that may be sent: of a tool that Google runs, or a thought with an image, with
    all required keys. Opaque contents may not be sent: they are contents that could not be read."""
    known = part.kind in OWN_CALLS or part.kind in OWN_RESULTS or part.kind == "thought"
    return known and not FORMS.says(part.form, "part") and fits(part.data, STEP)


def unread_media(part: Opaque) -> str:
    """The kind of media that a content is, by its type; "" for other contents and for steps."""
    return part.kind if part.kind in MEDIA and FORMS.says(part.form, "part") else ""


def declares(tool: Mapping[str, Any]) -> bool:
    """Whether a declaration is of a tool that Google runs, by its type. Functions do not count: the Responses API
    declares them in the same way."""
    kind = tool.get("type")
    return isinstance(kind, str) and kind in TOOL.shapes and (kind not in _ELSEWHERE or _STORES in tool)
