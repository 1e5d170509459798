"""Clients are closed behind each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sdk_clients import close_clients


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_clients()
