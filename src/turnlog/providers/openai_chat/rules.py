"""What Chat Completions accepts, by model.

Sources: the API's own error messages as recorded live or quoted in public issues (the 400s are
named where a value stands), and the request types of the openai SDK 3.54.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ...models.target import Target
from ...view.rules import Rules
from .form import NAME
from .schema import TOOLS_MAX, takes_reasoning

# Custom tools came with GPT-5; earlier models refuse them. An unknown name may be an alias or a deployment of a new
# model: it is assumed to take them.
_NO_CUSTOM = re.compile(r"^(ft:)?(gpt-3|gpt-4|chatgpt-4|o\d)")
NO_SYSTEM = re.compile(r"^o1-(mini|preview)")
"""Models that refuse the roles `system` and `developer` ("Unsupported value: 'messages[0].role' does not support
'system' with this model.")."""
RENAMED_LIMIT = re.compile(r"^(ft:)?(o\d|gpt-5(?!.*-chat))")
"""Models that take `max_completion_tokens` only ("Unsupported parameter: 'max_tokens' is not supported with this model.
Use 'max_completion_tokens' instead.")."""
FIXED_SAMPLING = re.compile(r"^(ft:)?(o\d|gpt-5(?![.\d])(?!.*-chat))")
"""Models that take no sampling settings but the default ("Unsupported value: 'temperature' does not support 0.7 with
this model. Only the default (1) value is supported."; from GPT-5.1 on they are taken as long as reasoning is off) and
no stop sequences ("Unsupported parameter: 'stop' is not supported with this model.", seen live: o1-mini, gpt-5-mini).
"""
# The table of models does not say which take audio: "Content blocks are expected to be either text or image_url type."
_AUDIO = re.compile(r"audio|gemini")
_IMAGES = re.compile(r"vision|-vl\b|gemini")

_MIMES = frozenset(
    """image/png image/jpeg image/jpg image/gif image/webp application/pdf
    audio/wav audio/x-wav audio/wave audio/mpeg audio/mp3""".split()
)
# 50 MB a request is the documented limit for images and files together; in base64.
_MEDIA_MAX_BASE64 = 50_000_000


def rules(target: Target, settings: Mapping[str, Any]) -> Rules:
    """What `target` accepts. Settings change nothing here."""
    media = set(target.input_media & {"image", "document", "audio"})
    if _AUDIO.search(target.model):
        media.add("audio")
    if _IMAGES.search(target.model):
        media.add("image")
    return Rules(
        provider=NAME,
        # "An assistant message with 'tool_calls' must be followed by tool messages responding to each
        # 'tool_call_id'."
        results="adjacent",
        merge_calls=True,
        results_apart=True,
        # No rule of alternation and none of a first or last role (recorded: assistant first, system last).
        first="any",
        last="any",
        strip_last=False,
        system="inline",
        system_only=True,
        # "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40"
        call_id_max=40,
        call_id_unique="turn",
        # "Invalid 'messages[8].tool_calls[0].function.name': string does not match pattern."
        name_pattern=r"^[a-zA-Z0-9_-]+$",
        name_max=64,
        arguments="text",
        call_kinds=frozenset({"function", "custom"} if takes_custom(target.model) else {"function"}),
        empty_text=True,
        reasoning="own" if takes_reasoning(target.model) else "none",
        user_media=frozenset(media),
        # A tool message takes text only; rendering shows media of results in the user message after it.
        result_media=frozenset(media),
        media_mimes=_MIMES,
        media_max_base64=_MEDIA_MAX_BASE64,
        media_max_total=_MEDIA_MAX_BASE64,
        tools_max=TOOLS_MAX,
    )


@lru_cache
def takes_custom(model: str) -> bool:
    """Whether the model takes custom tools (free-text input)."""
    return not _NO_CUSTOM.search(model)
