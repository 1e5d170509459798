"""Parts of a message's content or of a tool's output: texts, images, files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import FormatError
from ...log.messages import Media, Opaque, Part, Text
from ..protocol import BlobReader
from ..schema.walk import fits
from ..spelling import spell
from .form import FORMS, NAME
from .item_types import ID_MAY_GO, id_fits, item_type
from .media import MEDIA_TYPES, read_media, write_media
from .schema import ITEM

# -- known -----------------------------------------------------------------------------------------
#
# The items, parts and tool declarations that belong to the Responses API.

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


_TEXT_TYPES = frozenset({"input_text", "output_text", "text"})


def read_part(part: dict[str, Any], role: str, path: str, blobs: dict[str, bytes]) -> Text | Media | Opaque:
    """Read a content part; media bytes go to `blobs`. A part of an unknown type is kept whole. Raises FormatError if it
    has no type."""
    kind = part.get("type")
    if kind is None:
        raise FormatError("expected a content part with a 'type'", path=path)
    if kind in _TEXT_TYPES and isinstance(part.get("text"), str):
        return Text(part["text"], FORMS.made(text_part(part["text"], role), part))
    if kind == "refusal" and isinstance(part.get("refusal"), str):
        return Text(part["refusal"], FORMS.made(text_part(part["refusal"], role, refusal=True), part, "refusal"))
    if kind in MEDIA_TYPES:
        media = read_media(part, blobs)
        if media is not None:
            return media
    return Opaque(NAME, kind, part, FORMS.shaped("part"))


def write_part(part: Part, role: str, blob: BlobReader) -> dict[str, Any] | None:
    """The content part for `part`, or None if it cannot be sent."""
    if isinstance(part, Text):
        delta = FORMS.delta(part.form)
        if FORMS.value(part.form, "item"):  # it begins an output message, whose keys are in the same form
            delta = (delta or {}).get("~", {}).get("part")
        return spell(text_part(part.text, role, refusal=FORMS.says(part.form, "refusal")), delta)
    if isinstance(part, Media):
        media = write_media(part, blob)
        return None if media is None else FORMS.spelled(media, part.form)
    if isinstance(part, Opaque) and part.provider == NAME and FORMS.says(part.form, "part"):
        return dict(part.data)
    return None


def text_part(text: str, role: str, *, refusal: bool = False) -> dict[str, Any]:
    """The default content part of a text with this role."""
    if refusal:
        return {"type": "refusal", "refusal": text}
    if role == "assistant":
        return {"type": "output_text", "text": text, "annotations": []}
    return {"type": "input_text", "text": text}


def read_content(
    content: Any, role: str, path: str, blobs: dict[str, bytes]
) -> tuple[tuple[Text | Media | Opaque, ...], str]:
    """The parts and the form word of a content: a string, a list of parts, or nothing. Raises FormatError for a part
    without a type."""
    if content is None or content == "":
        return (), ""
    if isinstance(content, str):
        return (Text(content),), ""
    parts = tuple(read_part(part, role, f"{path}[{i}]", blobs) for i, part in enumerate(content))
    return parts, "list" if not parts or plain_texts(parts) is not None else ""


def write_content(
    parts: tuple[Part, ...], role: str, blob: BlobReader, shape_list: bool
) -> tuple[str | list[dict[str, Any]], list[Part]]:
    """The content of a message or output, a string if it is a single plain text, and the parts that cannot be sent."""
    text = plain_texts(parts)
    if text is not None and not shape_list:
        return text, []
    written = [(part, write_part(part, role, blob)) for part in parts]
    content = [out for _, out in written if out is not None]
    lost = [part for part, out in written if out is None]
    return content if content or shape_list else "", lost


def plain_texts(parts: tuple[Part, ...]) -> str | None:
    """The text of parts that a string can represent (no part, or one text without a form); else None."""
    if not parts:
        return ""
    first = parts[0]
    if len(parts) == 1 and isinstance(first, Text) and FORMS.own(first.form) is None:
        return first.text
    return None
