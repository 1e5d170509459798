"""A database of opencode 1.x: a session and its fork, and all that messages and parts hold."""

from __future__ import annotations

import json
import sqlite3

from opencode_sessions import DIFF, MESSAGES, REVERTED, SESSION
from sample_opencode_export import WARNED
from samples import Sample, database_of

UNNAMED = "New session - 2026-09-21T14:13:20.000Z"
SCRIPT = """
    CREATE TABLE session (id TEXT, project_id TEXT, parent_id TEXT, slug TEXT, directory TEXT, title TEXT, version TEXT,
      revert TEXT, cost REAL, time_created INTEGER, time_updated INTEGER);
    CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
    CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, data TEXT);
"""


def _fill(db: sqlite3.Connection) -> None:
    for number, suffix in enumerate(("", "_fork")):
        time, revert = SESSION["time"]["created"] + number, json.dumps({"messageID": REVERTED + suffix})
        title = UNNAMED if suffix else SESSION["title"]
        facts = (SESSION["id"] + suffix, "p", SESSION["parentID"], "s", SESSION["directory"], title, "1.14.2")
        db.execute("INSERT INTO session VALUES (?,?,?,?,?,?,?,?,?,?,?)", (*facts, revert, 0.1, time, time))
        for message in MESSAGES[:3] if suffix else MESSAGES:
            info = message["info"]
            data = {key: value for key, value in info.items() if key not in ("id", "sessionID")}
            row = (info["id"] + suffix, SESSION["id"] + suffix, info["time"]["created"], 0, json.dumps(data))
            db.execute("INSERT INTO message VALUES (?,?,?,?,?)", row)
            for part in message["parts"]:
                data = {key: value for key, value in part.items() if key not in ("id", "sessionID", "messageID")}
                place = (part["id"] + suffix, info["id"] + suffix, SESSION["id"] + suffix, 0, json.dumps(data))
                db.execute("INSERT INTO part VALUES (?,?,?,?,?)", place)
    db.execute("INSERT INTO message VALUES ('x', 'ses_gone', 1, 1, ?)", ('{"role": "user", "time": {}}',))
    db.execute("INSERT INTO part VALUES ('x1', 'x', 'ses_gone', 1, ?)", ('{"type": "text", "text": "left behind"}',))
    db.execute("INSERT INTO part VALUES ('y1', 'y', 'ses_fjords', 1, ?)", ('{"type": "text", "text": "of no one"}',))


SAMPLE = Sample(
    name="opencode",
    data=database_of(SCRIPT, _fill),
    query="""
        WITH p AS (
          SELECT part.id, message_id AS m, message.data AS info, part.data AS d, part.data ->> 'type' AS kind,
            part.data ->> '$.state.status' AS status, coalesce(part.data ->> 'synthetic', 0) AS program,
            sum(part.data ->> 'type' = 'step-start') OVER (PARTITION BY message_id ORDER BY part.id) AS step
          FROM part JOIN message ON message.id = message_id),
        said AS (
          SELECT *, program != lag(program, 1, -1) OVER (PARTITION BY m ORDER BY id) AS starts FROM p
          WHERE info ->> 'role' = 'user' AND (kind IN ('text', 'subtask') OR d ->> 'url' LIKE 'data:%')
            AND d ->> 'ignored' IS NULL),
        answers AS (
          SELECT count(DISTINCT m || coalesce(step, 0)) AS n FROM p
          WHERE info ->> 'role' = 'assistant' AND kind IN ('text', 'tool', 'reasoning')
            AND coalesce(info ->> 'error', '') NOT LIKE '%broke%'),
        answered AS (SELECT * FROM p WHERE kind = 'tool' AND status IN ('completed', 'error')),
        billed AS (
          SELECT max(1, (SELECT count(*) FROM part WHERE message_id = message.id
            AND data ->> 'type' = 'step-finish' AND data ->> '$.tokens.output' > 0)) AS times,
            data ->> 'tokens' AS t FROM message)
        SELECT
          (SELECT sum(starts) FROM said) + (SELECT n FROM answers)
            + (SELECT count(DISTINCT m || coalesce(step, 0)) FROM answered) AS messages,
          (SELECT count(*) FROM p WHERE kind = 'tool') AS calls,
          (SELECT count(*) FROM answered) AS results,
          (SELECT sum(times * (t ->> 'input' + (t ->> '$.cache.read') + (t ->> '$.cache.write'))) FROM billed) AS input,
          (SELECT sum(times * (t ->> 'output' + (t ->> 'reasoning'))) FROM billed) AS output""",
    path=".local/share/opencode/opencode.db",
    warned=(*WARNED, "a part of a message that is not there", *WARNED[:2]),
    silent=(DIFF, UNNAMED),
)
