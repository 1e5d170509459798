"""The session of `examples/frameworks/openai_agents_session.py`, under openai-agents and under its own tests."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from framework_pythons import EXAMPLES, FOLDER, environment, python_with, run

import turnlog
from turnlog.session import SessionLog

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

VERSION = "0.24.0"
PACKAGES = (f"openai-agents=={VERSION}", "pytest==9.2.0", "pytest-asyncio==1.5.0", "httpx", "inline-snapshot")
OWN_TESTS = ("tests/memory/test_session.py", "tests/memory/test_session_limit.py")

EXCEPTED = {
    "close_closes_worker_thread_connections": "counts SQLite connections",
    "reaps_connections_from_exited_worker_threads": "counts SQLite connections",
    "closes_retired_connections_before_the_next_allocation": "counts SQLite connections",
    "keeps_connections_of_live_worker_threads": "counts SQLite connections",
    "pop_item_skips_corrupt_most_recent": "writes a damaged row into the SQLite table",
    "pop_item_returns_none_after_dropping_only_corrupt_rows": "writes a damaged row into the SQLite table",
    "get_items_limit_skips_corrupt_newest_rows": "writes a damaged row into the SQLite table",
    "get_items_session_settings_limit_skips_corrupt_rows": "writes a damaged row into the SQLite table",
    "file_lock_is_shared_across_instances": "looks at the locks of SQLiteSession",
    "failed_add_items_releases_write_lock": "looks at SQLite's write lock",
    "failed_clear_session_rolls_back": "drops a SQLite table",
    "failed_pop_item_releases_write_lock": "drops a SQLite table",
    "rollback_failure_evicts_connection": "replaces a SQLite connection",
    "close_retries_quarantined_connection": "replaces a SQLite connection",
    "post_commit_cancellation_propagates_after_known_outcome": "replaces a SQLite connection",
}
"""Tests of openai-agents about the inside of its SQLiteSession, without `test_sqlite_session_`, and why."""


@pytest.fixture(scope="module")
def python() -> Path:
    """The Python that has openai-agents."""
    return python_with("openai-agents", *PACKAGES)


@pytest.fixture(scope="module")
def source(python: Path) -> Path:
    """The source package of openai-agents, which holds its tests: the folder that OPENAI_AGENTS_SOURCE names, or
    downloaded. Skips where it is not to be had."""
    if given := os.environ.get("OPENAI_AGENTS_SOURCE"):
        return Path(given)
    folder = FOLDER / f"openai_agents-{VERSION}"
    if not folder.exists():
        package = f"openai-agents=={VERSION}"
        words = ("--quiet", "--no-deps", "--no-binary", "openai-agents", "--dest", FOLDER)
        run(python, "-m", "pip", "download", *words, package)
        with tarfile.open(FOLDER / f"openai_agents-{VERSION}.tar.gz") as archive:
            archive.extractall(FOLDER, filter="data")
    return folder


def test_the_program_of_the_page_talks(python: Path, fake_server: Callable[..., Any], tmp_path: Path) -> None:
    """Whoever copies the program must get answers, and every item of the conversation on record, calls with their
    results."""
    call = {"tool_calls": [{"name": "weather", "args": {"city": "Oslo"}}]}
    server = fake_server(script=[call, {"text": "No."}, {"text": "Yes."}])
    variables = environment(server.url, STORE=str(tmp_path / "agents.db"))
    program = [python, EXAMPLES / "openai_agents_session.py"]
    assert subprocess.check_output(program, env=variables, cwd=tmp_path, text=True) == "No.\nYes.\n"
    assert server.rejections() == []
    with turnlog.open("trip", store=tmp_path / "agents.db", create=False) as session:
        items = session.messages()
        assert session.log.validate() == [] and [each.outcome for each in session.log.calls()] == ["ok"]
    # The last request had all but the last answer, as the program put them in.
    assert server.requests[-1].body["input"] == items[:-1]
    assert [item.get("type", "message") for item in items] == [
        *("message", "function_call", "function_call_output", "message", "message", "message")
    ]


POPS = """
import asyncio, json, sys
from openai_agents_session import TurnlogSession

ITEMS = json.loads(sys.argv[2])

async def main():
    session = TurnlogSession("pops", sys.argv[1])
    await session.add_items(ITEMS)
    left = []
    for n in reversed(range(len(ITEMS))):
        assert await session.pop_item() == ITEMS[n]
        left.append(await session.get_items() == ITEMS[:n])
    await session.add_items(ITEMS)
    again = await session.get_items() == ITEMS
    await session.clear_session()
    print(left, again, await session.get_items(), await session.pop_item())
    session.close()

asyncio.run(main())
"""


def test_items_are_popped_out_of_a_tool_exchange(python: Path, tmp_path: Path) -> None:
    """openai-agents pops what it added if a request fails and is sent again, calls and reasoning too; its own tests pop
    only texts. The log keeps all of it."""
    items = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Is it warm?"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": "{}"},
        {"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "weather", "arguments": '{"a":  1}'},
        {"type": "function_call_output", "call_id": "c1", "output": "4 degrees"},
        {"type": "function_call_output", "call_id": "c2", "output": ""},
    ]
    place = tmp_path / "pops.db"
    words = [python, "-c", POPS, place, json.dumps(items)]
    told = subprocess.check_output(words, env=environment(), text=True)
    assert told == f"{[True] * len(items)} True [] None\n"
    store = turnlog.stores.open_store(place)
    assert SessionLog(store, "pops").message_count == 2 * len(items)
    store.close()


def test_it_passes_the_tests_of_openai_agents(python: Path, source: Path, tmp_path: Path) -> None:
    """openai-agents' tests say what a session has to do. All run against ours, except those about the inside of SQLite,
    each of which must still be there."""
    chosen = " and ".join(f"not {name}" for name in EXCEPTED)
    words = [python, "-m", "pytest", "-q", "-p", "turnlog_as_sqlite_session", "-p", "no:cacheprovider"]
    variables = environment()
    variables["PYTHONPATH"] += os.pathsep + str(source)
    done = subprocess.run(
        [*words, "-k", chosen, *OWN_TESTS], cwd=source, env=variables, capture_output=True, text=True, check=False
    )
    assert re.search(r"^54 passed, 17 deselected in ", done.stdout, re.MULTILINE), done.stdout[-3000:]
    there = (source / OWN_TESTS[0]).read_text("utf-8")
    assert [name for name in EXCEPTED if f"def test_sqlite_session_{name}(" not in there] == []
