"""A trajectory as one HTML page: the path over the thumbnail, and each step with what the model saw, said and did.

The page is complete without its script, which shows one step at a time. It has no addresses but its own anchors, and a
Content-Security-Policy that allows nothing else.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import sqrt
from pathlib import Path

from .._platform.units import counted
from ..display.escapes import Markup, end, start, tag, text
from ..display.frame import Ways, foot, head, opening
from ..display.parts import folded, preformatted, sized
from ..display.wording import in_short
from ..errors import BlobMissing, InputError
from ..log.bills import Bills
from ..log.messages import Media
from ..log.store import Problem
from ..log.usage import Usage, summed
from ..session.reader import SessionLog
from ..tokens.dimensions import dimensions, image_type
from ..trajectory.gestures import Gesture, gestures_of
from ..trajectory.images import encoded, misfit, opened
from ..trajectory.steps import Step, Walk, walk

_DATA = Path(__file__).parent / "data"

# -- pictures --------------------------------------------------------------------------------------
#
# The pictures of a trajectory's page: each is put into the page once, small enough for the page as a whole.

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
        self._media = {image.sha256: image for image in media if image.sha256}
        self._share = _share([image.size for image in self._media.values()])
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
        small = any(image.size > self._share for image in self._media.values())
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
    jpeg = encoded(image, "JPEG", 75)
    for _ in range(_TRIES):
        if len(jpeg) <= most:
            break
        scale = sqrt(most / len(jpeg)) * 0.95
        sides = max(_LEAST_SIDE, int(image.width * scale)), max(_LEAST_SIDE, int(image.height * scale))
        image = image.resize(sides)
        jpeg = encoded(image, "JPEG", 75)
    return jpeg


_LONG = 1_500
_TITLE = 90


def as_trajectory(
    log: SessionLog, problems: list[Problem], *, max_history_images: int | None = None
) -> Iterator[bytes]:
    """The page, in pieces of UTF-8. Images that cannot be shown are problems. With `max_history_images`, it says what a
    model sees that is sent only so many of the newest images; without it, what decisions on record left. Raises
    SessionNotFound, CorruptRecord."""
    log = log.on_disk
    walked = walk(log.records(), max_history_images)
    media = [image for image in (walked.thumbnail, *(step.image for step in walked.steps)) if image is not None]
    return (piece.encode("utf-8") for piece in _page(log, walked, Pictures(log, media, problems)))


def _page(log: SessionLog, found: Walk, pictures: Pictures) -> Iterator[Markup]:
    style = (_DATA / "trajectory.css").read_text("utf-8")
    whole = " ".join(found.question.split()) or log.id
    title = whole if len(whole) <= _TITLE else f"{whole[:_TITLE].rsplit(' ', 1)[0]} …"
    script = (_DATA / "trajectory.js").read_text("utf-8")
    ways = Ways()
    yield head(title, ways, style=style, script=script)
    yield from opening(ways)
    yield from pictures.written()
    yield _top(log, found, title, pictures)
    yield start("main")
    mapped = any(step.region is not None for step in found.steps)
    if mapped:
        yield start("div", class_="split")
        yield _map(found, pictures)
        yield start("div", class_="list")
    before, heard = found.thumbnail, found.question
    for step in found.steps:
        yield from _step(step, None if mapped else before, gestures_of(step.response.action, heard), pictures)
        before, heard = step.image or before, step.heard or heard
    if not found.steps:
        yield tag("p", text("No steps."), class_="none")
    if found.final_answer is not None:
        yield from _answer(found)
    if mapped:
        yield Markup("</div></div>")
    yield from _controls(len(found.steps))
    yield end("main")
    yield tag("script", Markup(script))
    yield foot()


def _top(log: SessionLog, found: Walk, title: str, pictures: Pictures) -> Markup:
    images = sum(step.image is not None for step in found.steps) + (found.thumbnail is not None)
    facts = [counted(len(found.steps), "step"), counted(images, "image")]
    if found.slide_width and found.slide_height:
        facts.append(f"slide of {found.slide_width:,} × {found.slide_height:,} pixels")
    where = [text("Session "), tag("code", text(log.id, one_line=True))]
    if found.wsi_path:
        where += [text(" · "), tag("code", text(found.wsi_path, one_line=True))]
    lines = [tag("p", *where), tag("p", text(" · ".join(facts)))]
    if bills := _summed([*(bill for step in found.steps for bill in step.bills), *found.bills]):
        lines.append(tag("p", text(in_short(bills), one_line=True)))
    if found.question.strip() != title:
        lines.append(_foldable("Question", found.question, 0))
    if found.system:
        lines.append(_foldable("System text", found.system, 0))
    return tag("header", tag("h1", text(title, one_line=True), dir="auto"), *lines, pictures.note, class_="top")


def _summed(bills: Iterable[tuple[str, Usage]]) -> Bills:
    usages: dict[str, list[Usage]] = {}
    for model, usage in bills:
        usages.setdefault(model, []).append(usage)
    return {model: summed(some) for model, some in usages.items()}


def _controls(steps: int) -> Iterator[Markup]:
    if steps < 2:
        return
    yield start("nav", class_="controls", hidden="", aria_label="Steps")
    yield tag("button", text("◀"), type="button", class_="back", aria_label="Previous step")
    yield start("input", type="range", min="1", max=str(steps), value="1", step="1", aria_label="Step")
    yield tag("button", text("▶"), type="button", class_="next", aria_label="Next step")
    yield tag("output", text(f"{steps:,} steps"))
    yield tag("button", text("All"), type="button", class_="all", aria_label="Show all steps")
    yield end("nav")


def _answer(found: Walk) -> Iterator[Markup]:
    yield start("section", class_="answer", id="answer")
    yield tag("h2", text("Answer"))
    yield _foldable("Answer", found.final_answer or "(empty)", 4 * _LONG)
    if found.bills:
        yield tag("p", text(in_short(_summed(found.bills)), one_line=True), class_="hint")
    yield end("section")


# -- a step --------------------------------------------------------------------------------------


def _step(step: Step, before: Media | None, gestures: Sequence[Gesture], pictures: Pictures) -> Iterator[Markup]:
    """A step. `before` is the screenshot on which it acted, None where a map shows the places."""
    yield start("section", class_="step", id=f"step-{step.number}", data_step=str(step.number))
    yield tag("h2", tag("a", text(f"Step {step.number}"), href=f"#step-{step.number}"))
    figures = [_screen(before, gestures, pictures)] if before is not None and step.answer else []
    if step.image is not None:
        figures.append(_figure(step.image, _result_caption(step), pictures))
    columns = ("", " two", " three")[len(figures)]
    yield tag("div", *figures, tag("div", *_words(step, gestures), class_="words"), class_=f"sides{columns}")
    yield end("section")
    yield Markup("\n")


def _result_caption(step: Step) -> str:
    if step.region is not None:
        return f"After: region {step.region}"
    return "After" if step.answer else "Another image"


def _words(step: Step, gestures: Sequence[Gesture]) -> Iterator[Markup]:
    if gestures:
        yield tag("p", text(" · ".join(map(str, gestures)), one_line=True), class_="gesture")
    if step.response.reasoning:
        yield tag("h3", text("Reasoning"))
        yield _foldable("Reasoning", step.response.reasoning, 4 * _LONG)
    if step.response.action is not None:
        yield tag("h3", text("Action"))
        yield tag("div", _foldable("Action", _written(step.response.action), _LONG), class_="data")
    yield tag("dl", *_facts(step), class_="facts")
    if step.heard:
        yield _foldable("Results and other text", step.heard, 0)
    if step.extra:
        yield _foldable("Other fields", json.dumps(step.extra, ensure_ascii=False, indent=2), 0)


def _written(action: object) -> str:
    return action if isinstance(action, str) else json.dumps(action, ensure_ascii=False, indent=2)


def _facts(step: Step) -> Iterator[Markup]:
    rows = []
    if step.answer:
        rows.append(("The model saw", _seen(step)))
    if step.bills:
        rows.append(("Billed", in_short(_summed(step.bills))))
    numbers = [str(n) for n in (step.answer, step.shown) if n]
    rows.append(("Records", ", ".join(numbers) or "none"))
    for name, words in rows:
        yield tag("dt", text(name))
        yield tag("dd", text(words, one_line=True))


def _seen(step: Step) -> str:
    """The images that the model saw, and those that it had seen and did not see any more."""
    shown = ["the thumbnail"] if 0 in step.saw else []
    if numbers := [number for number in step.saw if number]:
        shown.append(
            f"the image{'s' if len(numbers) > 1 else ''} of step{'s' if len(numbers) > 1 else ''} {_ranges(numbers)}"
        )
    gone = f"; no longer that of {_ranges(step.gone)}" if step.gone else ""
    return (" and ".join(shown) or "no image") + gone


def _ranges(numbers: Sequence[int]) -> str:
    """Numbers in short: 1-3, 7."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in ranges)


