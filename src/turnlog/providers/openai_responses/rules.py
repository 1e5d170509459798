"""What the Responses API accepts, by model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...log.messages import Message
from ...models.target import Target
from ...view.rules import RequiredWord, Rules
from ..openai_breakpoints import Format, marker
from ..schema.shapes import Tagged
from ..signs import Signs
from ..tool_declarations import JSON_PLEASE, is_json_mode
from .form import FORMS, NAME
from .item_types import CALLS, ELSEWHERE
from .media import DOCUMENT_ENDINGS
from .schema import ANSWER_PARTS, INPUT_PARTS, ITEM
from .schema_tools import TOOL, TOOLS_MAX

# -- breakpoints -----------------------------------------------------------------------------------
#
# Which content of the Responses API can have a prompt-cache breakpoint.

_ROLES = frozenset({"system", "developer", "user"})


def _holds(item: Mapping[str, Any]) -> str:
    if item.get("type") == "function_call_output":
        return "output"
    return "content" if item.get("type", "message") == "message" and item.get("role") in _ROLES else ""


mark_cache = marker(Format("input", "input_text", frozenset({"input_text", "input_image", "input_file"}), _holds))
"""Adds the cache's key and the breakpoints to a request. See `Provider.mark_cache`."""


# -- signs -----------------------------------------------------------------------------------------
#
# The words of Responses requests, and those of servers that imitate the API.

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


_IMAGES = frozenset({"image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp"})
# OpenAI's guide to images: at most 500 in one request; no refusal has been observed.
_MOST_IMAGES = 500
# The documented limit for images and files together is 50 MB a request, in base64.
_MEDIA_MAX_TOTAL = 50_000_000


def _is_instructions(message: Message) -> bool:
    return FORMS.says(message.form, "instructions")


# "Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'."
# Several users report that the word in `instructions` does not count.
_JSON_WORD = RequiredWord(word="json", setting="text.format json_object", text=JSON_PLEASE, outside=_is_instructions)


def rules(target: Target, settings: Mapping[str, Any]) -> Rules:
    """The rules for this model. Sources: the SDK's types and recorded refusals, see each value."""
    media = frozenset(
        kind
        for kind, needs in (("image", "image"), ("document", "document"), ("file", "document"))
        if needs in target.input_media
    )
    elsewhere = any(settings.get(key) for key in ELSEWHERE)
    text = settings.get("text")
    json_mode = isinstance(text, Mapping) and is_json_mode(text.get("format"))
    return Rules(
        provider=NAME,
        # "No tool output found for function call call_x."; the position does not matter.
        results="later",
        merge_calls=False,
        first="any",
        last="any",
        strip_last=False,
        system="inline",
        # Earlier calls may be stored at the provider.
        calls_elsewhere=elsewhere,
        # "Invalid 'input[109].call_id': string too long. Expected ... maximum length 64".
        call_id_max=64,
        call_id_unique="view",
        name_pattern=r"[a-zA-Z0-9_-]+",
        name_max=128,
        arguments="text",
        call_kinds=frozenset(spec.kind for spec in CALLS.values()),
        # Recorded 200s contain empty assistant and user contents.
        empty_text=True,
        blank_text=True,
        # With `store: false` items are not stored by id: "Item with id 'rs_x' not found. Items are not persisted when
        # `store` is set to false." A missing `store` means true.
        reasoning="encrypted" if settings.get("store") is False else "own",
        # "Item 'rs_x' of type 'reasoning' was provided without its required following item."
        reasoning_needs_follower=True,
        not_followers=frozenset({"additional_tools", "compaction", "configuration_update", "item_reference"}),
        user_media=media,
        # "Supported values are: 'output_text' and 'refusal'."
        assistant_media=frozenset(),
        result_media=media,
        media_mimes=_IMAGES | frozenset(DOCUMENT_ENDINGS),
        media_max_count=_MOST_IMAGES,
        media_max_total=_MEDIA_MAX_TOTAL,
        tools_max=TOOLS_MAX,
        word=_JSON_WORD if json_mode and not elsewhere else None,  # stored messages may contain it
    )
