"""`turnlog ls` and `turnlog why` on a terminal: a row a line, however narrow it is; what is piped is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from turnlog.config.settings import Settings
from turnlog.models.target import target
from turnlog.session.open import open as new_session

LONG = "0199a3c2-5e10-7d5c-9d1b-2f6b3c1d9e7a"
TITLE = "Port the billing module to Decimal and 日本語 leave the database alone, whatever the tests say of it"


@pytest.fixture
def session(tmp_path: Path) -> str:
    """The id of a session with a long id, a long title and a few summaries."""
    with new_session(
        LONG, store=tmp_path / "log.db", target=target("openai-chat", "gpt-4o"), settings=Settings(title=TITLE)
    ) as made:
        made.configure(budget=1_200, strategy="spec")
        for n in range(30):
            made.user(f"Step {n}. " * 20)
            made.assistant("Done. " * 20)
            made.request()
    return LONG


def at(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on a terminal of so many columns watches."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("turnlog.cli.tables.is_terminal", lambda stream: True)


def wide(line: str) -> int:
    """Columns that a line takes."""
    return len(line) + sum(char in "日本語" for char in line)


def test_sessions_in_a_narrow_terminal(turnlog: Any, session: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that run over the edge push the titles into lines of their own; or a date or an agent goes before what is
    less wanted."""
    whole = turnlog("ls").out
    monkeypatch.setenv("COLUMNS", "60")
    assert turnlog("ls").out == whole and whole.endswith(f"{TITLE}\n")  # a pipe has no edge
    for columns, row in [
        (100, "0199  now   -      -        60  Port the billing module to Decimal and 日本語 leave the database al…"),
        (60, "0199  now   -      -        60  Port the billing module to …"),
        (30, "0199  now   Port the billing …"),
    ]:
        at(columns, monkeypatch)
        header, shown = turnlog("ls").out.splitlines()
        assert shown == row and wide(shown) <= columns
        assert header.index("TITLE") == shown.index("Port")


def test_costs_stay_in_a_narrow_terminal(turnlog: Any, session: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was asked for by an option must not be what gives way."""
    at(40, monkeypatch)
    header, shown, total = turnlog("ls", "--cost").out.splitlines()
    assert header.split() == ["ID", "WHEN", "TOKENS", "COST", "TITLE"]
    assert shown.split()[2:4] == ["-", "-"]
    assert total == "1 session: - tokens, -"


def test_a_wide_terminal_shows_all(turnlog: Any, session: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is room, a terminal gets what a pipe gets."""
    listed, why = turnlog("ls").out, turnlog("why", session).out
    at(250, monkeypatch)
    assert TITLE in listed and TITLE in turnlog("ls").out
    assert turnlog("why", session).out == why


def test_why_in_a_narrow_terminal(turnlog: Any, session: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the table of messages stay on their lines, with what became of each, by what, and what it saves."""
    whole = turnlog("why", session).out
    at(60, monkeypatch)
    lines = turnlog("why", session).out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("record"))
    # decisions are sentences, whose end matters
    assert " ".join(lines[:start]).split() == whole.partition("record  role")[0].split()
    assert max(map(wide, lines[:start])) <= 60
    assert lines[start].split() == ["record", "became", "by", "saved"]
    rows = lines[start + 1 :]
    assert len(rows) == 60 and max(map(wide, rows)) <= 60
    assert any("summarised" in row and ", first " in row and "Done." in row for row in rows)
