"""What every program here is given: the server, turnlog's client or none, the tasks, the tool, where answers go.

    python PROGRAM.py FORM URL STORE OUT [--mode plain|log|budget] [--turns 30] [--size 4000]

A program says each task to its framework and keeps the conversation in the way of that framework. `mode`: without
turnlog, with it and no budget, with a budget of 8,000 tokens. OUT becomes a JSON file: the answers, the words of the
error that ended the program before its time, and the seconds of CPU.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import json
import logging
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from file_tasks import SYSTEM, contents, tasks

__all__ = ["FORM", "GIVEN", "SYSTEM", "URL", "async_client", "client", "read_file", "talk"]

parser = argparse.ArgumentParser()
parser.add_argument("form")
parser.add_argument("url")
parser.add_argument("store")
parser.add_argument("out", type=Path)
parser.add_argument("--mode", choices=["plain", "log", "budget"], default="plain")
parser.add_argument("--turns", type=int, default=30)
parser.add_argument("--size", type=int, default=4_000)
GIVEN = parser.parse_args()
FORM, URL = GIVEN.form, GIVEN.url
BUDGET = 8_000

os.environ.update(
    OPENAI_API_KEY="k", ANTHROPIC_API_KEY="k", GEMINI_API_KEY="k", GOOGLE_API_KEY="k",
    OPENAI_BASE_URL=URL + "/v1", ANTHROPIC_BASE_URL=URL, GOOGLE_GEMINI_BASE_URL=URL,
    OPENAI_AGENTS_DISABLE_TRACING="1", LANGSMITH_TRACING="false", OTEL_SDK_DISABLED="true",
)  # fmt: skip
logging.disable(logging.WARNING)
_clients: list[Any] = []


def _made(kind: str, library: str) -> Any:
    from turnlog import transport

    make = transport.client if kind == "sync" else transport.async_client
    more = {} if library == "httpx2" else {"library": library}
    _clients.append(make(GIVEN.store, **({"budget": BUDGET} if GIVEN.mode == "budget" else {}), **more))
    return _clients[-1]


def client(keyword: str, library: str = "httpx2") -> dict[str, Any]:
    """The argument that gives turnlog's client to an SDK under a keyword; nothing without turnlog."""
    return {} if GIVEN.mode == "plain" else {keyword: _made("sync", library)}


def async_client(keyword: str, library: str = "httpx2") -> dict[str, Any]:
    """The same for an SDK that is asynchronous."""
    return {} if GIVEN.mode == "plain" else {keyword: _made("async", library)}


def read_file(path: str) -> str:
    """Read a file of the project.

    Args:
        path: where the file is.
    """
    return contents(path, GIVEN.size)


def talk(say: Callable[[str], str | Awaitable[str]]) -> None:
    """Say each task, and write down what came of it. An error of the framework ends the conversation: it is a fact
    that the test looks at, such as the overflow without turnlog."""
    asyncio.run(_talk(say)) if inspect.iscoroutinefunction(say) else _finish(_said(say))


def _said(say: Callable[[str], Any]) -> tuple[list[str], str]:
    answers: list[str] = []
    try:
        for task in tasks(GIVEN.turns):
            answers.append(str(say(task)))
    except Exception as error:  # noqa: BLE001
        return answers, f"{type(error).__name__}: {error}"
    return answers, ""


async def _talk(say: Callable[[str], Any]) -> None:
    answers: list[str] = []
    words = ""
    try:
        for task in tasks(GIVEN.turns):
            answers.append(str(await say(task)))
    except Exception as error:  # noqa: BLE001
        words = f"{type(error).__name__}: {error}"
    for each in _clients:
        if hasattr(each, "aclose"):
            await each.aclose()
    _finish((answers, words))


def _finish(said: tuple[list[str], str]) -> None:
    for each in _clients:
        if hasattr(each, "close"):
            each.close()
    answers, words = said
    failures = sum(getattr(each, "failures", 0) for each in _clients)
    told = {"answers": answers, "error": words, "failures": failures, "cpu": time.process_time()}
    GIVEN.out.write_text(json.dumps(told), "utf-8")
