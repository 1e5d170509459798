"""Encodes records as bytes and decodes them: UTF-8 JSON, one object per record, described in docs/format.md.

The fast path is msgspec. Values that occur in conversations but cannot be written as JSON become a *mark*, an object
with one key: `{"$number": "NaN"}` for a number that is not finite, `{"$text": [...]}` for a text whose surrogate halves
would fuse, `{"$object": [[key, value], ...]}` for an object that would be read as a mark itself. Lone surrogates are
written as `\\udXXX` escapes. Decoding restores all of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import msgspec

from .._platform.lazy import lazy_pattern
from .._platform.msgspec_init import ready
from ..errors import CorruptRecord, InputError
from .messages import Message, Part, Text, ToolResult, Unknown, bare
from .records import Body, MessageRecord, Record, UnknownRecord

FORMAT_VERSION = 1
"""Version of the record format. A reader keeps content of a newer version that it does not know."""

DEPTH_LIMIT = 200
"""The deepest nesting of arrays and objects in a record, envelope included. It is a fixed number, so that a record
written under a shallow call stack can be read under a deep one (CPython allows 1,000 levels in all)."""

_MARKS = frozenset({"$number", "$text", "$object"})
_MARK_BYTES = b'{"$'
_DOLLARS = 64
"""How many dollar signs are looked at one by one."""
_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_NULL = lazy_pattern(rb"[:,\[]null")
_FUSING = lazy_pattern("(?<=[\ud800-\udbff])(?=[\udc00-\udfff])")  # a high surrogate before a low one


class _Envelope(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    v: int
    n: int
    t: str
    body: Body
    redacted: dict[str, int] = {}
    live: bool = False


@ready
class _Loose(msgspec.Struct, frozen=True):
    """An envelope whose body may come from a newer version."""

    v: int
    n: int
    t: str
    body: dict[str, Any]
    redacted: dict[str, int] = {}
    live: bool = False


def _bare(value: Any) -> Any:
    plain = bare(value)
    if plain is value:
        raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")
    return plain


_decoder = msgspec.json.Decoder(_Envelope)
_encoder = msgspec.json.Encoder(enc_hook=_bare)


def _tags(union: Any) -> frozenset[str]:
    return frozenset(str(kind.__struct_config__.tag) for kind in union.__args__)


KINDS = _tags(Body)
"""The kinds of records that this version knows."""

_PART_TYPES = _tags(Part)


def encode_record(record: Record) -> bytes:
    """The bytes of a record: the original bytes if it was read from a store, else a new encoding.

    Raises InputError if the record is nested deeper than `DEPTH_LIMIT` or contains a value that is not JSON.
    """
    if record.raw is not None:
        return record.raw
    try:
        return encode_body(record.n, record.time, record.body, record.redacted, live=record.live)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"record {record.n} cannot be written: {error}") from error


def encode_body(n: int, time: str, body: Body, redacted: dict[str, int], *, live: bool = False) -> bytes:
    """The bytes of the record with these fields. Raises TypeError, ValueError, OverflowError or RecursionError if a
    record cannot contain them."""
    return _encode(_Envelope(FORMAT_VERSION, n, time, body, redacted, live))


def _encode(envelope: _Envelope) -> bytes:
    try:
        encoded = _encoder.encode(envelope)
        if _is_text_only(envelope) or _is_plain(encoded):
            return encoded
    except UnicodeEncodeError:  # a lone surrogate
        pass
    marked = _mark(msgspec.to_builtins(envelope, enc_hook=_bare))
    try:
        return _encoder.encode(marked)
    except UnicodeEncodeError:
        return json.dumps(marked, separators=(",", ":")).encode("ascii")


def _is_text_only(envelope: _Envelope) -> bool:
    """Whether the record is a message without JSON that came from outside. Then its bytes need no search for marks,
    which takes several times as long as encoding."""
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
    """Whether `encoded` certainly needs no marks and is not too deep, decided from the bytes alone.

    msgspec writes a number that is not finite as null: without a null there is no such number, and texts rarely contain
    the word. With at most `DEPTH_LIMIT` brackets, the nesting cannot be deeper than that.
    """
    return (
        (b"null" not in encoded or _NULL.search(encoded) is None)
        and not _may_hold_marks(encoded)
        and encoded.count(b"[") + encoded.count(b"{") <= DEPTH_LIMIT
    )


def _may_hold_marks(encoded: bytes) -> bool:
    """Whether the bytes may contain an object that looks like a mark. Most records have few dollar signs, and finding a
    single byte is fast; searching for the three bytes that begin a mark takes longer than the whole decoding."""
    dollar = encoded.find(b"$")
    for _ in range(_DOLLARS):
        if dollar < 0:
            return False
        if encoded[dollar - 2 : dollar] == b'{"':
            return True
        dollar = encoded.find(b"$", dollar + 1)
    return encoded.find(_MARK_BYTES, max(0, dollar - 2)) >= 0


def _mark(value: Any, levels: int = DEPTH_LIMIT) -> Any:
    """`value` with marks instead of the values that JSON cannot represent."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"$number": "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")}
    if isinstance(value, str):
        return {"$text": _FUSING.split(value)} if _fuses(value) else value
    if not isinstance(value, (dict, list, tuple)):
        return value
    if levels == 0:
        raise ValueError(f"it nests deeper than {DEPTH_LIMIT} levels; keep such data as text")
    if isinstance(value, dict):
        if (len(value) == 1 and not _MARKS.isdisjoint(value)) or any(_fuses(key) for key in value):
            return {"$object": [[_mark(key), _mark(item, levels - 1)] for key, item in value.items()]}
        return {key: _mark(item, levels - 1) for key, item in value.items()}
    return [_mark(item, levels - 1) for item in value]


