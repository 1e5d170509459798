"""Summaries: many messages said in few words, by a model or without one, and never paid for twice."""

from .attempts import TIMEOUT, Attempt, attempt
from .background import Background
from .digest import Digest
from .ledger import Ledger, LogLedger, MemoryLedger, key_of
from .model import ModelSummarizer
from .protocol import Material, Summarizer
from .verdict import Fault, SummaryFailure

__all__ = [
    "Attempt",
    "Background",
    "Digest",
    "Fault",
    "Ledger",
    "LogLedger",
    "Material",
    "MemoryLedger",
    "ModelSummarizer",
    "Summarizer",
    "SummaryFailure",
    "TIMEOUT",
    "attempt",
    "key_of",
]
