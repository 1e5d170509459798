"""The pictures of a trajectory's page: each is put into the page once, small enough for the page as a whole."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from math import sqrt

from ..errors import BlobMissing, InputError
from ..log.messages import Media
from ..log.store import Problem
from ..session.reader import SessionLog
from ..tokens.dimensions import dimensions, image_type
from ..trajectory.images import encoded, misfit, opened
from .markup import Markup, end, start, tag, text

PAGE_BYTES = 36_000_000
"""The most bytes of all pictures of a page, as base64: larger pages are slow to open and to send."""

_USE = "showing this many large images on a page"
_TRIES = 4
_LEAST_SIDE = 64


class Pictures:
    """The pictures of a page. `problems` gets a line for each that is missing or was made smaller."""

    def __init__(self, log: SessionLog, media: Iterable[Media], problems: list[Problem]) -> None:
        self._log = log
        self._problems = problems
        self._media = {one.sha256: one for one in media if one.sha256}
        self._share = _share([one.size for one in self._media.values()])
        self._sizes: dict[str, tuple[int, int]] = {}
        self._why: dict[str, str] = {}
        self._names = {sha256: f"picture-{n}" for n, sha256 in enumerate(self._media, 1)}

    def written(self) -> Iterator[Markup]:
        """All pictures, which the page shows elsewhere, one by one."""
        yield start("svg", class_="pictures", aria_hidden="true")
        for sha256 in self._media:
            data = self._data(sha256)
            if not data:
                continue
            width, height = self._sizes[sha256]
            address = f"data:{image_type(data)};base64,{base64.b64encode(data).decode('ascii')}"
            picture = tag("image", href=address, width=str(width), height=str(height), preserveAspectRatio="none")
            yield tag("symbol", picture, id=self._names[sha256], viewBox=f"0 0 {width} {height}")
            yield Markup("\n")
        yield end("svg")

    def size(self, media: Media | None) -> tuple[int, int] | None:
        """The width and height of a picture that the page has, in its own pixels."""
        return self._sizes.get(media.sha256) if media is not None else None

    def missing(self, media: Media | None) -> str:
        """Why the page does not have a picture."""
        if media is None:
            return "no image"
        if not media.sha256:
            return f"not in the session: {media.url or media.file_id}"
        return self._why.get(media.sha256, "")

    def use(self, media: Media, width: float, height: float) -> Markup:
        """The picture, at this size."""
        return tag("use", href=f"#{self._names[media.sha256]}", width=f"{width:g}", height=f"{height:g}")

    def _data(self, sha256: str) -> bytes:
        """The bytes that the page gets; empty if it gets none."""
        try:
            data = self._log.blob(sha256)
        except BlobMissing as error:
            return self._left_out(sha256, str(error))
        if wrong := misfit(data):
            return self._left_out(sha256, wrong)
        self._sizes[sha256] = dimensions(data) or (1, 1)
        if len(data) <= self._share:
            return data
        try:
            return _shrunk(data, self._share)
        except InputError as error:
            del self._sizes[sha256]
            return self._left_out(sha256, str(error))

    def _left_out(self, sha256: str, why: str) -> bytes:
        self._why[sha256] = why
        self._problems.append(Problem(self._log.id, 0, f"an image is not shown: {why}"))
        return b""

    @property
    def note(self) -> Markup:
        """A line that says that pictures were made smaller, if any may have been."""
        small = any(one.size > self._share for one in self._media.values())
        return tag("p", text("Large images are shown smaller than they are."), class_="hint") if small else Markup("")


def _share(sizes: list[int]) -> int:
    """The most bytes of one picture, so that all of them fit the page. Small ones leave room for others."""
    room = PAGE_BYTES * 3 // 4
    left = sorted(sizes)
    while left and left[0] * len(left) <= room:
        room -= left.pop(0)
    return room // len(left) if left else PAGE_BYTES


def _shrunk(data: bytes, most: int) -> bytes:
    """The image as a JPEG of at most so many bytes."""
    image = opened(data, _USE)
    image = image.convert("RGB")
    made = encoded(image, "JPEG", 75)
    for _ in range(_TRIES):
        if len(made) <= most:
            break
        scale = sqrt(most / len(made)) * 0.95
        sides = max(_LEAST_SIDE, int(image.width * scale)), max(_LEAST_SIDE, int(image.height * scale))
        image = image.resize(sides)
        made = encoded(image, "JPEG", 75)
    return made
