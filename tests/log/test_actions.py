"""The table of actions: each action that is recorded has a row, and format.md describes the same ones."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given

import reference_model
from record_bodies import bodies
from turnlog.log.actions import ACTIONS, HIDING, SHRINKING, TREATMENT, Action, action_of
from turnlog.log.records import SHOWN_AS, Body, MessageBody, Record
from turnlog.stores.records import is_said, kind_of
from turnlog.view.fold import as_shown

ROOT = Path(__file__).parent.parent.parent


def recorded() -> Iterator[str]:
    """The actions of the decisions that the source makes; constants by their values."""
    texts = [path.read_text("utf-8") for path in sorted((ROOT / "src/turnlog").rglob("*.py"))]
    constants = dict(one for text in texts for one in re.findall(r'^ *(\w+) = "(\w+)"(?:  #.*)?$', text, re.MULTILINE))
    for node in (node for text in texts if "Decision(" in text for node in ast.walk(ast.parse(text))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Decision" and node.args:
            match node.args[0]:
                case ast.Constant(value=str(action)):
                    yield action
                case ast.Name(id=name) if name in constants:
                    yield constants[name]


def test_each_action_that_is_recorded_has_a_row() -> None:
    """A decision without a row changes nothing that a view shows, whatever its detail says."""
    made = {action for action in recorded() if action.isidentifier()}
    assert {"slide", "curate", "cache_lifetime", "version"} <= made
    assert made <= ACTIONS.keys()


def test_the_format_page_lists_the_same_actions() -> None:
    """Whoever reads a log by the page meets an action that the page does not describe."""
    page = (ROOT / "docs/format.md").read_text("utf-8")
    rows = page.partition("| Entry of `action` | what it does |\n")[2].partition("\n\n")[0].splitlines()
    assert sorted(
        name for row in rows for name in re.findall(r"`(\w+)`", row.strip("| ").partition(" | ")[0])
    ) == sorted(ACTIONS)


def test_the_sets_are_those_of_the_reference_model() -> None:
    """A row that is changed by mistake: the model of the tests has lists of its own."""
    assert (sorted(HIDING), sorted(SHRINKING)) == (sorted(reference_model.HIDE), sorted(reference_model.SIZES))
    assert not HIDING & TREATMENT.keys()
    assert action_of("of a newer version") == Action()


@given(body=bodies)
def test_kinds_that_requests_show_are_in_the_table(body: Body) -> None:
    """A new kind of record whose message requests show would be left out of a store's count of messages; a kind that
    the table names and no request shows would be counted."""
    shown = as_shown(Record(1, "2026-01-01T00:00:00.000Z", body))
    assert not shown or kind_of(body) in SHOWN_AS
    assert isinstance(body, MessageBody) == (kind_of(body) in SHOWN_AS)
    assert is_said(body) == (kind_of(body) in SHOWN_AS)
