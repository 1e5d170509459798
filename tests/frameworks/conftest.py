"""Programs of frameworks in environments of their own: marked `frameworks`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from framework_runs import Bench


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them as `frameworks`."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.frameworks)


@pytest.fixture
def bench(fake_server: Callable[..., Any]) -> Iterator[Bench]:
    """A fake server behind a recording proxy, and programs that talk to it."""
    made = Bench(fake_server)
    yield made
    made.close()
