"""The steps of a strategy, one module each: ways to make a view smaller.

A step examines a situation and proposes a decision, or None if it can save nothing. Steps do not know each other.
"""

from __future__ import annotations

from collections.abc import Callable

from ....log.records import Decision
from ..situation import CompactionInput
from .cap import cap
from .curate import curate
from .images import images
from .mask import mask
from .priority import priority
from .slide import slide
from .summarise import summarise

Step = Callable[[CompactionInput], Decision | None]

STEPS: dict[str, Step] = {
    "cap": cap,
    "curate": curate,
    "images": images,
    "mask": mask,
    "priority": priority,
    "slide": slide,
    "summarise": summarise,
}
"""The steps, by the names that strategies use."""
