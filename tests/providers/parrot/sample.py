"""A request to Parrot."""

from __future__ import annotations

from typing import Any

TRICK = {"trick": "count", "about": "Counts.", "needs": {"type": "object"}}
BODY: dict[str, Any] = {
    "model": "polly-1",
    "squawks": [
        {"role": "house", "beak": [{"type": "words", "words": "Be brief."}]},
        {"role": "keeper", "beak": [{"type": "words", "words": "How many?"}]},
        {"role": "bird", "beak": [{"type": "ask", "id": "a1", "tool": "count", "args": {"of": "nuts"}}]},
        {"role": "keeper", "beak": [{"type": "reply", "id": "a1", "beak": [{"type": "words", "words": "3"}]}]},
        {"role": "bird", "beak": [{"type": "words", "words": "Three."}]},
    ],
    "tools": [TRICK],
    "manner": {"max_tokens": 99},
}
