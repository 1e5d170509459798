"""An agent that looks, thinks and moves: its steps recorded in a session, and requests made from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .._platform.given import kind_given, text_given
from ..errors import InputError
from ..log.budget import Strategy
from ..log.messages import Media, Message, Text, ToolCall, ToolResult
from ..log.records import Decision, Record
from ..log.store import Draft
from ..models.target import Target
from ..providers import provider
from ..requests.request import Request
from ..session.loader import ImageNumbers
from ..session.reader import SessionLog
from ..session.session import Session
from ..stores.memory import MemoryStore
from ..tokens.dimensions import dimensions, image_type
from ..view.compaction.situation import shortening
from ..view.compaction.steps.images import placeholder
from ..view.decisions import active_decisions
from ..view.fold import select
from ..view.types import Shown, starts_turn
from .images import image_given, smaller
from .recording import answer_note, header, question, said, shown, step_note
from .steps import Walk, derived, walk
from .trajectory import Trajectory
from .values import Region, StepResponse, region_of

# -- newest ----------------------------------------------------------------------------------------
#
# A session of which requests show only the newest images, while nothing of that is put on record.
#
# The strategy's own rule would leave the same images out, but only after all of them were read and measured. Here the
# decision is made first, from the records alone, and added to a copy of the log in memory. Requests are made from
# that copy: the images that left are never read.


class _Copy(MemoryStore):
    """The records of a session in memory; media are read from the session's own store."""

    def __init__(self, log: SessionLog) -> None:
        super().__init__()
        self._log = log

    def get_blob(self, sha256: str) -> bytes:
        return self._log.blob(sha256)


def with_newest(session: Session, most: int) -> Session:
    """A copy of a session in which only the thumbnail and the newest `most` images are shown."""
    records = list(session.log.records())
    copy = _Copy(session.log)
    copy.create(session.id)
    copy.append(session.id, [Draft(record.body, record.time) for record in records])
    decision = _left_out(records, most, ImageNumbers(copy, session.id))
    if decision is not None:
        copy.append(session.id, [Draft(decision)])
    return Session(copy, copy.info(session.id))


def _left_out(records: Sequence[Record], most: int, numbers: ImageNumbers) -> Decision | None:
    """The decision that replaces all images but the newest, the thumbnail and pinned ones; the same that
    `view.compaction.steps.images` makes for the cap of a strategy."""
    view = [shown for shown in select(records)[0] if not shown.stands_in]
    images = [(shown.records[0], path) for shown in view for path in _images(shown)]
    stays = _pinned(records)
    first = next((shown for shown in view if starts_turn(shown)), None)
    thumbnail = next(((first.records[0], path) for path in _images(first)), None) if first is not None else None
    going = [image for image in images[: max(0, len(images) - most)] if image != thumbnail and image[0] not in stays]
    texts = [[n, list(path), placeholder(_number(n, path, records, numbers))] for n, path in going]
    return shortening("images", "texts", texts, f"more than {most} images")


def _images(shown: Shown) -> Iterator[tuple[int, ...]]:
    for i, part in enumerate(shown.message.parts):
        if isinstance(part, Media) and part.kind == "image":
            yield (i,)
        elif isinstance(part, ToolResult):
            yield from (
                (i, j) for j, inner in enumerate(part.parts) if isinstance(inner, Media) and inner.kind == "image"
            )


def _pinned(records: Sequence[Record]) -> set[int]:
    return {decision.first for decision in active_decisions(records).values() if decision.action == "pin"}


def _number(n: int, path: tuple[int, ...], records: Sequence[Record], numbers: ImageNumbers) -> int:
    """The running number of an image: of its step, if it belongs to one."""
    message = records[n - 1].message
    raw = [] if message is None else list(_images(Shown(message, (n,))))
    return numbers.before(n) + 1 + (raw.index(path) if path in raw else 0)


_ONLY_ONE = "Not run: a step makes one move, and the first call of this answer was it."


