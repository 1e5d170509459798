"""What the Interactions API accepts, and where its requests contain the shared settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...models.target import Target
from ...view.rules import Rules
from ..gemini import FILES, IMAGES_MAX, INLINE_MAX, MIMES, NAME_MAX, NAME_PATTERN, input_media
from ..schema.shapes import Tagged
from ..signs import Signs
from .form import NAME
from .schema import CONTENTS, OWN_CALLS, STEP, TOOL

# -- signs -----------------------------------------------------------------------------------------
#
# The words of requests to the Interactions API.

SIGNS = Signs(
    blocks=Tagged("type", CONTENTS),
    items=Tagged("type", STEP.shapes, others=".+_result"),
    single=(str, dict),
    loose_blocks=True,
    tools=TOOL,
    settings=frozenset({"agent", "agent_config"}),
    models=r"(models/)?(gemini|deep-research)",
    urls=r"/interactions\b",
)


SETTING_PATHS: Mapping[str, tuple[str, ...]] = {
    "max_output_tokens": ("generation_config", "max_output_tokens"),
    "seed": ("generation_config", "seed"),
    "stop": ("generation_config", "stop_sequences"),
    "store": ("store",),
    "stream": ("stream",),
    "temperature": ("generation_config", "temperature"),
    "top_p": ("generation_config", "top_p"),
}

_MIMES = MIMES | frozenset(
    """
    application/msword application/vnd.ms-excel application/vnd.ms-powerpoint
    application/vnd.oasis.opendocument.presentation application/vnd.oasis.opendocument.spreadsheet
    application/vnd.oasis.opendocument.text
    application/vnd.openxmlformats-officedocument.presentationml.presentation
    application/vnd.openxmlformats-officedocument.spreadsheetml.sheet
    application/vnd.openxmlformats-officedocument.wordprocessingml.document
    application/vnd.openxmlformats-officedocument.wordprocessingml.template
    audio/alaw audio/mulaw image/bmp image/tiff
    """.split()
)
"""The types that generateContent accepts, and those that google-genai 3.4.0 has for this API only (`mime_type` of
contents)."""


def rules(target: Target, settings: Mapping[str, Any]) -> Rules:
    """What this model accepts, given the request's settings.

    No refusal of this API has been recorded. Rules that the SDK's types do not show are those of generateContent, which
    serves the same models: the order of calls and results, and the roles of the first and the last message.
    """
    media = input_media(target.input_media)
    return Rules(
        provider=NAME,
        results="adjacent",
        merge_calls=False,  # each call is a step of its own
        calls_last=True,
        first="not_call",
        last="user",
        strip_last=False,
        system="top",
        # Earlier steps are stored at the provider.
        calls_elsewhere=bool(settings.get("previous_interaction_id")),
        call_id_unique="view",
        name_pattern=NAME_PATTERN,
        name_max=NAME_MAX,
        arguments="object",  # google-genai, FunctionCallStep.arguments
        empty_text=target.abilities.empty_text,
        own_calls=frozenset(OWN_CALLS),
        own_answer=r"(\w+)_result",
        own_answer_key="call_id",
        reasoning="own",
        files_of=frozenset({FILES}),
        media_url_schemes=frozenset({"gs", "http", "https"}),
        user_media=media,
        assistant_media=media,
        result_media=media,
        media_mimes=_MIMES,
        media_max_base64=INLINE_MAX,
        media_max_total=INLINE_MAX,
        media_max_count=IMAGES_MAX,
    )
