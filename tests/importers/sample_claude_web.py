"""A session of Claude Code on the web: the records of Claude Code in one document."""

from __future__ import annotations

import json

from samples import Sample
from transcripts import claude, claude_answer

_CALL = {
    "type": "tool_use",
    "id": "toolu_1",
    "name": "Write",
    "input": {"file_path": "/w/a.md", "content": "one fjord"},
}
_RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "it was written"}
_LINES = [
    claude(1, "user", "Name the fjords of Norway", cwd="/home/user/repo", version="2.0.76", gitBranch="claude/x"),
    claude_answer(2, "m1", {"type": "thinking", "thinking": "I have to look.", "signature": "sig"}),
    claude_answer(3, "m1", _CALL),
    claude(4, "user", [_RESULT], toolUseResult={"type": "create", "filePath": "/w/a.md", "content": "one fjord"}),
    claude_answer(5, "m2", {"type": "text", "text": "Hardanger and Sogne."}),
    {**claude(6, "system", subtype="informational"), "content": "the session was moved"},
]

SAMPLE = Sample(
    name="claude-web",
    data=json.dumps({"loglines": _LINES}, indent=1).encode(),
    # The pieces of an answer have its id; the last tells what it was billed.
    query="""
        map(.loglines[] | select(.message)) as $said
        | [$said[].message.content | arrays | .[].type] as $blocks
        | ($said | map(select(.type == "assistant")) | group_by(.message.id) | map(last.message.usage)) as $usages
        | {messages: ($said | map(select(.type == "user")) | length + ($usages | length)),
           calls: $blocks | map(select(. == "tool_use")) | length,
           results: $blocks | map(select(. == "tool_result")) | length,
           input: $usages | map(.input_tokens + .cache_read_input_tokens + .cache_creation_input_tokens) | add,
           output: $usages | map(.output_tokens) | add}""",
    grows=False,
)
