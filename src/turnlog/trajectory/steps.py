"""The steps of a session: read from the notes of a trajectory, or, in any other session, from its messages.

In a session without notes, each answer begins a step, and the images after it are what its action led to. An answer
whose action led to no image is a step without one; each further image is a step of its own without an answer.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from .._platform.lazy import lazy_pattern
from ..log.messages import Media, Message, Reasoning, Text, ToolCall, ToolResult, json_or_text, media_parts, text_of
from ..log.records import Decision, Note, Record, UsageRecord
from ..log.usage import Usage
from ..view.decisions import Rewinds
from ..view.fold import INTERRUPTED, as_left, select
from ..view.program_prefaces import is_preface
from ..view.types import Shown
from .recording import ANSWER, HEADER, STEP
from .values import Region, StepResponse

_SAID = lazy_pattern(r"\A\s*(?:Thought|Reasoning)\s*:\s*(.*?)\s*\bAction\s*:\s*(.*?)\s*\Z", re.DOTALL)
"""How agents that act by text write an answer, as WebVoyager's and UI-TARS's prompts ask them to."""

_SPELLED = lazy_pattern(r"\s*<tool_call>.*?</tool_call>\s*", re.DOTALL)
"""A call as a model wrote it, in an answer that has the call as such too."""

_FINAL = lazy_pattern(r"\A\s*(?:ANSWER\s*;|finished\(content=['\"])\s*(.*?)\s*(?:['\"]\))?\s*\Z", re.DOTALL)
"""How WebVoyager's and UI-TARS's agents end a task."""


class Step(Struct, frozen=True):
    """One step of a session.

    `number` counts from 1. `answer` and `shown` are the numbers of the records with the answer and with the image, 0 if
    there is none. `heard` are the texts beside the image. `bills` are what its requests were billed. `saw` are the
    numbers of the steps whose images the model still saw when it answered, 0 for the thumbnail; `gone` are those that
    it no longer saw. `limit` is the `max_history_images` of the request, if it had one.
    """

    number: int
    index: int
    response: StepResponse = StepResponse()
    region: Region | None = None
    image: Media | None = None
    extra: dict[str, Any] = {}
    answer: int = 0
    shown: int = 0
    heard: str = ""
    bills: tuple[tuple[str, Usage], ...] = ()
    saw: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()
    limit: int | None = None


class Walk(Struct, frozen=True):
    """The steps of a session, and the question that they answer.

    `asked`: the question is known. `thumbnail_record` is the number of the message with the thumbnail, `system` the
    system text. `bills` are what the final answer was billed, if it is not a step.
    """

    steps: tuple[Step, ...] = ()
    wsi_path: str = ""
    question: str = ""
    thumbnail: Media | None = None
    thumbnail_record: int = 0
    final_answer: str | None = None
    slide_width: int | None = None
    slide_height: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    asked: bool = False
    system: str = ""
    bills: tuple[tuple[str, Usage], ...] = ()


def walk(records: Iterable[Record], max_history_images: int | None = None) -> Walk:
    """The steps that these records of one session hold. With `max_history_images`, `saw` and `gone` are what they are
    if requests show only so many of the newest images."""
    held = list(records)
    shown_by_record = {shown.records[0]: shown for shown in as_left(held)}
    rewinds = Rewinds.of(record for record in held if isinstance(record.body, Decision))
    walker = _Walker()
    for record in held:
        if (shown := shown_by_record.get(record.n)) is not None:
            walker.message(record, shown.message)
        elif isinstance(record.body, Decision) and record.body.action == "clear" and not rewinds.by(record.n):
            walker = _Walker(walker.walk.system)
        elif not rewinds.by(record.n):
            walker.beside(record.body)
    walked = walker.finished()
    return replace(walked, steps=tuple(_seen(walked, held, max_history_images)))


class _Walker:
    """One pass over the records that count."""

    def __init__(self, system: str = "") -> None:
        self.walk = Walk(system=system)
        self.steps: list[Step] = []
        self.spoken = Message("assistant")  # the answer of the last step
        self.formal = False  # whether notes tell the steps
        self.noted = False  # whether a note told of the last step

    def beside(self, body: Any) -> None:
        """Take in a record that is no message."""
        if isinstance(body, Note) and body.topic in (HEADER, STEP, ANSWER) and isinstance(body.data, dict):
            self.formal = True
            {HEADER: self._open, STEP: self._note, ANSWER: self._finish}[body.topic](body.data)
        elif isinstance(body, UsageRecord) and self.steps:
            last = self.steps[-1]
            self.steps[-1] = replace(last, bills=(*last.bills, (body.sold_as, body.usage)))

    def message(self, record: Record, message: Message) -> None:
        """Take in a message."""
        if message.role == "system":
            if not self.walk.system and not self.steps:
                self.walk = replace(self.walk, system=text_of(message))
        elif message.role == "assistant":
            number = len(self.steps) + 1
            self.steps.append(Step(number, number, derived(message), answer=record.n))
            self.spoken, self.noted = message, False
        else:
            self._look(record.n, message)

    def _open(self, data: Mapping[str, Any]) -> None:
        width, height = data.get("slide_width"), data.get("slide_height")
        self.walk = replace(
            self.walk,
            wsi_path=_text(data.get("wsi_path")),
            slide_width=width if isinstance(width, int) else None,
            slide_height=height if isinstance(height, int) else None,
            extra=_object(data.get("extra")),
        )

    def _note(self, data: Mapping[str, Any]) -> None:
        """Take in what a note says of the last answer."""
        if not self.steps or not self.steps[-1].answer:
            return
        last, index, limit = self.steps[-1], data.get("step_index"), data.get("max_history_images")
        self.noted = True
        again = data.get("shown_before") is True
        self.steps[-1] = replace(
            last,
            image=self._newest() if again else last.image,
            index=index if isinstance(index, int) else last.number,
            response=_response(self.spoken, data),
            region=_region(data),
            extra=_object(data.get("extra")),
            limit=limit if isinstance(limit, int) else None,
        )

    def _newest(self) -> Media | None:
        """The image that was shown last."""
        return next((step.image for step in reversed(self.steps) if step.image is not None), self.walk.thumbnail)

    def _finish(self, data: Mapping[str, Any]) -> None:
        """Take in that the last answer was the final one."""
        extra, text = {**self.walk.extra, **_object(data.get("extra"))}, data.get("text")
        bills: tuple[tuple[str, Usage], ...] = ()
        if data.get("spoken") and self.steps and self.steps[-1].answer:
            text, bills = text_of(self.spoken), self.steps.pop().bills
        final = text if isinstance(text, str) else None
        self.walk = replace(self.walk, extra=extra, final_answer=final, bills=bills)

    def _look(self, n: int, message: Message) -> None:
        images = [media for media in media_parts(message) if media.kind == "image"]
        text = _heard(message)
        if not self.steps:
            if not self.walk.asked and (text or images) and (images or not is_preface(message)):
                self.walk = replace(self.walk, question=text, asked=True)
            if self.walk.thumbnail is None and images:
                self.walk = replace(self.walk, thumbnail=images.pop(0), thumbnail_record=n)
        elif images and self.steps[-1].image is None:
            self.steps[-1] = replace(self.steps[-1], image=images.pop(0), shown=n)
        if self.steps and not self.noted and text:
            heard = "\n".join(filter(None, (self.steps[-1].heard, text)))
            self.steps[-1] = replace(self.steps[-1], heard=heard)
        for image in images:
            number = len(self.steps) + 1
            self.steps.append(Step(number, number, image=image, shown=n))

    def finished(self) -> Walk:
        """The walk. If no note says so, a last answer that asks for nothing is the final one."""
        if not self.formal and self.steps:
            last = self.steps[-1]
            final = _final(last.response.action)
            if final is not None:
                self.walk = replace(self.walk, final_answer=final)
            elif last.response.action is None and last.image is None and last.answer and last.response.reasoning:
                self.walk = replace(self.walk, final_answer=last.response.reasoning)
        return replace(self.walk, steps=tuple(self.steps))


def _final(action: Any) -> str | None:
    """The answer in an action that ends a trajectory, None if it is none."""
    for key in ("arguments", "action"):
        action = action.get(key) if isinstance(action, dict) else action
    match = _FINAL.match(action) if isinstance(action, str) else None
    return match[1] if match else None


def _region(data: Mapping[str, Any]) -> Region | None:
    sides = data.get("region")
    if isinstance(sides, list) and len(sides) == 4 and all(isinstance(side, int) for side in sides):
        x, y, width, height = sides
        return Region(x, y, width, height, _object(data.get("region_extra")))
    return None


def _response(message: Message, data: Mapping[str, Any]) -> StepResponse:
    """What the model said at a step with a note: the note says how it is put down in the message, or what it is."""
    extra = _object(data.get("response_extra"))
    if isinstance(given := data.get("given"), dict):
        return StepResponse(_text(given.get("reasoning")), given.get("action"), extra)
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    form, action = data.get("action"), None
    if form in ("text", "json") and len(texts) > 1:
        action = json_or_text(texts[1]) if form == "json" else texts[1]  # redaction may have replaced a part of it
    return StepResponse(texts[0] if texts else "", action, extra)


def derived(message: Message) -> StepResponse:
    """Reasoning and action of any answer: its calls are the action, or what it writes after "Action:"."""
    texts = "\n".join(part.text for part in message.parts if isinstance(part, Text) and part.text != INTERRUPTED)
    thoughts = "\n".join(part.text or "\n".join(part.summary) for part in message.parts if isinstance(part, Reasoning))
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    if calls:
        texts = _SPELLED.sub("", texts)
        thoughts = thoughts or next((_thought(call) for call in calls), "")
        actions = [
            {"name": call.name, "arguments": call.raw if call.arguments is None else call.arguments} for call in calls
        ]
        return StepResponse("\n\n".join(filter(None, (thoughts, texts))), actions[0] if len(actions) == 1 else actions)
    if (split := _SAID.match(texts)) is not None:
        return StepResponse("\n\n".join(filter(None, (thoughts, split[1]))), split[2])
    return StepResponse("\n\n".join(filter(None, (thoughts, texts))))


def _thought(call: ToolCall) -> str:
    """The reasoning that some agents have a model put into the arguments of a call."""
    return _text(call.arguments.get("thought")) if isinstance(call.arguments, dict) else ""


def _heard(message: Message) -> str:
    """The texts of a user's message and of the results in it."""
    texts: list[str] = []
    for part in message.parts:
        inner = part.parts if isinstance(part, ToolResult) else (part,)
        texts += [nested.text for nested in inner if isinstance(nested, Text)]
    return "\n".join(texts)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


