"""The words of requests to the Messages API."""

from __future__ import annotations

from ..signs import Signs
from .schema import BLOCK
from .schema_tools import TOOL

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
