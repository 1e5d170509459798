"""The log of a chat of VS Code: requests with and without rounds, a request that was taken back, all kinds of parts."""

from __future__ import annotations

from typing import Any

from samples import Sample
from transcripts import jsonl


def _request(n: int, text: str, *response: Any, **more: Any) -> dict[str, Any]:
    message = {
        "text": text,
        "parts": [{"kind": "text", "text": text, "range": {"start": 0, "endExclusive": len(text)}}],
    }
    about = {"requestId": f"request_{n}", "timestamp": 1790583500000 + n * 60_000, "modelId": "copilot/gpt-5"}
    return {**about, "message": message, "variableData": {"variables": []}, "response": list(response), **more}


def _tool(name: str, call_id: str, **more: Any) -> dict[str, Any]:
    return {
        "kind": "toolInvocationSerialized",
        "toolId": name,
        "toolCallId": call_id,
        "isComplete": True,
        "isConfirmed": True,
        **more,
    }


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "name": name, "arguments": arguments}


def _result(text: str) -> dict[str, Any]:
    return {"$mid": 20, "content": [{"$mid": 21, "value": text}]}


_TERMINAL = {
    "kind": "terminal",
    "commandLine": {"original": "go build the app"},
    "terminalCommandOutput": {"text": "it did not build"},
    "terminalCommandState": {"exitCode": 1},
}
_URI = {"scheme": "file", "path": "/w/my app/b.go"}
_EDITS = {"kind": "textEditGroup", "uri": _URI, "edits": [[{"text": "package of mine", "range": {}}]], "done": True}
_TREE = {
    "type": 1,
    "children": [
        {"type": 2, "text": "Hardanger and so on"},
        {"type": 1, "children": [{"type": 2, "lineBreakBefore": True, "text": "Sogne, far up north"}]},
    ],
}
_METADATA = {
    "renderedUserMessage": [{"type": 1, "text": "<context>the files</context> Name the fjords of Norway"}],
    "promptTokens": 70375,
    "outputTokens": 1818,
    "resolvedModel": "gpt-5.1",
    "toolCallRounds": [
        {
            "id": "r1",
            "response": "I look at them.",
            "thinking": {"id": "t", "text": "I have to look", "encrypted": "c2VhbGVk"},
            "toolCalls": [
                _call("c1", "create_file", '{"filePath": "/w/a.txt", "content": "Hardanger and so on"}'),
                _call("c2__vscode-17", "run_in_terminal", '{"command": "go build the app"}'),
                _call("c3", "mcp_docs_search", '{"words": "all the fjords"}'),
            ],
        },
        {"id": "r2", "response": "Hardanger and Sogne, they are.", "toolCalls": []},
    ],
    "toolCallResults": {
        "c1": _result("the file was created"),
        "c2__vscode-17": _result("it did not build"),
        "c3": {"$mid": 20, "content": [{"$mid": 22, "value": {"node": _TREE}}]},
    },
}
_OLDER = _request(
    2,
    "And the lakes of Norway?",
    {"value": "I look at the lakes, see "},
    {"kind": "inlineReference", "inlineReference": _URI, "name": "b.go"},
    _tool("run_in_terminal", "d1", toolSpecificData=_TERMINAL),
    _tool(
        "docs",
        "d2",
        resultDetails={"input": '{"q": "of the lakes"}', "output": [{"type": "embed", "value": "the lakes are"}]},
    ),
    {"kind": "thinking", "value": ["There are ", "many lakes"], "id": "t"},
    {"kind": "thinking", "value": ""},
    _EDITS,
    {"value": {"value": "There are many of them."}},
    {"kind": "warning", "content": {"value": "This was very slow"}},
    result={"errorDetails": {"message": "the network is gone"}, "timings": {"totalElapsed": 3}},
)
_LINES: list[dict[str, Any]] = [
    {"kind": 0, "v": {"version": 3, "creationDate": 1790583500000, "sessionId": "chat-1", "requests": []}},
    {"kind": 2, "k": ["requests"], "v": [_request(1, "Name the fjords of Norway", model="x")]},
    {"kind": 2, "k": ["requests", 0, "response"], "v": [{"kind": "thinking", "value": "I have to look"}]},
    {
        "kind": 2,
        "k": ["requests", 0, "response"],
        "v": [
            {"value": "I look "},
            {"value": "at them."},
            _EDITS | {"uri": {"scheme": "file", "path": "/w/a.txt"}, "edits": []},
            _tool("create_file", "c1", pastTenseMessage={"value": "Created [](file:///w/a.txt) for you"}),
            _tool("run_in_terminal", "c2", toolSpecificData=_TERMINAL),
            {"kind": "progressMessage", "content": {"value": "I am on my way"}},
        ],
    },
    {"kind": 2, "k": ["requests", 0, "response"], "i": 7, "v": [{"value": "Hardanger and Sogne, they are."}]},
    {"kind": 1, "k": ["requests", 0, "result"], "v": {"metadata": _METADATA, "details": "GPT-5 and 1x of it"}},
    {"kind": 1, "k": ["requests", 0, "modelState"], "v": {"value": 1, "completedAt": 1790583590000}},
    {"kind": 2, "k": ["requests"], "v": [_OLDER]},
    {"kind": 2, "k": ["requests"], "v": [_request(9, "dropped")]},
    {
        "kind": 2,
        "k": ["requests"],
        "i": 2,
        "v": [_request(3, "Forget it all at once", {"value": "I forget it all"}, isHidden=True)],
    },
    {
        "kind": 2,
        "k": ["requests"],
        "v": [_request(4, "Thank you very much", usage={"promptTokens": 90, "completionTokens": 5})],
    },
    {"kind": 1, "k": ["requests", 3, "isCanceled"], "v": True},
    {"kind": 1, "k": ["customTitle"], "v": "The fjords of Norway"},
    {"kind": 1, "k": ["pendingRequests"], "v": []},
    {"kind": 3, "k": ["pendingRequests"]},
    {"kind": 1, "k": ["nowhere", "at", 3], "v": "something that has no place"},
]

SAMPLE = Sample(
    name="vscode-chat",
    data=jsonl(_LINES),
    query="""
        def changes: [foreach .[] as $one ({}; {last: $one, is_new: ($one != .last)}) | select(.is_new)] | length;
        [.[] | select(.k == ["requests"]) | .v[] | select(.message.text != "dropped")] as $requests
        | [.. | .toolCallRounds? | values | .[]] as $rounds
        | [$requests[].response[] | select(.kind == "toolInvocationSerialized")] as $runs
        | [.. | .toolCallResults? | values | .[]] as $results
        | [.. | objects | select(has("promptTokens"))] as $bills
        | [$requests[] | [.response[] | select(.value != "" and (.kind | IN("textEditGroup", "warning") | not))
            | if .toolCallId then "said", "result" else "said" end] | changes] as $shown
        | {messages: (($requests | length) + ($rounds | map(if .toolCalls == [] then 1 else 2 end) | add)
             + ($shown | add)),
           calls: ([$rounds[].toolCalls[]] + $runs | length), results: ($results + $runs | length),
           input: $bills | map(.promptTokens) | add,
           output: $bills | map(.outputTokens // .completionTokens) | add}""",
    path=".config/Code/User/workspaceStorage/1f/chatSessions/chat-1.jsonl",
    warned=("not in the chat",),
    silent=("something that has no place",),
    grows=False,
)
