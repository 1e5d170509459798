"""Summaries of messages that leave a view, written by a model or, without one, by the digest. A model is paid only once
for the same content.

`requests` (for plain bodies) and `session` import this package.
"""

from .attempts import attempt
from .background import Background
from .digest import Digest
from .ledger import LogLedger, MemoryLedger
from .model import ModelSummarizer
from .protocol import Material, Summarizer
from .provider import ProviderSummarizer

__all__ = [
    "Background",
    "Digest",
    "LogLedger",
    "Material",
    "MemoryLedger",
    "ModelSummarizer",
    "ProviderSummarizer",
    "Summarizer",
    "attempt",
]
