"""docs/importing.md is whole: no importer is left out of its table, and none is made up."""

from __future__ import annotations

import re
from pathlib import Path

from turnlog.importers import IMPORTERS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "importing.md").read_text("utf-8")


def test_the_table_has_every_importer_in_order() -> None:
    """A format that stands nowhere is one that nobody knows can be imported."""
    assert re.findall(r"(?m)^\| `([^`]+)` \|", PAGE) == [importer.name for importer in IMPORTERS]


def test_names_are_told_apart() -> None:
    """Two importers of one name could not be told apart in a message."""
    names = [importer.name for importer in IMPORTERS]
    assert len(set(names)) == len(names)
