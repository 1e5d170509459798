"""Pure functions that turn records into the view, the messages that a model is shown.

Nothing here reads a clock or a disk, or knows a provider by name: rules are passed in as data (`rules`). `providers`
and the packages above it import this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._platform.lazy import lazy_names

if TYPE_CHECKING:
    from .breakdown import Breakdown
    from .consistency import Inconsistency
    from .curate.curate import Curated
    from .explain import Explanation
    from .tool_calls import CallInfo, ToolUse
    from .turns import TurnInfo
    from .types import Edit, Loss, Shown
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "breakdown": "Breakdown",
            "curate.curate": "Curated",
            "consistency": "Inconsistency",
            "explain": "Explanation",
            "tool_calls": "CallInfo ToolUse",
            "turns": "TurnInfo",
            "types": "Edit Loss Shown",
        },
    )

__all__ = [
    "Breakdown",
    "CallInfo",
    "Curated",
    "Edit",
    "Explanation",
    "Inconsistency",
    "Loss",
    "Shown",
    "ToolUse",
    "TurnInfo",
]
