"""Records to bytes and back: UTF-8 JSON, one object a record, described in docs/format.md.

The fast path is msgspec. Two things that conversations hold and JSON does not take a slower one:
lone surrogates (written as `\\udXXX` escapes) and numbers that are not finite (written as
`{"$number": "NaN"}`). Both come back as they were.
"""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

from .content import Unknown, is_finite_json
from .errors import CorruptRecord
from .records import Body, Configuration, Decision, Note, Record, UnknownRecord, UsageRecord

__all__ = ["FORMAT_VERSION", "decode_record", "encode_record"]

FORMAT_VERSION = 1
"""Version of the record format. A reader keeps what a newer one wrote and it does not know."""

_NUMBER = "$number"
_PART_TYPES = frozenset({"text", "media", "reasoning", "tool_call", "tool_result", "opaque", "unknown"})


class _Envelope(msgspec.Struct, frozen=True):
    v: int
    n: int
    t: str
    body: Body


_decoder = msgspec.json.Decoder(_Envelope)
_encoder = msgspec.json.Encoder()


def encode_record(record: Record) -> bytes:
    """The bytes of a record: those it was read from if it was read, else a fresh encoding."""
    if record.raw is not None:
        return record.raw
    envelope = _Envelope(v=FORMAT_VERSION, n=record.n, t=record.time, body=record.body)
    if _all_finite(record.body):
        try:
            return _encoder.encode(envelope)
        except UnicodeEncodeError:
            pass
    plain = _mark_numbers(msgspec.to_builtins(envelope))
    return json.dumps(plain, separators=(",", ":")).encode("ascii")


def decode_record(raw: bytes) -> Record:
    """The record that `raw` encodes, with `raw` kept on it.

    Raises CorruptRecord if `raw` is no record. Kinds and parts of a newer version are no damage:
    they come back as `UnknownRecord` and `Unknown`.
    """
    try:
        if b'"$number"' in raw:
            raise msgspec.DecodeError("numbers to restore")
        envelope = _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        envelope = _decode_slowly(raw)
    return Record(n=envelope.n, time=envelope.t, body=envelope.body, raw=raw)


def _decode_slowly(raw: bytes) -> _Envelope:
    try:
        plain = _restore_numbers(json.loads(raw))
        body = plain["body"]
        number, time, version = int(plain["n"]), str(plain["t"]), int(plain["v"])
        kind = body["kind"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptRecord(f"not a record: {error}") from error
    try:
        typed: Body = msgspec.convert(_keep_unknown_parts(body), Body)
    except msgspec.ValidationError as error:
        if version <= FORMAT_VERSION and kind in _BODY_KINDS:
            raise CorruptRecord(f"record {number} is damaged: {error}", record=number) from error
        typed = UnknownRecord(name=str(kind))
    return _Envelope(v=version, n=number, t=time, body=typed)


_BODY_KINDS = frozenset(
    str(msgspec.inspect.type_info(kind).tag)  # type: ignore[attr-defined]
    for kind in Body.__args__
)


def _all_finite(body: Body) -> bool:
    """Only free-form fields can hold a number that is not finite."""
    match body:
        case Configuration():
            return is_finite_json(body.settings) and is_finite_json([tool.data for tool in body.tools])
        case Decision():
            return is_finite_json(body.detail)
        case Note():
            return is_finite_json(body.data)
        case UsageRecord():
            return is_finite_json(body.raw)
        case _:
            pass
    for message_like in (getattr(body, "message", None),):
        if message_like is None:
            continue
        for part in message_like.parts:
            for inner in (part, *getattr(part, "parts", ())):
                if not is_finite_json([getattr(inner, "arguments", None), getattr(inner, "data", None)]):
                    return False
                form = inner.form if hasattr(inner, "form") else None
                if form is not None and form.delta is not None and not is_finite_json(form.delta):
                    return False
    return True


def _mark_numbers(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {_NUMBER: "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")}
    if isinstance(value, dict):
        return {key: _mark_numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_mark_numbers(item) for item in value]
    return value


def _restore_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        if len(value) == 1 and value.get(_NUMBER) in ("NaN", "Infinity", "-Infinity"):
            return float(value[_NUMBER])
        return {key: _restore_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_restore_numbers(item) for item in value]
    return value


def _keep_unknown_parts(value: Any) -> Any:
    """Parts of a type that this version does not know, as `Unknown` parts."""
    if isinstance(value, dict):
        parts = value.get("parts")
        if isinstance(parts, list):
            value = {**value, "parts": [_known_part(part) for part in parts]}
        return {key: _keep_unknown_parts(item) if key == "message" else item for key, item in value.items()}
    return value


def _known_part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    if part.get("type") not in _PART_TYPES:
        return msgspec.to_builtins(Unknown(kind=str(part.get("type")), data=part))
    return _keep_unknown_parts(part)
