"""Records to bytes and back: UTF-8 JSON, one object a record, described in docs/format.md.

The fast path is msgspec. What conversations hold and JSON does not is written as a *mark*, an
object with one key: `{"$number": "NaN"}` for numbers that are not finite, `{"$text": [...]}` for a
text whose surrogate halves would fuse, `{"$object": [[key, value], ...]}` for an object that would
read as a mark itself. Lone surrogates are `\\udXXX` escapes. All come back as they were.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from .._platform.msgspec_init import ready
from ..errors import CorruptRecord, InputError
from .messages import Message, Part, Text, ToolResult, Unknown
from .records import Body, MessageRecord, Record, UnknownRecord

FORMAT_VERSION = 1
"""Version of the record format. A reader keeps what a newer one wrote and it does not know."""

DEPTH_LIMIT = 200
"""How deep arrays and objects of a record may nest, envelope included. A fixed number, so that what
was written under a shallow call stack can be read under a deep one (CPython allows 1,000 in all)."""

_MARKS = frozenset({"$number", "$text", "$object"})
_MARK_BYTES = b'{"$'
_DOLLARS = 64
"""So many dollars are looked at one by one."""
_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_NULL = re.compile(rb"[:,\[]null")
_FUSING = re.compile("(?<=[\ud800-\udbff])(?=[\udc00-\udfff])")  # a high surrogate before a low one


class _Envelope(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    v: int
    n: int
    t: str
    body: Body
    redacted: dict[str, int] = {}


@ready
class _Loose(msgspec.Struct, frozen=True):
    """An envelope whose body may be of a newer version."""

    v: int
    n: int
    t: str
    body: dict[str, Any]
    redacted: dict[str, int] = {}


_decoder = msgspec.json.Decoder(_Envelope)
_encoder = msgspec.json.Encoder()


def _tags(union: Any) -> frozenset[str]:
    return frozenset(str(kind.__struct_config__.tag) for kind in union.__args__)


_KINDS = _tags(Body)
_PART_TYPES = _tags(Part)


def encode_record(record: Record) -> bytes:
    """The bytes of a record: those it was read from if it was read, else a fresh encoding.

    Raises InputError if the record nests deeper than `DEPTH_LIMIT` or holds what is no JSON value.
    """
    if record.raw is not None:
        return record.raw
    try:
        return encode_body(record.n, record.time, record.body, record.redacted)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"record {record.n} cannot be written: {error}") from error


def encode_body(n: int, time: str, body: Body, redacted: dict[str, int]) -> bytes:
    """The bytes of the record with these fields. Raises TypeError, ValueError, OverflowError or RecursionError for what
    no record can hold."""
    return _encode(_Envelope(FORMAT_VERSION, n, time, body, redacted))


def _encode(envelope: _Envelope) -> bytes:
    try:
        encoded = _encoder.encode(envelope)
        if _holds_text_alone(envelope) or _is_plain(encoded):
            return encoded
    except UnicodeEncodeError:  # a lone surrogate
        pass
    marked = _mark(msgspec.to_builtins(envelope))
    try:
        return _encoder.encode(marked)
    except UnicodeEncodeError:
        return json.dumps(marked, separators=(",", ":")).encode("ascii")


def _holds_text_alone(envelope: _Envelope) -> bool:
    """Whether it is a message in which no JSON of somebody else's making stands: then there is nothing to look for
    in its bytes, which takes several times as long as encoding them."""
    body = envelope.body
    if type(body) is not MessageRecord or envelope.redacted:
        return False
    form = body.message.form
    return (form is None or form.delta is None) and _are_text(body.message.parts)


def _are_text(parts: Sequence[Part]) -> bool:
    for part in parts:
        if type(part) is ToolResult:
            if not _are_text(part.parts):
                return False
        elif type(part) is not Text:
            return False
        if part.form is not None and part.form.delta is not None:
            return False
    return True


def _is_plain(encoded: bytes) -> bool:
    """Whether nothing in `encoded` needs a closer look, decided by looking at the bytes alone.

    msgspec writes a number that is not finite as null: no null, no such number, and the word in a text is mostly none.
    No more brackets than `DEPTH_LIMIT`: no deeper nesting.
    """
    return (
        (b"null" not in encoded or _NULL.search(encoded) is None)
        and not _may_hold_marks(encoded)
        and encoded.count(b"[") + encoded.count(b"{") <= DEPTH_LIMIT
    )


def _may_hold_marks(encoded: bytes) -> bool:
    """Whether an object with one of our marks may be in there. Dollars are mostly few, and one is found at once, where
    the three bytes that a mark begins with take longer than all the rest of decoding."""
    at = encoded.find(b"$")
    for _ in range(_DOLLARS):
        if at < 0:
            return False
        if encoded[at - 2 : at] == b'{"':
            return True
        at = encoded.find(b"$", at + 1)
    return encoded.find(_MARK_BYTES, max(0, at - 2)) >= 0


def _mark(value: Any, room: int = DEPTH_LIMIT) -> Any:
    """`value` with marks in place of what JSON cannot hold."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"$number": "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")}
    if isinstance(value, str):
        return {"$text": _FUSING.split(value)} if _fuses(value) else value
    if not isinstance(value, (dict, list, tuple)):
        return value
    if room == 0:
        raise ValueError(f"it nests deeper than {DEPTH_LIMIT} levels; keep such data as text")
    if isinstance(value, dict):
        if (len(value) == 1 and not _MARKS.isdisjoint(value)) or any(_fuses(key) for key in value):
            return {"$object": [[_mark(key), _mark(item, room - 1)] for key, item in value.items()]}
        return {key: _mark(item, room - 1) for key, item in value.items()}
    return [_mark(item, room - 1) for item in value]


