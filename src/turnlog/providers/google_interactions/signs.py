"""The words of requests to the Interactions API."""

from __future__ import annotations

from ..schema import Tagged
from ..signs import Signs
from .schema import CONTENTS, STEP, TOOL

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
