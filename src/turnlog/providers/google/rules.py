"""What Google's models accept, and where the shared settings stand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...log.messages import ToolCall
from ...models.target import Target
from ...view.rules import Rules
from .form import NAME, spelled
from .parts import call_part

SETTING_PATHS: Mapping[str, tuple[str, ...]] = {
    "max_output_tokens": ("generationConfig", "maxOutputTokens"),
    "seed": ("generationConfig", "seed"),
    "stop": ("generationConfig", "stopSequences"),
    "temperature": ("generationConfig", "temperature"),
    "top_p": ("generationConfig", "topP"),
}

# Models whose calls are signed (https://ai.google.dev/gemini-api/docs/thought-signatures) and whose
# results may hold media inside (`functionResponse.parts`). The `-latest` names point at them.
_GEMINI_3 = re.compile(r"gemini-([3-9]|\d\d)|gemini-(flash|flash-lite|pro)-latest")

# These accept an empty text (recorded, 200); older ones say "required oneof field
# 'data' must have one initialized field".
_EMPTY_TEXT = re.compile(r"gemini-(2\.5|[3-9]|\d\d)")

# https://ai.google.dev/gemini-api/docs/{image-understanding,audio,video-understanding,document-processing};
# the aliases are those that recorded requests used. Others: "Unsupported MIME type: ...".
_INLINE_MAX = 100 * 1024 * 1024  # inline data of one request, Gemini API
_MIMES = frozenset(
    """
    image/png image/jpeg image/jpg image/webp image/heic image/heif image/gif
    audio/wav audio/x-wav audio/wave audio/mp3 audio/mpeg audio/mpga audio/aiff audio/aac audio/ogg
    audio/opus audio/flac audio/m4a audio/mp4 audio/webm audio/pcm audio/l16
    video/mp4 video/mpeg video/mov video/quicktime video/avi video/x-flv video/mpg video/mpegps
    video/webm video/wmv video/3gpp
    application/pdf application/json application/xml application/rtf application/javascript
    application/x-javascript application/x-python text/plain text/html text/css text/csv text/xml
    text/rtf text/markdown text/md text/javascript text/x-python
    """.split()
)


def is_gemini_3(model: str) -> bool:
    """Whether `model` is of the third generation or later."""
    return _GEMINI_3.search(model) is not None


def rules(target: Target, settings: Mapping[str, Any]) -> Rules:
    """What this model accepts. Settings change nothing here."""
    media = set(target.input_media)
    if "document" in media:
        media.add("file")
    return Rules(
        provider=NAME,
        # "Please ensure that the number of function response parts is equal to the number of
        # function call parts of the function call turn."
        results="counted",
        merge_calls=False,  # adjacent model contents are one turn (recorded, 200)
        first="not_call",  # "... function call turn comes immediately after a user turn ..."
        last="user",  # "Please ensure that single turn requests end with a user role ..."
        strip_last=False,
        system="top",
        call_id_pattern=r"[\s\S]*",  # ids are optional, ids of other providers accepted (recorded, 200)
        sent_without_id=_without_id,
        name_pattern=r"[A-Za-z_][A-Za-z0-9_.:-]*",  # google-genai, FunctionDeclaration.name
        name_max=128,
        arguments="object",
        empty_text=_EMPTY_TEXT.search(target.model) is not None,
        reasoning="own",
        step_signature="skip_thought_signature_validator" if is_gemini_3(target.model) else "",
        media_url_schemes=frozenset({"gs", "http", "https"}),
        user_media=frozenset(media),
        assistant_media=frozenset(media),  # no refusal by role is known
        result_media=frozenset(media),
        media_mimes=_MIMES,
        media_max_base64=_INLINE_MAX,
        media_max_total=_INLINE_MAX,
        media_max_count=3_600,  # images of one request, image-understanding guide
    )


def _without_id(call: ToolCall) -> bool:
    """Whether a call is sent without an id, as models of the Gemini API make them."""
    inner = spelled(call_part(call), call.form).get("functionCall")
    return not (isinstance(inner, dict) and inner.get("id"))
