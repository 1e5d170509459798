"""turnlog keeps an LLM agent's conversation.

One append-only log per session is the truth. What a model is sent is a view of it: valid for its
provider, inside its window, and the same bytes again after a crash.
"""

from __future__ import annotations

from ._version import __version__
from .compaction import Compaction
from .content import Media, Message, Reasoning, Text, Tool, ToolCall, ToolResult
from .costs import Cost, cost
from .counting import TokenCount, count
from .errors import BudgetError, InputError, StoreError, TurnCancelled, TurnlogError
from .events import Event
from .fitting import Fitted, Fitter, fit
from .models import Target, UnknownModelWarning, target
from .oneshot import Violation, check, convert, repair
from .opening import open
from .policy import Budget, Strategy
from .readback import READ_BACK, read_back_tool
from .redaction import Redactor
from .request import CacheUse, Prepared
from .session import Session
from .view.shown import Edit, Loss

__all__ = [
    "Budget",
    "BudgetError",
    "CacheUse",
    "Compaction",
    "Cost",
    "Edit",
    "Event",
    "Fitted",
    "Fitter",
    "InputError",
    "Loss",
    "Media",
    "Message",
    "Prepared",
    "READ_BACK",
    "Reasoning",
    "Redactor",
    "Session",
    "StoreError",
    "Strategy",
    "Target",
    "Text",
    "TokenCount",
    "Tool",
    "ToolCall",
    "ToolResult",
    "TurnCancelled",
    "TurnlogError",
    "UnknownModelWarning",
    "Violation",
    "__version__",
    "check",
    "convert",
    "cost",
    "count",
    "fit",
    "open",
    "read_back_tool",
    "repair",
    "target",
]
