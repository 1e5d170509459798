"""Recorded request bodies of the shared material, with their media put back."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

__all__ = ["RecordedBody", "recorded_bodies"]

_PROVIDERS = {
    "anthropic.count_tokens": "anthropic",
    "anthropic.messages": "anthropic",
    "bedrock.invoke": "anthropic",
    "google.countTokens": "google",
    "google.generateContent": "google",
    "openai.chat": "openai-chat",
    "openai.compact": "openai-responses",
    "openai.count_tokens": "openai-responses",
    "openai.responses": "openai-responses",
}
"""The provider whose format a recorded API has. Bedrock's Converse has a format that no provider of turnlog has."""


class RecordedBody(Struct, frozen=True):
    """A request body that a provider was sent; `name` tells its file and line."""

    name: str
    provider: str
    model: str
    body: dict[str, Any]


def recorded_bodies(shared: Path) -> Iterator[RecordedBody]:
    """Every recorded body in a format of turnlog's providers, whether the provider took or refused it."""
    folder = shared / "data" / "token_truth"
    for file in ("requests.jsonl", "refusals.jsonl"):
        for number, line in enumerate((folder / file).read_text("utf-8").splitlines(), start=1):
            row = json.loads(line)
            if row["api"] in _PROVIDERS and "<MASSIVE_TEXT>" not in line:  # the text was not kept
                body = _filled(row["request"], folder / "blobs")
                body = body.get("generateContentRequest", body)
                yield RecordedBody(f"{file}:{number}", _PROVIDERS[row["api"]], row["model"] or "", body)


def _filled(value: Any, blobs: Path) -> Any:
    """A recorded value with its media put back as base64."""
    if isinstance(value, str):
        return re.sub(r"@blob:([\w.-]+)", lambda m: base64.b64encode((blobs / m[1]).read_bytes()).decode(), value)
    if isinstance(value, dict):
        return {key: _filled(item, blobs) for key, item in value.items()}
    return [_filled(item, blobs) for item in value] if isinstance(value, list) else value