def _fuses(text: Any) -> bool:
    return isinstance(text, str) and not text.isascii() and _FUSING.search(text) is not None


def decode_record(raw: bytes) -> Record:
    """The record that `raw` encodes, with `raw` kept on it.

    Raises CorruptRecord if `raw` is no record. Kinds and parts of a newer version are no damage:
    they come back as `UnknownRecord` and `Unknown`.
    """
    if not _may_hold_marks(raw):
        try:
            known = _decoder.decode(raw)
        except (ValueError, RecursionError):  # damaged, newer, or with lone surrogates: see closer
            pass
        else:
            return Record(n=known.n, time=known.t, body=known.body, raw=raw, redacted=known.redacted)
    try:
        loose = msgspec.convert(_unmark(json.loads(raw, parse_constant=_refuse)), _Loose)
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptRecord(f"not a record: {error}") from error
    return Record(n=loose.n, time=loose.t, body=_known_body(loose), raw=raw, redacted=loose.redacted)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _unmark(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmark(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and not _MARKS.isdisjoint(value):
        ((mark, held),) = value.items()
        if mark == "$number":
            return _NUMBERS[held] if isinstance(held, str) and held in _NUMBERS else _refuse(repr(value))
        if mark == "$text":
            return "".join(held)
        return {_unmark(key): _unmark(item) for key, item in held}
    return {key: _unmark(item) for key, item in value.items()}


def _known_body(loose: _Loose) -> Body:
    """The body as one of our kinds, or as unknown if a newer version may have written it."""
    kind = loose.body.get("kind")
    try:
        body: Body = msgspec.convert(_keep_unknown_parts(loose.body), Body)
    except (ValueError, RecursionError) as error:  # UnicodeEncodeError: a surrogate in a field's name
        if not isinstance(kind, str) or (kind in _KINDS and loose.v <= FORMAT_VERSION):
            raise CorruptRecord(f"record {loose.n} is damaged: {error}", record=loose.n) from error
        return UnknownRecord(name=kind)
    return body


def as_message(holder: Any) -> Message:
    """A message that stands in a field of any JSON, with `Unknown` parts for those that a newer version may have
    written. Raises msgspec.ValidationError."""
    try:
        return msgspec.convert(holder, Message)
    except msgspec.ValidationError:
        return msgspec.convert(_keep_unknown_parts(holder) if isinstance(holder, dict) else holder, Message)


def _keep_unknown_parts(holder: dict[str, Any]) -> dict[str, Any]:
    """A body, message or part whose parts of an unknown type stand as `Unknown` parts."""
    kept = dict(holder)
    for key in ("parts", "fragments"):
        if isinstance(parts := holder.get(key), list):
            kept[key] = [_known_part(part) for part in parts]
    if isinstance(message := holder.get("message"), dict):
        kept["message"] = _keep_unknown_parts(message)
    return kept


def _known_part(part: Any) -> Any:
    if not isinstance(part, dict) or not isinstance(kind := part.get("type"), str):
        return part
    if kind not in _PART_TYPES:
        return msgspec.to_builtins(Unknown(kind=kind, data=part))
    return _keep_unknown_parts(part) if kind == "tool_result" else part
