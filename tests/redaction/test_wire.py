"""Secrets in recorded request bodies: a provider's spelling carries none past redaction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from planted import SECRETS

from turnlog import Redactor
from turnlog.log.codec import encode_record
from turnlog.log.records import Configuration, MessageRecord, Record
from turnlog.models.target import target
from turnlog.providers import provider
from turnlog.redaction.drafts import redacted
from turnlog.view.types import Shown

APIS = {
    "openai.chat": "openai-chat",
    "openai.responses": "openai-responses",
    "anthropic.messages": "anthropic",
    "google.generateContent": "google",
}
KEY = SECRETS["npm"][0]
WORDS = {"type", "role", "name", "model", "mime_type", "mimeType", "media_type", "detail", "format", "status", "phase"}
EVERY = 8


def planted(value: Any, name: str = "") -> Any:
    """A body with a key behind every text that is no id, word of the API, or encoded bytes."""
    if isinstance(value, dict):
        return {key: planted(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [planted(item, name) for item in value]
    ids = name.lower().endswith(("id", "signature", "encrypted_content", "data", "url", "uri"))
    if not isinstance(value, str) or ids or name in WORDS or len(value) < 12:
        return value
    if name == "arguments":
        try:
            return json.dumps(planted(json.loads(value)))
        except ValueError:
            pass
    return f"{value} {KEY}"


@pytest.mark.slow
def test_no_spelling_carries_a_secret(shared: Path) -> None:
    """A key that comes back in a request, or stands in a record, because it was kept as a form."""
    redactor, bodies, found = Redactor(), 0, 0
    for number, line in enumerate((shared / "data/token_truth/requests.jsonl").open()):
        row = json.loads(line)
        if number % EVERY or row["api"] not in APIS or "@blob:" in line:
            continue
        speaker = provider(APIS[row["api"]])
        parsed = speaker.parse(planted(row["request"]))
        configuration, counts = redacted(parsed.configuration, redactor)
        assert isinstance(configuration, Configuration)
        view = []
        for n, message in enumerate(parsed.messages, 2):
            clean, more = redacted(MessageRecord(message), redactor)
            assert isinstance(clean, MessageRecord)
            assert KEY.encode() not in encode_record(Record(n, "", clean))
            view.append(Shown(clean.message, (n,)))
            found += sum(more.values())
        assert KEY.encode() not in encode_record(Record(1, "", configuration))
        aim = target(speaker.name, configuration.model or "any")
        made = json.dumps(speaker.render(view, configuration, aim, lambda name: b"").body)
        said = json.dumps(planted(row["request"]))
        assert KEY not in made
        assert made.count("[redacted:npm-token:") == said.count(KEY), "a text was lost, or doubled"
        bodies += 1
        found += sum(counts.values())
    assert bodies > 100 and found > bodies
