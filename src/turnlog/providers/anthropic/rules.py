"""What the Messages API accepts, by model.

Sources: Messages API reference and error texts (tool use, extended thinking, vision, prefill),
the `*Param` types of the anthropic SDK 2.12.0, and recorded requests answered with 200.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...models.abilities import Abilities
from ...models.target import Target
from ...view.rules import Rules
from ..signs import Signs
from .form import NAME
from .parts import NO_OUTPUT
from .schema import BLOCK
from .schema_tools import TOOL

# -- signs -----------------------------------------------------------------------------------------
#
# The words of requests to the Messages API.

SIGNS = Signs(
    blocks=BLOCK,
    roles=frozenset({"user", "assistant", "system"}),
    later_roles=frozenset({"system"}),  # the first system text is in the setting `system`
    message_keys=frozenset({"clear_at", "output_config"}),
    tools=TOOL,
    # Bedrock puts a region and the maker before the name, or the whole ARN of an inference profile.
    models=r"(arn:.*/)?([\w-]+\.)*claude",
    urls=r"/messages\b|/model/[^/]*anthropic[^/]*/invoke",
)


# -- betas -----------------------------------------------------------------------------------------
#
# The beta features that requests ask for by a header, as far as settings name them.
#
# turnlog does not set headers. It uses a beta feature only if the settings say that the caller asks for it: by
# `betas`, an argument of the SDK's `client.beta.messages.create`, by `extra_headers`, or by `anthropic_beta`, which
# Amazon Bedrock has in the body.

TOOL_CHANGES = frozenset({"mid-conversation-tool-changes-2026-07-01", "inline-tools-2026-09-15"})
"""The beta feature that a request needs if it adds or removes tools in the middle of a conversation. Source:
https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages."""

_HEADER = "anthropic-beta"


def betas_in(settings: Mapping[str, Any]) -> frozenset[str]:
    """The beta features that these settings ask for."""
    listed = (settings.get(key) for key in ("betas", "anthropic_beta"))
    named = [each for given in listed if isinstance(given, (list, tuple)) for each in given]
    headers = settings.get("extra_headers")
    for name, value in headers.items() if isinstance(headers, Mapping) else ():
        if str(name).lower() == _HEADER and isinstance(value, str):
            named += value.split(",")
    return frozenset(each.strip() for each in named if isinstance(each, str))


_MANY_TOKENS = 1_000_000
"""Models with a window of this many tokens accept 600 images and documents, others 100 ("too many images and documents:
601 + 0 > 600")."""

IMAGE_MAX_BASE64 = 5_242_880
"""Maximum length of an image's base64 text, in characters ("image exceeds 5 MB maximum"). Checked by `render`: `Rules`
has one limit for all media, and a PDF may use the whole request."""
IMAGE_MAX_SIDE = 8_000
"""Maximum side of an image, in pixels ("At least one of the image dimensions exceed max allowed size: 8000 pixels")."""
_REQUEST_MAX = 32 * 1024 * 1024
"""Maximum size of a request, in bytes (413 `request_too_large`)."""

_INSTEAD = {"enabled": "adaptive", "disabled": "between_tools", "adaptive": "", "between_tools": "disabled"}
"""The type of thinking to use instead of one that a model does not accept. `between_tools` is the minimum if thinking
cannot be switched off."""

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_DOCUMENTS = frozenset({"application/pdf", "text/plain", "text/markdown", "text/csv", "text/html", "text/xml"})


def thinking_type(settings: Mapping[str, Any]) -> str:
    """`enabled`, `adaptive`, `disabled`, ...; "" if thinking is not set."""
    thinking = settings.get("thinking")
    kind = thinking.get("type") if isinstance(thinking, Mapping) else None
    return kind if isinstance(kind, str) else ""


def _drops_itself(settings: Mapping[str, Any]) -> bool:
    """Whether the settings ask the API itself to leave out thinking that is bound to another conversation."""
    thinking = settings.get("thinking")
    binding = thinking.get("block_binding") if isinstance(thinking, Mapping) else None
    return isinstance(binding, Mapping) and binding.get("prefix_mismatch_behavior") == "drop_block"


def _compacts_itself(settings: Mapping[str, Any]) -> bool:
    """Whether the settings let the API compact the conversation at a threshold. A compaction includes the changes of
    tools before it (`tool_changes`), so they must not be told again later."""
    management = settings.get("context_management")
    edits = management.get("edits") if isinstance(management, Mapping) else None
    kinds = [edit.get("type") for edit in edits if isinstance(edit, Mapping)] if isinstance(edits, list) else []
    return any(isinstance(kind, str) and kind.startswith("compact") for kind in kinds)


def thinking_taken(kind: str, abilities: Abilities) -> str:
    """The type of thinking in requests to a model if its settings ask for `kind`; "" for no thinking."""
    taken = abilities.thinking
    if taken is None or kind in taken or kind not in _INSTEAD:
        return kind
    return _INSTEAD[kind] if _INSTEAD[kind] in taken else ""


def rules(target: Target, settings: Mapping[str, Any]) -> Rules:
    """What `target.model` accepts, given the request's settings."""
    abilities = target.abilities
    thinking = thinking_taken(thinking_type(settings), abilities)
    no_prefill = not abilities.prefill or thinking in ("enabled", "adaptive")
    media: frozenset[str] = frozenset()
    if "image" in target.input_media:
        media |= {"image"}
    if "document" in target.input_media:
        media |= {"document", *_DOCUMENTS}
    return Rules(
        provider=NAME,
        results="adjacent",
        # Several are accepted, but Anthropic's guide says that they teach the model to call one tool at a time.
        results_together="all",
        tools_required=True,  # "Requests which include `tool_use` or `tool_result` blocks must define tools."
        # Consecutive assistant messages are merged before pairs are checked (recorded 200).
        merge_calls=False,
        first="any",
        last="user" if no_prefill else "any",
        strip_last=True,
        system="top_or_after_user" if abilities.system_midway else "top",
        system_appended=abilities.system_midway,
        tools_appended=abilities.tools_midway and betas_in(settings) >= TOOL_CHANGES and not _compacts_itself(settings),
        system_parts=frozenset({"tool_addition", "tool_removal"}),
        call_id_pattern=r"[a-zA-Z0-9_-]+",
        call_id_unique="turn",
        name_pattern=r"[a-zA-Z0-9_-]{1,128}",
        name_max=128,
        arguments="object",
        failed_says=NO_OUTPUT,
        empty_text=False,
        blank_text=False,
        own_calls=frozenset({"server_tool_use", "mcp_tool_use"}),
        own_answer=r"(.+)_tool_result",
        own_answer_key="tool_use_id",
        reasoning="signed",
        reasoning_not_last=True,
        reasoning_bound=abilities.bound_thinking and not _drops_itself(settings),
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
        media_max_count=600 if target.input_limit >= _MANY_TOKENS else 100,
    )
