"""A trajectory, to be read from JSON or a session and written as JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from .._platform.files import write_whole
from .._platform.texts import plain_utf8
from ..errors import InputError
from ..log.messages import Media, nested_deeper
from ..session.reader import SessionLog
from ..session.session import Session
from .images import from_base64, misfit
from .steps import walk
from .values import Region, StepResponse, Turn

# -- wire ------------------------------------------------------------------------------------------
#
# A trajectory as JSON, and back.
#
# The keys are those of gigapixel-goblin (github.com/The-Obstacle-Is-The-Way/gigapixel-goblin, agent/trajectory.py)
# and of its visualizer: `wsi_path`, `question`, `turns` (of `step_index`, `image_base64`, `response` and `region`),
# `final_answer`, `slide_width`, `slide_height`, `thumbnail_base64`. Other keys are kept in `extra`.
#
# A file may have hundreds of megabytes of images, so each is decoded from where it lies in the file.

_DEEPEST = 100
"""A value that is nested deeper would not fit into a record."""

_MISSING = msgspec.UNSET
_TYPES: dict[type, str] = {str: "a string", int: "a whole number", dict: "an object", list: "a list"}


class TrajectoryProblem(Struct, frozen=True):
    """Something in a trajectory's JSON that cannot be read: its path, and what is wrong with it."""

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}" if self.path else self.what


def read(data: bytes) -> tuple[dict[str, Any], list[TrajectoryProblem]]:
    """The fields of the `Trajectory` in JSON, as far as they can be read, and what of them cannot. Raises ValueError if
    the text is no JSON object."""
    reader = _Reader()
    return reader.trajectory(_document(plain_utf8(data))), reader.problems


def write(trajectory: Trajectory) -> Iterator[bytes]:
    """The trajectory as JSON, in pieces. Raises ValueError if an action or an extra value is not JSON."""
    head = {"wsi_path": trajectory.wsi_path, "question": trajectory.question}
    yield _json(head)[:-1] + b',"turns":['
    for i, turn in enumerate(trajectory.turns):
        response = {"reasoning": turn.response.reasoning, "action": turn.response.action, **turn.response.extra}
        region = turn.region and {key: getattr(turn.region, key) for key in _SIDES} | turn.region.extra
        yield b",\n" if i else b"\n"
        yield _json({"step_index": turn.step_index})[:-1] + b',"image_base64":'
        yield b"null" if turn.image is None else b'"' + base64.b64encode(turn.image) + b'"'
        yield b"," + _json({"response": response, "region": region, **turn.extra})[1:]
    rest = {
        "final_answer": trajectory.final_answer,
        "slide_width": trajectory.slide_width,
        "slide_height": trajectory.slide_height,
        **trajectory.extra,
    }
    yield b"],\n" + _json(rest)[1:-1] + b',"thumbnail_base64":'
    yield b"null" if trajectory.thumbnail is None else b'"' + base64.b64encode(trajectory.thumbnail) + b'"'
    yield b"}\n"


_SIDES = ("x", "y", "width", "height")


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=True).encode("ascii")


def _document(data: bytes) -> dict[str, Any]:
    """The object in `data`; its values are JSON as bytes, or plain values."""
    try:
        return msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:  # Python's own writer has NaN and lone surrogates, which strict readers refuse
        value = json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    return value