def _fuses(text: Any) -> bool:
    return isinstance(text, str) and not text.isascii() and _FUSING.search(text) is not None


def decode_record(raw: bytes) -> Record:
    """The record that `raw` encodes; its field `raw` keeps the bytes.

    Raises CorruptRecord if `raw` is not a record. Kinds and parts of a newer version are not damage: they are returned
    as `UnknownRecord` and `Unknown`.
    """
    if not _may_hold_marks(raw):
        try:
            record = _decoder.decode(raw)
        except (ValueError, RecursionError):  # damaged, newer, or with lone surrogates: the slow path decides
            pass
        else:
            return Record(record.n, record.t, record.body, raw, record.redacted, record.live)
    try:
        loose = msgspec.convert(_unmark(json.loads(raw, parse_constant=_refuse)), _Loose)
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptRecord(f"not a record: {error}") from error
    return Record(loose.n, loose.t, _known_body(loose), raw, loose.redacted, loose.live)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


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
    """The body as one of the known kinds, or as `UnknownRecord` if a newer version may have written it."""
    kind = loose.body.get("kind")
    try:
        body: Body = msgspec.convert(_keep_unknown_parts(loose.body), Body)
    except (ValueError, RecursionError) as error:  # UnicodeEncodeError: a surrogate in the name of a field
        if not isinstance(kind, str) or (kind in KINDS and loose.v <= FORMAT_VERSION):
            raise CorruptRecord(f"record {loose.n} is damaged: {error}", record=loose.n) from error
        return UnknownRecord(name=kind)
    return body


def as_message(holder: Any) -> Message:
    """A message from a field of any JSON. Parts that a newer version may have written become `Unknown` parts. Raises
    msgspec.ValidationError."""
    try:
        return msgspec.convert(holder, Message)
    except msgspec.ValidationError:
        return msgspec.convert(_keep_unknown_parts(holder) if isinstance(holder, dict) else holder, Message)


def _keep_unknown_parts(holder: dict[str, Any]) -> dict[str, Any]:
    """A body, message or part in which each part of an unknown type is replaced by an `Unknown` part."""
    body = dict(holder)
    for key in ("parts", "fragments"):
        if isinstance(parts := holder.get(key), list):
            body[key] = [_known_part(part) for part in parts]
    if isinstance(message := holder.get("message"), dict):
        body["message"] = _keep_unknown_parts(message)
    return body


def _known_part(part: Any) -> Any:
    if not isinstance(part, dict) or not isinstance(kind := part.get("type"), str):
        return part
    if kind not in _PART_TYPES:
        return msgspec.to_builtins(Unknown(kind=kind, data=part))
    return _keep_unknown_parts(part) if kind == "tool_result" else part
