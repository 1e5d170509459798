"""Build requests from views: translate settings, repair, render, sanitize, join, measure, set cache marks.

`build` builds requests piece by piece (`pieces`) and reuses pieces in the next request. `standalone`, `count` and `fit`
work on plain request bodies, without a session. `session`, `cli` and the importers import this package.
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
