"""A session: one log, opened for work.

`open` makes one. The other modules each hold one job of it: turns, recording, requests, compaction, recovery. Front
doors (`cli`, exporters, importers, telemetry) import it; nothing below does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._platform.lazy import lazy_names

if TYPE_CHECKING:
    from .answer import Answer
    from .compactor import Compaction
    from .events import Appended, Event, EventKind, Feed
    from .history_edits import Rewind
    from .read_back import READ_BACK
    from .reader import SessionLog
    from .recovery import Change, Recovered, Resumed
    from .session import Session
    from .turn import ToolRun, Turn
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "answer": "Answer",
            "compactor": "Compaction",
            "events": "Appended Event EventKind Feed",
            "history_edits": "Rewind",
            "read_back": "READ_BACK",
            "reader": "SessionLog",
            "recovery": "Change Recovered Resumed",
            "session": "Session",
            "turn": "ToolRun Turn",
        },
    )

__all__ = [
    "Answer",
    "Appended",
    "Change",
    "Compaction",
    "Event",
    "EventKind",
    "Feed",
    "READ_BACK",
    "Recovered",
    "Resumed",
    "Rewind",
    "Session",
    "SessionLog",
    "ToolRun",
    "Turn",
]
