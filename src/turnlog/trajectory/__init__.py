"""Agents that move through images (slides, browsers, desktops): record their steps, and read them as a trajectory.

A front door above `session`: `Navigation` records steps in a session and makes requests that show the newest images.
`importers` and `export` read and show trajectories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._platform.lazy import lazy_names

if TYPE_CHECKING:
    from .gestures import Gesture, gestures_of
    from .navigation import Navigation
    from .steps import walk
    from .trajectory import Trajectory
    from .values import Region, StepResponse, Turn
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "gestures": "Gesture gestures_of",
            "navigation": "Navigation",
            "steps": "walk",
            "trajectory": "Trajectory",
            "values": "Region StepResponse Turn",
        },
    )

__all__ = ["Gesture", "Navigation", "Region", "StepResponse", "Trajectory", "Turn", "gestures_of", "walk"]
