"""From a view to a request: translate settings, repair, render, sanitize, join; sizes and cache marks.

`build` does it, piece by piece (`pieces`), and keeps what the next request can use. `standalone`, `count` and `fit` do
the same for plain request bodies, without a session. Imported by `session`, `cli` and the importers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._platform.lazy import lazy_names

if TYPE_CHECKING:
    from .count import TokenCount
    from .fit import Fitted, Fitter
    from .request import CacheUse, Request
    from .standalone import Violation
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "count": "TokenCount",
            "fit": "Fitted Fitter",
            "request": "CacheUse Request",
            "standalone": "Violation",
        },
    )

__all__ = [
    "CacheUse",
    "Fitted",
    "Fitter",
    "Request",
    "TokenCount",
    "Violation",
]
