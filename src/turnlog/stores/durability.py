"""The durability setting of stores on disk."""

from __future__ import annotations

from typing import Any, Literal

from ..errors import InputError

Durability = Literal["normal", "full"]
"""What an append survives once it has returned: with `normal` a killed process, with `full` also a power cut.

After a power cut, `normal` may have lost the newest records, but never a record before one that is left.
"""


def check_durability(given: Any) -> None:
    """Raises InputError unless `given` is a Durability."""
    if given not in ("normal", "full"):
        raise InputError(f"durability: {given!r} is neither 'normal' nor 'full'")
