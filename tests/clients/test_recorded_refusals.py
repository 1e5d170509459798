"""Requests that real APIs refused: `check` says so beforehand, and `repair` mends them."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import turnlog
from judging import errors_of
from turnlog.errors import FormatError
from turnlog.models.target import target

PROVIDERS = {
    "anthropic.messages": "anthropic",
    "google.generateContent": "google",
    "openai.chat": "openai-chat",
    "openai.responses": "openai-responses",
}

UNSEEN = (
    "No tool output found for tool call call-a.",  # DeepSeek's alone: texts between the calls of one answer
    "Item 'rs_68c42de022c881948db7ed1cc2529f2e0202c9ad459e0d23'",  # its id goes as a loss, and `check` tells edits
)
"""Refusals of a conversation that `check` passes: how the API's words begin."""


def with_blobs(value: Any, folder: Path) -> Any:
    """A recorded value with its media bytes put back as base64."""
    if isinstance(value, str):
        return re.sub(r"@blob:([\w.]+)", lambda m: base64.b64encode((folder / m[1]).read_bytes()).decode(), value)
    if isinstance(value, list):
        return [with_blobs(item, folder) for item in value]
    if isinstance(value, dict):
        return {key: with_blobs(item, folder) for key, item in value.items()}
    return value


@pytest.fixture
def refusals(shared: Path) -> list[dict[str, Any]]:
    """Recorded refusals of the four APIs that turnlog speaks, whose bodies are complete."""
    folder = shared / "data" / "token_truth"
    lines = (folder / "refusals.jsonl").read_text("utf-8").splitlines()
    found = [json.loads(line) for line in lines if "<MASSIVE_TEXT>" not in line]
    return [
        {**one, "provider": PROVIDERS[one["api"]], "request": with_blobs(one["request"], folder / "blobs")}
        for one in found
        if one["api"] in PROVIDERS
    ]


def is_of_the_conversation(one: dict[str, Any]) -> bool:
    """Whether it was refused for what was said; URLs that did not load and keys are beyond us."""
    media = one["class"] == "media" and not re.search(
        "Cannot fetch|while downloading|Please try again with", one["error"]
    )
    return one["class"] == "history-validity" or media


def test_what_an_api_refused_for_its_conversation_is_seen_by_check(refusals: list[dict[str, Any]]) -> None:
    """A damage that a real API named and `check` passes over fails here."""
    named = [one for one in refusals if is_of_the_conversation(one)]
    assert len(named) >= 12
    passed = [
        one["error"] for one in named if not turnlog.check(one["request"], one["provider"], model=one["model"] or "")
    ]
    assert [error for error in passed if not error.startswith(UNSEEN)] == []


def test_what_an_api_refused_is_accepted_after_repair(refusals: list[dict[str, Any]], oracle: ModuleType) -> None:
    """A repair that leaves a known refusal in, or makes a new one, fails here."""
    refused = []
    for one in refusals:
        aim = target(one["provider"], one["model"] or "")
        try:
            request = turnlog.repair(one["request"], one["provider"], model=aim.model).body
        except FormatError:
            continue  # no conversation at all
        refused += [(one["source"], error) for error in errors_of(oracle, aim, request)]
    assert refused == []
