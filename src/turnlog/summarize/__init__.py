"""Summaries of messages that leave a view, written by a model or, without one, by the digest. A model is paid only once
for the same content.

`requests` (for plain bodies) and `session` import this package.
"""

from .attempts import TIMEOUT, Attempt, attempt
from .background import Background
from .digest import Digest
from .ledger import Ledger, LogLedger, MemoryLedger, key_of
from .model import Complete, ModelSummarizer, as_ladder
from .notes import NoteCache
from .protocol import Material, Summarizer
from .provider import ProviderSummarizer, Summarizing, ladder_of
from .verdict import Fault, SummaryFailure

__all__ = [
    "Attempt",
    "Background",
    "Complete",
    "Digest",
    "Fault",
    "Ledger",
    "LogLedger",
    "Material",
    "MemoryLedger",
    "ModelSummarizer",
    "NoteCache",
    "ProviderSummarizer",
    "Summarizer",
    "Summarizing",
    "SummaryFailure",
    "TIMEOUT",
    "as_ladder",
    "attempt",
    "key_of",
    "ladder_of",
]
