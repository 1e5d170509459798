"""A file of goose of before 1.10: a line of facts, and a message a line."""

from __future__ import annotations

from sample_goose import COUNTING, MESSAGES
from sample_goose import SAMPLE as STORED
from samples import Sample
from transcripts import jsonl

_FACTS = {"working_dir": "/home/me", "description": "The fjords of Norway", "message_count": 10, "total_tokens": None}
_SAID = [{key: value for key, value in message.items() if key != "id"} for message in MESSAGES]

SAMPLE = Sample(
    name="goose",
    data=jsonl([_FACTS, *_SAID]),
    query="[.[] | select(.content)] | [to_entries[] | .value + {id: .key}] as $all" + COUNTING,
    path=".local/share/goose/sessions/20250521_1.jsonl",
    warned=STORED.warned,
)
