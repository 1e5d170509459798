"""A JSON document that holds a list: the whole of it, or what is left of a broken one."""

from __future__ import annotations

import json
import re
from typing import Any

from .._platform.encoding import plain_utf8
from .lines import json_document
from .protocol import Damage

_decoder = json.JSONDecoder()
_GAP = re.compile(r"[\s,\0]*")


def document_or_rest(data: bytes, key: str, file: str, warnings: list[Damage]) -> Any:
    """The JSON value that `data` is. Of a broken one, the items up to the damage of the list at `key`
    (as `{key: [...]}`), or of the list that the document is if `key` is empty. None if nothing is left.
    """
    try:
        return json_document(data)
    except ValueError as error:
        reason = str(error)
    text = plain_utf8(data).decode("utf-8", "replace")
    start = re.search(rf'"{re.escape(key)}"\s*:\s*\[' if key else r"\A[\s\0]*\[", text)
    if start is None:
        return None
    items: list[Any] = []
    position = start.end()
    while True:
        gap = _GAP.match(text, position)
        position = gap.end() if gap else position
        try:
            _, end = _decoder.raw_decode(text, position)
            items.append(json_document(text[position:end].encode("utf-8", "surrogatepass")))
        except (ValueError, RecursionError):
            break
        position = end
    if not items:
        return None
    line = text.count("\n", 0, position) + 1
    warnings.append(Damage(file, line, f"no whole JSON ({reason}): {len(items)} entries before the damage were read"))
    return {key: items} if key else items
