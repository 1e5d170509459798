"""Summaries of what leaves a view: by a model, or without one by the digest. Each is paid for once.

Takes the messages of a view. Imported by `requests` (for plain bodies) and `session`.
"""

from .attempts import TIMEOUT, Attempt, attempt
from .background import Background
from .digest import Digest
from .ledger import Ledger, LogLedger, MemoryLedger, key_of
from .model import Complete, ModelSummarizer, as_ladder
from .notes import Memory
from .protocol import Material, Summarizer
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
    "Memory",
    "MemoryLedger",
    "ModelSummarizer",
    "Summarizer",
    "SummaryFailure",
    "TIMEOUT",
    "as_ladder",
    "attempt",
    "key_of",
]
