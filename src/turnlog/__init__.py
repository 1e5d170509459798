"""turnlog keeps an LLM agent's conversation.

One append-only log per session is the truth. What a model is sent is a view of it: valid for its
provider, inside its window, and the same bytes again after a crash.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .compaction import Compaction
    from .configuration import load_settings
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
    from .retention import Collected, Limits, collect
    from .rewinding import Rewind
    from .session import Session
    from .settings import Settings
    from .stores import Passphrase
    from .view.shown import Edit, Loss

__all__ = [
    "Budget",
    "BudgetError",
    "CacheUse",
    "Collected",
    "Compaction",
    "Cost",
    "Edit",
    "Event",
    "Fitted",
    "Fitter",
    "InputError",
    "Limits",
    "Loss",
    "Media",
    "Message",
    "Passphrase",
    "Prepared",
    "READ_BACK",
    "Reasoning",
    "Redactor",
    "Rewind",
    "Session",
    "Settings",
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
    "collect",
    "convert",
    "cost",
    "count",
    "fit",
    "load_settings",
    "open",
    "read_back_tool",
    "repair",
    "target",
]

_ROOMS = {
    "Budget": "policy",
    "BudgetError": "errors",
    "CacheUse": "request",
    "Collected": "retention",
    "Compaction": "compaction",
    "Cost": "costs",
    "Edit": "view.shown",
    "Event": "events",
    "Fitted": "fitting",
    "Fitter": "fitting",
    "InputError": "errors",
    "Limits": "retention",
    "Loss": "view.shown",
    "Media": "content",
    "Message": "content",
    "Passphrase": "stores",
    "Prepared": "request",
    "READ_BACK": "readback",
    "Reasoning": "content",
    "Redactor": "redaction",
    "Rewind": "rewinding",
    "Session": "session",
    "Settings": "settings",
    "StoreError": "errors",
    "Strategy": "policy",
    "Target": "models",
    "Text": "content",
    "TokenCount": "counting",
    "Tool": "content",
    "ToolCall": "content",
    "ToolResult": "content",
    "TurnCancelled": "errors",
    "TurnlogError": "errors",
    "UnknownModelWarning": "models",
    "Violation": "oneshot",
    "check": "oneshot",
    "collect": "retention",
    "convert": "oneshot",
    "cost": "costs",
    "count": "counting",
    "fit": "fitting",
    "load_settings": "configuration",
    "open": "opening",
    "read_back_tool": "readback",
    "repair": "oneshot",
    "target": "models",
}
"""Where each name is made. Rooms are opened when one of their names is first used: whoever imports turnlog and does
not use it at once, as command lines and servers do at their start, does not wait for all of it."""


def __getattr__(name: str) -> Any:
    if name == "spans":  # a room with a name of its own, which needs an extra
        return import_module(".spans", __name__)
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_ROOMS[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
