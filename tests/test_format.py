"""docs/format.md and the code say the same: every struct, every field, every example."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from turnlog.log.budget import Budget, Strategy
from turnlog.log.codec import DEPTH_LIMIT, FORMAT_VERSION, decode_record, encode_record
from turnlog.log.messages import Form, Message, Part, Tool
from turnlog.log.prompt import PromptSection, When
from turnlog.log.records import Binding, Body, Environment, Record
from turnlog.log.usage import CacheRead, Count, Usage

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "format.md").read_text("utf-8")
VALUES = (Message, Count, PromptSection, When, CacheRead, Binding, Usage, Budget, Strategy, Environment, Tool, Form)
EXAMPLES = [line for line in PAGE.splitlines() if line.startswith('{"v":')]
_ROW = re.compile(r"^\| `([^`]+)` \| ([^|]+) \|", re.MULTILINE)


def _tag(struct: Any) -> str:
    """What a struct is called on the page: its tag in the bytes, else its name."""
    return str(struct.__struct_config__.tag or struct.__name__)


def _documented(chapter: str) -> dict[str, dict[str, bool]]:
    """The structs of a chapter as the page has them: field -> whether it is required."""
    text = PAGE.split(f"\n## {chapter}\n")[1].split("\n## ")[0]
    sections = re.split(r"\n### `([^`]+)`\n", text)[1:]
    return {
        name: {field: "required" in kind for field, kind in _ROW.findall(section.split("```")[0].split("\n| Entry")[0])}
        for name, section in zip(sections[::2], sections[1::2], strict=True)
    }


@pytest.mark.parametrize(
    ("chapter", "structs"),
    [
        ("Kinds of records", get_args(Body)),
        (
            "Values inside records",
            (Message, Count, PromptSection, When, CacheRead, Binding, Usage, Budget, Strategy, Environment, Tool, Form),
        ),
        ("Parts of messages", get_args(Part)),
    ],
)
def test_every_field_is_described(chapter: str, structs: tuple[Any, ...]) -> None:
    """A kind or field that the page lacks, has too many, or calls required wrongly fails here."""
    in_code = {_tag(one): {field.name: field.required for field in msgspec.structs.fields(one)} for one in structs}
    assert _documented(chapter) == in_code


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: decode_record(example.encode()).n)
def test_every_example_is_what_we_write(example: str) -> None:
    """An example that this version would not read, or would write with other bytes, fails here."""
    record = decode_record(example.encode())
    assert encode_record(Record(record.n, record.time, record.body, redacted=record.redacted)).decode() == example


def test_every_kind_and_part_has_an_example() -> None:
    """A kind, part or mark that no example shows fails here."""
    kinds = {f'"kind":"{_tag(kind)}"' for kind in get_args(Body)}
    types = {f'"type":"{_tag(part)}"' for part in get_args(Part)}
    marks = {f'{{"{mark}":' for mark in ("$number", "$text", "$object")}
    shown = "\n".join(EXAMPLES)
    assert {word for word in kinds | types | marks if word not in shown} == set()


def test_the_page_is_of_this_version() -> None:
    """A new version of the format, or another limit, without its page fails here."""
    assert PAGE.startswith(f"# The record format, version {FORMAT_VERSION}\n")
    assert f"at\nmost {DEPTH_LIMIT} deep" in PAGE
    assert set(re.findall(r'"v":(\d+)', PAGE)) == {str(FORMAT_VERSION)}
