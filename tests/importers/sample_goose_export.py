"""What `goose session export --format json` prints."""

from __future__ import annotations

import json

from sample_goose import COUNTING, MESSAGES
from sample_goose import SAMPLE as STORED
from samples import Sample

_FACTS = {"id": "20260921_1", "name": "The fjords of Norway", "working_dir": "/home/me", "message_count": len(MESSAGES)}

SAMPLE = Sample(
    name="goose",
    data=json.dumps({**_FACTS, "created_at": "2026-09-21T14:13:20Z", "conversation": MESSAGES}).encode(),
    query="map(.conversation[]) as $all" + COUNTING,
    warned=STORED.warned,
    is_export=True,
    grows=False,
)
