"""A database of crush with every kind of part, a subagent, and versions of files."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from samples import Sample, database_of

START = 1_790_000_000
_PNG = "iVBORw0KGgo="
_SCRIPT = """
    CREATE TABLE goose_db_version (id INTEGER);
    CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT, message_count INTEGER,
      prompt_tokens INTEGER, completion_tokens INTEGER, cost REAL, updated_at INTEGER, created_at INTEGER,
      summary_message_id TEXT, todos TEXT);
    CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT, role TEXT, parts BLOB, model TEXT, provider TEXT,
      created_at INTEGER, updated_at INTEGER, finished_at INTEGER, is_summary_message INTEGER);
    CREATE TABLE files (id TEXT, session_id TEXT, path TEXT, content TEXT, version INTEGER);
"""


def _part(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data}


def _call(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    return _part(
        "tool_call", id=call_id, name=name, input=json.dumps(arguments), provider_executed=False, finished=True
    )


def _result(call_id: str, name: str, content: str, told: Any = None, **more: Any) -> dict[str, Any]:
    metadata = json.dumps(told) if told else ""
    return _part("tool_result", tool_call_id=call_id, name=name, content=content, metadata=metadata, **more)


_EDIT = {"file_path": "a.txt", "old_string": "Hardanger", "new_string": "Sogne"}
_EDITED = {"additions": 1, "removals": 1, "old_content": "Hardanger\n", "new_content": "Sogne\n"}
_WRITTEN, _LISTED = {"diff": "", "additions": 1}, {"start_time": 1, "output": "Hardanger and Sogne"}
_STOP = _part("finish", reason="stop", time=0)
_MESSAGES: list[tuple[str, list[dict[str, Any]]]] = [
    ("system", [_part("text", text="You are a geographer of Norway")]),
    (
        "user",
        [
            _part("text", text="Name the longest of the fjords"),
            _part("binary", Path="the map.png", MIMEType="image/png", Data=_PNG),
            _part("image_url", url="https://example.org/b.png", detail="high"),
            _STOP,
        ],
    ),
    (
        "assistant",
        [
            _part("reasoning", thinking="I have to look", signature="c2ln", started_at=START, finished_at=START),
            _part("text", text="I look into it."),
            _call("c1", "bash", {"command": "ls the fjords"}),
            _call("c2", "write", {"file_path": "/home/me/a.txt", "content": "Hardanger\n"}),
            _call("c3", "edit", _EDIT),
            _call("c4", "view", {"file_path": "/nowhere"}),
            _part("finish", reason="tool_use", time=START + 3),
        ],
    ),
    (
        "tool",
        [
            _result("c1", "bash", "Hardanger and Sogne", _LISTED),
            _result("c2", "write", "it was written", _WRITTEN),
            _result("c3", "edit", "it was edited", _EDITED),
            _result("c4", "view", "there is no such file", is_error=True, data=_PNG, mime_type="image/png"),
            _STOP,
        ],
    ),
    ("assistant", [_part("text", text="Sogne, by a long way."), _part("finish", reason="end_turn", time=START + 5)]),
    (
        "assistant",
        [_part("text", text="Summary: the Sogne is the longest"), _part("finish", reason="end_turn", time=0)],
    ),
    ("user", [_part("text", text="Go on with what was asked", hidden=True), _STOP]),
    ("user", [_part("shell_command", command="ls the lakes", output="Mjøsa is here", exit_code=0), _STOP]),
    ("assistant", [_call("c5", "bash", {"command": "sleep"}), _part("finish", reason="canceled", time=0)]),
    ("user", [_part("text", text="And which is the deepest one?"), _part("later", text="a part that nobody knows")]),
    (
        "assistant",
        [_part("text", text="It is"), _part("finish", reason="error", message="it broke", details="no line")],
    ),
    ("narrator", [_part("text", text="a role that nobody knows")]),
]


def _fill(db: sqlite3.Connection) -> None:
    session = "INSERT INTO sessions VALUES (?,?,?,?,?,?,?,?,?,?,?)"
    db.execute(session, ("s1", None, "The fjords of Norway", 12, 900, 80, 0.05, START, START, "m5", "[]"))
    db.execute(session, ("m2$$c1", "s1", "New Agent Session", 1, 300, 20, 0.02, START, START + 1, None, None))
    row = "INSERT INTO messages VALUES (?,?,?,?,?,?,?,?,?,?)"
    for number, (role, parts) in enumerate(_MESSAGES):
        time, asked = START + number, ("claude-sonnet-4", "anthropic") if role == "assistant" else (None, None)
        db.execute(row, (f"m{number}", "s1", role, json.dumps(parts), *asked, time, time, None, number == 5))
    task = json.dumps([_part("text", text="Look at the lakes"), _STOP])
    db.execute(row, ("t1", "m2$$c1", "user", task, None, None, START + 1, 0, None, 0))
    for version, content in enumerate(("", "Hardanger\n", "Sogne\n")):
        db.execute("INSERT INTO files VALUES (?, 's1', '/home/me/a.txt', ?, ?)", (f"f{version}", content, version))


SAMPLE = Sample(
    name="crush",
    data=database_of(_SCRIPT, _fill),
    query="""
        WITH p AS (SELECT messages.id AS m, role, value ->> 'type' AS kind FROM messages, json_each(parts))
        SELECT
          (SELECT count(*) FROM messages WHERE role != 'narrator'
            AND NOT EXISTS (SELECT 1 FROM json_each(parts) WHERE value ->> '$.data.reason' = 'error')) AS messages,
          (SELECT count(*) FROM p WHERE kind = 'tool_call') AS calls,
          (SELECT count(*) FROM p WHERE kind = 'tool_result') AS results,
          0 AS input, 0 AS output""",
    path="work/fjords/.crush/crush.db",
    warned=("'later'", "an entry of type 'narrator'", "without an answer"),
    silent=("New Agent Session", json.dumps(_EDITED), json.dumps(_WRITTEN), json.dumps(_LISTED)),
)
