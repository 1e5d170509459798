"""Counts that stand in a log are trusted by their counter's name: one that an older version made otherwise is not."""

from __future__ import annotations

import turnlog
from turnlog.log.messages import Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from turnlog.log.records import MessageRecord
from turnlog.log.store import Draft
from turnlog.log.usage import Count
from turnlog.stores import MemoryStore
from turnlog.tokens.counters import counter_for
from turnlog.tokens.families import VERSION

AIM = turnlog.target("anthropic", "claude-sonnet-4-5")
_TEXT = {"type": "text", "media_type": "text/plain", "data": "words of a page " * 5_000}
_FOUND = {"type": "web_fetch_result", "url": "https://x.example", "content": {"type": "document", "source": _TEXT}}
PAGE = Opaque(
    "anthropic",
    "web_fetch_tool_result",
    {"type": "web_fetch_tool_result", "tool_use_id": "srvtoolu_1", "content": _FOUND},
)
CALLED = Opaque(
    "anthropic", "server_tool_use", {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_fetch", "input": {}}
)
SAMPLE = (
    Message("system", (Text("Be brief."),)),
    Message("user", (Text("Look at ünïcödé and 数据."), Media("image", mime="image/png", sha256="0" * 64, size=9_000))),
    Message("user", (Media("document", mime="application/pdf", sha256="1" * 64, size=120_000),)),
    Message(
        "assistant",
        (
            Reasoning("anthropic", text="hm, let me see", signature="c2ln"),
            Reasoning("openai-responses", encrypted="x" * 2_000),
            Text("Two at once."),
            ToolCall("1", "ls", {"path": "src", "deep": {"all": True}}),
            ToolCall("2", "apply", raw="*** Begin Patch", kind="custom"),
        ),
    ),
    Message(
        "user",
        (
            ToolResult(
                "1",
                "ls",
                (Text("a.py"), Media("image", mime="image/png", sha256="0" * 64, size=9)),
            ),
        ),
    ),
    Message("user", (ToolResult("2", "apply", (Text("no such file"),), outcome="failed", kind="custom"),)),
    Message("assistant", (Opaque("openai-responses", "compaction", {"encrypted_content": "y" * 3_000}), PAGE)),
)


def test_a_count_of_an_older_version_is_made_again() -> None:
    """A page that its tool fetched counted as nothing up to version 1: requests of a session that was upgraded, larger
    than the window by all of them and refused, each."""
    store = MemoryStore()
    store.create("s")
    said = [Message("user", (Text("Fetch it."),)), Message("assistant", (CALLED, PAGE, Text("Read.")))]
    store.append("s", [Draft(MessageRecord(message, count=Count(5, "claude-3:1"))) for message in said])
    with turnlog.open("s", store=store, target=AIM) as session:
        assert session.window.tokens == turnlog.count(session.request().body).tokens > 15_000


def test_what_counts_otherwise_has_another_name() -> None:
    """Counts in logs that the counter of now takes for its own. Where these figures change, raise VERSION with them."""
    figures = {
        ("openai-chat", "gpt-5.2"): 1_959,
        ("openai-responses", "gpt-5.2"): 22_200,
        ("anthropic", "claude-sonnet-4-5"): 24_872,
        ("google", "gemini-3"): 22_131,
    }
    assert VERSION == "5"
    assert {model: counter_for(*model).messages(SAMPLE).tokens for model in figures} == figures
