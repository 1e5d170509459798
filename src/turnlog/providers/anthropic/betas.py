"""The beta features that requests ask for by a header, as far as settings name them.

turnlog does not set headers. It uses a beta feature only if the settings say that the caller asks for it: by `betas`,
an argument of the SDK's `client.beta.messages.create`, by `extra_headers`, or by `anthropic_beta`, which Amazon Bedrock
has in the body.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TOOL_CHANGES = frozenset({"mid-conversation-tool-changes-2026-07-01", "inline-tools-2026-09-15"})
"""What a request needs that adds and removes tools in the middle of a conversation. Source:
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
