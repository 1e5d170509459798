"""docs/requests.md: what it says of the SDKs is run with them. A server on this machine stands in for the providers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import turnlog
from test_docs import blocks

PAGE = Path(__file__).resolve().parents[2] / "docs" / "requests.md"
SERVED = {"OPENAI_BASE_URL": "/v1", "ANTHROPIC_BASE_URL": "", "GOOGLE_GEMINI_BASE_URL": ""}
CALL = {"tool_calls": [{"name": "weather", "args": {"city": "Oslo"}}]}


def test_each_sdk_sends_as_the_page_says(
    fake_server: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A way to call an SDK that it does not take, or by which it sends another request than the one that was made:
    whoever starts begins with what stands there."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    server = fake_server()
    for name, path in SERVED.items():
        monkeypatch.setenv(name, server.url + path)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "k")
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    server.script(*[CALL, {"text": "Cold."}] * 5)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    shown = [block for block in blocks(PAGE.read_text("utf-8")) if "sdk" in block.words]
    for block in shown:
        exec(compile("\n" * (block.line - 1) + block.text, str(PAGE), "exec"), namespace)
    namespace["gemini"].close()
    asked = server.requests
    assert len(shown) == 2
    assert [(one.status, one.errors) for one in asked] == [(200, [])] * (5 * 2 + 5)
    with turnlog.open("trip") as session:
        assert [turn.status for turn in session.log.turns()] == ["completed"] * 5 and session.log.unfinished() == []
