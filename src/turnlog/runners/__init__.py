"""Talk to models: a runner sends a prepared request and streams the answer.

`session` records what a runner streams; the package imports everything below it, and only `cli` and `agent` import it.
The modules of SDKs are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._platform.lazy import lazy_names

if TYPE_CHECKING:
    from .blocking import BlockingRunner
    from .programs.runner import ProgramRunner
    from .protocol import Runner, RunnerEvent, events
    from .retrying import RetryingRunner, mended
    from .scripted import DEMO_MODEL, ScriptedRunner
    from .sdk import SdkRunner
    from .summarizing import RunnerSummarizer
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "blocking": "BlockingRunner",
            "programs.runner": "ProgramRunner",
            "protocol": "Runner RunnerEvent events",
            "retrying": "mended RetryingRunner",
            "scripted": "DEMO_MODEL ScriptedRunner",
            "sdk": "SdkRunner",
            "summarizing": "RunnerSummarizer",
        },
    )

__all__ = [
    "BlockingRunner",
    "DEMO_MODEL",
    "ProgramRunner",
    "RetryingRunner",
    "Runner",
    "RunnerEvent",
    "RunnerSummarizer",
    "ScriptedRunner",
    "SdkRunner",
    "events",
    "mended",
]
