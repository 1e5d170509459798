"""The steps of a strategy, one module each: what can give way when a view is too large.

A step looks at a situation and proposes a decision, or None if it has nothing to give. Steps do not know each other.
"""

from __future__ import annotations

from collections.abc import Callable

from ....log.records import Decision
from ..situation import Situation
from .cap import cap
from .images import images
from .mask import mask
from .priority import priority
from .slide import slide
from .summarise import summarise

__all__ = ["STEPS", "Step"]

Step = Callable[[Situation], Decision | None]

STEPS: dict[str, Step] = {
    "cap": cap,
    "images": images,
    "mask": mask,
    "priority": priority,
    "slide": slide,
    "summarise": summarise,
}
"""The steps by the names that strategies give them."""
