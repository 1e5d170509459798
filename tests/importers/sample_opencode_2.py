"""A database of opencode 2.x: a session with every kind of entry, and one from before, in the tables of before."""

from __future__ import annotations

import json
import sqlite3

from opencode_sessions import ENTRIES, MESSAGES, SESSION
from sample_opencode import SCRIPT
from samples import Sample, database_of

_TABLES = """
    CREATE TABLE session_v2 (id TEXT, parent_id TEXT, directory TEXT, title TEXT, version TEXT, time_created INTEGER);
    CREATE TABLE session_message (id TEXT, session_id TEXT, type TEXT, seq INTEGER, time_created INTEGER, data TEXT);
"""


def _fill(db: sqlite3.Connection) -> None:
    time = SESSION["time"]["created"]
    for name in ("ses_fjords", "ses_before"):
        db.execute("INSERT INTO session_v2 VALUES (?, NULL, '/home/me', NULL, '2.0.21', ?)", (name, time))
        db.execute("INSERT INTO session (id, directory, title) VALUES (?, '/home/me', 'Fjords')", (name,))
    for seq, entry in enumerate(ENTRIES):
        data = {key: value for key, value in entry.items() if key not in ("id", "type")}
        row = (entry["id"], "ses_fjords", entry["type"], seq, entry["time"]["created"], json.dumps(data))
        db.execute("INSERT INTO session_message VALUES (?,?,?,?,?,?)", row)
    part = json.dumps(MESSAGES[0]["parts"][0])
    db.execute("INSERT INTO message VALUES ('m1', 'ses_before', 1, 1, ?)", ('{"role": "user", "time": {}}',))
    db.execute("INSERT INTO part VALUES ('p1', 'm1', 'ses_before', 1, ?)", (part,))


SAMPLE = Sample(
    name="opencode",
    data=database_of(SCRIPT + _TABLES, _fill),
    query="""
        WITH said AS (SELECT * FROM session_message WHERE type IN ('user', 'synthetic', 'skill', 'system', 'shell')
            OR type = 'compaction' AND data ->> 'status' = 'completed'
            OR type = 'assistant' AND data ->> 'error' IS NULL),
          tools AS (SELECT session_message.id AS m, value FROM session_message, json_each(data, '$.content')
            WHERE value ->> 'type' = 'tool' AND value ->> '$.state.status' != 'streaming'),
          answered AS (SELECT * FROM tools WHERE value ->> '$.state.status' IN ('completed', 'error'))
        SELECT (SELECT count(*) FROM said) + (SELECT count(*) FROM message)
            + (SELECT count(DISTINCT m) FROM answered) AS messages,
          (SELECT count(*) FROM tools) AS calls, (SELECT count(*) FROM answered) AS results,
          sum(data ->> '$.tokens.input' + (data ->> '$.tokens.cache.read')
            + (data ->> '$.tokens.cache.write')) AS input,
          sum(data ->> '$.tokens.output' + (data ->> '$.tokens.reasoning')) AS output FROM session_message""",
    path=".local/share/opencode/opencode-beta.db",
    warned=("a call whose arguments had not arrived", "'later-block'", "'later-kind'"),
)
