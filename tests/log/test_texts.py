"""Laws of the reader of texts: it reaches every text of every kind of record, and puts others in their places."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given

from record_bodies import bodies
from turnlog.log.messages import Media, Message, Text, ToolCall, ToolResult
from turnlog.log.records import Body, MessageRecord
from turnlog.log.texts import FIELDS, NOT_TEXT, UNSEARCHED, leaf_parts, strings_in, texts_in, with_texts


def _structs(kind: Any) -> set[type]:
    """The structs that a value of this type may hold."""
    found: set[type] = set()
    waiting = [kind]
    while waiting:
        origin = waiting.pop()
        if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
            if origin not in found:
                found.add(origin)
                waiting += typing.get_type_hints(origin).values()
        else:
            waiting += typing.get_args(origin)
    return found


def _could_hold_text(kind: Any) -> bool:
    if arguments := typing.get_args(kind):
        return any(map(_could_hold_text, arguments))
    return kind not in (int, float, bool, type(None), ...)


def _leaves(holder: msgspec.Struct, path: str = "") -> Iterator[tuple[str, msgspec.Struct, str]]:
    """Where each field that holds no struct stands, and what holds it."""
    for name in holder.__struct_fields__:
        value, place = getattr(holder, name), f"{path}{name}"
        for i, inner in enumerate(value if isinstance(value, tuple) else (value,)):
            where = f"{place}[{i}]" if isinstance(value, tuple) else place
            if isinstance(inner, msgspec.Struct):
                yield from _leaves(inner, f"{where}.")
            else:
                yield where, holder, name


def _at(holder: Any, path: str) -> Any:
    for name, index in re.findall(r"(\w+)(?:\[(\d+)\])?", path):
        holder = getattr(holder, name)
        holder = holder[int(index)] if index else holder
    return holder


@pytest.mark.parametrize("holder", sorted(FIELDS, key=lambda holder: holder.__name__))
def test_the_table_says_of_every_field_what_it_is(holder: type) -> None:
    """A new field that may hold a text, which redaction and search would pass over without a word."""
    hints = typing.get_type_hints(holder)
    assert set(FIELDS[holder]) == {name for name, kind in hints.items() if _could_hold_text(kind)}


def _holds_any_words(kind: Any) -> bool:
    """Whether a value of this type may hold a word that the type does not list."""
    if typing.get_origin(kind) is typing.Literal:
        return False
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return any(map(_holds_any_words, typing.get_type_hints(kind).values()))
    return kind in (str, bytes, Any) or any(map(_holds_any_words, typing.get_args(kind)))


def test_each_field_that_is_not_searched_has_a_reason() -> None:
    """A text that the table takes for an id: secrets would stay in it, and nobody could find it."""
    unread = {
        f"{holder.__name__}.{name}"
        for holder, fields in FIELDS.items()
        for name, field in fields.items()
        if field == NOT_TEXT and _holds_any_words(typing.get_type_hints(holder)[name])
    }
    told = {name for names in UNSEARCHED for name in names.split()}
    unread.remove("ToolCall.raw")  # read with `arguments`
    assert {one if one in told else one.partition(".")[2] for one in unread} == told
    assert all(UNSEARCHED.values())


def test_the_table_has_every_struct_that_can_hold_text() -> None:
    """A new kind of record or part that the reader does not know."""
    reached = {FIELDS[holder][name] for holder in FIELDS for name in FIELDS[holder]} - {NOT_TEXT}
    assert {field.kind for field in reached} == {"name", "text", "url", "json", "setting", "wire", "call", "within"}
    within = {
        struct
        for holder, fields in FIELDS.items()
        for name, field in fields.items()
        if field.kind == "within"
        for struct in _structs(typing.get_type_hints(holder)[name])
    }
    assert set(typing.get_args(Body)) | within == set(FIELDS)


@given(bodies)
def test_every_text_is_reached_or_named_as_none(body: Any) -> None:
    """A text in a record that nobody redacts, finds or checks."""
    found = {one.path: one.value for one in texts_in(body)}
    for path, holder, name in _leaves(body):
        value = getattr(holder, name)
        if not value or not isinstance(value, (str, dict, tuple)):
            continue
        row = FIELDS.get(type(holder), {}).get(name, NOT_TEXT)
        if row == NOT_TEXT:
            assert path not in found
        elif row.kind == "call":
            assert found[path] is holder
        else:
            assert found[path] is _at(body, path)
    assert all(isinstance(_at(body, path), (str, dict, type(None))) for path in found)


@given(bodies)
def test_texts_are_replaced_in_their_places(body: Any) -> None:
    """A text that stands elsewhere, or as it was, in the record that is made of others; or a copy of an equal one."""

    def marked(kind: str, value: Any) -> Any:
        if isinstance(value, ToolCall):
            return msgspec.structs.replace(value, arguments={"of": value.id})
        return f"<{value}>" if isinstance(value, str) else {"was": value}

    before, after = list(texts_in(body)), list(texts_in(with_texts(body, marked)))
    assert [(one.path, one.kind) for one in after] == [(one.path, one.kind) for one in before]
    for old, new in zip(before, after, strict=True):
        expected = marked(old.kind, old.value)
        assert new.value.arguments == expected.arguments if old.kind == "call" else new.value == expected
    assert with_texts(body, lambda kind, value: value) is body


def test_the_bytes_of_an_address_are_no_text() -> None:
    """A picture's base64 that is searched for words, or taken for a key."""
    assert not list(texts_in(Media("image", url="data:image/png;base64,AAAA")))
    assert [found.path for found in texts_in(Media("image", url="https://example.com/x.png"))] == ["url"]


def test_leaves_of_results_stand_in_their_place() -> None:
    """What a tool answered would be missing from what is read back, or stand out of order."""
    parts = (Text("a"), ToolResult("1", parts=(Text("b"), Text("c"))), Text("d"))
    body = MessageRecord(Message("user", parts))
    assert [part.text for part in leaf_parts(body.message.parts) if isinstance(part, Text)] == ["a", "b", "c", "d"]
    assert [found.value for found in texts_in(body) if found.kind == "text"] == ["a", "b", "c", "d"]


def test_strings_are_those_of_values() -> None:
    """Keys taken for what was said, or strings in lists passed over."""
    assert list(strings_in({"a": "b", "c": ["d", {"e": "f"}, 1, None]})) == ["b", "d", "f"]
