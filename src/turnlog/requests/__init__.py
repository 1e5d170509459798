"""From a view to a request: translate settings, repair, render, size, cache marks.

`build` makes whole requests, `incremental` keeps what was made before. `standalone`, `count` and `fit` do the same for
plain request bodies, without a session. Imported by `session`, `cli` and the importers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._platform.lazy import lazy_names

if TYPE_CHECKING:
    from .build import CacheUse, Request
    from .count import TokenCount
    from .fit import Fitted, Fitter
    from .standalone import Violation
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "build": "CacheUse Request",
            "count": "TokenCount",
            "fit": "Fitted Fitter",
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
