"""Replaces the secrets in drafts of records, and in the files that they refer to, with marks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from ..log.codec import encode_record
from ..log.messages import Media, Message, ToolCall, ToolResult, compact_json, sha256_hex
from ..log.records import Body, Decision, FileChange, MessageBody, Record, SummaryRecord, UnknownRecord
from ..log.store import Draft
from ..log.texts import Kind, S, with_texts
from .encoded import in_bytes
from .json_text import begun, read
from .redactor import Attentive, Counts, Redactor

# -- bodies ----------------------------------------------------------------------------------------
#
# Replaces the secrets in a record's body with marks.
#
# `turnlog.log.texts` lists which fields contain text, which are names, and which are ids and hashes that stay as they
# are. A provider's spelling of a value (`Form`) may contain unknown keys with any content, so it is searched as JSON.


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
        raw_counts: Counts = Counter()
        raw = self._redactor.spelled(call.raw, raw_counts, ids=False)
        if arguments is call.arguments and raw is not call.raw:  # a secret only in `raw`, such as under a repeated key
            self.counts.update(raw_counts)
            arguments = read(raw) if _spells(call.raw, arguments) else arguments
        same = raw is call.raw and arguments is call.arguments
        return call if same else replace(call, arguments=arguments, raw=raw if _spells(raw, arguments) else None)

    def _begun(self, raw: str) -> str:
        """Arguments that are incomplete or no JSON, without secrets. Their beginning is searched like complete
        arguments."""
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


QUOTING = (Decision, SummaryRecord)
"""Records that quote other records. Their quotations may be cut off."""

_OF_TIMES = "0123456789-:.,+ TZ"


class Cleaned(NamedTuple):
    """A blob without its secrets: its new hash, its size in bytes, and what was replaced."""

    name: str
    size: int
    counts: Counts

    @classmethod
    def of(cls, data: bytes, counts: Counts) -> Cleaned:
        """The values for a clean blob `data`, in which `counts` were replaced."""
        return cls(sha256_hex(data), len(data), counts)


Renamed = Mapping[str, Cleaned]
"""For each blob that contained secrets, by its hash, the blob that replaces it."""


def redacted_drafts(
    drafts: Iterable[Draft], blobs: Mapping[str, bytes], redactor: Redactor
) -> tuple[tuple[Draft, ...], dict[str, bytes]]:
    """Drafts and their blobs without secrets. Blobs that are not text, and everything without secrets, stay as they
    are."""
    renamed: dict[str, Cleaned] = {}
    clean: dict[str, bytes] = {}
    for name, data in blobs.items():
        clean_data, counts = redacted_bytes(data, redactor)
        if counts:
            renamed[name] = Cleaned.of(clean_data, counts)
        clean[renamed[name].name if counts else name] = clean_data
    attentive = Attentive(redactor)
    return tuple(redacted_next(draft, attentive, renamed) for draft in drafts), clean


def redacted_next(draft: Draft, redactor: Redactor, renamed: Renamed) -> Draft:
    """As `redacted_draft`, for the next draft of a log. A record that quotes earlier ones may contain secrets that are
    cut off: an Attentive redactor, which has seen them whole, also finds these pieces."""
    clean = redacted_draft(draft, redactor, renamed)
    if isinstance(redactor, Attentive) and isinstance(draft.body, QUOTING):
        clean = redacted_draft(clean, redactor.pieces, {})
    return clean


def redacted_draft(draft: Draft, redactor: Redactor, renamed: Renamed) -> Draft:
    """A draft without secrets: `draft` itself if it has none. The stored token count is removed from records that
    changed.

    Encoded bytes that come with a draft are dropped if they contain a secret anywhere, even in fields that this version
    does not know. Records of a kind that it does not know are searched as JSON.
    """
    body, counts = redacted(draft.body, redactor)
    body, blob_counts = renamed_blobs(body, renamed)
    counts.update(blob_counts)
    raw = draft.raw
    if raw is not None and isinstance(body, UnknownRecord):
        raw = _clean_raw(raw, redactor, counts)
    elif raw is not None and not counts:
        counts = _beside(raw, body, redactor)
    time, time_counts = redacted_time(draft.time, redactor)
    counts.update(time_counts)
    if not counts:
        return draft
    if isinstance(body, MessageBody):
        body = replace(body, count=None)
    elif isinstance(body, Decision) and "tokens" in body.detail:  # the token counts of the replacements
        body = replace(body, detail={key: value for key, value in body.detail.items() if key != "tokens"})
    together = dict(Counter(draft.redacted) + counts)
    return Draft(body, time, raw if isinstance(body, UnknownRecord) else None, together, draft.live)


def redacted_time(time: str, redactor: Redactor) -> tuple[str, Counts]:
    """A time without secrets, and what was replaced. A transcript may have anything in its place."""
    return redactor.name(time) if time.strip(_OF_TIMES) else (time, Counter())


def renamed_blobs(body: Body, renamed: Renamed) -> tuple[Body, Counts]:
    """`body` with the new names of blobs, and the secrets that were replaced in those blobs."""
    counts: Counts = Counter()
    if not renamed:
        return body, counts

    def named(name: str) -> str:
        if name not in renamed:
            return name
        counts.update(renamed[name].counts)
        return renamed[name].name

    if isinstance(body, FileChange) and {body.before, body.after, body.patch} & renamed.keys():
        body = replace(body, before=named(body.before), after=named(body.after), patch=named(body.patch))
    elif isinstance(body, MessageBody):
        body = replace(body, message=_with_media(body.message, named, renamed))
    elif isinstance(body, Decision):
        shown = [_with_media(message, named, renamed) for message in body.replacement]
        if counts:
            body = replace(
                body, detail={**body.detail, "replacement": json.loads(json.dumps(msgspec.to_builtins(shown)))}
            )
    return body, counts


def _with_media(message: Message, named: Callable[[str], str], renamed: Renamed) -> Message:
    def part(part: Any) -> Any:
        if isinstance(part, ToolResult):
            return replace(part, parts=tuple(map(medium, part.parts)))
        return medium(part)

    def medium(part: Any) -> Any:
        if not (isinstance(part, Media) and part.sha256 in renamed):
            return part
        size = renamed[part.sha256].size if part.size else 0  # 0: the size is not known
        return replace(part, sha256=named(part.sha256), size=size)

    return replace(message, parts=tuple(map(part, message.parts)))


def _beside(raw: bytes, body: Body, redactor: Redactor) -> Counts:
    """The secrets of `raw` that are in fields which `body` does not have."""
    held = redactor.text(raw.decode("utf-8", "surrogateescape"))[1]
    if not held:
        return held
    return held - redactor.text(encode_record(Record(1, "", body)).decode("utf-8", "surrogateescape"))[1]


def _clean_raw(raw: bytes, redactor: Redactor, counts: Counts) -> bytes:
    held = json.loads(raw)
    clean = redactor.value(held, counts)
    return raw if clean is held else json.dumps(clean, separators=(",", ":")).encode("ascii")