class Navigation:
    """The steps of an agent that moves through images, in a session.

    `question` and `thumbnail` begin it. In a session that has steps already, they are left out, and the navigation goes
    on after the last step. Images are bytes, base64 or a Path. With `slide_width` and `slide_height`, regions must be
    inside the slide. With `max_side`, larger images are scaled down to that many pixels before they are recorded, which
    needs Pillow; the step's note says from which size. `system` is the system text.

    Raises InputError if the session has another question, and for an image that is none or is too large.
    """

    def __init__(
        self,
        session: Session,
        question: str = "",
        thumbnail: Any = None,
        *,
        wsi_path: str = "",
        slide_width: int | None = None,
        slide_height: int | None = None,
        system: str = "",
        max_side: int | None = None,
    ) -> None:
        kind_given("session", session, Session, "what turnlog.open returns")
        self.session = session
        self._side = _positive("max_side", max_side)
        self._limit: int | None = None  # of the last request
        walked = walk(session.log.records())
        if not walked.asked:
            walked = self._begun(question, thumbnail, wsi_path, slide_width, slide_height, system)
        elif text_given("question", question) and question != walked.question:
            raise InputError(
                f"session {session.id!r} has another question, {walked.question!r:.200}; leave question out"
            )
        self._steps = len(walked.steps)
        self._slide = (walked.slide_width, walked.slide_height)

    def __repr__(self) -> str:
        return f"Navigation({self.session.id!r}, {self._steps} steps)"

    def _begun(
        self, text: str, thumbnail: Any, wsi_path: str, width: int | None, height: int | None, system: str
    ) -> Walk:
        if not text_given("question", text).strip():
            raise InputError("question must not be empty: it is what the trajectory answers")
        note = header(
            text_given("wsi_path", wsi_path), _positive("slide_width", width), _positive("slide_height", height)
        )
        image = None if thumbnail is None else self._image(thumbnail, "thumbnail", {})
        if text_given("system", system):
            self.session.system(system)
        self.session.note(note.topic, data=note.data)
        self.session.add(question(text, image))
        return Walk(slide_width=width, slide_height=height)

    # -- recording -------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """The number of steps so far."""
        return self._steps

    @property
    def trajectory(self) -> Trajectory:
        """The steps so far, with their images."""
        return Trajectory.from_session(self.session)

    def add_turn(
        self,
        image: Any,
        reasoning: str = "",
        action: Any = None,
        region: Any = None,
        *,
        response: Any = None,
        extra: dict[str, Any] | None = None,
    ) -> int:
        """Record a step: what the model said, and the image that its action led to. Returns the number of the step.

        `action` is text or JSON, `region` a Region or its four numbers. With `response`, the SDK's response object (or
        its JSON) is recorded as the answer, with usage, thinking and signatures; `reasoning` and `action` are then
        taken from it where they are not given. If the answer calls a tool, the image is the result of the first call.
        `extra` is kept with the step and never sent. Raises InputError, and records nothing, if the image is not one or
        too large, or if the region is not inside the slide; FormatError if `response` is no answer.
        """
        number = self._steps + 1
        place = region_of(region)
        if place is not None and (wrong := place.misfit(*self._slide)):
            raise InputError(f"step {number}: {wrong}")
        if response is None and not text_given("reasoning", reasoning).strip() and action in (None, ""):
            raise InputError(f"step {number} says nothing: give reasoning, an action or the model's response")
        scaled: dict[str, Any] = {}
        media = self._image(image, f"step {number}: image", scaled)
        if self._limit is not None:
            scaled["max_history_images"] = self._limit
        self._record(number, StepResponse(reasoning, action), place, media, response, extra, scaled)
        self._steps = number
        return number

    def _record(
        self,
        number: int,
        spoken: StepResponse,
        region: Region | None,
        media: Media,
        response: Any,
        extra: dict[str, Any] | None,
        about: dict[str, Any],
    ) -> None:
        session, content = self.session, shown(number, region, media)
        calls: list[ToolCall] = []
        if response is None:
            session.add(said(spoken))
        else:
            answer = session.receive(response)
            from_answer, calls = derived(answer.message), answer.tool_calls
            about["given"] = {
                "reasoning": spoken.reasoning or from_answer.reasoning,
                "action": spoken.action or from_answer.action,
            }
        note = step_note(number, number, spoken, region, extra=extra, **about)
        session.note(note.topic, data=note.data)
        session.add(Message("user", _results(calls, content) if calls else content), step=number)

    def answer(self, text: str = "", *, response: Any = None) -> None:
        """Record the final answer: a text, or the SDK's response object. Raises InputError for neither."""
        if response is None and not text_given("text", text).strip():
            raise InputError("the final answer must not be empty: give its text or the model's response")
        if response is None:
            self.session.assistant(text)
        else:
            self.session.receive(response)
        note = answer_note(None, spoken=True)
        self.session.note(note.topic, data=note.data)

    def _image(self, image: Any, what: str, about: dict[str, Any]) -> Media:
        """The image as a part of a message, its bytes in the store; `about` gets the size from which it was scaled."""
        data = image_given(image, what)
        if self._side is not None and (small := smaller(data, self._side, f"{what}: max_side")) is not data:
            about["scaled_from"] = list(dimensions(data) or ())
            data = small
        return self.session.media(data, image_type(data))

    # -- requests --------------------------------------------------------------------------------

    def request(self, target: Target | None = None, max_history_images: int | None = None) -> Request:
        """The next request: the system text, the question with the thumbnail, then for each step what the model said
        and the image that it led to.

        With `max_history_images`, only the thumbnail and so many of the newest images are sent; each other image
        becomes the text "[Image from Step 3 removed to save context]". Nothing of this is put on record, so the next
        request may show other images. Limits of the provider, decisions on record and the session's budget hold all the
        same: `edits` and `losses` name what they change. Raises the errors of `Session.request`.
        """
        most = max_history_images
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 0):
            raise InputError(f"max_history_images must be a whole number of images, 0 or more, or None, not {most!r}")
        steps = ("images", "slide")
        strategy = Strategy("navigation", steps, max_history_images=most, max_history_turns=None)
        shown = self.session if most is None else with_newest(self.session, most)
        request = shown.preview(target, strategy=strategy)
        self._limit = most
        return request

    def get_messages(self, target: Target | None = None, max_history_images: int | None = None) -> list[dict[str, Any]]:
        """The messages of `request`, in the format of the target's provider. Where a provider takes the system text
        beside the messages (Anthropic, Google), it is in `request(...).body`."""
        request = self.request(target, max_history_images)
        messages: list[dict[str, Any]] = request.body[provider(request.target.provider).conversation]
        return messages


def _results(calls: list[ToolCall], content: tuple[Text, Media]) -> tuple[ToolResult, ...]:
    """The results of an answer's calls: the first gets the image, the others were not run."""
    first, *others = calls
    return (
        ToolResult(first.id, first.name, content, kind=first.kind),
        *(ToolResult(call.id, call.name, (Text(_ONLY_ONE),), "canceled", kind=call.kind) for call in others),
    )


def _positive(name: str, value: int | None) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise InputError(f"{name} must be a whole number of pixels, at least 1, not {value!r}")
    return value
