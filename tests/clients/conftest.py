"""Tests with real SDK clients against a server: marked `clients`, and cleaned up after each one."""

from __future__ import annotations

import gc
import ssl
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from google.genai._gaos.utils import serializers
from pydantic import create_model
from sdk_clients import close_clients

_CLOSING = "Exception ignored in. <async_generator object \\w+[.](aiter_raw|__aiter__)"

_LONGEST = ("test_wheel.py", "test_real_programs.py", "test_browser.py")
"""What comes first, so that no worker is left with a long test at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them as `clients`. The collector may also run in the middle of a test, so its warning is ignored there, and
    that of a stream of an SDK that it meets while the SDK closes it."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.clients)
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings(f"ignore:{_CLOSING}:pytest.PytestUnraisableExceptionWarning"))
    items.sort(key=lambda item: _LONGEST.index(item.path.name) if item.path.name in _LONGEST else len(_LONGEST))


@pytest.fixture(autouse=True)
def _cleared() -> Iterator[None]:
    """Google's client leaves sockets of cut streams to the garbage collector: that is its way, not our leak."""
    yield
    close_clients()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    gc.freeze()  # what the SDKs load late stays too: looked through after each test, it took an eighth of the time


@pytest.fixture(scope="session", autouse=True)
def _made_once() -> Iterator[None]:
    """What the SDKs make anew each time, always the same, was two thirds of the time of test_mended_requests.py: each
    client reads the certificates of the machine, Google's more than once (no server here has one), and Google's makes a
    model of pydantic for every event of a stream."""
    models: dict[Any, Any] = {}

    def model(name: str, *, body: Any, **more: Any) -> Any:
        if (name, body) not in models:
            models[name, body] = create_model(name, body=body, **more)
        return models[name, body]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", cache(ssl.create_default_context))
        patch.setattr(serializers, "create_model", model)
        yield
