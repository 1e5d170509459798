"""A run of `gemini --output-format stream-json` in the log of a build, with all its events."""

from __future__ import annotations

from samples import Sample
from transcripts import jsonl


def _event(second: int, kind: str, **more: object) -> dict[str, object]:
    return {"type": kind, "timestamp": f"2026-10-10T12:00:{second:02}.000Z", **more}


_EVENTS = [
    _event(0, "init", session_id="run-1", model="auto-gemini-3"),
    _event(1, "message", role="user", content="List the fjords of Norway"),
    _event(2, "message", role="assistant", content="I look ", delta=True),
    _event(3, "message", role="assistant", content="them up.", delta=True),
    _event(4, "tool_use", tool_name="run_shell_command", tool_id="a", parameters={"command": "ls fjords"}),
    _event(4, "tool_use", tool_name="write_file", tool_id="b", parameters={"file_path": "a.txt", "content": "one two"}),
    _event(5, "tool_result", tool_id="a", status="success", output="Hardanger and Sogne"),
    _event(5, "tool_result", tool_id="b", status="error", error={"type": "denied", "message": "You may not write"}),
    _event(6, "tool_use", tool_name="memory", tool_id="c", parameters={}),
    _event(6, "tool_result", tool_id="c", status="success"),
    _event(7, "error", severity="warning", message="Loop detected, stopping execution"),
    _event(8, "message", role="assistant", content="Hardanger, Sogne.", delta=True),
    _event(8, "later_kind", text="something that nobody knows"),
    _event(
        9,
        "result",
        status="success",
        stats={
            "total_tokens": 7039,
            "input_tokens": 7003,
            "output_tokens": 2,
            "cached": 6637,
            "models": {
                "gemini-3-pro": {"total_tokens": 7039, "input_tokens": 7003, "output_tokens": 2, "cached": 6637}
            },
        },
    ),
    _event(20, "init", session_id="run-2", model="gemini-2.5-flash"),
    _event(21, "message", role="user", content="And the lakes?"),
    _event(22, "result", status="error", error={"type": "quota", "message": "You are out of quota"}, stats={}),
]

SAMPLE = Sample(
    name="gemini-stream-json",
    data=b"Run gemini -p ...\n2026-10-10T12:00:00Z " + jsonl(_EVENTS) + b"Process completed\n",
    query="""
        map(if .type == "message" then .role elif .type == "tool_use" then "assistant"
            elif .type == "tool_result" then "result" else empty end) as $speakers
        | map(select(.type == "result").stats | select(.input_tokens)) as $stats
        | {messages: [foreach $speakers[] as $one ({}; {last: $one, is_new: ($one != .last or $one == "user")})
              | select(.is_new)] | length,
           calls: map(select(.type == "tool_use")) | length, results: map(select(.type == "tool_result")) | length,
           input: $stats | map(.input_tokens) | add, output: $stats | map(.output_tokens) | add}""",
    is_log=True,
    warned=("2 lines of text", "'later_kind'"),
)