def _foldable(name: str, words: str, longest: int) -> Markup:
    return preformatted(words) if len(words) <= longest else folded(sized(name, words), words)


# -- pictures ------------------------------------------------------------------------------------


def _figure(media: Media | None, caption: str, pictures: Pictures, marks: Iterable[Markup] = ()) -> Markup:
    """A picture under marks, with a caption."""
    size = pictures.size(media)
    if media is None or size is None:
        return tag("figure", tag("div", text(pictures.missing(media), one_line=True), class_="none"), _caption(caption))
    picture = _drawing(*size, [pictures.use(media, *size), *marks], caption)
    return tag("figure", picture, _caption(caption))


def _caption(words: str) -> Markup:
    return tag("figcaption", text(words, one_line=True))


def _drawing(width: int, height: int, inside: Sequence[Markup], label: str) -> Markup:
    return tag("svg", *inside, viewBox=f"0 0 {width} {height}", role="img", aria_label=label)


def _screen(media: Media | None, gestures: Sequence[Gesture], pictures: Pictures) -> Markup:
    """The screenshot that the model saw, with the places of its gestures."""
    size = pictures.size(media)
    marks: list[Markup] = []
    for gesture in gestures if size is not None else ():
        places = gesture.places(*(size or (1, 1)))
        radius = max(size or (1, 1)) / 60
        if len(places) > 1:
            points = " ".join(f"{x:g},{y:g}" for x, y in places)
            marks += [tag("polyline", points=points, class_="halo"), tag("polyline", points=points, class_="way")]
        for x, y in places:
            circle = {"cx": f"{x:g}", "cy": f"{y:g}", "r": f"{radius:g}"}
            marks += [tag("circle", class_="halo", **circle), tag("circle", class_="spot", **circle)]
    described = " · ".join(map(str, gestures))
    return _figure(media, "Before" + (f": {described}" if described else ""), pictures, marks)


