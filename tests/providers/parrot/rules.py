"""What Parrot accepts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnlog.models.target import Target
from turnlog.providers.edits import Edits, Object, sanitizer
from turnlog.providers.schema.shapes import Tagged
from turnlog.providers.schema.walk import fit
from turnlog.providers.signs import Signs
from turnlog.view.rules import Rules

from .schema import BLOCKS, BODY, NAME

SIGNS = Signs(
    blocks=Tagged("type", BLOCKS),
    content="beak",
    roles=frozenset({"keeper", "bird", "house"}),
    models="polly",
    urls=r"/squawk\b",
)


def rules(target: Target, settings: Mapping[str, Any]) -> Rules:
    """What a parrot accepts."""
    return Rules(
        provider=NAME,
        results="adjacent",
        merge_calls=True,
        first="any",
        last="any",
        strip_last=False,
        system="inline",
        arguments="object",
        reasoning="none",
        results_in_one=True,
    )


@sanitizer(BODY.keys)
def sanitize(body: Object, target: Target, edits: Edits) -> Object:
    """The request without what Parrot refuses."""
    return fit(body, BODY, "", edits)


def tool_choice(settings: Mapping[str, Any]) -> str | None:
    """The tool choice in common words."""
    choice = settings.get("perform")
    return choice if isinstance(choice, str) else None


def with_tool_choice(settings: dict[str, Any], choice: str) -> dict[str, Any]:
    """Settings with a tool choice."""
    return {**settings, "perform": "required" if choice.startswith("tool:") else choice}
