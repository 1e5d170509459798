"""The items, parts and tool declarations that belong to the Responses API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...log.messages import Opaque
from ..schema import fits
from .form import FORMS
from .item_types import ID_MAY_GO, id_fits, item_type
from .schema import ITEM

_MEDIA_KINDS = {"input_image": "image", "computer_screenshot": "image", "input_file": "file"}
"""The kinds of media by type of content part."""


def knows(part: Opaque) -> bool:
    """Whether an opaque item has a known type and everything that the type requires: transcripts contain types that
    only their own program reads, and redacted values. Content parts and reasoning are kept whole only if they cannot be
    read."""
    if FORMS.says(part.form, "part") or part.kind == "reasoning" or not isinstance(part.data, dict):
        return False
    item = {**part.data, "type": item_type(part.data)}
    return fits(item, ITEM) and (item["type"] in ID_MAY_GO or id_fits(item))


def unread_media(part: Opaque) -> str:
    """The kind of media that a content part is, by its type; "" for other parts and for items."""
    return _MEDIA_KINDS.get(part.kind, "") if FORMS.says(part.form, "part") else ""


def declares(tool: Mapping[str, Any]) -> bool:
    """Whether this may be a tool declaration of the Responses API. A declaration of another provider may look the
    same."""
    return "name" in tool or "type" in tool
