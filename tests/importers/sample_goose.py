"""A database of goose with every kind of message and content, a subagent, and a session that only has its sums."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from samples import Sample, database_of

__all__ = ["COUNTING", "MESSAGES"]

START = 1_790_000_000
_PNG = "iVBORw0KGgo="
_SCRIPT = """
    CREATE TABLE schema_version (version INTEGER);
    CREATE TABLE sessions (id TEXT, name TEXT, description TEXT, session_type TEXT, working_dir TEXT, created_at TEXT,
      provider_name TEXT, model_config_json TEXT, parent_session_id TEXT, input_tokens INTEGER, output_tokens INTEGER,
      accumulated_input_tokens INTEGER, accumulated_output_tokens INTEGER, accumulated_cost REAL);
    CREATE TABLE messages (id INTEGER PRIMARY KEY, message_id TEXT, session_id TEXT, role TEXT, content_json TEXT,
      created_timestamp INTEGER, metadata_json TEXT);
    CREATE TABLE usage_ledger (id INTEGER PRIMARY KEY, session_id TEXT, created_timestamp INTEGER, model TEXT,
      input_tokens INTEGER, output_tokens INTEGER, cache_read_tokens INTEGER, cost REAL, is_compaction INTEGER);
"""


def _text(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


def _call(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    call = {"status": "success", "value": {"name": name, "arguments": arguments}}
    return {"type": "toolRequest", "id": call_id, "toolCall": call, "_meta": {"goose_extension": "developer"}}


def _result(call_id: str, *content: Any, **more: Any) -> dict[str, Any]:
    value = {"content": list(content), "isError": False, **more}
    return {"type": "toolResponse", "id": call_id, "toolResult": {"status": "success", "value": value}}


def _message(n: int, role: str, *content: Any, **metadata: Any) -> dict[str, Any]:
    return {"id": f"m{n}", "role": role, "created": START + n, "content": list(content), "metadata": metadata}


_USED = {"inputTokens": 800, "outputTokens": 50, "cacheReadTokens": 700, "cost": 0.003, "costSource": "estimated"}
_ASKED = {"provider": "anthropic", "requestedModel": "claude-sonnet-5", "resolvedModel": "claude-sonnet-5-20260101"}
_IMAGE = {"type": "image", "data": _PNG, "mimeType": "image/png"}
_RESOURCE = {"type": "resource", "resource": {"uri": "file:///a", "text": "the text of a file"}}
_FOR_USER = {"annotations": {"audience": ["user"]}}
_NOTICE = {"type": "systemNotification", "notificationType": "inlineMessage", "msg": "The session was compacted"}
_MAY_IT = {"type": "toolConfirmationRequest", "id": "c5", "toolName": "shell", "prompt": "May it run that?"}
_EDIT = {"path": "a.txt", "before": "Hardanger", "after": "Sogne"}
MESSAGES = [
    _message(1, "user", _text("Name the longest of the fjords"), _IMAGE, agentVisible=False),
    _message(
        2,
        "assistant",
        {"type": "thinking", "thinking": "I have to look", "signature": "c2ln"},
        {"type": "redactedThinking", "data": "b3BhcXVl"},
        _text("I look into it."),
        _call("c1", "developer__shell", {"command": "ls the fjords"}),
        _call("c2", "developer__text_editor", {"command": "write", "path": "a.txt", "file_text": "Hardanger\n"}),
        {"type": "toolRequest", "id": "c3", "toolCall": {"status": "error", "error": "the call was no JSON"}},
        {**_call("c4", "edit", _EDIT), "type": "frontendToolRequest"},
        agentVisible=False,
        userVisible=True,
        inference=_ASKED,
        usage=_USED,
    ),
    _message(
        3,
        "user",
        _result(
            "c1",
            _text("Hardanger and Sogne"),
            _text("Only the user sees it", **_FOR_USER),
            structuredContent={"exit": 0},
        ),
        _result("c2", _RESOURCE, _IMAGE),
        {"type": "toolResponse", "id": "c3", "toolResult": {"status": "error", "error": "there was no such tool"}},
        {"type": "toolResponse", "id": "c4", "toolResult": {"status": "success", "value": [_text("edited as asked")]}},
        agentVisible=False,
    ),
    _message(4, "user", _text("Summary: the Sogne is the longest"), userVisible=False, agentVisible=True),
    _message(5, "assistant", _NOTICE, agentVisible=False),
    _message(
        6,
        "assistant",
        _text("Sogne, by a long way."),
        {"type": "later", "text": "a block that nobody knows"},
        inference=_ASKED,
        usage=_USED,
    ),
    _message(7, "user", _text("And which is the deepest one?"), _text("For the user only", **_FOR_USER)),
    _message(8, "assistant", _MAY_IT),
    _message(
        9,
        "assistant",
        {"type": "reasoning", "text": "of an older version"},
        _call("c5", "developer__shell", {"command": "sleep"}),
    ),
    _message(10, "narrator", _text("a role that nobody knows")),
]


def _fill(db: sqlite3.Connection) -> None:
    model = json.dumps({"model_name": "claude-sonnet-5", "context_limit": 200000})
    when, none = "2026-09-21 14:13:20", (None,) * 5
    row = "INSERT INTO sessions VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
    db.execute(row, ("s1", "The fjords of Norway", "", "user", "/home/me", when, "anthropic", model, None, *none))
    db.execute(row, ("s2", "", "CLI Session", "sub_agent", "/home/me", when, "anthropic", model, "s1", *none))
    sums = (90, 9, 4000, 300, 0.05)
    db.execute(row, ("s3", "Only sums are left", "", "user", "/home/me", when, "openai", model, None, *sums))
    messages = "INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, metadata_json)"
    for session in ("s1", "s2"):
        for message in MESSAGES if session == "s1" else MESSAGES[:2]:
            facts = (
                message["role"],
                json.dumps(message["content"]),
                message["created"],
                json.dumps(message["metadata"]),
            )
            db.execute(f"{messages} VALUES (?,?,?,?,?,?)", (message["id"], session, *facts))
    for time, cost, compacts in ((START + 2, 0.003, 0), (START + 4, None, 1)):
        row = (time, "claude-sonnet-5", 800, 50, 700, cost, compacts)
        db.execute("INSERT INTO usage_ledger VALUES (NULL, 's2', ?,?,?,?,?,?,?)", row)


SAMPLE = Sample(
    name="goose",
    data=database_of(_SCRIPT, _fill),
    query="""
        WITH b AS (
          SELECT messages.id AS m, role, value ->> 'type' AS kind FROM messages, json_each(content_json)
          WHERE role IN ('user', 'assistant') AND coalesce(value ->> '$.annotations.audience[0]', '') != 'user'),
        called AS (SELECT * FROM b WHERE kind IN ('toolRequest', 'frontendToolRequest')),
        answered AS (SELECT * FROM b WHERE kind = 'toolResponse'),
        said AS (SELECT DISTINCT m FROM b WHERE m IN (SELECT m FROM called) OR m IN (SELECT m FROM answered)
          OR kind IN ('text', 'image', 'thinking', 'redactedThinking', 'reasoning')),
        metered AS (SELECT metadata_json ->> 'usage' AS u FROM messages WHERE session_id = 's1')
        SELECT (SELECT count(*) FROM said) AS messages, (SELECT count(*) FROM called) AS calls,
          (SELECT count(*) FROM answered) AS results,
          (SELECT sum(u ->> 'inputTokens') FROM metered) + (SELECT sum(input_tokens) FROM usage_ledger)
            + (SELECT sum(accumulated_input_tokens) FROM sessions) AS input,
          (SELECT sum(u ->> 'outputTokens') FROM metered) + (SELECT sum(output_tokens) FROM usage_ledger)
            + (SELECT sum(accumulated_output_tokens) FROM sessions) AS output""",
    path=".local/share/goose/sessions/sessions.db",
    warned=("'later'", "'narrator'"),
)

COUNTING = """
    | [$all[] | select(.role == "user" or .role == "assistant") | . as $m | .content[]
        | select((.annotations.audience[0]? // "") != "user") | {m: $m.id, t: .type}] as $b
    | [$b[] | select(.t == "toolRequest" or .t == "frontendToolRequest")] as $calls
    | [$b[] | select(.t == "toolResponse")] as $results
    | ["text", "image", "thinking", "reasoning"] as $said
    | {messages: ([$b[] | select(.t as $t | $said | index($t)), $calls[], $results[]] | map(.m) | unique | length),
       calls: $calls | length, results: $results | length,
       input: [$all[] | .metadata.usage.inputTokens // 0] | add,
       output: [$all[] | .metadata.usage.outputTokens // 0] | add}"""
