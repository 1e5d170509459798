"""Finding what agents keep in a home folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from turnlog.importers.catalog import FORMATS
from turnlog.importers.discovery import PLACES, REFUSED_PLACES, AgentFile, discover

HOME = {
    ".claude/projects/-w/s1.jsonl": "claude-code",
    ".claude/projects/-w/s1/subagents/agent-1.jsonl": "",
    ".claude/projects/-w/notes.md": "",
    ".claude/history.jsonl": "",
    ".codex/sessions/2026/01/02/rollout-a.jsonl": "codex",
    ".codex/archived_sessions/rollout-b.jsonl": "codex",
    ".codex/archived_sessions/rollout-c.jsonl.zst": "codex",
    ".codex/history.jsonl": "",
    ".gemini/tmp/abc/chats/session-1.json": "gemini-cli",
    ".gemini/tmp/abc/chats/s/sub.jsonl": "gemini-cli",
    ".gemini/tmp/abc/logs.json": "",
    ".pi/agent/sessions/--w--/x.jsonl": "pi",
    ".cline/data/sessions/1/1.messages.json": "cline",
    ".cline/data/sessions/1/1.json": "",
    ".config/Code - Insiders/User/globalStorage/saoudrizwan.claude-dev/tasks/7/api_conversation_history.json": "cline",
    ".config/Code/User/globalStorage/kilocode.kilo-code/tasks/7/api_conversation_history.json": "kilo-code",
    "Library/Application Support/Cursor/User/globalStorage/rooveterinaryinc.roo-cline/tasks/8/"
    "api_conversation_history.json": "roo-code",
    ".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/7/ui_messages.json": "",
    "work/rollout-d.jsonl": "",
}


def found_in(home: Path) -> list[AgentFile]:
    """What is found, and that nothing was unreadable."""
    failed: list[OSError] = []
    found = list(discover(home, failed.append))
    assert failed == []
    return found


def test_the_agents_own_files_are_found_and_no_others(tmp_path: Path) -> None:
    """A store that is missed is a session that nobody finds; a foreign file is an error each time."""
    for name in HOME:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    wanted = sorted(AgentFile(agent, tmp_path / name) for name, agent in HOME.items() if agent)
    assert found_in(tmp_path) == wanted


def test_an_empty_home_has_nothing(tmp_path: Path) -> None:
    """A missing folder is the usual case, not an error."""
    assert found_in(tmp_path) == []
    assert found_in(tmp_path / "absent") == []
    (tmp_path / ".codex").write_text("a file where a folder is expected")
    assert found_in(tmp_path) == []


def test_links_cannot_lead_in_a_circle(tmp_path: Path) -> None:
    """A link to a folder above would be walked for ever."""
    day = tmp_path / ".codex/sessions/2026"
    day.mkdir(parents=True)
    (day / "rollout-a.jsonl").write_text("{}")
    (day / "again").symlink_to(tmp_path / ".codex", target_is_directory=True)
    assert found_in(tmp_path) == [AgentFile("codex", day / "rollout-a.jsonl")]


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    """Reading it tells the user; passing it over would hide a session."""
    project = tmp_path / ".claude/projects/-w"
    project.mkdir(parents=True)
    (project / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    assert found_in(tmp_path) == [AgentFile("claude-code", project / "gone.jsonl")]


def test_a_link_that_cannot_be_followed_hides_nothing_else(tmp_path: Path) -> None:
    """One link to itself keeps every session of every agent from being found."""
    project = tmp_path / ".claude/projects/-w"
    project.mkdir(parents=True)
    (project / "a.jsonl").write_text("{}")
    loops = [project / "loop.jsonl", tmp_path / ".claude/projects/loop"]
    for link in loops:
        link.symlink_to(link)
    failed: list[OSError] = []
    files = [project / "a.jsonl", loops[0]]  # reading it says what is wrong
    assert list(discover(tmp_path, failed.append)) == [AgentFile("claude-code", path) for path in files]
    assert [str(error.filename) for error in failed] == [str(loops[1])]


def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """Sessions in it would be missing without a word."""
    failed: list[OSError] = []
    name = tmp_path / ("x" * 300)  # longer than any file system takes: reading it fails for root too
    assert list(discover(name, failed.append)) == []
    assert failed and all(str(name) in str(error.filename) for error in failed)


def test_places_stay_inside_the_home() -> None:
    """An absolute pattern, or one with a step upward, would search the whole disk."""
    for agent, place in PLACES + REFUSED_PLACES:
        assert agent and not place.startswith("/") and ".." not in place.split("/")


@pytest.mark.parametrize(
    ("name", "agent"),
    [
        (".local/share/zed/threads/threads.db", "zed"),
        ("Library/Application Support/Zed/threads/threads.db", "zed"),
        ("AppData/Local/Zed/threads/threads.db", "zed"),
        (".local/share/amp/threads/T-1.json", "amp"),
        (".kiro/sessions/cli/1.jsonl", "kiro"),
        (".local/share/kiro-cli/data.sqlite3", "kiro"),
        (".factory/sessions/-w/1.jsonl", "droid"),
        (".hermes/state.db", "hermes"),
        (".grok/sessions/%2Fw/1/chat_history.jsonl", "grok"),
    ],
)
def test_files_that_are_not_read_are_found_apart(name: str, agent: str, tmp_path: Path) -> None:
    """A user of such an agent would think that it was never used, or have an error at each import."""
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text("{}")
    assert found_in(tmp_path) == []
    found = list(discover(tmp_path, lambda error: pytest.fail(str(error)), REFUSED_PLACES))
    assert found == [AgentFile(agent, tmp_path / name)]


def test_what_is_not_read_and_lies_at_home_has_a_place() -> None:
    """An agent that is added as refused would be passed over without a word."""
    printed_or_remote = {"cursor-stream-json", "managed-agents"}
    refused = {importer.name for importer in FORMATS if not importer.module}
    assert refused - printed_or_remote == {agent for agent, _ in REFUSED_PLACES}
