"""What `opencode run --format json` printed, twice, in the log of a build."""

from __future__ import annotations

from typing import Any

from samples import Sample
from transcripts import jsonl


def _event(kind: str, n: int, session: str = "ses_run", **part: Any) -> dict[str, Any]:
    place = {"id": f"prt_{n}", "sessionID": session, "messageID": "msg_1"}
    return {"type": kind, "timestamp": 1_790_000_000_000 + n, "sessionID": session, "part": {**place, **part}}


def _tool(n: int, call_id: str, status: str, **state: Any) -> dict[str, Any]:
    state = {"status": status, "input": {"command": "ls"}, **state}
    return _event("tool_use", n, type="tool", tool="bash", callID=call_id, state=state)


_TOKENS = {"input": 500, "output": 70, "reasoning": 20, "cache": {"read": 900, "write": 0}}
_EVENTS = [
    _event("step_start", 1, type="step-start", snapshot="5f2b"),
    _event("reasoning", 2, type="reasoning", text="I have to look", time={"start": 1}),
    _event("text", 3, type="text", text="I look into it."),
    _tool(4, "c1", "completed", output="Hardanger and Sogne", title="ls"),
    _tool(5, "c2", "error", error="there is no such file"),
    _event("step_finish", 6, type="step-finish", reason="tool-calls", cost=0.01, tokens=_TOKENS),
    _event("step_start", 7, type="step-start"),
    _event("text", 8, type="text", text="Sogne, by a long way."),
    _event("step_finish", 9, type="step-finish", reason="stop", cost=0, tokens=_TOKENS),
    _event("text", 10, type="text", text="A text of no step"),
    _event("step_start", 11, "ses_other", type="step-start"),
    _event("text", 12, "ses_other", type="text", text="It is being"),
    {"type": "error", "sessionID": "ses_other", "error": {"name": "APIError", "data": {"message": "the line broke"}}},
    {"type": "later", "sessionID": "ses_other", "text": "an event that nobody knows"},
]

SAMPLE = Sample(
    name="opencode-run",
    data=b"npm run it\n" + jsonl(_EVENTS),
    query="""
        [.[] | select(.part)] as $p
        | {messages: ($p | map(select(.type == "step_start" or .part.text == "A text of no step")) | length),
           calls: $p | map(select(.type == "tool_use")) | length,
           results: $p | map(select(.part.state.status == "completed" or .part.state.status == "error")) | length,
           input: $p | map(.part.tokens // empty | .input + .cache.read) | add,
           output: $p | map(.part.tokens // empty | .output + .reasoning) | add}""",
    warned=("of text that no agent wrote", "'later'"),
    is_log=True,
)
