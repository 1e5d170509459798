"""Pure functions that turn records into the view, the messages that a model is shown.

Nothing here reads a clock or a disk, or knows a provider by name: rules are passed in as data (`rules`). `providers`
and the packages above it import this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._platform.lazy import lazy_names

if TYPE_CHECKING:
    from .breakdown import Breakdown, Share
    from .consistency import Inconsistency, inconsistencies
    from .curate.curate import Curated
    from .explain import Account, Explanation, Ruling
    from .rules import Rules
    from .tool_calls import CallInfo, ToolUse
    from .turns import TurnInfo, TurnStatus
    from .types import Edit, Loss, Shown, Treatment
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "breakdown": "Breakdown Share",
            "curate.curate": "Curated",
            "consistency": "Inconsistency inconsistencies",
            "explain": "Account Explanation Ruling",
            "rules": "Rules",
            "tool_calls": "CallInfo ToolUse",
            "turns": "TurnInfo TurnStatus",
            "types": "Edit Loss Shown Treatment",
        },
    )

__all__ = [
    "Account",
    "Breakdown",
    "CallInfo",
    "Curated",
    "Edit",
    "Explanation",
    "Inconsistency",
    "Loss",
    "Rules",
    "Ruling",
    "Share",
    "Shown",
    "ToolUse",
    "Treatment",
    "TurnInfo",
    "TurnStatus",
    "inconsistencies",
]
