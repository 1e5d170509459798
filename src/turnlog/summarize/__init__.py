"""Summaries of messages that leave a view, written by a model or, without one, by the digest. A model is paid only once
for the same content.

`requests` (for plain bodies) and `session` import this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._platform.lazy import lazy_names

if TYPE_CHECKING:
    from .attempts import attempt
    from .background import Background
    from .digest import Digest
    from .ledger import LogLedger, MemoryLedger
    from .model import ModelSummarizer
    from .protocol import Material, Summarizer
    from .provider import ProviderSummarizer
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "attempts": "attempt",
            "background": "Background",
            "digest": "Digest",
            "ledger": "LogLedger MemoryLedger",
            "model": "ModelSummarizer",
            "protocol": "Material Summarizer",
            "provider": "ProviderSummarizer",
        },
    )

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
