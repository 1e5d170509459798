"""Replaces the secrets in drafts of records, and in the files that they refer to, with marks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from ..log.codec import encode_record
from ..log.messages import Media, Message, ToolResult, sha256_hex
from ..log.records import Body, Decision, FileChange, MessageBody, Record, SummaryRecord, UnknownRecord
from ..log.store import Draft
from .bodies import redacted, redacted_bytes
from .redactor import Counts, Redactor
from .truncated import Attentive

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
        kept, counts = redacted_bytes(data, redactor)
        if counts:
            renamed[name] = Cleaned.of(kept, counts)
        clean[renamed[name].name if counts else name] = kept
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
    body, more = renamed_blobs(body, renamed)
    counts.update(more)
    raw = draft.raw
    if raw is not None and isinstance(body, UnknownRecord):
        raw = _clean_raw(raw, redactor, counts)
    elif raw is not None and not counts:
        counts = _beside(raw, body, redactor)
    time, more = redacted_time(draft.time, redactor)
    counts.update(more)
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
