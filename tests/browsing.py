"""Pages of trajectories in a real browser, and the images of requests."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from turnlog.log.messages import Media, media_parts
from turnlog.requests.request import Request
from turnlog.session.session import Session
from turnlog.view.fold import select
from turnlog.view.types import starts_turn

__all__ = ["Opened", "browser", "wrong_images"]

WIDTHS = (400, 1_600)


class Opened:
    """A browser that is open."""

    def __init__(self, browser: Any, folder: Path) -> None:
        self._browser = browser
        self._folder = folder

    def wrong_with(self, page: bytes, steps: int, shots: Path | None = None) -> list[str]:
        """What is wrong with a page of so many steps: console errors, requests, a step that cannot be reached, contents
        that are wider than the window. With `shots`, screenshots are kept under that name."""
        path = self._folder / "page.html"
        path.write_bytes(page)
        found: list[str] = []
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                view = self._browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
                try:
                    found += [f"{width} {scheme}: {line}" for line in _looked_at(view, path, steps, width)]
                    if shots is not None:
                        shots.parent.mkdir(parents=True, exist_ok=True)
                        view.screenshot(path=f"{shots}-{width}-{scheme}.png")
                finally:
                    view.close()
        return found

    @contextmanager
    def from_disk(self, path: Path) -> Iterator[tuple[Any, list[str]]]:
        """A file opened as a page, and a list that fills with what is wrong: errors, requests to elsewhere."""
        view = self._browser.new_page(viewport={"width": 1_600, "height": 900})
        wrong: list[str] = []
        _watch(view, wrong)
        try:
            view.goto(path.as_uri())
            yield view, wrong
        finally:
            view.close()

    def tab(self, width: int, scheme: str) -> tuple[Any, Any]:
        """A browser without any past, which is to be closed, and its page."""
        context = self._browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        return context, context.new_page()

    def evaluate(self, page: bytes, script: str) -> str:
        """What a script finds in a page, as text."""
        path = self._folder / "page.html"
        path.write_bytes(page)
        view = self._browser.new_page()
        try:
            view.goto(path.as_uri())
            return str(view.evaluate(script))
        finally:
            view.close()


def _looked_at(view: Any, path: Path, steps: int, width: int) -> list[str]:
    found: list[str] = []
    _watch(view, found)
    view.goto(path.as_uri())
    if view.locator("section.step").count() != steps:
        found.append(f"{view.locator('section.step').count()} steps, not {steps}")
    if steps > 1:
        for key, place in (("End", steps), ("Home", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("ArrowRight", 2)):
            view.keyboard.press(key)
            shown = view.locator("section.step.current")
            if shown.count() != 1 or shown.get_attribute("data-step") != str(place):
                found.append(f"{key} does not show step {place}")
        view.locator(".controls input").fill("1")
        if view.locator("section.step.current").get_attribute("data-step") != "1":
            found.append("the slider does not show its step")
        view.keyboard.press("Escape")
    if (wide := view.evaluate("document.documentElement.scrollWidth")) > width:
        found.append(f"{wide} pixels wide")
    gone = "u => !document.querySelector(u.getAttribute('href'))"
    lost = view.evaluate(f"Array.from(document.querySelectorAll('use')).filter({gone}).length")
    return [*found, *([f"{lost} pictures that are not there"] if lost else [])]


def _watch(view: Any, wrong: list[str]) -> None:
    """Add to `wrong` each message of the console, each error, and each request to elsewhere."""
    view.on("console", lambda message: wrong.append(f"console: {message.text}"))
    view.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    view.on("request", lambda request: wrong.append(f"request: {request.url[:80]}") if _is_foreign(request) else None)


def _is_foreign(request: Any) -> bool:
    return not request.url.startswith(("file:", "data:"))


def browser() -> AbstractContextManager[Opened] | None:
    """The system's Chromium, driven by Playwright; None where one of them is missing."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    return None if program is None else _opened(sync_playwright, program)


@contextmanager
def _opened(start: Any, program: str) -> Iterator[Opened]:
    with tempfile.TemporaryDirectory() as folder, start() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield Opened(running, Path(folder))
        finally:
            running.close()


def wrong_images(session: Session, request: Request, most: int | None) -> list[str]:
    """What is wrong with the images that a request shows: the first image of the task and exactly the newest `most` of
    the conversation stay, as far as the provider has room for them."""
    view = select(session.history())[0]
    every = [(shown.records[0], media.sha256) for shown in view for media in _images_of(shown)]
    first = next((shown for shown in view if starts_turn(shown)), None)
    stays = set(every if most is None else every[max(0, len(every) - most) :])
    stays |= {(first.records[0], media.sha256) for media in _images_of(first)[:1]} if first is not None else set()
    now = {(shown.records[0], media.sha256) for shown in request.view for media in _images_of(shown)}
    lost = {n for loss in request.losses for n in loss.records}
    missing = {one for one in stays - now if one[0] not in lost}
    return [f"image of record {n} is sent" for n, _ in now - stays] + [
        f"image of record {n} is not" for n, _ in missing
    ]


def _images_of(shown: Any) -> list[Media]:
    return [media for media in media_parts(shown.message) if media.kind == "image"]
