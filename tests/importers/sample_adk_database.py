"""Databases of ADK: a session of newer versions, whose events are JSON, and one with the columns of older ones."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from samples import Sample, database_of

_SCRIPT = """
    CREATE TABLE sessions (app_name TEXT, user_id TEXT, id TEXT, state TEXT, create_time DATETIME,
        update_time DATETIME);
    CREATE TABLE app_states (app_name TEXT, state TEXT, update_time DATETIME);
    CREATE TABLE user_states (app_name TEXT, user_id TEXT, state TEXT, update_time DATETIME);
    CREATE TABLE events (id TEXT, app_name TEXT, user_id TEXT, session_id TEXT, invocation_id TEXT, author TEXT,
        actions BLOB, timestamp DATETIME, content TEXT, event_data TEXT);
"""


def _content(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


_SAID = [
    ("user", _content("user", {"text": "Name the fjords of Norway"})),
    (
        "finder",
        _content(
            "model",
            {"text": "I look at the map."},
            {"function_call": {"id": "c", "name": "look", "args": {"at": "the coast"}}},
        ),
    ),
    (
        "finder",
        _content("user", {"function_response": {"id": "c", "name": "look", "response": {"seen": "Sogne and others"}}}),
    ),
    ("finder", _content("model", {"text": "Sogne and others, they are."})),
]


def _fill(db: sqlite3.Connection) -> None:
    for session, is_new in (("s-1", True), ("s-2", False)):
        created = f"2026-11-29 22:0{int(not is_new)}:00"
        db.execute("INSERT INTO sessions VALUES ('app', 'u', ?, ?, ?, ?)", (session, '{"k": 1}', created, created))
        for number, (author, content) in enumerate(_SAID):
            about = (f"{session}-{number}", "app", "u", session, "e-1")
            time = f"2026-11-29 22:10:0{number}.5"
            usage = {"prompt_token_count": 100, "candidates_token_count": 7} if content["role"] == "model" else None
            event = {"author": author, "content": content, "invocation_id": "e-1", "usage_metadata": usage}
            row = (
                (None, None, time, None, json.dumps(event))
                if is_new
                else (author, b"\x80", time, json.dumps(content), None)
            )
            db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*about, *row))


SAMPLE = Sample(
    name="adk",
    data=database_of(_SCRIPT, _fill),
    query="""
        WITH said AS (SELECT coalesce(json_extract(event_data, '$.content'), content) AS content,
            json_extract(event_data, '$.usage_metadata') AS usage FROM events),
        parts AS (SELECT each.value AS part FROM said, json_each(said.content, '$.parts') AS each)
        SELECT (SELECT count(*) FROM said) AS messages,
            (SELECT count(*) FROM parts WHERE json_extract(part, '$.function_call') IS NOT NULL) AS calls,
            (SELECT count(*) FROM parts WHERE json_extract(part, '$.function_response') IS NOT NULL) AS results,
            (SELECT sum(json_extract(usage, '$.prompt_token_count')) FROM said) AS input,
            (SELECT sum(json_extract(usage, '$.candidates_token_count')) FROM said) AS output""",
    warned=("`actions` of an event",),
)
