"""Export sessions from a store: JSON, JSON Lines that turnlog reads back, provider requests, Markdown, one HTML page.

Imported by `cli`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._platform.lazy import lazy_names

if TYPE_CHECKING:
    from .formats import FORMATS, save
    from .trajectory_page import as_trajectory
    from .trajectory_picture import as_trajectory_picture
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "formats": "FORMATS save",
            "trajectory_page": "as_trajectory",
            "trajectory_picture": "as_trajectory_picture",
        },
    )

__all__ = ["FORMATS", "as_trajectory", "as_trajectory_picture", "save"]
