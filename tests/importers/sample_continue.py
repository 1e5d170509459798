"""A session of Continue with results as messages and in the states of calls, and all that its items hold."""

from __future__ import annotations

import json
from typing import Any

from samples import Sample


def _item(role: str, content: Any, **more: Any) -> dict[str, Any]:
    message = {key: more.pop(key) for key in ("toolCalls", "toolCallId", "usage", "signature") if key in more}
    return {"message": {"role": role, "content": content, "id": "m", **message}, "contextItems": [], **more}


def _call(call_id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def _state(call: dict[str, Any], status: str, *outputs: str) -> dict[str, Any]:
    arguments = json.loads(call["function"]["arguments"])
    output = [{"name": "Output", "description": "", "content": text} for text in outputs]
    return {"toolCallId": call["id"], "toolCall": call, "status": status, "parsedArgs": arguments, "output": output}


_LIST = _call("c1", "run_terminal_command", {"command": "ls the fjords"})
_WRITE = _call("c2", "create_new_file", {"filepath": "a.txt", "contents": "Hardanger and so on"})
_READ = _call("c3", "read_file", {"filepath": "no such file"})
_USAGE = {"promptTokens": 600, "completionTokens": 80, "promptTokensDetails": {"cachedTokens": 200}}
_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
_IMAGE = {"type": "imageUrl", "imageUrl": {"url": f"data:image/png;base64,{_PNG}"}}
_FILE = {"name": "a.txt", "description": "a file of it", "content": "what was in the file", "id": {"itemId": "1"}}
_LOG = {"modelTitle": "gpt-5", "prompt": "the whole prompt again", "completion": "the whole answer again"}
_EDITOR = {"type": "doc", "content": [{"type": "text", "text": "Name the fjords of Norway"}]}

_SESSION = {
    "sessionId": "0f1e2d3c-0000-4000-8000-000000000001",
    "title": "The fjords of Norway",
    "workspaceDirectory": "file:///w/my%20fjords",
    "history": [
        _item("system", "You help with the fjords"),
        _item(
            "user",
            [{"type": "text", "text": "Name the fjords of Norway"}, _IMAGE],
            editorState=_EDITOR,
            timestamp="2026-10-10T12:00:00.000Z",
        )
        | {"contextItems": [_FILE]},
        _item("thinking", "I have to look", signature="c2VhbGVk"),
        _item(
            "assistant",
            "I look at it.",
            toolCalls=[_LIST, _WRITE],
            usage=_USAGE,
            toolCallStates=[_state(_LIST, "done", "Hardanger and Sogne"), _state(_WRITE, "done", "it is written")],
            promptLogs=[_LOG],
        ),
        _item("tool", "Hardanger and Sogne", toolCallId="c1"),
        _item("tool", "it is written", toolCallId="c2"),
        _item("assistant", "", toolCallStates=[_state(_READ, "errored", "there is no such file")]),
        _item(
            "assistant",
            [{"type": "text", "text": "Hardanger and Sogne, they are."}],
            reasoning={"active": False, "text": "I know them now", "startAt": 1788772501000, "endAt": 1788772501800},
            conversationSummary="We spoke of all the fjords",
        ),
        _item("user", "And the lakes of Norway?"),
        _item("later", "something that nobody knows"),
    ],
    "chatModelTitle": "claude-sonnet-5",
    "mode": "agent",
    "usage": {**_USAGE, "totalCost": 0.021},
}

SAMPLE = Sample(
    name="continue",
    data=json.dumps(_SESSION).encode(),
    query="""
        .[0] as $session
        | [$session.history[] | select(.message.role | IN("system", "user", "assistant"))] as $said
        | [$session.history[] | select(.message.role == "tool") | .message.toolCallId] as $returned
        | [$session.history[].toolCallStates[]? | .toolCallId] as $calls
        | {messages: (($said | length) + ([($calls | map(IN($returned[]))) | unique | .[]] | length)),
           calls: $calls | length, results: ($calls + $returned | unique | length),
           input: $session.usage.promptTokens, output: $session.usage.completionTokens}""",
    path=".continue/sessions/0f1e2d3c-0000-4000-8000-000000000001.json",
    warned=("'later'",),
    grows=False,
    silent=("the whole prompt again", "the whole answer again"),
)
