"""turnlog keeps an LLM agent's conversation.

One append-only log per session is the truth. What a model is sent is a view of it: valid for its
provider, inside its window, and the same bytes again after a crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._platform.lazy import lazy_names
from ._version import __version__

if TYPE_CHECKING:
    from . import agent as agent
    from . import errors as errors
    from . import export as export
    from . import importers as importers
    from . import log as log
    from . import memory as memory
    from . import models as models
    from . import prompt as prompt
    from . import redaction as redaction
    from . import requests as requests
    from . import runners as runners
    from . import session as session
    from . import skills as skills
    from . import stores as stores
    from . import summarize as summarize
    from . import telemetry as telemetry
    from . import testing as testing
    from . import tokens as tokens
    from . import trajectory as trajectory
    from . import view as view
    from . import workspace as workspace
    from .agent.running import arun, run
    from .config.settings import Settings
    from .errors import BudgetError, InputError, StoreError, TurnlogError
    from .log.budget import Budget, Strategy
    from .log.messages import Media, Message, Reasoning, Text, Tool, ToolCall, ToolResult
    from .models.pricing import cost
    from .models.target import Target, target
    from .redaction import Redactor
    from .requests.count import count
    from .requests.fit import Fitter, fit
    from .requests.request import Request
    from .requests.standalone import check, convert, repair
    from .session.collect import collect
    from .session.open import aopen, open, warm
    from .session.read_back import read_back_tool
    from .session.recall import recall_tool
    from .session.session import Session
    from .session.settings import load_settings
    from .skills.folder import load_skills
    from .stores.retention import Limits
    from .view.curate.curate import curate
    from .view.types import Edit, Loss
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "": (
                "agent errors export importers log memory models prompt redaction requests runners session skills "
                "stores summarize telemetry testing tokens trajectory view workspace"
            ),
            "agent.running": "arun run",
            "config.settings": "Settings",
            "errors": "BudgetError InputError StoreError TurnlogError",
            "log.budget": "Budget Strategy",
            "log.messages": "Media Message Reasoning Text Tool ToolCall ToolResult",
            "models.pricing": "cost",
            "models.target": "Target target",
            "redaction": "Redactor",
            "requests.count": "count",
            "requests.fit": "fit Fitter",
            "requests.request": "Request",
            "requests.standalone": "check convert repair",
            "session.collect": "collect",
            "session.open": "aopen open warm",
            "session.read_back": "read_back_tool",
            "session.recall": "recall_tool",
            "session.session": "Session",
            "session.settings": "load_settings",
            "skills.folder": "load_skills",
            "stores.retention": "Limits",
            "view.curate.curate": "curate",
            "view.types": "Edit Loss",
        },
    )

__all__ = [
    "Budget",
    "BudgetError",
    "Edit",
    "Fitter",
    "InputError",
    "Limits",
    "Loss",
    "Media",
    "Message",
    "Reasoning",
    "Redactor",
    "Request",
    "Session",
    "Settings",
    "StoreError",
    "Strategy",
    "Target",
    "Text",
    "Tool",
    "ToolCall",
    "ToolResult",
    "TurnlogError",
    "__version__",
    "aopen",
    "arun",
    "check",
    "collect",
    "convert",
    "cost",
    "count",
    "curate",
    "fit",
    "load_settings",
    "load_skills",
    "open",
    "read_back_tool",
    "recall_tool",
    "repair",
    "run",
    "target",
    "warm",
]
