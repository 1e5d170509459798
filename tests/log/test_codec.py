"""Laws of the codec: what is written comes back, what is not understood is kept, damage is named."""

from __future__ import annotations

import json
import math
import types
import typing
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turnlog.errors import CorruptRecord, InputError
from turnlog.log.codec import DEPTH_LIMIT, FORMAT_VERSION, decode_record, encode_record
from turnlog.log.messages import Form, Message, Text, ToolCall, ToolResult, Unknown
from turnlog.log.records import Body, Decision, MessageRecord, Note, PartialAnswer, Record, ToolFinished, UnknownRecord

TIME = "2026-01-02T03:04:05.678Z"

# Texts as logs hold them: any code point, with lone surrogates, NUL and JSON's own signs drawn often.
texts = st.text(st.characters(codec=None, categories=None)) | st.text(
    st.sampled_from('a\x00\ud83d\ude00\U0001f600\u2028"\\é'), max_size=6
)
keys = texts | st.sampled_from(["$number", "$text", "$object", "type", "parts", "kind"])
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**300), 10**300)
    | st.floats()
    | texts
    | st.sampled_from(["NaN", "Infinity", "null"])
)
jsons = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
)


def _values(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a declared type; `Any` is whatever JSON, `str` whatever text."""
    arguments = typing.get_args(kind)
    match typing.get_origin(kind) or kind:
        case typing.Any:
            return jsons
        case typing.Union | types.UnionType:
            return st.one_of(*map(_values, arguments))
        case typing.Literal:
            return st.sampled_from(arguments)
        case origin if origin is str:
            return texts
        case origin if origin is dict:
            return st.dictionaries(keys, jsons, max_size=3)
        case origin if origin is tuple:
            return st.lists(_values(arguments[0]), max_size=2).map(tuple)
        case origin if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
            return _structs(origin)
        case _:
            return st.from_type(kind)


def _structs(struct: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Values of a struct: required fields always, optional ones in half of the draws each."""
    fields = msgspec.structs.fields(struct)
    required = {field.name: _values(field.type) for field in fields if field.required}
    optional = {field.name: _values(field.type) for field in fields if not field.required}
    return st.fixed_dictionaries(required, optional=optional).map(lambda drawn: struct(**drawn))


bodies: st.SearchStrategy[Body] = st.one_of(*(_structs(kind) for kind in typing.get_args(Body)))
numbers = st.integers(1, 2**62)


def plain(value: Any) -> Any:
    """`value` in a form whose equality is identity of content: types told apart, NaN equal to NaN."""
    value = msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else value
    if isinstance(value, dict):
        return [(key, plain(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return ["list", *map(plain, value)]
    return (type(value).__name__, repr(value))


def as_written(value: Any) -> Any:
    """Any JSON as it stands in a record: with marks where JSON cannot hold it."""
    return json.loads(encode_record(Record(1, TIME, Note("t", data=value))))["body"].get("data")


@given(numbers, texts, bodies)
@example(1, TIME, Note("n", data=[math.nan, math.inf, -math.inf, None, 2**64, -(2**63) - 1, 1e16, -0.0]))
@example(1, TIME, Note("n", data={"$number": "NaN"}))
@example(1, TIME, Note("n", data={"$object": [[{"$text": ["a"]}, 1]]}))
@example(1, TIME, Note("n", data={"\ud83d\ude00": 1, "\U0001f600": 2}))
@example(1, TIME, ToolFinished("c", 1, "ok", seconds=math.nan))
@example(1, TIME, MessageRecord(Message("user", (Text("\ud83d" + "\ude00 \ud83d \x00"),))))
@example(1, TIME, MessageRecord(Message("user", form=Form("p", delta={"+": {"x": math.inf}}))))
@example(1, TIME, MessageRecord(Message("user", (Text("hi", Form("p", delta={"+": math.nan})),))))
@example(1, TIME, MessageRecord(Message("user", (ToolResult("c", parts=(Text("", Form("p", delta={"$text": []})),)),))))
@example(1, TIME, PartialAnswer(Message("assistant"), "cut", fragments=(ToolCall("c", "t", arguments=math.nan),)))
def test_what_is_written_comes_back(n: int, time: str, body: Body) -> None:
    """A record of any kind that is not the same after a round trip, at any depth, fails here."""
    encoded = encode_record(Record(n, time, body))
    decoded = decode_record(encoded)
    assert (decoded.n, decoded.time, decoded.raw) == (n, time, encoded)
    assert type(decoded.body) is type(body)
    assert plain(decoded.body) == plain(body)
    assert encode_record(decoded) is encoded
    assert encode_record(Record(n, time, decoded.body)) == encoded


@given(st.dictionaries(keys, st.integers(0, 9), max_size=2))
@example({"$number": 1})
def test_what_was_redacted_comes_back(redacted: dict[str, int]) -> None:
    """Counts of secrets whose kind reads as a mark must be written so that they are not taken for one."""
    record = Record(1, TIME, MessageRecord(Message("user", (Text("hi"),))), redacted=redacted)
    decoded = decode_record(encode_record(record))
    assert (decoded.body, decoded.redacted) == (record.body, redacted)


@given(numbers, bodies)
def test_bytes_are_one_line_of_strict_json(n: int, body: Body) -> None:
    """A record with a raw newline, a NaN literal or bytes that are no UTF-8 fails here: others must read it."""
    encoded = encode_record(Record(n, TIME, body))
    assert b"\n" not in encoded
    envelope = json.loads(encoded.decode("utf-8"), parse_constant=pytest.fail)
    assert list(envelope) == ["v", "n", "t", "body"]
    assert envelope["v"] == FORMAT_VERSION


@given(numbers, bodies, st.text(st.characters(codec="utf-8")), jsons)
def test_unknown_fields_survive(n: int, body: Body, name: str, value: Any) -> None:
    """A field that a newer version added, on the envelope or the body, must not be lost or stop a reader."""
    encoded = encode_record(Record(n, TIME, body))
    envelope = json.loads(encoded)
    envelope["new " + name] = envelope["body"]["new " + name] = as_written(value)
    raw = json.dumps(envelope).encode()
    decoded = decode_record(raw)
    assert plain(decoded.body) == plain(decode_record(json.dumps(json.loads(encoded)).encode()).body)
    assert encode_record(decoded) == raw


@given(numbers, st.integers(1, 9), jsons)
def test_unknown_kinds_survive(n: int, version: int, data: Any) -> None:
    """A kind of record that a newer version added comes back as unknown and is written as it was."""
    body = {"kind": "hologram", "data": as_written(data)}
    raw = json.dumps({"v": version, "n": n, "t": TIME, "body": body}).encode()
    decoded = decode_record(raw)
    assert decoded == Record(n, TIME, UnknownRecord("hologram"), raw)
    assert encode_record(decoded) == raw


def test_unknown_parts_survive() -> None:
    """Parts of a new type, in a message, a result or a fragment, are kept whole beside the known ones."""
    new = {"type": "smell", "of": ["roses"]}
    result = {"type": "tool_result", "call_id": "c", "parts": [new]}
    body = {
        "kind": "partial",
        "message": {"role": "user", "parts": [new, {"type": "text", "text": "\ud83d"}, result]},
        "reason": "cut",
        "fragments": [new],
    }
    raw = json.dumps({"v": 1, "n": 7, "t": TIME, "body": body}).encode()
    kept = Unknown("smell", new)
    decoded = decode_record(raw)
    message = Message("user", (kept, Text("\ud83d"), ToolResult("c", parts=(kept,))))
    assert decoded.body == PartialAnswer(message, "cut", fragments=(kept,))
    assert encode_record(decoded) == raw
    assert decode_record(encode_record(Record(7, TIME, decoded.body))).body == decoded.body


def test_a_newer_version_may_change_what_a_field_holds() -> None:
    """An outcome that only a newer version knows is no damage there, and damage in our own version."""
    newer = {"v": FORMAT_VERSION + 1, "n": 1, "t": TIME}
    body = {"kind": "tool_finished", "call_id": "c", "call_record": 1, "outcome": "postponed"}
    assert decode_record(json.dumps({**newer, "body": body}).encode()).body == UnknownRecord("tool_finished")
    with pytest.raises(CorruptRecord) as caught:
        decode_record(json.dumps({**newer, "v": FORMAT_VERSION, "body": body}).encode())
    assert caught.value.record == 1


@given(bodies, st.data())
def test_truncation_is_always_noticed(body: Body, data: st.DataObject) -> None:
    """Bytes that stop early are no record; any other error than CorruptRecord would escape a store."""
    encoded = encode_record(Record(1, TIME, body))
    cut = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(CorruptRecord):
        decode_record(encoded[:cut])


@given(bodies, st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=3))
def test_flipped_bytes_raise_nothing_else(body: Body, flips: list[tuple[int, int]]) -> None:
    """Damaged bytes either still are a record or are CorruptRecord; a store catches nothing else."""
    damaged = bytearray(encode_record(Record(1, TIME, body)))
    for position, byte in flips:
        damaged[position % len(damaged)] = byte
    try:
        decoded = decode_record(bytes(damaged))
    except CorruptRecord:
        return
    assert decoded.raw == bytes(damaged)


@given(jsons, jsons, jsons, jsons)
def test_foreign_json_raises_nothing_else(v: Any, n: Any, body: Any, kind: Any) -> None:
    """JSON of any other shape is CorruptRecord and no TypeError from within."""
    for value in (v, {"v": v, "n": n, "t": TIME, "body": body}, {"v": 1, "n": 1, "t": TIME, "body": {"kind": kind}}):
        try:
            decode_record(json.dumps(value).encode())
        except CorruptRecord:
            continue


@pytest.mark.parametrize(
    "body",
    [
        '{"kind":"message","message":{"role":"user","parts":[{"type":["text"]}]}}',
        '{"kind":"message","message":{"role":"user","parts":[{"type":"text"}]}}',
        '{"kind":"message","message":{"role":"user","parts":{"type":"text"}}}',
        '{"kind":["message"]}',
        '{"kind":"note","topic":"t","data":NaN}',
        '{"kind":"note","topic":"t","data":{"$number":"seven"}}',
        '{"kind":"note","topic":"t","data":{"$object":[1]}}',
        '{"kind":"note","topic":"t","data":{"$text":[1]}}',
        '{"kind":"note","topic":"t","\\ud800":1,"data":{"$text":1}}',
        '{"kind":"note","topic":"t","data":' + "[" * 50_000 + "]" * 50_000 + "}",
        "{}",
        "null",
    ],
)
def test_damage_inside_a_record_is_named(body: str) -> None:
    """Each of these is no record; taking one for a record would put damage into a conversation."""
    with pytest.raises(CorruptRecord):
        decode_record(f'{{"v":1,"n":1,"t":"{TIME}","body":{body}}}'.encode())


def _nested(depth: int, leaf: Any) -> Any:
    for level in range(depth):
        leaf = [leaf] if level % 2 else {"a": leaf}
    return leaf


@pytest.mark.parametrize("leaf", [0, None, math.nan, "\ud83d\ude00"])
def test_nesting_is_limited_by_a_number(leaf: Any) -> None:
    """What may be written must not depend on the call stack, or a log could be written and not read."""
    deepest = DEPTH_LIMIT - 2  # the envelope and the body
    body = Note("deep", data=_nested(deepest, leaf))
    assert plain(decode_record(encode_record(Record(1, TIME, body))).body) == plain(body)
    for depth in (deepest + 1, 50_000):
        with pytest.raises(InputError):
            encode_record(Record(1, TIME, Note("deep", data=_nested(depth, leaf))))


@pytest.mark.parametrize("value", [object(), {(1, 2): 3}, 10**5_000], ids=["object", "tuple key", "5,000 digits"])
def test_what_is_no_json_is_refused(value: Any) -> None:
    """A value that could not come back is refused when it is recorded, not when it is read."""
    with pytest.raises(InputError):
        encode_record(Record(1, TIME, Decision("mask", detail={"x": value})))


def test_plain_text_is_written_as_it_is() -> None:
    """Text of any script stays readable and small in the file; escapes are for what needs them."""
    record = Record(3, TIME, MessageRecord(Message("user", (Text("naïve 漢字 \U0001f600"),))))
    assert encode_record(record).decode() == (
        f'{{"v":1,"n":3,"t":"{TIME}","body":{{"kind":"message","message":{{"role":"user","parts":'
        '[{"type":"text","text":"naïve 漢字 \U0001f600"}]}}}'
    )
