"""turnlog keeps an LLM agent's conversation.

One append-only log per session is the truth. What a model is sent is a view of it: valid for its
provider, inside its window, and the same bytes again after a crash.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .config.settings import Settings
    from .errors import BudgetError, InputError, StoreError, TurnCancelled, TurnlogError
    from .log.budget import Budget, Strategy
    from .log.messages import Media, Message, Reasoning, Text, Tool, ToolCall, ToolResult
    from .models.pricing import Cost, cost
    from .models.target import Target, UnknownModelWarning, target
    from .redaction import Redactor
    from .requests.build import CacheUse, Request
    from .requests.count import TokenCount, count
    from .requests.fit import Fitted, Fitter, fit
    from .requests.standalone import Violation, check, convert, repair
    from .session.collect import collect
    from .session.compactor import Compaction
    from .session.events import Event
    from .session.history_edits import Rewind
    from .session.open import open
    from .session.read_back import READ_BACK, read_back_tool
    from .session.session import Session
    from .session.settings import load_settings
    from .stores import Passphrase
    from .stores.retention import Collected, Limits
    from .view.types import Edit, Loss

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
    "READ_BACK",
    "Reasoning",
    "Redactor",
    "Request",
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
    "Budget": "log.budget",
    "BudgetError": "errors",
    "CacheUse": "requests.build",
    "Collected": "stores.retention",
    "Compaction": "session.compactor",
    "Cost": "models.pricing",
    "Edit": "view.types",
    "Event": "session.events",
    "Fitted": "requests.fit",
    "Fitter": "requests.fit",
    "InputError": "errors",
    "Limits": "stores.retention",
    "Loss": "view.types",
    "Media": "log.messages",
    "Message": "log.messages",
    "Passphrase": "stores",
    "READ_BACK": "session.read_back",
    "Reasoning": "log.messages",
    "Redactor": "redaction",
    "Request": "requests.build",
    "Rewind": "session.history_edits",
    "Session": "session.session",
    "Settings": "config.settings",
    "StoreError": "errors",
    "Strategy": "log.budget",
    "Target": "models.target",
    "Text": "log.messages",
    "TokenCount": "requests.count",
    "Tool": "log.messages",
    "ToolCall": "log.messages",
    "ToolResult": "log.messages",
    "TurnCancelled": "errors",
    "TurnlogError": "errors",
    "UnknownModelWarning": "models.target",
    "Violation": "requests.standalone",
    "check": "requests.standalone",
    "collect": "session.collect",
    "convert": "requests.standalone",
    "cost": "models.pricing",
    "count": "requests.count",
    "fit": "requests.fit",
    "load_settings": "session.settings",
    "open": "session.open",
    "read_back_tool": "session.read_back",
    "repair": "requests.standalone",
    "target": "models.target",
}
"""Where each name is made. Rooms are opened when one of their names is first used: whoever imports turnlog and does
not use it at once, as command lines and servers do at their start, does not wait for all of it."""


def __getattr__(name: str) -> Any:
    if name == "telemetry":  # a room with a name of its own, which needs an extra
        return import_module(".telemetry", __name__)
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_ROOMS[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
