"""Nothing that a terminal or an eye would obey reaches it from a transcript."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog._platform.visible import visible

# Clears the screen, sets the title, rings, backspaces, C1 CSI, DEL, right-to-left override, line
# separator, a tag character, a lone surrogate.
HOSTILE = "\x1b[2J\x1b]0;title\x07 \x08\x9b31m \x7f \u202egnp.exe\u202c \u2028 \U000e0041 \ud800 end"
FORBIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec=None)), inner, max_size=3),
    max_leaves=8,
)


def harmful(text: str) -> set[str]:
    """The characters of a text that should have been escaped."""
    needed = "\n\t\u200c\u200d\u00ad\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f"
    return {char for char in text if char not in needed and unicodedata.category(char) in FORBIDDEN}


@given(st.text(st.characters(codec=None)) | st.just(HOSTILE))
def test_nothing_harmful_is_left(text: str) -> None:
    """A control, bidirectional, invisible or unencodable character that comes through fails here."""
    assert harmful(visible(text)) == set()
    assert not harmful(visible(text, one_line=True)) | ({"\n", "\t"} & set(visible(text, one_line=True)))


@given(st.text(st.characters(codec=None)))
def test_what_is_visible_stays(text: str) -> None:
    """Escaping twice, or touching what is plain text, fails here."""
    assert visible(visible(text)) == visible(text)
    plain = "".join(char for char in text if char.isprintable())
    assert visible(plain) == plain


@given(ANY_JSON)
def test_json_keeps_its_value(value: Any) -> None:
    """An escape that changes what JSON says, or makes it no JSON, fails here."""
    assert json.loads(visible(json.dumps(value, ensure_ascii=False))) == value


def hostile_body() -> dict[str, Any]:
    """A request that is hostile wherever it can be."""
    call = {"id": HOSTILE, "type": "function", "function": {"name": HOSTILE, "arguments": json.dumps({HOSTILE: 1})}}
    return {
        "session_id": "hostile",
        "model": HOSTILE,
        HOSTILE: HOSTILE,
        "messages": [
            {"role": "user", "content": HOSTILE, "name": HOSTILE},
            {"role": "assistant", "content": HOSTILE, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": HOSTILE, "content": HOSTILE},
            {"role": "user", "content": HOSTILE.replace("\ud800", "")},  # can be stored as UTF-8
        ],
    }


@pytest.mark.parametrize(
    "command",
    [
        ("ls",),
        ("ls", "--json"),
        ("show", "hostile"),
        ("show", "hostile", "--json"),
        ("export", "hostile", "--format", "markdown"),
        ("request", "hostile", "--to", "anthropic"),
        ("request", "hostile", "--to", "google", "--explain"),
        ("request", "hostile", "--to", "openai-chat", "--explain", "--json"),
        ("rename", "hostile", HOSTILE.encode("utf-8", "replace").decode()),
        ("show", HOSTILE),
        ("check", HOSTILE),
        ("check", "hostile.json"),
        ("check", "hostile.json", "--json"),
        ("import", "hostile.json", "damaged.jsonl", "--json"),
        (HOSTILE,),
        ("ls", HOSTILE),
    ],
    ids=lambda command: " ".join(command).encode("ascii", "replace").decode()[:40],
)
def test_no_command_shows_it_raw(turnlog: Any, tmp_path: Path, command: tuple[str, ...]) -> None:
    """A command that hands a transcript's control characters to the terminal fails here."""
    body = hostile_body()
    (tmp_path / "hostile.json").write_text(json.dumps(body), "utf-8")
    (tmp_path / "damaged.jsonl").write_text(json.dumps(body) + "\n{" + HOSTILE[:60].replace("\ud800", ""), "utf-8")
    made = turnlog("import", "hostile.json", "--json")
    if "hostile" in command:
        session = json.loads(made.out)["session"]
        command = tuple(session if word == "hostile" else word for word in command)
    ended = turnlog(*command)
    assert harmful(made.out + made.err + ended.out + ended.err) == set()
    assert "Traceback" not in ended.err
    assert ended.code != 70


@pytest.mark.parametrize("form", ["json", "jsonl", "markdown"])
def test_an_export_to_a_terminal_is_safe(
    turnlog: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Records go out as they are stored; at a terminal they are escaped, and say the same."""
    (tmp_path / "hostile.json").write_text(json.dumps(hostile_body()), "utf-8")
    session = turnlog("import", "hostile.json", "--json").rows[0]["session"]
    raw = turnlog("export", session, "--format", form).out
    monkeypatch.setattr("turnlog.cli.terminal.is_terminal", lambda stream: True)
    shown = turnlog("export", session, "--format", form).out
    assert harmful(shown) == set()
    if form == "jsonl":
        assert harmful(raw) != set()
        assert [json.loads(line) for line in shown.splitlines()] == [json.loads(line) for line in raw.split("\n")[:-1]]
