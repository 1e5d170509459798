"""Where agents keep their sessions in a home folder.

A place is a pattern below the home folder; `**` stands for any folders. A new agent is a new line in `PLACES`.
Nothing here reads a transcript: `detect` tells what each file is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct


class Found(Struct, frozen=True, order=True):
    """A file that an agent wrote, where that agent keeps its sessions."""

    agent: str
    path: Path


_HISTORY = "tasks/*/api_conversation_history.json"
_EXTENSIONS = {
    "cline": "saoudrizwan.claude-dev",
    "roo-code": "rooveterinaryinc.roo-cline",
    "kilo-code": "kilocode.kilo-code",
}
"""Agents inside an editor, by the name of the extension."""

_EDITOR_DATA = (
    ".config/*/User/globalStorage",  # Linux: Code, Code - Insiders, Cursor, VSCodium, Windsurf, ...
    "Library/Application Support/*/User/globalStorage",  # macOS
    "AppData/Roaming/*/User/globalStorage",  # Windows
    ".*-server/data/User/globalStorage",  # the remote end of one: .vscode-server, .cursor-server
)

PLACES: tuple[tuple[str, str], ...] = (
    # A session's subagents come with it, from `<session>/subagents`.
    ("claude-code", ".claude/projects/*/*.jsonl"),
    ("claude-code", ".config/claude/projects/*/*.jsonl"),
    ("codex", ".codex/sessions/**/rollout-*.jsonl*"),
    ("codex", ".codex/archived_sessions/**/rollout-*.jsonl*"),
    # Not logs.json, which has the user's prompts alone: they stand in the chats.
    ("gemini-cli", ".gemini/tmp/*/chats/**/*.json*"),
    ("gemini-cli", ".gemini/tmp/*/checkpoint*.json"),
    ("pi", ".pi/agent/sessions/**/*.jsonl"),
    ("cline", ".cline/data/sessions/*/*.messages.json"),
    ("cline", f".cline/data/{_HISTORY}"),
    *((agent, f"{data}/{name}/{_HISTORY}") for agent, name in _EXTENSIONS.items() for data in _EDITOR_DATA),
    ("mini-swe-agent", ".config/mini-swe-agent/*.traj.json"),
)
"""The places of each agent, from its documentation or its code."""


def discover(home: Path, failed: Callable[[OSError], None]) -> Iterator[Found]:
    """Every session file of agents under `home`, sorted, each once.

    A link to a folder is followed only if the pattern names it, never for `**`. `failed` is called for every folder,
    or link to one, that exists and cannot be read.
    """
    seen: set[Path] = set()
    for found in sorted(
        Found(agent, path) for agent, place in PLACES for path in _matching(home, place.split("/"), failed)
    ):
        if found.path not in seen:
            seen.add(found.path)
            yield found


def _matching(folder: Path, steps: list[str], failed: Callable[[OSError], None]) -> Iterator[Path]:
    """The files below `folder` that the rest of a pattern leads to."""
    step, *rest = steps
    if rest and not set(step) & set("*?["):
        yield from _matching(folder / step, rest, failed)
        return
    for entry in _entries(folder, failed):
        below = folder / entry.name
        if step == "**":
            if entry.is_dir(follow_symlinks=False):
                yield from _matching(below, steps, failed)
            elif not rest[1:] and _is_file(entry) and fnmatchcase(entry.name, rest[0]):
                yield below
        elif fnmatchcase(entry.name, step):
            if rest and _is_folder(entry, failed):
                yield from _matching(below, rest, failed)
            elif not rest and _is_file(entry):
                yield below


def _is_folder(entry: os.DirEntry[str], failed: Callable[[OSError], None]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:  # a link to itself, or to where nobody may look
        failed(error)
        return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether this is a file, or a broken link to one: reading that says so."""
    try:
        return entry.is_file() or (entry.is_symlink() and not entry.is_dir())
    except OSError:
        return True


def _entries(folder: Path, failed: Callable[[OSError], None]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        failed(error)
        return []
