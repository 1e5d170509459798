"""Where a session comes from: the agent program that recorded it, and the folder in which that program worked.

Importers keep what a transcript says about itself in notes near its beginning, in the program's own words. This reads
them; a session that turnlog recorded itself begins with a `session_opened` record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._platform.lazy import lazy_pattern
from .records import Note, Record, SessionOpened

BEGINNING = 40
"""The number of first records of a session that can tell where it comes from."""

PROGRAM = "program"
"""The topic of the note in which importers name the agent program, where its transcripts do not."""

_AGENTS = (
    ("context", "userType", "claude-code"),
    ("context", "version", "claude-code"),
    ("file-history-snapshot", "snapshot", "claude-code"),
    ("progress/hook_progress", "parentToolUseID", "claude-code"),
    ("system/init", "subtype", "claude-code"),
    ("session_meta", "", "codex"),
    ("turn_context", "", "codex"),
    ("session", "projectHash", "gemini-cli"),
    ("session", "workspace_root", "cline"),
    ("session", "thinkingLevel", "pi"),
    ("session", "modelId", "pi"),
    ("run", "mini_version", "mini-swe-agent"),
    ("run", "replay_config", "swe-agent"),
    ("agent", "agent", "swe-agent"),
    ("system", "openhands_version", "openhands"),
    ("agent_state_changed", "extras", "openhands"),
    ("ConversationStateUpdateEvent", "source", "openhands"),
    ("message", "timeout", "openhands"),
)
"""The topic of a note, a key of its data ("": none needed), and the agent program that writes such notes."""

_PATH = lazy_pattern(r"[/~]|[A-Za-z]:[\\\\/]")
_FOLDERS = ("cwd", "working_dir", "workspace")
"""Keys under which agent programs name the folder, directly or in the `data` of an event."""


def origin_of(records: Iterable[Record]) -> tuple[str, str]:
    """The agent program and the folder according to the first records of a session; empty if they are not known."""
    agent = folder = opened_by = ""
    for record in records:
        if isinstance(record.body, SessionOpened):  # some transcripts tell of it, too
            opened_by = "turnlog"
        elif isinstance(record.body, Note):
            agent, folder = agent or _agent(record.body), folder or _folder(record.body.data)
        if agent and folder:
            break
    return agent or opened_by, folder


def _agent(note: Note) -> str:
    keys = note.data if isinstance(note.data, dict) else {}
    if note.topic == PROGRAM and isinstance(keys.get("agent"), str):
        return str(keys["agent"])
    return next((agent for topic, key, agent in _AGENTS if topic == note.topic and (not key or key in keys)), "")


def _folder(data: Any) -> str:
    if not isinstance(data, dict):
        return ""
    inside = data.get("data")
    values = [held.get(key) for held in (data, inside) if isinstance(held, dict) for key in _FOLDERS]
    return next((value for value in values if isinstance(value, str) and _PATH.match(value)), "")
