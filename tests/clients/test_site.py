"""The documentation as a web site, as `make site` left it in site/: it is read from the disk, without a server."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from browsing import browser

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "site"
_LOADED = re.compile(r"""<(?:script|link rel="(?:stylesheet|icon)")[^>]*?\s(?:src|href)="([^"]+)""")


@pytest.fixture(scope="module")
def site() -> Path:
    """The folder of the built site; skips where it is absent, or older than what it is built by."""
    built = SITE / "index.html"
    if not built.exists() or built.stat().st_mtime < (ROOT / "mkdocs.yml").stat().st_mtime:
        pytest.skip("site/ is absent, or older than mkdocs.yml: make site")
    return SITE


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    """A script or style that a page takes from a server, or that is not there, is missing for who reads offline."""
    pages = sorted(site.rglob("*.html"))
    loaded = {(page, link) for page in pages for link in _LOADED.findall(page.read_text("utf-8"))}
    assert {link for _, link in loaded if link.endswith("/iframe-worker.js")} != set()
    # the page for a server's error 404 names files from the server's root
    places = {page: site if page.name == "404.html" else page.parent for page in pages}
    assert [(page.name, link) for page, link in loaded if not (places[page] / link.lstrip("/")).is_file()] == []


def test_every_page_is_in_the_index_of_the_search(site: Path) -> None:
    """Pages opened from the disk may not fetch a file, so they load the index as a script: a page that is not in it
    is never found."""
    index = (site / "search" / "search_index.js").read_text("utf-8").removeprefix("var __index = ")
    indexed = {place["location"].partition("#")[0] for place in json.loads(index)["docs"]}
    pages = {page.relative_to(site).as_posix() for page in site.rglob("*.html")} - {"404.html"}
    assert indexed == pages


@pytest.mark.parametrize("page", ["index.html", "api/errors.html"])
def test_the_search_finds_a_page_from_the_disk(site: Path, page: str) -> None:
    """A reader who types a word into a page opened from the disk, and is shown nothing."""
    opening = browser()
    if opening is None:
        pytest.skip("Chromium or the package playwright is absent")
    with opening as opened, opened.from_disk(site / page) as (view, wrong):
        view.locator("[data-md-component=search-query]").first.focus()
        view.keyboard.type("gc_on_open")
        # the first letters already have results: those of the whole word are waited for
        for name in ("configuration.html", "retention.html"):
            found = view.locator(f'.md-search-result__link[href^="{(site / name).as_uri()}"]')
            found.first.wait_for(state="attached")
        assert wrong == []
