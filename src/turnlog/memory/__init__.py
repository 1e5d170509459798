"""The memory of a conversation: the files, commands, errors and other things that it is about, and what became of them.

A fold over records, without a clock and without a model. `session` keeps one for each session that asks for it.
"""

from ..summarize.errors import FailedCall
from .entities import Candidate, Entity
from .fold import Memory
from .language import ENGLISH, Language, Thing
from .recall import Recalled, quoted, recall

__all__ = [
    "Candidate",
    "ENGLISH",
    "Entity",
    "FailedCall",
    "Language",
    "Memory",
    "Recalled",
    "Thing",
    "quoted",
    "recall",
]
