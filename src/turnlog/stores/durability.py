"""The durability setting of stores on disk."""

from __future__ import annotations

from typing import Literal

Durability = Literal["normal", "full"]
"""What an append survives once it has returned: with `normal` a killed process, with `full` also a power cut.

After a power cut, `normal` may have lost the newest records, but never a record without all records after it.
"""
