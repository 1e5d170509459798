"""A session: one log, opened for work.

`open` makes a session. Each other module has one job: turns, recording, requests, compaction, recovery. The command
line, exporters, importers, telemetry and `trajectory` import this package; the packages below it do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._platform.lazy import lazy_names

if TYPE_CHECKING:
    from .active import ActiveTurn
    from .answer import Answer
    from .caches import CacheReport
    from .compactor import Compaction
    from .configure import Change
    from .events import Appended, Feed
    from .following import Follower
    from .history_edits import Rewind
    from .inputs import InvalidArguments
    from .inspect import WindowUse
    from .operations import answer_unfinished, follow_records, interrupted_turn
    from .prompt import Prompt
    from .read_back import READ_BACK
    from .reader import SessionLog
    from .recall import RECALL
    from .recovery import Recovered, Resumed
    from .session import Session
    from .skills import SessionSkills
    from .telling import Event
    from .tool_run import ToolRun
    from .turn import Turn
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "active": "ActiveTurn",
            "answer": "Answer",
            "caches": "CacheReport",
            "compactor": "Compaction",
            "configure": "Change",
            "events": "Appended Feed",
            "following": "Follower",
            "history_edits": "Rewind",
            "inputs": "InvalidArguments",
            "inspect": "WindowUse",
            "operations": "answer_unfinished follow_records interrupted_turn",
            "prompt": "Prompt",
            "read_back": "READ_BACK",
            "reader": "SessionLog",
            "recall": "RECALL",
            "recovery": "Recovered Resumed",
            "session": "Session",
            "skills": "SessionSkills",
            "telling": "Event",
            "tool_run": "ToolRun",
            "turn": "Turn",
        },
    )

__all__ = [
    "ActiveTurn",
    "Answer",
    "Appended",
    "CacheReport",
    "Change",
    "Compaction",
    "Event",
    "Feed",
    "Follower",
    "InvalidArguments",
    "Prompt",
    "READ_BACK",
    "RECALL",
    "Recovered",
    "Resumed",
    "Rewind",
    "Session",
    "SessionLog",
    "SessionSkills",
    "ToolRun",
    "Turn",
    "WindowUse",
    "answer_unfinished",
    "follow_records",
    "interrupted_turn",
]
