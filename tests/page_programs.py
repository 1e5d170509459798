"""Programs of pages of the documentation, loaded as modules."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

__all__ = ["loaded_from"]


def loaded_from(page: Path, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program that a page has as the file `name`, written to `folder` and run."""
    found = re.search(rf"<!-- file {re.escape(name)} -->\n```python\n(.*?)^```$", page.read_text("utf-8"), re.S | re.M)
    assert found is not None
    (folder / name).write_text(found[1], "utf-8")
    spec = importlib.util.spec_from_file_location(f"{Path(name).stem}_of_the_page", folder / name)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module
