"""What every test may ask for: the shared material, the independent judge, a fake provider server.

The shared material lies beside the repository and is not part of it; tests that need it skip
visibly where it is absent.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from commands import transcript, turnlog
from draws import LONG
from postgres_server import PostgresServer, binaries, running_server

__all__ = ["transcript", "turnlog"]  # fixtures of tests of the command line

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"

# No deadline anywhere: it measures the machine's load, not the code. CI draws the same examples
# every time, so that a red run is about the change it ran on.
_ALWAYS: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("default", max_examples=40, **_ALWAYS)
settings.register_profile("ci", max_examples=40, derandomize=True, print_blob=True, **_ALWAYS)
settings.register_profile("long", max_examples=5_000, print_blob=True, **_ALWAYS)
settings.register_profile("fast", max_examples=5, derandomize=True, **_ALWAYS)
settings.load_profile(os.environ.get("TURNLOG_EXAMPLES") or ("ci" if os.environ.get("CI") else "default"))

FEW = 2
"""The most cases of one test that a fast run takes."""

gc.disable()  # until all is collected: it would find nothing, in five seconds

# A shell that runs the tests in the background has them ignore Ctrl-C, and so all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    """Say which turnlog is tested: the source, or an installed package (tests/clients/test_wheel.py looks)."""
    return f"turnlog: {importlib.import_module('turnlog').__file__}"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where the tests with real SDKs are left out, do not import these: it takes every worker seconds."""
    left_out = config.getoption("markexpr").startswith("not clients")
    return True if left_out and collection_path == ROOT / "tests" / "clients" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a fast run, take a few cases of each test of which there are many: the first, and others as far apart."""
    if os.environ.get("TURNLOG_EXAMPLES") != "fast" or not config.getoption("markexpr").endswith("not slow"):
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    few = {same[at * len(same) // FEW] for same in cases.values() for at in range(FEW)}
    config.hook.pytest_deselected(items=[item for item in items if item not in few])
    items[:] = [item for item in items if item in few]


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: do not have the collector look through it again and again."""
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)  # what tests make is gone soon: to look ten times as seldom saves a twentieth


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """In a long run, what tests counted while they drew their cases."""
    for report in terminalreporter.getreports("passed") if LONG else ():
        for name, counted in report.user_properties:
            terminalreporter.write_line(f"{report.nodeid}: {name}: {counted}")


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test reads what the user who runs it has configured, or writes to that user's store."""
    for name in [name for name in os.environ if name.startswith("TURNLOG_") and name != "TURNLOG_EXAMPLES"]:
        monkeypatch.delenv(name)
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path_factory.getbasetemp() / "nowhere"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared material beside the repository; skips where there is none."""
    if not SHARED.is_dir():
        pytest.skip(f"shared material is absent: expected the folder {SHARED}")
    return SHARED


def _import_beside(folder: Path, name: str) -> ModuleType:
    """A module of the shared folder. It imports its neighbours by plain name, hence the path."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return importlib.import_module(name)


@pytest.fixture(scope="session")
def oracle(shared: Path) -> ModuleType:
    """The independent judge of request bodies: `check_*(body) -> [errors]`, [] when accepted."""
    return _import_beside(shared / "oracle", "oracle")


@pytest.fixture(scope="session")
def servers(shared: Path) -> ModuleType:
    """What servers that imitate OpenAI accept, and how they answer."""
    return _import_beside(shared / "oracle", "servers")


@pytest.fixture(scope="session")
def binding(shared: Path) -> ModuleType:
    """The independent judge of bound thinking: `Conversation(model)` is told what is sent and answered, in order."""
    return _import_beside(shared / "oracle", "binding")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server, one for each process of the run; skips where none is installed."""
    pytest.importorskip("psycopg", reason="the package psycopg is absent", exc_type=ImportError)
    if (folder := binaries()) is None:
        pytest.skip("no PostgreSQL server is installed: apt-get install postgresql")
    with running_server(folder) as server:
        yield server


@pytest.fixture
def fake_server(oracle: ModuleType, shared: Path) -> Iterator[Callable[..., Any]]:
    """A factory of running loopback servers that refuse what the oracle refuses.

    `fake_server(script=[...], context_limit=..., ...)` starts one; all stop with the test.
    """
    module = _import_beside(shared / "oracle", "fake_server")
    running: list[Any] = []

    def start(*args: Any, **options: Any) -> Any:
        server = module.FakeServer(*args, **options).start()
        running.append(server)
        return server

    yield start
    for server in running:
        server.stop()
