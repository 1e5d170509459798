"""What Google's models accept, and the paths of the shared settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...log.messages import ToolCall
from ...models.target import Target
from ...view.rules import Rules
from ..gemini import IMAGES_MAX, INLINE_MAX, MIMES, NAME_MAX, NAME_PATTERN, input_media
from ..signs import Signs
from .form import NAME, spelled
from .parts import call_part
from .schema import PART

# -- signs -----------------------------------------------------------------------------------------
#
# The words of generateContent requests.

SIGNS = Signs(
    blocks=PART,
    content="parts",
    # "single turn requests end with a user role or the role field is empty"
    roles=frozenset({"user", "model", ""}),
    single=(dict, str),
    models=r"(models/|publishers/google/models/)?gemini",
    urls=r":(stream)?[gG]enerateContent\b|:countTokens\b",
)


SETTING_PATHS: Mapping[str, tuple[str, ...]] = {
    "max_output_tokens": ("generationConfig", "maxOutputTokens"),
    "seed": ("generationConfig", "seed"),
    "stop": ("generationConfig", "stopSequences"),
    "temperature": ("generationConfig", "temperature"),
    "top_p": ("generationConfig", "topP"),
}


def rules(target: Target, settings: Mapping[str, Any]) -> Rules:
    """What this model accepts. Settings make no difference."""
    media = input_media(target.input_media)
    return Rules(
        provider=NAME,
        # "Please ensure that the number of function response parts is equal to the number of
        # function call parts of the function call turn."
        results="counted",
        # Vertex and Gemini 3 count the results in the content after the calls; users report this refusal for results in
        # two contents, which other models accept.
        results_in_one=True,
        merge_calls=False,  # adjacent model contents are one turn (recorded, 200)
        first="not_call",  # "... function call turn comes immediately after a user turn ..."
        last="user",  # "Please ensure that single turn requests end with a user role ..."
        strip_last=False,
        system="top",
        call_id_pattern=r"[\s\S]*",  # ids are optional, ids of other providers accepted (recorded, 200)
        sent_without_id=_without_id,
        name_pattern=NAME_PATTERN,
        name_max=NAME_MAX,
        arguments="object",
        empty_text=target.abilities.empty_text,
        reasoning="own",
        step_signature="skip_thought_signature_validator" if target.abilities.signed_calls else "",
        media_url_schemes=frozenset({"gs", "http", "https"}),
        user_media=media,
        assistant_media=media,  # no refusal by role is known
        result_media=media,
        media_mimes=MIMES,
        media_max_base64=INLINE_MAX,
        media_max_total=INLINE_MAX,
        media_max_count=IMAGES_MAX,
    )


def _without_id(call: ToolCall) -> bool:
    """Whether a call is sent without an id, like calls from models of the Gemini API."""
    inner = spelled(call_part(call), call.form).get("functionCall")
    return not (isinstance(inner, dict) and inner.get("id"))
