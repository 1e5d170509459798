"""Replaces the secrets in a record's body with marks.

`turnlog.log.texts` lists which fields contain text, which are names, and which are ids and hashes that stay as they
are. A provider's spelling of a value (`Form`) may contain unknown keys with any content, so it is searched as JSON.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from msgspec.structs import replace

from ..log.messages import ToolCall, compact_json
from ..log.texts import Kind, S, with_texts
from .encoded import in_bytes
from .json_text import begun, read
from .redactor import Counts, Redactor


def redacted(body: S, redactor: Redactor) -> tuple[S, Counts]:
    """`body` with marks instead of secrets, and what was replaced; `body` itself if it contains no secret."""
    work = _Redaction(redactor)
    return with_texts(body, work.clean), work.counts


def redacted_bytes(data: bytes, redactor: Redactor) -> tuple[bytes, Counts]:
    """The bytes of a text file, in any usual encoding, with marks instead of secrets; `data` itself if it is not
    text."""
    return in_bytes(data, redactor.text)


class _Redaction:
    """Cleans the texts of one body and counts the replaced secrets."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self.counts: Counts = Counter()

    def clean(self, kind: Kind, value: Any) -> Any:
        """A text of any kind without secrets; `value` itself if it contains none."""
        if kind == "call":
            return self._call(value)
        if kind == "name":
            clean, counts = self._redactor.name(value)
            self.counts.update(counts)
            return clean
        return self._text(value) if kind in ("text", "url") else self._redactor.value(value, self.counts)

    def _call(self, call: ToolCall) -> ToolCall:
        """A call with clean arguments. JSON stays JSON, and `raw` stays a different spelling of it."""
        if call.arguments is None:
            raw = call.raw and self._begun(call.raw)
            return call if raw is call.raw else replace(call, raw=raw)
        arguments = self._redactor.value(call.arguments, self.counts, ids=False)
        if call.raw is None:
            return call if arguments is call.arguments else replace(call, arguments=arguments)
        more: Counts = Counter()
        raw = self._redactor.spelled(call.raw, more, ids=False)
        if arguments is call.arguments and raw is not call.raw:  # a secret only in `raw`, such as under a repeated key
            self.counts.update(more)
            arguments = read(raw) if _spells(call.raw, arguments) else arguments
        same = raw is call.raw and arguments is call.arguments
        return call if same else replace(call, arguments=arguments, raw=raw if _spells(raw, arguments) else None)

    def _begun(self, raw: str) -> str:
        """Arguments that are not JSON, or not yet complete: their beginning is searched like complete arguments."""
        if (held := begun(raw)) is not None:
            clean = self._redactor.value(held.value, self.counts, ids=False)
            raw = raw if clean is held.value else held.text(clean)
        return self._text(raw)

    def _text(self, text: str) -> str:
        clean, counts = self._redactor.text(text)
        self.counts.update(counts)
        return clean


def _spells(raw: str, arguments: Any) -> bool:
    try:
        return compact_json(json.loads(raw)) == compact_json(arguments)
    except (ValueError, RecursionError):
        return False
