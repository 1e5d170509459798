"""The values of a trajectory: what an agent looked at, why, and what it did next.

They have the shapes of the JSON that programs for image navigation write. Keys of that JSON which turnlog does not know
are kept in `extra` and written again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ..errors import InputError
from ..log.messages import compact_json


class Region(Struct, frozen=True, repr_omit_defaults=True):
    """A rectangle of the slide: the place of its upper left corner, its width and its height, in pixels of the slide at
    full resolution."""

    x: int
    y: int
    width: int
    height: int
    extra: dict[str, Any] = {}

    def __str__(self) -> str:
        return f"({self.x}, {self.y}, {self.width}, {self.height})"

    def misfit(self, slide_width: int | None = None, slide_height: int | None = None) -> str:
        """What is wrong with the region, "" if nothing is: its size is not positive, or it is not inside the slide."""
        numbers = (self.x, self.y, self.width, self.height)
        if not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
            return f"x, y, width and height must be whole numbers of pixels, not {self}"
        if self.width < 1 or self.height < 1:
            return f"width and height must be at least 1, not {self.width} and {self.height}"
        right, bottom = self.x + self.width, self.y + self.height
        outside = self.x < 0 or self.y < 0
        outside = outside or (slide_width is not None and right > slide_width)
        outside = outside or (slide_height is not None and bottom > slide_height)
        size = (
            f" of {slide_width} x {slide_height} pixels" if slide_width is not None and slide_height is not None else ""
        )
        return f"the region {self} is not inside the slide{size}; clip it first" if outside else ""


class StepResponse(Struct, frozen=True, repr_omit_defaults=True):
    """What the model said at a step: its reasoning, and the action that it chose, a text or any JSON (None: no
    action)."""

    reasoning: str = ""
    action: Any = None
    extra: dict[str, Any] = {}

    @property
    def action_text(self) -> str:
        """The action as text: itself, or its JSON; "" if there is none."""
        if self.action is None:
            return ""
        return self.action if isinstance(self.action, str) else compact_json(self.action)


class Turn(Struct, frozen=True, repr_omit_defaults=True):
    """One step: what the model said, and the image that its action led to.

    `image` are the bytes of a PNG, JPEG, GIF or WebP image, None if the action led to no image. `region` is the part of
    the slide that the image shows. `step_index` is the number that the step has in its file; texts number steps from 1,
    by their place in the trajectory.
    """

    step_index: int
    image: bytes | None
    response: StepResponse
    region: Region | None = None
    extra: dict[str, Any] = {}

    def __repr__(self) -> str:
        image = None if self.image is None else f"<{len(self.image):,} bytes>"
        return f"Turn({self.step_index}, {image}, {self.response!r:.200}, {self.region!r})"


def region_of(value: Any) -> Region | None:
    """A region, given as a Region, as four numbers or as a dict of them. Raises InputError for anything else."""
    if value is None or isinstance(value, Region):
        return value
    if isinstance(value, Mapping) and value.keys() == {"x", "y", "width", "height"}:
        return Region(**value)
    if isinstance(value, (tuple, list)) and len(value) == 4:
        return Region(*value)
    raise InputError(f"region must be a Region, or x, y, width and height, not {value!r:.100}")
