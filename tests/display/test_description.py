"""What a record says, before any surface lays it out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hypothesis import given

from record_bodies import bodies
from turnlog.cli.show import lines
from turnlog.display.description import ContentBlock, RecordBadges, describe
from turnlog.log.messages import Message, Text
from turnlog.log.records import Decision, MessageRecord, Record, UnknownRecord
from turnlog.log.texts import SEARCHABLE, strings_in, texts_in


def said(blocks: Iterable[ContentBlock]) -> Iterator[str]:
    """Every text of these blocks."""
    for block in blocks:
        yield from (block.text, block.label, block.name, block.id, *map(str, block.words))
        yield from strings_in(block.value)
        yield from said(block.blocks)


@given(bodies)
def test_what_a_search_finds_a_reader_sees(body: Any) -> None:
    """A kind of record or part of which a page, a terminal or Markdown shows less than a search finds."""
    if isinstance(body, UnknownRecord):
        return
    one = describe(Record(1, "", body))
    shown = " ".join([*map(str, one.headline), *said(one.blocks)])
    for found in texts_in(body, SEARCHABLE):
        if found.kind == "call":
            assert found.value.raw_arguments in shown and found.value.name in shown
        elif found.kind != "url":  # bytes come first where a medium has both
            assert all(text in shown for text in strings_in(found.value))


@given(bodies)
def test_a_terminal_has_a_line_for_every_record(body: Any) -> None:
    """A record of which `turnlog show` says nothing, or that it cannot show."""
    record = Record(7, "", body)
    first, *_ = lines([record])
    assert first.split()[0] == "7" and len(first.split()) > 1


def test_standing_is_what_decisions_made_of_records() -> None:
    """A page that shows as sent what was left out or taken back."""
    messages = [Record(n, "", MessageRecord(Message("user", (Text(str(n)),)))) for n in range(1, 6)]
    decisions = [Record(6, "", Decision("slide", 1, 2)), Record(7, "", Decision("rewind", 4, 5))]
    standing = RecordBadges(decisions, 7)
    marks = [[(badge.words, badge.link) for badge in describe(one, standing).badges] for one in messages]
    gone, back = ("left out by", 6), ("taken back by", 7)
    assert marks == [[gone], [gone], [], [back], [back]]
    assert [describe(one, standing).is_hidden for one in messages] == [True, True, False, True, True]
