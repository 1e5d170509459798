"""The screens in docs/cli.md are what the commands show."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_screens_of_the_manual_are_current() -> None:
    """A manual that shows what no command prints any more; `python scripts/screens.py` draws the screens again."""
    found = importlib.util.spec_from_file_location("drawn_screens", ROOT / "scripts/screens.py")
    assert found is not None and found.loader is not None
    screens = importlib.util.module_from_spec(found)
    found.loader.exec_module(screens)
    page = (ROOT / "docs/cli.md").read_text("utf-8")
    assert page.count("<!-- screen: ") == 12
    assert screens.written(page) == page
