"""turnlog under any SDK: an HTTP client that records each conversation that passes through it, and keeps it valid and
within a budget.

`clients` has the HTTP clients. `recorder` finds the session of a request and says what to send, `conversations` which
session that is, `answers` records what comes back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._platform.lazy import lazy_names

if TYPE_CHECKING:
    from .clients import async_client, client
    from .recorder import session
else:
    __getattr__, __dir__ = lazy_names(__name__, {"clients": "async_client client", "recorder": "session"})

__all__ = ["async_client", "client", "session"]
