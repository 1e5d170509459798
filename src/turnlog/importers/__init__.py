"""Import foreign transcripts: recognise them by content and convert them into drafts (records without a number) for an
empty log.

`read_file(path)` is all that most callers need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._platform.lazy import lazy_names

if TYPE_CHECKING:
    from .catalog import IMPORTERS
    from .formats import detect, read_file, read_sessions
    from .protocol import Imported
else:
    __getattr__, __dir__ = lazy_names(
        __name__, {"catalog": "IMPORTERS", "formats": "detect read_file read_sessions", "protocol": "Imported"}
    )

__all__ = ["IMPORTERS", "Imported", "detect", "read_file", "read_sessions"]
