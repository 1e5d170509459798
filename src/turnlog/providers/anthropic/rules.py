"""What the Messages API accepts, by model.

Sources: Messages API reference and error texts (tool use, extended thinking, vision, prefill),
the `*Param` types of the anthropic SDK 2.12.0, and recorded requests answered with 200. The patterns below name the
models that a rule holds for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...models.target import Target
from ...view.rules import Rules
from .form import NAME
from .parts import NO_OUTPUT

# "This model does not support assistant message prefill. The conversation must end with a user message."
_NO_PREFILL = re.compile(r"claude-(fable|mythos|opus-4[-.][6-9]|opus-5|sonnet-4[-.]6|sonnet-5)")
# Role "system" inside `messages`: after a user turn, before an assistant turn or last.
_MID_SYSTEM = re.compile(r"claude-(fable-5|mythos|opus-4[-.]8|opus-5|sonnet-5)")
# "The block is bound to a different conversation": models that check what stands ahead of their thinking, and all newer
# ones (Messages API, preserved thinking and prefix checks, November 2026; Mythos 5.1 records it and does not check).
_BINDING = re.compile(r"claude-((fable|mythos)-5-[1-9]|(opus|sonnet|haiku)-5-[5-9]|[a-z]+-([6-9]|[1-9]\d)\b)")
# "too many images and documents: 601 + 0 > 600": models whose window is 1M tokens; all others 100.
_MANY_MEDIA = _NO_PREFILL
NO_SAMPLING = re.compile(r"claude-(fable|mythos|opus-4[-.][7-9]|opus-5|sonnet-5)")
"""Models that refuse `temperature`, `top_p` and `top_k`."""
ONE_SAMPLING = re.compile(r"claude-(opus-4[-.][1-9]|sonnet-4[-.][5-9]|haiku-4[-.][5-9])(?!\d)")
"""Models that refuse `temperature` and `top_p` together."""

IMAGE_MAX_BASE64 = 5_242_880
"""Largest base64 text of an image, in characters ("image exceeds 5 MB maximum"). Checked by `render`:
`Rules` has one limit for all media, and a PDF may fill the request."""
IMAGE_MAX_SIDE = 8_000
"""Longest side of an image, in pixels ("At least one of the image dimensions exceed max allowed size: 8000 pixels")."""
_REQUEST_MAX = 32 * 1024 * 1024
"""Largest request, in bytes (413 `request_too_large`)."""

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_DOCUMENTS = frozenset({"application/pdf", "text/plain", "text/markdown", "text/csv", "text/html", "text/xml"})


def thinking_type(settings: Mapping[str, Any]) -> str:
    """`enabled`, `adaptive`, `disabled`, ... or empty where thinking is not set."""
    thinking = settings.get("thinking")
    kind = thinking.get("type") if isinstance(thinking, Mapping) else None
    return kind if isinstance(kind, str) else ""


def _drops_itself(settings: Mapping[str, Any]) -> bool:
    """Whether the API is asked to leave out thinking that is bound to something else."""
    thinking = settings.get("thinking")
    binding = thinking.get("block_binding") if isinstance(thinking, Mapping) else None
    return isinstance(binding, Mapping) and binding.get("prefix_mismatch_behavior") == "drop_block"


def rules(target: Target, settings: Mapping[str, Any]) -> Rules:
    """What `target.model` accepts, given the request's settings."""
    thinking = thinking_type(settings)
    no_prefill = _NO_PREFILL.search(target.model) or thinking in ("enabled", "adaptive")
    media: frozenset[str] = frozenset()
    if "image" in target.input_media:
        media |= {"image"}
    if "document" in target.input_media:
        media |= {"document", *_DOCUMENTS}
    return Rules(
        provider=NAME,
        results="adjacent",
        # Several are taken, but Anthropic's guide says that they teach the model to call one tool at a time.
        results_together=True,
        tools_required=True,  # "Requests which include `tool_use` or `tool_result` blocks must define tools."
        # Consecutive assistant messages are merged before pairs are checked (recorded 200).
        merge_calls=False,
        first="any",
        last="user" if no_prefill else "any",
        strip_last=True,
        system="top_or_after_user" if _MID_SYSTEM.search(target.model) else "top",
        call_id_pattern=r"[a-zA-Z0-9_-]+",
        call_id_unique="turn",
        name_pattern=r"[a-zA-Z0-9_-]{1,128}",
        name_max=128,
        arguments="object",
        failed_says=NO_OUTPUT,
        empty_text=False,
        blank_text=False,
        own_calls=frozenset({"server_tool_use", "mcp_tool_use"}),
        own_answer=r".+_tool_result",
        own_answer_key="tool_use_id",
        reasoning="signed",
        reasoning_not_last=True,
        reasoning_bound=bool(_BINDING.search(target.model)) and not _drops_itself(settings),
        loop_needs_reasoning=thinking == "enabled",
        user_media=media,
        media_url_schemes=frozenset({"https"}),  # "Only HTTPS URLs are supported."
        assistant_media=frozenset(),
        result_media=media,
        media_mimes=_IMAGES | _DOCUMENTS,
        # "The image was specified using the image/jpeg media type, but the image appears to be a image/png image"
        true_media_types=True,
        media_max_base64=_REQUEST_MAX,
        media_max_total=_REQUEST_MAX,
        # "At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"
        many_media=20,
        many_media_side=2_000,
        media_max_count=600 if _MANY_MEDIA.search(target.model) else 100,
    )
