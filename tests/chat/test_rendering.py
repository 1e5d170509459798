"""How answers look in a terminal: block by block, and nothing in them is obeyed."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from wcwidth import wcwidth

from turnlog._platform.visible import exposed
from turnlog.chat.markup import lines_of, markdown
from turnlog.chat.rendering import Blocks, call_in_full, note, said
from turnlog.log.messages import ToolCall
from turnlog.testing.hostile import HOSTILE

_LINES = st.sampled_from(
    ["a word", "", "```", "~~~~", "```py", "# title", "- item", "1. one", "| a | b |", "\u2028", "x\ry"]
)
_STYLES = re.compile(r"\x1b\[[0-9;]*m")


@given(st.lists(_LINES, max_size=20).map("\n".join), st.lists(st.integers(1, 9), min_size=1, max_size=30))
def test_blocks_are_the_text_whatever_its_pieces(text: str, sizes: list[int]) -> None:
    """A piece that ends in the middle of a line loses or doubles what it has, or cuts code in two."""
    whole = Blocks()
    expected = [*whole.feed(text), *whole.end()]
    pieces, found, at = Blocks(), list[str](), 0
    for n in range(len(text) + 1):
        size = sizes[n % len(sizes)]
        found += pieces.feed(text[at : at + size])
        at += size
    found += pieces.end()
    assert found == expected and "".join(found).split() == text.split()


def test_code_stays_in_one_block() -> None:
    """A blank line in code ends its block: the rest is shown as prose."""
    blocks = Blocks()
    assert blocks.feed("So:\n```py\na = 1\n\n# b\n```\nDone.\n\n") == ["So:\n```py\na = 1\n\n# b\n```\n", "Done.\n\n"]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_is_shown_moves_the_cursor(text: str) -> None:
    """A transcript that a terminal obeys: it can hide what a command does, or write to the clipboard."""
    for lines in (markdown(text), note(text), said(text)):
        assert not [char for char in _STYLES.sub("", lines) if ord(char) < 32 and char != "\n"]
        assert "\x9b" not in lines and "\u202e" not in lines


@pytest.mark.parametrize(
    "text",
    [
        "&#27;]0;x&#7;",
        "&#x9b;2J &#x202e;gnp",
        "<http://a/%1b[2J%e2%80%ae>",
        "[a](http://b/&#27;[2J)",
        "```&#27;[2J\na\n```",
    ],
)
def test_what_markdown_spells_is_escaped(text: str) -> None:
    """Markdown can spell a control character in plain letters: escaped before it is read, the character comes
    through."""
    plain = _STYLES.sub("", markdown(text))
    assert not [char for char in plain if unicodedata.category(char) in ("Cc", "Cf") and char != "\n"]


def test_markup_that_markdown_hides_is_shown() -> None:
    """HTML, and the address of an image, vanish from an answer although they were said."""
    plain = _STYLES.sub("", markdown("Use <b>this</b> & ![that](http://a/b.png):\n\n<div>\nhidden\n</div>"))
    assert [word for word in ("<b>this</b>", "that", "http://a/b.png", "<div>", "hidden") if word not in plain] == []


def test_a_call_that_somebody_is_asked_about_is_shown_to_its_end() -> None:
    """What is cut off may be what does the harm."""
    shown = call_in_full(ToolCall("c", "run_command", {"command": "echo " + "a" * 300 + "\nrm -rf /", "seconds": 5}))
    plain = _STYLES.sub("", shown)
    assert "rm -rf /" in plain and plain.count("a") >= 300 and "seconds: 5" in plain
    edit = call_in_full(ToolCall("c", "edit_file", {"path": "a.py", "old": "one\ntwo", "new": "\x1b[2J"}))
    words = _STYLES.sub("", edit).split()
    assert words == ["?", "edit_file", "path:", "a.py", "-", "one", "-", "two", "+", "\\u001b[2J"]


@pytest.mark.slow
def test_everything_that_cannot_be_seen_is_escaped_before_somebody_agrees() -> None:
    """A command that is another one than it seems: fillers, blanks of Braille, joiners, marks of direction, spaces that
    are none. wcwidth knows which characters take no room."""
    hidden = [chr(code) for code in (0x3164, 0x2800, 0x115F, 0x1160, 0xFFA0, 0x034F, 0x17B4, 0xE0101, 0xFE0F, 0xE000)]
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        combines = unicodedata.category(char).startswith("M") or "HANGUL J" in unicodedata.name(char, "")
        if char not in "\n\t " and (char.isspace() or (wcwidth(char) < 1 and not combines)):
            hidden.append(char)
    assert [char for char in hidden if exposed(char) == char] == []
    assert exposed("a b\tc\r\n") == "a b\tc\\u000d\n" and exposed("שלום, 数据, é") == "שלום, 数据, é"
    call = ToolCall("c", "run_command", {"command": "rm -rf ./\u3164\u2800\u202e\u200d\u00a0x"})
    assert "command: rm -rf ./\\u3164\\u2800\\u202e\\u200d\\u00a0x" in _STYLES.sub("", call_in_full(call))


@given(st.text(st.sampled_from(" \n\ta"), max_size=40), st.sampled_from(" \t\n"), st.integers(100, 5_000))
def test_blanks_do_not_push_a_part_of_a_call_off_the_screen(text: str, blank: str, times: int) -> None:
    """Five thousand line ends between `ls` and what the command does besides."""
    call = ToolCall("c", "run_command", {"command": f"ls{text}a{blank * times}; rm"})
    shown = _STYLES.sub("", call_in_full(call))
    kind = {" ": "spaces", "\t": "tabs", "\n": "line ends"}[blank]
    assert f"[{times:,} {kind}]" in shown and shown.count("\n") < 60
    assert ";rm" in "".join(shown.split())  # lines are wrapped anywhere


@given(st.text(st.sampled_from(" \n\t"), min_size=1, max_size=30), st.integers(50, 500))
@example(" \n", 500)
@example("\t\t\n", 500)
@example("\n" * 19 + " ", 50)
@example(" ", 59)  # the line is wrapped within the command
def test_blanks_of_several_kinds_are_counted_too(blanks: str, times: int) -> None:
    """Five hundred lines, each of one blank, were no run of line ends."""
    gap = blanks * times
    call = ToolCall("c", "run_command", {"command": f"ls{gap}rm -rf ~"})
    shown = _STYLES.sub("", call_in_full(call))
    assert shown.count("\n") < 30 and "rm-rf~" in "".join(shown.split())  # lines are wrapped anywhere
    if gap.count("\n"):
        assert f"{gap.count(chr(10)):,} line ends]" in shown


def test_an_argument_of_one_line_forges_no_other() -> None:
    """A line end in the path showed a line as replaced that was not."""
    edit = {"path": "a.py\n- safe = True\n+ safe = True", "old": "x = 1", "new": "x = 2"}
    shown = _STYLES.sub("", call_in_full(ToolCall("c", "edit_file", edit))).splitlines()
    assert shown == [
        "? edit_file",
        "  path: a.py\\n- safe = True\\n+ safe = True".replace("\\n", "\\u000a"),
        "  - x = 1",
        "  + x = 2",
    ]
    command = _STYLES.sub("", call_in_full(ToolCall("c", "run_command", {"command": "ls\nseconds: 1", "seconds": 9})))
    assert command.splitlines() == ["? run_command", "  command: ls", "    seconds: 1", "  seconds: 9"]


def test_no_colour_is_used_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours in a terminal that has none are letters between the words."""
    assert "\x1b[" in markdown("**bold**")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in markdown("# title\n\n`code`")
    monkeypatch.setenv("TERM", "dumb")
    assert lines_of("plain") == "plain\n"


def test_a_long_text_of_the_user_is_shortened() -> None:
    """Ten thousand lines that were pasted push the conversation off the screen."""
    lines = said("\n".join(map(str, range(10_000)))).splitlines()
    assert len(lines) == 12 and "9,989 more lines" in lines[-2]
