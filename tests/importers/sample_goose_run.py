"""What `goose run --output-format stream-json` printed: messages in pieces."""

from __future__ import annotations

from sample_goose import COUNTING, MESSAGES
from sample_goose import SAMPLE as STORED
from samples import Sample
from transcripts import jsonl

_PIECES = [
    {"type": "message", "message": {**message, "content": [block], "metadata": {**message["metadata"], "usage": None}}}
    for message in MESSAGES
    for block in message["content"]
]
_END = {"type": "complete", "total_tokens": 990, "input_tokens": 900, "output_tokens": 90}
_EVENTS = [
    {"type": "notification", "extension_id": "developer", "message": "the shell was started"},
    *_PIECES,
    {"type": "error", "error": "the line broke once"},
    _END,
]

SAMPLE = Sample(
    name="goose",
    data=b"starting the run\n" + jsonl(_EVENTS),
    query="""[.[] | select(.type == "complete")] as $last | [.[] | .message? | objects] as $all"""
    + COUNTING
    + " + ($last[0] | {input: .input_tokens, output: .output_tokens})",
    warned=("of text that no agent wrote", *STORED.warned),
    is_export=True,
    is_log=True,
)
