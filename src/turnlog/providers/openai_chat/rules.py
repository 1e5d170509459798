"""What Chat Completions accepts, by model.

Sources: the API's own error messages, recorded live or quoted in public issues (the 400s are quoted at the values), and
the request types of the openai SDK 3.54.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...models.target import Target
from ...view.rules import RequiredWord, Rules
from ..json_mode import JSON_PLEASE, is_json_mode
from .form import NAME
from .schema import OPAQUE_FIELDS, TOOLS_MAX

_MIMES = frozenset(
    """image/png image/jpeg image/jpg image/gif image/webp application/pdf
    audio/wav audio/x-wav audio/wave audio/mpeg audio/mp3""".split()
)
# The documented limit for images and files together is 50 MB a request, in base64.
_MEDIA_MAX_BASE64 = 50_000_000

# "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
_JSON_WORD = RequiredWord(word="json", setting="response_format json_object", text=JSON_PLEASE)

_OWN_KINDS = frozenset({*OPAQUE_FIELDS, "file"})
"""Kinds of opaque parts that OpenAI's own models accept; compatible servers have more."""


def rules(target: Target, settings: Mapping[str, Any]) -> Rules:
    """What `target` accepts, given the request's settings."""
    abilities = target.abilities
    # "Content blocks are expected to be either text or image_url type." (audio sent to a model that does not accept it)
    media = (target.input_media & {"image", "document", "audio"}) | set(abilities.chat_media)
    return Rules(
        provider=NAME,
        # "An assistant message with 'tool_calls' must be followed by tool messages responding to each
        # 'tool_call_id'."
        results="adjacent",
        merge_calls=True,
        results_apart=True,
        # There is no rule of alternation and no rule for the first or last role (recorded: assistant first, system
        # last).
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
        call_kinds=frozenset({"function", "custom"} if abilities.custom_tools else {"function"}),
        empty_text=True,
        # The same models as in the schema, which has no other types of content parts for them.
        own_kinds=None if abilities.replays_reasoning else _OWN_KINDS,
        reasoning="own" if abilities.replays_reasoning else "none",
        user_media=media,
        # A tool message accepts only text; rendering puts media of results into the user message after it.
        result_media=media,
        media_mimes=_MIMES,
        media_max_base64=_MEDIA_MAX_BASE64,
        media_max_total=_MEDIA_MAX_BASE64,
        tools_max=TOOLS_MAX,
        word=_JSON_WORD if is_json_mode(settings.get("response_format")) else None,
    )
