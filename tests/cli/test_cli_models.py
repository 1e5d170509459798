"""The command `models`: what is known, from where, and of whom nothing is."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from turnlog.models.catalog import VARIABLE, known_models


def test_the_table_of_all_models(turnlog: Any) -> None:
    """A model that is left out, or one row that cannot be read by a program."""
    listed = turnlog("models")
    rows = turnlog("models", "--json").rows
    assert [row["model"] for row in rows] == list(known_models())
    assert len(listed.out.splitlines()) == len(rows) + 3
    (opus,) = (row for row in rows if row["model"] == "claude-opus-5-5")
    assert (opus["input"], opus["abilities"]["bound_thinking"], Decimal(opus["prices"]["cached"])) == (
        1_000_000,
        True,
        Decimal("0.2"),
    )


def test_one_model_with_the_sources(turnlog: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fact without its source, or the user's own entry under our name."""
    path = tmp_path / "models.json"
    path.write_text(json.dumps({"models": {"claude-opus-5-5": {"input": 5, "abilities": {"prefill": True}}}}), "utf-8")
    monkeypatch.setenv(VARIABLE, str(path))
    (told,) = turnlog("models", "claude-opus-5-5", "--json").rows
    assert told["facts"]["input"] == {"value": 5, "source": str(path)}
    assert told["facts"]["abilities.prefill"] == {"value": True, "source": str(path)}
    assert "prefix-checks" in told["facts"]["abilities.bound_thinking"]["source"]
    lines = turnlog("models", "claude-opus-5-5").out.splitlines()
    assert lines[lines.index(f"{path}:") + 1 :][:2] == ["  input: 5", "  abilities.prefill: yes"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("claude-opus-7", "taken for claude-opus-5-5, without prices."),
        ("gpt-4o-2031-01-01", "taken for gpt-4o."),
        ("claude-nova-2", "only its family is known."),
    ],
)
def test_a_guess_is_said_to_be_one(turnlog: Any, name: str, said: str) -> None:
    """Facts of another model shown as if they were this one's."""
    assert turnlog("models", name).out.splitlines()[0] == f"{name} is not in the table of models" + (
        f": {said}" if said.startswith("taken") else f", {said}"
    )


@pytest.mark.parametrize("word", ["opus", "Opus", "gemini"])
def test_a_word_finds_the_models_that_have_it_in_their_names(turnlog: Any, word: str) -> None:
    """Nobody knows how a model is spelled in full, and nothing is known about a part of its name."""
    unit, header, *rows, own = turnlog("models", word).out.splitlines()
    named = [name for name in known_models() if word.lower() in name.lower()]
    assert named and [row.split()[0] for row in rows] == named
    assert "dollars per million tokens" in unit and header.startswith("model") and own.startswith("Your own entries")


@pytest.mark.parametrize("columns", [80, 100, 120, 200])
def test_the_table_fits_the_terminal(turnlog: Any, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Rows that wrap, so that nobody sees which price is whose."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("turnlog.cli.tables.is_terminal", lambda stream: True)
    unit, header, *rows = turnlog("models", "claude").out.splitlines()[:-1]
    assert max(map(len, [unit, header, *rows])) <= columns
    assert header.split()[-1] == "output" and ("write" in header) is (columns > 80)


def test_nothing_is_known(turnlog: Any) -> None:
    """An empty page for a mistyped name."""
    ended = turnlog("models", "nova-1")
    assert ended.code == 2 and "nothing is known about the model 'nova-1'; add an entry to" in ended.err


@pytest.mark.parametrize("name", ["nova-1", 'nova "one"', "nova\\1", "nova'1"])
def test_advice_for_an_unknown_model_is_json(turnlog: Any, name: str) -> None:
    """A quotation mark or a backslash in the name makes the entry to copy invalid, or changes its name."""
    said = turnlog("models", name).err
    assert json.loads(said[said.index("{") :]) == {"models": {name: {"input": 128_000}}}
