"""An export of ChatGPT: a tree with an answer that was made again, calls, and all kinds of content."""

from __future__ import annotations

import json
from typing import Any

from samples import Sample


def _node(n: int, parent: str | None, role: str, content: dict[str, Any], **more: Any) -> tuple[str, dict[str, Any]]:
    message = {
        "id": f"message-{n}",
        "author": {"role": role, "name": more.pop("name", None), "metadata": {}},
        "create_time": 1790000000.5 + n if role != "system" else None,
        "content": content,
        "status": "finished_successfully",
        "weight": 1,
        "recipient": "all",
        "metadata": {"request_id": "r", **more.pop("metadata", {})},
        "channel": None,
        **more,
    }
    return f"n{n}", {"id": f"n{n}", "parent": parent, "children": [], "message": message}


def _text(*parts: Any, kind: str = "text") -> dict[str, Any]:
    return {"content_type": kind, "parts": list(parts)}


_HIDDEN = {"is_visually_hidden_from_conversation": True}
_IMAGE = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_1", "width": 2, "height": 2}
_THOUGHT = {"summary": "Looking them up", "content": "I have to look.", "chunks": ["I have to look."], "finished": True}
_ASKS = _text(
    _IMAGE, "Name the fjords of Norway", {"content_type": "audio_transcription", "text": "if you can, please"}
)
_NODES = dict(
    [
        ("root", {"id": "root", "parent": None, "children": ["n1"], "message": None}),
        _node(1, "root", "system", _text(""), metadata=_HIDDEN),
        _node(
            2,
            "n1",
            "user",
            {"content_type": "user_editable_context", "user_profile": "I am a sailor", "user_instructions": "Be brief"},
            metadata=_HIDDEN,
        ),
        _node(3, "n2", "user", {**_ASKS, "content_type": "multimodal_text"}),
        _node(
            5, "n3", "assistant", {"content_type": "thoughts", "thoughts": [_THOUGHT], "source_analysis_msg_id": "x"}
        ),
        _node(
            6,
            "n5",
            "assistant",
            {"content_type": "code", "language": "unknown", "text": "print(open('fjords').read())"},
            recipient="python",
        ),
        _node(7, "n6", "tool", {"content_type": "execution_output", "text": "Hardanger and Sogne"}, name="python"),
        _node(
            8,
            "n7",
            "assistant",
            {"content_type": "code", "language": "json", "text": '{"search_query": [{"q": "fjords"}]}'},
            recipient="web.run",
        ),
        _node(
            9,
            "n8",
            "tool",
            {
                "content_type": "tether_quote",
                "url": "https://example.com",
                "domain": "example.com",
                "text": "the first page of fjords",
                "title": "Fjords of Norway",
            },
            name="web",
        ),
        _node(
            10,
            "n9",
            "tool",
            {
                "content_type": "tether_browsing_display",
                "result": "the second page of fjords",
                "summary": None,
                "assets": None,
            },
            name="web",
        ),
        _node(11, "n10", "assistant", _text("bring me a map"), recipient="dalle.text2im"),
        _node(
            12,
            "n11",
            "tool",
            {"content_type": "system_error", "name": "Timeout", "text": "it took too long"},
            name="dalle",
        ),
        _node(13, "n12", "assistant", {"content_type": "reasoning_recap", "content": "Thought for 11 seconds"}),
        _node(
            14,
            "n13",
            "assistant",
            _text("Hardanger, Sogne."),
            metadata={
                "model_slug": "gpt-5",
                "finish_details": {"type": "stop"},
                "citations": [{"start_ix": 0, "metadata": {"title": "a page of fjords"}}],
            },
        ),
        _node(4, "n3", "assistant", _text("There are two of them.")),
    ]
)
_UPLOADED = dict(
    [
        _node(
            1, None, "user", _text("Read my file"), metadata={"attachments": [{"id": "f", "name": "my file of fjords"}]}
        ),
        _node(2, "n1", "tool", _text("the words of the file"), name="myfiles_browser", metadata=_HIDDEN),
        _node(
            3,
            "n2",
            "assistant",
            {"content_type": "super_widget", "widget": "a box that nobody knows", "text": "I did."},
        ),
        _node(4, "n3", "critic", _text("something that nobody knows")),
    ]
)
_CONVERSATIONS = [
    {
        "title": "Fjords",
        "create_time": 1790000000.5,
        "update_time": 1790000090.5,
        "mapping": _NODES,
        "current_node": "n14",
        "conversation_id": "c-1",
        "id": "c-1",
        "default_model_slug": "auto",
        "gizmo_id": "g-1",
        "is_archived": False,
    },
    {"title": "", "create_time": 1790000000.5, "mapping": {}, "current_node": None, "conversation_id": "c-2"},
    {
        "title": "A file of mine",
        "create_time": 1790000000.5,
        "mapping": _UPLOADED,
        "current_node": "n4",
        "conversation_id": "c-3",
    },
]

SAMPLE = Sample(
    name="chatgpt",
    data=json.dumps(_CONVERSATIONS, indent=1).encode(),
    query="""
        map(.[] | .mapping as $all | $all[] | select(.message)
            | .message + {before: (if .parent then $all[.parent].message.author.role else null end)}) as $said
        | ($said | map(select(.recipient != "all"))) as $calls
        | ($said | map(select(.author.role == "tool" and .before == "tool"))) as $more
        | {messages: ($said | map(select(.content.content_type != "reasoning_recap" and .content.parts != [""]
                                         and .author.role != "critic")) | length - ($more | length)),
           calls: $calls | length,
           results: $said | map(select(.author.role == "tool" and .before == "assistant")) | length,
           input: 0, output: 0}""",
    grows=False,
    warned=(
        "'image_asset_pointer'",
        "`metadata.attachments`",
        "'critic'",
        "without a message",
    ),
)
