"""Which items, parts and tool declarations are those of the Responses API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...log.messages import Opaque
from ..schema import fits
from .form import FORMS
from .item_types import ID_MAY_GO, id_fits, item_type
from .schema import ITEM


def knows(part: Opaque) -> bool:
    """Whether an opaque item has a known type and all that the type requires: transcripts hold types that only their
    own program reads, and redacted values. Content parts and reasoning are kept whole only if they cannot be read."""
    if FORMS.says(part.form, "part") or part.kind == "reasoning" or not isinstance(part.data, dict):
        return False
    item = {**part.data, "type": item_type(part.data)}
    return fits(item, ITEM) and (item["type"] in ID_MAY_GO or id_fits(item))


def declares(tool: Mapping[str, Any]) -> bool:
    """Whether it may be a tool declaration of the Responses API. That of another provider may look the same."""
    return "name" in tool or "type" in tool
