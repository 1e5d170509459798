"""docs/importing.md is whole: no importer is left out of its table, and none is made up."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from turnlog.importers import IMPORTERS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "importing.md").read_text("utf-8")


def test_the_page_has_what_the_formats_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A format that was added or changed would not be in docs/importing.md: run scripts/formats_table.py."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "scripts"))
    from formats_table import PAGE as page
    from formats_table import written

    assert page.read_text("utf-8") == written(page.read_text("utf-8"))
    sys.modules.pop("formats_table")


def test_the_table_has_every_importer_in_order() -> None:
    """A format that stands nowhere is one that nobody knows can be imported."""
    assert re.findall(r"(?m)^\| `([^`]+)` \|", PAGE) == [importer.name for importer in IMPORTERS]


def test_names_are_told_apart() -> None:
    """Two importers of one name could not be told apart in a message."""
    names = [importer.name for importer in IMPORTERS]
    assert len(set(names)) == len(names)