def map_size(found: Walk, thumbnail: tuple[int, int] | None) -> tuple[int, int]:
    """The width and height in which regions are given: of the slide, else of the thumbnail, else of what they cover."""
    if found.slide_width and found.slide_height:
        return found.slide_width, found.slide_height
    regions = [step.region for step in found.steps if step.region is not None]
    if thumbnail is not None:
        return thumbnail
    return max(region.x + region.width for region in regions), max(region.y + region.height for region in regions)


def _map(found: Walk, pictures: Pictures) -> Markup:
    """The thumbnail with the numbered regions and the path between them."""
    width, height = map_size(found, pictures.size(found.thumbnail))
    unit = max(width, height) / 100
    inside: list[Markup] = []
    if found.thumbnail is not None and pictures.size(found.thumbnail) is not None:
        inside.append(pictures.use(found.thumbnail, width, height))
    placed = [(step.number, step.region) for step in found.steps if step.region is not None]
    for number, region in placed:
        box = {"x": str(region.x), "y": str(region.y), "width": str(region.width), "height": str(region.height)}
        inside.append(tag("rect", class_="region mark", data_step=str(number), **box))
    for (_, region), (number, next_region) in pairwise(placed):
        ends = {"x1": _middle(region.x, region.width), "y1": _middle(region.y, region.height)}
        ends |= {"x2": _middle(next_region.x, next_region.width), "y2": _middle(next_region.y, next_region.height)}
        lines = tag("line", class_="under", **ends), tag("line", class_="path", **ends)
        inside.append(tag("g", *lines, class_="mark", data_step=str(number)))
    for number, region in placed:
        x, y = max(region.x, 2 * unit), max(region.y, 2 * unit)
        disc = tag("circle", cx=f"{x:g}", cy=f"{y:g}", r=f"{2 * unit:g}", class_="disc")
        label_place = {"x": f"{x:g}", "y": f"{y:g}", "font-size": f"{2.6 * unit:g}"}
        name = tag("text", text(str(number)), class_="number", **label_place)
        inside.append(tag("g", disc, name, class_="mark", data_step=str(number)))
    drawing = _drawing(width, height, inside, f"The path of {len(placed)} regions over the thumbnail")
    return tag("figure", drawing, _caption("The regions in the order of the steps"), class_="map")


def _middle(begin: int, length: int) -> str:
    return f"{begin + length / 2:g}"
