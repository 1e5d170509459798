"""A session of opencode of each generation, with every kind of message, part and entry, for its samples."""

from __future__ import annotations

from typing import Any

__all__ = ["DIFF", "ENTRIES", "MESSAGES", "REVERTED", "SESSION"]

START = 1_790_000_000_000
SESSION = {
    "id": "ses_fjords",
    "parentID": "ses_norway",
    "directory": "/home/me/fjords",
    "title": "The longest of the fjords",
    "version": "1.14.2",
    "time": {"created": START, "updated": START + 90_000},
}
_PNG = "data:image/png;base64,iVBORw0KGgo="
DIFF = "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-Hardanger\n+Sogne\n"
_TOKENS = {"total": 1590, "input": 500, "output": 70, "reasoning": 20, "cache": {"read": 900, "write": 100}}


def _message(n: int, role: str, parts: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    place = {"sessionID": "ses_fjords"}
    info = {"id": f"msg_{n:02}", **place, "role": role, "time": {"created": START + n * 1000}, **more}
    info["time"] |= {"completed": START + n * 1000 + 900} if role == "assistant" else {}
    placed = [{"id": f"prt_{n:02}{i:02}", **place, "messageID": info["id"], **part} for i, part in enumerate(parts)]
    return {"info": info, "parts": placed}


def _user(n: int, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    model = {"providerID": "anthropic", "modelID": "claude-sonnet-5"}
    return _message(n, "user", list(parts), agent="build", model=model, **more)


def _answer(n: int, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    facts = {"modelID": "claude-sonnet-5", "providerID": "anthropic", "mode": "build", "cost": 0.02, "finish": "stop"}
    return _message(n, "assistant", list(parts), **{**facts, "tokens": _TOKENS, "path": {"cwd": "/home/me"}, **more})


def _text(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


def _tool(call_id: str, tool: str, status: str, arguments: Any, **state: Any) -> dict[str, Any]:
    state = {"status": status, "input": arguments, "title": "ls", "time": {"start": START, "end": START}, **state}
    return {"type": "tool", "callID": call_id, "tool": tool, "state": state}


_STEP = {"type": "step-start", "snapshot": "5f2b"}
_DONE = {"type": "step-finish", "reason": "stop", "snapshot": "5f2c", "cost": 0.02, "tokens": _TOKENS}
_EDIT = {"filePath": "a.txt", "oldString": "Hardanger", "newString": "Sogne"}

MESSAGES: list[dict[str, Any]] = [
    _user(
        1,
        _text("Name the longest of the fjords"),
        {"type": "file", "mime": "image/png", "filename": "the map.png", "url": _PNG},
        {"type": "file", "mime": "text/plain", "filename": "a.txt", "url": "file:///home/me/a.txt"},
        {"type": "file", "mime": "image/png", "filename": "b.png", "url": "file:///home/me/b.png"},
        _text("The file a.txt was read", synthetic=True),
        _text("This was only shown to the user", ignored=True),
        {"type": "agent", "name": "explore", "source": {"value": "@explore the west coast"}},
        {
            "type": "subtask",
            "prompt": "Look into the lakes too",
            "description": "the lakes of Norway",
            "agent": "explore",
        },
        summary={"title": "Longest fjord of Norway", "diffs": []},
        system="Answer in one sentence only",
    ),
    _answer(
        2,
        _STEP,
        {"type": "reasoning", "text": "I have to look", "metadata": {"anthropic": {"signature": "c2ln"}}},
        _text("I look into it.", time={"start": START}),
        _tool(
            "c1", "bash", "completed", {"command": "ls the fjords"}, output="Hardanger and Sogne", metadata={"exit": 0}
        ),
        _tool(
            "c2",
            "write",
            "completed",
            {"filePath": "a.txt", "content": "Hardanger\n"},
            output="Wrote",
            metadata={"exists": False},
        ),
        _tool("c3", "read", "error", {"filePath": "/nowhere"}, error="there is no such file"),
        _DONE,
        _STEP,
        _tool("c4", "edit", "completed", _EDIT, output="", metadata={"diff": DIFF}),
        _tool(
            "c5",
            "shot",
            "completed",
            {},
            output="as it looks",
            attachments=[{"type": "file", "mime": "image/png", "url": _PNG}],
        ),
        {"type": "patch", "hash": "5f2d", "files": ["a.txt"]},
        {"type": "snapshot", "snapshot": "5f2e"},
        {"type": "retry", "attempt": 1, "error": {"name": "APIError", "data": {"message": "the server was busy"}}},
        {"type": "file", "mime": "image/png", "filename": "c.png", "url": _PNG},
        {**_DONE, "reason": "tool-calls"},
        finish="tool-calls",
    ),
    _answer(3, _STEP, _text("Sogne, by a long way."), {**_DONE, "tokens": {}}),
    _user(4, {"type": "compaction", "auto": True, "tail_start_id": "msg_03"}),
    _answer(5, _text("Summary: the Sogne is the longest"), summary=True),
    _user(6, _text("And which is the deepest one?")),
    _answer(
        7,
        _tool("c6", "bash", "error", {}, error="it was stopped", metadata={"interrupted": True}),
        _tool("c7", "bash", "running", {"command": "sleep"}),
        {"type": "later-part", "text": "a part that nobody knows"},
        error={"name": "MessageAbortedError", "data": {"message": "the user stopped it"}},
        finish=None,
    ),
    _user(8, _text("Take that back, please do")),
    _answer(
        9, _text("It is being"), error={"name": "UnknownError", "data": {"message": "the line broke"}}, cost={"usd": 1}
    ),
]
REVERTED = "msg_08"


def _entry(n: int, kind: str, **more: Any) -> dict[str, Any]:
    return {"id": f"msg_{n:02}", "type": kind, "time": {"created": START + n * 1000}, **more}


_MODEL = {"id": "gpt-5.4", "providerID": "openai", "variant": "high"}
_RESULT = [_text("Hardanger and Sogne"), {"type": "file", "mime": "image/png", "uri": _PNG, "name": "x.png"}]
ENTRIES: list[dict[str, Any]] = [
    _entry(1, "system", text="You are a geographer of Norway"),
    _entry(
        2,
        "user",
        text="Name the longest of the fjords",
        files=[{"mime": "image/png", "uri": _PNG, "name": "the map.png"}],
    ),
    _entry(3, "synthetic", text="The file a.txt was read", description="a reminder of the program"),
    _entry(4, "skill", skill="maps", name="maps", text="How to read a map"),
    _entry(5, "shell", shellID="sh_1", command="ls the fjords", status="exited", exit=0, output="Hardanger\nSogne"),
    _entry(
        6,
        "assistant",
        agent="build",
        model=_MODEL,
        content=[
            {"type": "reasoning", "text": "I have to look"},
            _text("I look into it."),
            {
                "type": "tool",
                "id": "c1",
                "name": "shell",
                "state": {"status": "completed", "input": {"command": "ls"}, "content": _RESULT},
            },
            {
                "type": "tool",
                "id": "c2",
                "name": "read",
                "state": {
                    "status": "error",
                    "input": {},
                    "error": {"type": "unknown", "message": "there is no such file"},
                },
            },
            {"type": "tool", "id": "c3", "name": "read", "state": {"status": "streaming", "input": '{"path": "b'}},
            {"type": "later-block", "text": "a block that nobody knows"},
        ],
        finish="tool-calls",
        cost=0.01,
        tokens=_TOKENS,
    ),
    _entry(
        7, "assistant", model=_MODEL, content=[_text("Sogne, by a long way.")], finish="stop", tokens=_TOKENS, cost=0
    ),
    _entry(8, "idle", outcome="succeeded"),
    _entry(
        9,
        "compaction",
        status="completed",
        reason="auto",
        summary="The Sogne is the longest",
        recent="Asked was its depth",
        tokens=_TOKENS,
    ),
    _entry(10, "compaction", status="failed", reason="manual", summary="The beginning of one", recent=""),
    _entry(11, "agent-switched", agent="plan"),
    _entry(12, "model-switched", model={"id": "m2", "providerID": "opencode"}),
    _entry(13, "location-switched", location={"directory": "/home/me/lakes"}),
    _entry(14, "user", text="And which is the deepest one?"),
    _entry(
        15,
        "assistant",
        model=_MODEL,
        content=[_text("It is being")],
        error={"type": "aborted", "message": "the user stopped it"},
    ),
    _entry(16, "later-kind", text="an entry that nobody knows"),
]
