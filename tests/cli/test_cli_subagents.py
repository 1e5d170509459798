"""`turnlog ls`, `show`, `export`, `rm`: sessions with the subagents that they called."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import turnlog as library
from turnlog import ToolCall, agent
from turnlog.runners import ScriptedRunner
from turnlog.stores import SqliteStore

CLAUDE = library.target("anthropic", "claude-sonnet-4-5")


@pytest.fixture
def child(turnlog: Any, tmp_path: Path) -> str:
    """The session `trip` in the store of the commands, with one subagent, whose id this is."""
    with (
        closing(SqliteStore(tmp_path / "log.db")) as store,
        library.open("trip", store=store, target=CLAUDE) as session,
    ):
        maps = agent.as_tool("maps", "Knows the way.", runner=ScriptedRunner(["Left."]))
        script = ScriptedRunner([ToolCall("m", "maps", {"task": "Which way?"}), "Go left."])
        library.run(session, "Where?", script, tools=[maps])
        return next(info.id for info in store.sessions() if info.parent)


def test_a_session_is_shown_with_its_subagents(turnlog: Any, child: str) -> None:
    """The work of an agent was nowhere in the talk that called it, and its cost in no figure."""
    both = turnlog("ls", "--cost").out.splitlines()
    assert len(both) == 3 and "+1" in both[1].split()
    shown = turnlog("show", "trip").out
    assert f"  -- subagent: session {child}\n" in shown and " with 1 subagent\n" in shown
    assert shown.index("maps Which way?") < shown.index("subagent: session") < shown.index("Go left.")
    assert "belongs to trip\n" in turnlog("show", child).out
    costs = {name: turnlog("show", name, "--cost").out for name in ("trip", child)}
    assert "with 1 subagent: " in costs["trip"] and "subagent" not in costs[child]
    dollars = {json.loads(turnlog("show", name, "--cost", "--json").out)["cost"]["total"] for name in costs}
    assert float(costs["trip"].rsplit("$", 1)[1]) == pytest.approx(sum(dollars), abs=1e-4)
    assert sum(json.loads(row)["cost"]["total"] for row in turnlog("ls", "--cost", "--json").out.splitlines()) == (
        pytest.approx(sum(dollars))
    )


def test_exports_name_subagents(turnlog: Any, child: str) -> None:
    """Who reads a page or a transcript did not find what an agent did."""
    markdown = turnlog("export", "trip", "--format", "markdown").out.replace("\\", "")
    assert f"*subagent: session {child}*" in markdown and "with 1 subagent" in markdown
    page = turnlog("export", "trip", "--format", "html").out
    assert child in page and "With 1 subagent: " in page
    assert json.loads(turnlog("export", child, "--format", "json").out)["session"]["parent"] == "trip"


def test_subagents_are_deleted_with_their_session(turnlog: Any, child: str, tmp_path: Path) -> None:
    """They stayed, as sessions that belong to nobody; or went without a word, and with them what only named the
    session as its parent."""
    with closing(SqliteStore(tmp_path / "log.db")) as store:
        store.create("copy", parent="trip")
    told = turnlog("rm", "trip", "--yes").err
    assert [line.split()[1] for line in told.splitlines() if line.startswith("deleted")] == ["trip", child]
    with closing(SqliteStore(tmp_path / "log.db")) as store:
        assert [info.id for info in store.sessions()] == ["copy"]
