"""A trajectory, to be read from JSON or a session and written as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from .._platform.files import write_whole
from ..errors import InputError
from ..log.messages import Media
from ..session.reader import SessionLog
from ..session.session import Session
from .images import misfit
from .steps import walk
from .values import Turn
from .wire import read, write


class Trajectory(Struct, frozen=True, repr_omit_defaults=True):
    """A question about an image, and the steps by which an agent came to its answer.

    `wsi_path` names the slide (or page) that was looked at. `thumbnail` is the image that came with the question.
    `slide_width` and `slide_height` are the size of the slide in pixels, in which regions are given; without them, the
    thumbnail's size is used.
    """

    wsi_path: str
    question: str
    turns: tuple[Turn, ...] = ()
    final_answer: str | None = None
    thumbnail: bytes | None = None
    slide_width: int | None = None
    slide_height: int | None = None
    extra: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if not isinstance(self.turns, tuple):
            force_setattr(self, "turns", tuple(self.turns))

    def __repr__(self) -> str:
        return f"Trajectory({self.wsi_path!r}, {self.question!r:.100}, {len(self.turns)} turns, {self.final_answer!r})"

    @classmethod
    def from_json(cls, data: bytes | str, *, name: str = "the trajectory") -> Trajectory:
        """The trajectory in JSON (`save` writes it). `name` is what errors call it. Raises InputError, which names the
        field, for whatever cannot be read; `turnlog import` reads the rest of a damaged file."""
        try:
            fields, problems = read(data.encode("utf-8") if isinstance(data, str) else bytes(data))
        except (ValueError, TypeError) as error:
            raise InputError(f"{name}: the JSON is damaged or cut off ({error}); copy the file again") from error
        if problems:
            more = f" (and {len(problems) - 1} more problems)" if len(problems) > 1 else ""
            raise InputError(f"{name}: {problems[0]}{more}; `turnlog import` reads what is left")
        return cls(**fields)

    @classmethod
    def load(cls, path: str | Path) -> Trajectory:
        """The trajectory in a file; raises as `from_json`."""
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror})") from error
        return cls.from_json(data, name=str(path))

    @classmethod
    def from_session(cls, session: Session | SessionLog) -> Trajectory:
        """The trajectory of a session: of one that `Navigation` or an import recorded, or of any other with images.
        There, each answer is a step, the images after it are what its action led to, and the image before the first
        answer is the thumbnail. What was taken back or cleared is left out, and secrets are marks. Of an image that is
        only an address, or whose bytes are no image, `extra` of its step says so. Raises BlobMissing for bytes that are
        not in the store.
        """
        log = (session.log if isinstance(session, Session) else session).on_disk  # `save` writes it to a file
        found = walk(log.records())
        turns: list[Turn] = []
        for step in found.steps:
            image, wrong = _image(step.image, log)
            extra = {**step.extra, "image_left_out": wrong} if wrong else step.extra
            turns.append(Turn(step.index, image, step.response, step.region, extra))
        return cls(
            wsi_path=found.wsi_path,
            question=found.question,
            turns=tuple(turns),
            final_answer=found.final_answer,
            thumbnail=_image(found.thumbnail, log)[0],
            slide_width=found.slide_width,
            slide_height=found.slide_height,
            extra=found.extra,
        )

    def to_json(self) -> bytes:
        """The trajectory as JSON. Raises InputError if an action or an extra value is not JSON."""
        try:
            return b"".join(write(self))
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(f"the trajectory cannot be written as JSON: {error}") from error

    def save(self, path: str | Path) -> None:
        """Write the trajectory to a file that only the user can read, completely or not at all. Raises as `to_json`,
        InputError for a path that is not a file, and OSError."""
        write_whole(Path(path), [self.to_json()])


def _image(media: Media | None, log: SessionLog) -> tuple[bytes | None, str]:
    """The bytes of an image of a session, and why there are none although there is an image."""
    if media is None:
        return None, ""
    if not media.sha256:
        return None, f"the session has only its address, {media.url or media.file_id:.200}"
    data = log.blob(media.sha256)
    wrong = misfit(data)
    return (None, wrong) if wrong else (data, "")
