"""What an append to a store on a disk survives."""

from __future__ import annotations

from typing import Literal

Durability = Literal["normal", "full"]
"""What an append has survived when it returns: `normal` a killed process, `full` a power cut too.

After a power cut `normal` may have lost the newest records, never records before others.
"""
