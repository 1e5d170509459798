"""`turnlog chat`: talk with a model in a terminal or a pipe. The library does the work.

Needs the extra `chat`. `conversation` holds one conversation, `terminal` and `plain` show it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._platform.lazy import lazy_names

if TYPE_CHECKING:
    from .choice import Choice, choice_for, chosen
    from .conversation import Chat, busy_in_words
    from .plain import answer_once
    from .terminal import talk
    from .workshop import TOOL_NAMES
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "choice": "Choice choice_for chosen",
            "conversation": "Chat busy_in_words",
            "plain": "answer_once",
            "terminal": "talk",
            "workshop": "TOOL_NAMES",
        },
    )

__all__ = ["Chat", "Choice", "TOOL_NAMES", "answer_once", "busy_in_words", "choice_for", "chosen", "talk"]
