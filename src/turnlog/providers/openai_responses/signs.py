"""The words of Responses requests, and those of servers that imitate the API."""

from __future__ import annotations

from ..schema import Tagged
from ..signs import Signs
from .schema import ANSWER_PARTS, INPUT_PARTS, ITEM
from .schema_tools import TOOL

_SERVERS = frozenset(
    """
    cache_salt chat_template_kwargs extra_body frequency_penalty min_p models plugins presence_penalty priority provider
    reasoning_effort repetition_penalty response_format route seed session_id stop top_k
    """.split()
)
"""Settings of vLLM, OpenRouter, LM Studio and LiteLLM, and those of Chat Completions that callers keep by habit."""

SIGNS = Signs(
    blocks=Tagged("type", {**INPUT_PARTS, **ANSWER_PARTS}),
    roles=frozenset({"system", "developer", "user", "assistant"}),
    message_keys=frozenset({"phase"}),
    items=Tagged("type", ITEM.shapes, missing="message", others=".+_(call|call_output|output)"),
    single=(str,),
    tools=TOOL,
    settings=_SERVERS,
    models=r"gpt-|o\d|codex-|computer-use-|[\w.-]+/",
    urls=r"/responses\b",
)