# -- what the model still saw --------------------------------------------------------------------


def _seen(found: Walk, records: Sequence[Record], most: int | None) -> Iterator[Step]:
    """The steps, each with the images that the model still saw: those recorded before its answer that no decision then
    in force had removed."""
    decided = [record.n for record in records if isinstance(record.body, Decision)]
    visible: set[tuple[int, str]] = set()
    passed = 0  # how many decisions were in force when `visible` was computed
    for i, step in enumerate(found.steps):
        if not step.answer:
            yield step
            continue
        decided_before = bisect_left(decided, step.answer)
        if decided_before > passed:
            passed = decided_before
            visible = set(_images(select([record for record in records if record.n < step.answer])[0]))
        since = decided[passed - 1] if passed else 0
        images = [
            (earlier.number, earlier.shown, earlier.image) for earlier in found.steps[:i] if earlier.image is not None
        ]
        limit = step.limit if most is None else most
        newest = {number for number, *_ in (images if limit is None else images[max(0, len(images) - limit) :])}
        if found.thumbnail is not None:
            images.insert(0, (0, found.thumbnail_record, found.thumbnail))
            newest.add(0)
        saw = {number for number, n, image in images if n > since or (n, _name(image)) in visible} & newest
        gone = tuple(number for number, n, _ in images if n and number not in saw)
        yield replace(step, saw=tuple(sorted(saw)), gone=gone)


def _images(view: Iterable[Shown]) -> Iterator[tuple[int, str]]:
    for shown in view:
        for media in media_parts(shown.message):
            yield shown.records[0], _name(media)


def _name(media: Media) -> str:
    return media.sha256 or media.url or media.file_id