def _value(raw: Any) -> Any:
    """A value, decoded. Raises ValueError."""
    if not isinstance(raw, msgspec.Raw):
        return raw
    try:
        return json.loads(bytes(raw))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _opened(raw: Any, kind: Any) -> Any:
    """An object or a list of JSON as bytes, opened by one level; None if it is of another type."""
    if not isinstance(raw, msgspec.Raw):
        return raw if isinstance(raw, dict if kind is not list else list) else None
    try:
        return msgspec.json.decode(raw, type=list[msgspec.Raw] if kind is list else dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class _Reader:
    """One pass over a document, which collects what cannot be read."""

    def __init__(self) -> None:
        self.problems: list[TrajectoryProblem] = []

    def trajectory(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of the trajectory."""
        wsi_path, question = self._text(found, "wsi_path"), self._text(found, "question")
        width, height = self._size(found, "slide_width"), self._size(found, "slide_height")
        listed = _opened(found.get("turns", _MISSING), list)
        if listed is None:
            self._wrong("turns", found.get("turns", _MISSING), list)
        turns = (self._turn(raw, f"turns[{i}]", i, (width, height)) for i, raw in enumerate(listed or ()))
        return {
            "wsi_path": wsi_path or "",
            "question": question or "",
            "turns": tuple(turn for turn in turns if turn is not None),
            "final_answer": self._text(found, "final_answer", needed=False),
            "thumbnail": self._image(found.get("thumbnail_base64"), "thumbnail_base64"),
            "slide_width": width,
            "slide_height": height,
            "extra": self._extra(found, _KEYS, ""),
        }

    def _turn(self, raw: Any, path: str, place: int, slide: tuple[int | None, int | None]) -> Turn | None:
        fields = _opened(raw, dict)
        if fields is None:
            self._wrong(path, raw, dict)
            return None
        index = self._get(fields, "step_index", f"{path}.step_index")
        if not _is_whole(index) or index < 0:
            self._wrong(f"{path}.step_index", index, int)
            index = place
        if "image_base64" not in fields:
            self._say(f"{path}.image_base64", "missing; the step is read without an image")
        return Turn(
            step_index=index,
            image=self._image(fields.get("image_base64"), f"{path}.image_base64"),
            response=self._response(fields.get("response", _MISSING), f"{path}.response"),
            region=self._region(fields.get("region"), f"{path}.region", slide),
            extra=self._extra(fields, _TURN_KEYS, path),
        )

    def _response(self, raw: Any, path: str) -> StepResponse:
        fields = _opened(raw, dict)
        if fields is None:
            self._wrong(path, raw, dict)
            return StepResponse()
        reasoning = self._text(fields, "reasoning", path)
        action = self._get(fields, "action", f"{path}.action")
        if action is _MISSING:
            self._say(f"{path}.action", "missing")
        extra = self._extra(fields, ("reasoning", "action"), path)
        return StepResponse(reasoning or "", None if action is _MISSING else action, extra)

    def _region(self, raw: Any, path: str, slide: tuple[int | None, int | None]) -> Region | None:
        if raw is None or (isinstance(raw, msgspec.Raw) and bytes(raw) == b"null"):
            return None
        fields = _opened(raw, dict)
        if fields is None:
            self._wrong(path, raw, dict)
            return None
        sides: list[int] = []
        for key in _SIDES:
            side = self._get(fields, key, f"{path}.{key}")
            if isinstance(side, float) and side.is_integer():
                side = int(side)
            if not _is_whole(side):
                self._wrong(f"{path}.{key}", side, int)
                return None
            sides.append(side)
        x, y, width, height = sides
        region = Region(x, y, width, height, self._extra(fields, _SIDES, path))
        if wrong := region.misfit(*slide):
            self._say(path, wrong)
        return None if width < 1 or height < 1 else region

    def _image(self, raw: Any, path: str) -> bytes | None:
        if raw is None or (isinstance(raw, msgspec.Raw) and bytes(raw) == b"null"):
            return None
        try:
            text = bytes(raw) if isinstance(raw, msgspec.Raw) else raw
            if isinstance(text, bytes):
                text = text[1:-1] if text[:1] == b'"' and b"\\" not in text else _value(raw)
            if not isinstance(text, (bytes, str)):
                self._wrong(path, text, str)
                return None
            data = from_base64(text.encode("utf-8", "replace") if isinstance(text, str) else text)
        except ValueError as error:
            self._say(path, str(error))
            return None
        if wrong := misfit(data):
            self._say(path, wrong)
            return None
        return data

    def _text(self, found: Mapping[str, Any], key: str, path: str = "", *, needed: bool = True) -> str | None:
        where = f"{path}.{key}" if path else key
        value = self._get(found, key, where)
        if isinstance(value, str) or (not needed and (value is None or value is _MISSING)):
            return None if value is _MISSING else value
        self._wrong(where, value, str)
        return None

    def _size(self, found: Mapping[str, Any], key: str) -> int | None:
        value = self._get(found, key, key)
        if value is None or value is _MISSING:
            return None
        if not _is_whole(value) or value < 1:
            self._wrong(key, value, int)
            return None
        return int(value)

    def _get(self, found: Mapping[str, Any], key: str, path: str) -> Any:
        """The decoded value at `key`; `_MISSING` if there is none, or if it cannot be read, which is a problem."""
        try:
            value = _value(found.get(key, _MISSING))
        except ValueError as error:
            self._say(path, str(error))
            return None
        if isinstance(value, (dict, list)) and nested_deeper(value, _DEEPEST) is not None:
            self._say(path, f"nested deeper than {_DEEPEST} levels")
            return None
        return value

    def _extra(self, found: Mapping[str, Any], known: tuple[str, ...], path: str) -> dict[str, Any]:
        unknown = [key for key in found if key not in known]
        return {key: self._get(found, key, f"{path}.{key}".removeprefix(".")) for key in unknown}

    def _wrong(self, path: str, value: Any, kind: type) -> None:
        if value is _MISSING:
            self._say(path, "missing")
            return
        try:
            shown = repr(_value(value))
        except ValueError:
            shown = "damaged JSON"
        self._say(path, f"must be {_TYPES[kind]}, not {shown:.60}")

    def _say(self, path: str, what: str) -> None:
        self.problems.append(TrajectoryProblem(path, what))


_KEYS = ("wsi_path", "question", "turns", "final_answer", "thumbnail_base64", "slide_width", "slide_height")
_TURN_KEYS = ("step_index", "image_base64", "response", "region")
_CERTAIN = 1 << 53


def _is_whole(value: Any) -> bool:
    """Whether a value is a whole number that every reader of JSON has exactly."""
    return isinstance(value, int) and not isinstance(value, bool) and -_CERTAIN < value < _CERTAIN


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
            others = f" (and {len(problems) - 1} more problems)" if len(problems) > 1 else ""
            raise InputError(f"{name}: {problems[0]}{others}; `turnlog import` reads what is left")
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
        walked = walk(log.records())
        turns: list[Turn] = []
        for step in walked.steps:
            image, wrong = _image(step.image, log)
            extra = {**step.extra, "image_left_out": wrong} if wrong else step.extra
            turns.append(Turn(step.index, image, step.response, step.region, extra))
        return cls(
            wsi_path=walked.wsi_path,
            question=walked.question,
            turns=tuple(turns),
            final_answer=walked.final_answer,
            thumbnail=_image(walked.thumbnail, log)[0],
            slide_width=walked.slide_width,
            slide_height=walked.slide_height,
            extra=walked.extra,
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
