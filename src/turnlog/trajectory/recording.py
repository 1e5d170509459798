"""How a trajectory is recorded: its messages, which requests show, and notes with what the messages do not say.

A note goes after the answer that it is about, so that no note needs the number of a record. The texts of a message are
not repeated in a note.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..log.messages import Media, Message, Text
from ..log.records import MessageRecord, Note
from .values import Region, StepResponse

HEADER, STEP, ANSWER = "trajectory", "trajectory_step", "trajectory_answer"
"""The topics of the notes: before the question, after the answer of a step, after the final answer."""


def header(
    wsi_path: str, slide_width: int | None, slide_height: int | None, extra: Mapping[str, Any] | None = None
) -> Note:
    """The note before the question."""
    fields = {"wsi_path": wsi_path, "slide_width": slide_width, "slide_height": slide_height}
    return Note(HEADER, data={**fields, **({"extra": dict(extra)} if extra else {})})


def question(text: str, thumbnail: Media | None) -> Message:
    """The message of the user with the question."""
    return Message("user", (Text(text), *([thumbnail] if thumbnail is not None else ())))


def step_note(
    step: int,
    index: int,
    response: StepResponse,
    region: Region | None,
    *,
    extra: Mapping[str, Any] | None = None,
    **about: Any,
) -> Note:
    """The note after the answer of a step. `about` is added to it."""
    data: dict[str, Any] = {"step": step, "step_index": index, "action": _form(response.action)}
    if region is not None:
        data["region"] = [region.x, region.y, region.width, region.height]
        if region.extra:
            data["region_extra"] = region.extra
    if response.extra:
        data["response_extra"] = response.extra
    if extra:
        data["extra"] = dict(extra)
    return Note(STEP, data={**data, **about})


def _form(action: Any) -> str:
    return "none" if action is None else "text" if isinstance(action, str) else "json"


def said(response: StepResponse) -> Message:
    """The assistant's message: the reasoning, then the action."""
    action = () if response.action is None else (Text(response.action_text),)
    return Message("assistant", (Text(response.reasoning), *action))


def shown(step: int, region: Region | None, image: Media) -> tuple[Text, Media]:
    """What the user's message of a step contains."""
    place = f" {region}" if region is not None else ""
    return Text(f"Here is the crop of step {step}{place}:"), image


def image_record(step: int, region: Region | None, image: Media) -> MessageRecord:
    """The user's message of a step."""
    return MessageRecord(Message("user", shown(step, region, image)), step=step)


def answer_note(text: str | None, *, spoken: bool, extra: Mapping[str, Any] | None = None) -> Note:
    """The note at the end. `spoken`: the message before it is the final answer; otherwise the last step says it, and
    the note repeats it."""
    data = {"spoken": spoken, **({} if spoken else {"text": text}), **({"extra": dict(extra)} if extra else {})}
    return Note(ANSWER, data=data)
