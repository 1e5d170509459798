"""An export of Claude.ai: a tree with an edited question, all kinds of blocks, and a chat of before 2025-12."""

from __future__ import annotations

import json
from typing import Any

from samples import Sample

_ROOT = "00000000-0000-4000-8000-000000000000"
_PLACEHOLDER = "```\nThis block is not supported on your current device yet.\n```"


def _block(kind: str, **more: Any) -> dict[str, Any]:
    return {
        "start_timestamp": "2026-10-07T10:00:05.000000Z",
        "stop_timestamp": None,
        "flags": None,
        "type": kind,
        **more,
    }


def _message(n: int, parent: str | None, *blocks: dict[str, Any], text: str = "", **more: Any) -> dict[str, Any]:
    return {
        "uuid": f"m{n}",
        "text": text,
        "content": list(blocks),
        "sender": "human" if n % 2 else "assistant",
        "created_at": f"2026-10-07T10:00:{n:02}.000000Z",
        "updated_at": f"2026-10-07T10:00:{n:02}.000000Z",
        "attachments": [],
        "files": [],
        **({} if parent is None else {"parent_message_uuid": parent}),
        **more,
    }


def _said(text: str, **more: Any) -> dict[str, Any]:
    return _block("text", text=text, citations=[], **more)


_FOUND = {"type": "knowledge", "title": "Fjords of Norway", "url": "https://example.com", "text": "the text of a page"}
_ATTACHED = {"file_name": "notes.txt", "file_size": 9, "file_type": "txt", "extracted_content": "words of my notes"}
_TREE = [
    _message(1, _ROOT, _said("Name the lakes of Norway"), text="Name the lakes of Norway"),
    _message(2, "m1", _said("There are many of them.")),
    _message(
        3,
        _ROOT,
        _said("Name the fjords of Norway"),
        _block("voice_note", title="My voice note", text="and be brief about it"),
        text="Name the fjords of Norway",
        attachments=[_ATTACHED],
        files=[{"file_name": "map of the fjords.png"}],
    ),
    _message(
        4,
        "m3",
        _block("thinking", thinking="I have to look.", summaries=[{"summary": "Looking them up now"}], signature="sig"),
        _said(
            "I look.",
        ),
        _block(
            "tool_use", id="toolu_1", name="web_search", input={"query": "fjords"}, message="Searching the whole web"
        ),
        _block("tool_result", tool_use_id="toolu_1", name="web_search", content=[_FOUND], is_error=False),
        _block(
            "tool_use", id="toolu_2", name="create_file", input={"path": "a.md", "file_text": "Hardanger and Sogne"}
        ),
        _block("tool_use", id="toolu_3", name="view", input={"path": "b.md"}),
        _block(
            "tool_result",
            tool_use_id="toolu_2",
            content=[
                {"type": "text", "text": "it was written"},
                {"type": "local_resource", "file_path": "/mnt/a.md", "name": "the file of fjords"},
            ],
        ),
        _block("tool_result", tool_use_id="toolu_3", content="there is no such file", is_error=True),
        _said(
            "Hardanger, Sogne.",
        ),
        _block("token_budget"),
        _block("later_kind", words="a block that nobody knows"),
        text=f"I look.\n{_PLACEHOLDER}\n{_PLACEHOLDER}\nHardanger, Sogne.",
        stop_reason="end_turn",
    ),
]
_TREE[-1]["content"][8]["citations"] = [{"uuid": "c", "details": {"type": "web", "url": "https://example.com"}}]
_CONVERSATIONS = [
    {
        "uuid": "c-1",
        "name": "Fjords",
        "created_at": "2026-10-07T10:00:00Z",
        "updated_at": "2026-10-07T10:01:00Z",
        "account": {"uuid": "a"},
        "project": {"uuid": "p", "name": "All about the fjords"},
        "chat_messages": _TREE,
    },
    {"uuid": "c-2", "name": "", "created_at": "2026-10-07T10:00:00Z", "chat_messages": []},
    {
        "uuid": "c-3",
        "name": "",
        "created_at": "2024-10-07T10:00:00Z",
        "chat_messages": [
            _message(1, None, text="Is there an older form?"),
            _message(2, None, text="There is, without blocks."),
            {"uuid": "x", "sender": "moderator", "text": "something that nobody knows"},
        ],
    },
]

SAMPLE = Sample(
    name="claude-ai",
    data=json.dumps(_CONVERSATIONS).encode(),
    # A message with calls is one for each change of who speaks.
    query="""
        map(.[].chat_messages[] | select(.sender != "moderator")) as $said
        | [$said[].content[].type] as $blocks
        | {messages: [$said[] | [.content[] | select(.type != "token_budget" and .type != "later_kind")
                                 | .type == "tool_result"] as $are
                              | 1 + ([range(1; $are | length) | select($are[.] != $are[. - 1])] | length)] | add,
           calls: $blocks | map(select(. == "tool_use")) | length,
           results: $blocks | map(select(. == "tool_result")) | length, input: 0, output: 0}""",
    grows=False,
    silent=(
        "Looking them up now",
        "Searching the whole web",
        f"I look.\n{_PLACEHOLDER}\n{_PLACEHOLDER}\nHardanger, Sogne.",
    ),
    warned=("a file, which", "'later_kind'", "'moderator'", "without a message"),
)
