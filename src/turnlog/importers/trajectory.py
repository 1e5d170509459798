"""Trajectories of agents that move through images, as gigapixel-goblin and turnlog itself write them.

One JSON object for a run: see `turnlog.trajectory`. Each step becomes the messages that requests show, and a note with
what the messages do not say. Images are kept once by hash.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .._platform.lazy import lazy_pattern
from ..log.messages import Media, Message, Text
from ..log.records import MessageRecord
from ..session.inputs import media_of
from ..session.titles import title_from
from ..tokens.dimensions import image_type
from ..trajectory.recording import answer_note, header, image_record, question, said, step_note
from ..trajectory.trajectory import Trajectory
from ..trajectory.trajectory import read as fields_of
from ..trajectory.values import Turn
from .drafting import Drafting
from .json_values import word
from .protocol import Imported, Origin, digest_of
from .transcript import Transcript

_FORMAT = "trajectory"
_TURNS = lazy_pattern(rb'"turns"\s*:\s*\[')


def read(origin: Origin) -> list[Imported]:
    """The one session of the trajectory."""
    file = Transcript(origin)
    trajectory, problems = _readable(file)
    for problem in problems:
        file.warn(0, f"left out: {problem}")
    if not (trajectory.question or trajectory.turns or trajectory.thumbnail):
        raise file.refused("question or turn", "give the JSON of a trajectory")
    log = Drafting(file)
    _draft(trajectory, log)
    first = [
        trajectory.wsi_path,
        trajectory.question,
        trajectory.turns[0].response.reasoning if trajectory.turns else "",
    ]
    return [log.imported(f"{_FORMAT}-{digest_of(first)[:16]}", _FORMAT, title_from(trajectory.question))]


def _readable(file: Transcript) -> tuple[Trajectory, list[Any]]:
    """The readable part of the trajectory in a file: if the file is cut off, the turns before the damage."""
    try:
        fields, problems = fields_of(file.data)
    except ValueError as error:
        rest = file.document_or_rest("turns")
        if not isinstance(rest, dict):
            file.warn(0, f"the JSON is damaged ({error}): only texts at its beginning were read")
            rest = {"turns": []}
        fields, problems = fields_of(json.dumps({**_before(file.data), **rest}).encode("ascii"))
    return Trajectory(**fields), problems


def _before(data: bytes) -> Mapping[str, Any]:
    """The texts at the beginning of a damaged file."""
    start = _TURNS.search(data)
    head = data[: start.start() if start else len(data)].decode("utf-8", "replace")
    texts: dict[str, Any] = {}
    for key in ("wsi_path", "question"):
        written = re.search(rf'"{key}"\s*:\s*("(?:[^"\\]|\\.)*")', head)
        try:
            texts[key] = json.loads(written[1], strict=False) if written else ""
        except ValueError:
            texts[key] = ""
    return texts


def _draft(trajectory: Trajectory, log: Drafting) -> None:
    note = header(trajectory.wsi_path, trajectory.slide_width, trajectory.slide_height)
    log.note(note.topic, note.data)
    thumbnail = _media(trajectory.thumbnail, log)
    log.add(MessageRecord(question(trajectory.question, thumbnail)))
    last = thumbnail
    for number, turn in enumerate(trajectory.turns, 1):
        last = _draft_turn(number, turn, last, log)
    if trajectory.final_answer is not None or trajectory.extra:
        spoken = trajectory.final_answer is not None and not _says(trajectory.turns[-1:], trajectory.final_answer)
        if spoken:
            log.add(MessageRecord(Message("assistant", (Text(trajectory.final_answer or ""),))))
        note = answer_note(trajectory.final_answer, spoken=spoken, extra=trajectory.extra)
        log.note(note.topic, note.data)


def _draft_turn(number: int, turn: Turn, before: Media | None, log: Drafting) -> Media | None:
    """Draft a step; returns the image that the model saw last. If a final answer repeats that image, it is not shown
    again."""
    image = _media(turn.image, log)
    again = image is not None and image == before and _is_answer(turn.response.action)
    log.add(MessageRecord(said(turn.response), source=f"turns[{number - 1}]"))
    about = {"shown_before": True} if again else {}
    note = step_note(number, turn.step_index, turn.response, turn.region, extra=turn.extra, **about)
    log.note(note.topic, note.data)
    if image is not None and not again:
        log.add(image_record(number, turn.region, image))
    return image or before


def _media(data: bytes | None, log: Drafting) -> Media | None:
    if data is None:
        return None
    log.blob(data)
    return media_of(data, image_type(data))


def _is_answer(action: Any) -> bool:
    return isinstance(action, dict) and word(action.get("action_type")) == "answer"


def _says(turns: tuple[Turn, ...], answer: str | None) -> bool:
    """Whether the last step says the final answer."""
    return any(_is_answer(turn.response.action) and turn.response.action.get("answer_text") == answer for turn in turns)
