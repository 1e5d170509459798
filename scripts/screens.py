"""Writes the screens in docs/cli.md: what commands show on a terminal of 80 columns, on a store of made-up sessions.

python scripts/screens.py
"""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs/cli.md"
_MARK = re.compile(r"<!-- screen: ([^\n]*) -->\n```text\n.*?```\n", re.DOTALL)

_RUN = """
import datetime, sys
from turnlog._platform import times
times.present = lambda: datetime.datetime(2026, 3, 5, 12, 0, tzinfo=datetime.UTC)
from turnlog.cli import main, progress
progress._PATIENCE = 1e9
sys.exit(main(sys.argv[1:]))
"""
"""A command at a fixed time, without the seconds that it counts on a slow machine."""

# -- the sessions ----------------------------------------------------------------------------------


class ClaudeCode:
    """A transcript of Claude Code, written entry by entry."""

    def __init__(self, session: str, folder: str, day: str) -> None:
        self.session, self.folder, self.day = session, folder, day
        self.entries: list[dict[str, Any]] = []
        self._seconds = 0

    def user(self, text: str) -> None:
        """What the user said."""
        self._add("user", 40, {"role": "user", "content": text})

    def says(self, text: str, *, tokens: int = 900) -> None:
        """An answer."""
        self._answer({"type": "text", "text": text}, tokens)

    def calls(self, name: str, arguments: dict[str, Any], result: str, *, failed: bool = False, **more: Any) -> None:
        """A tool call and its result; `more` is what the program keeps beside the result."""
        number = f"toolu_{len(self.entries)}"
        self._answer({"type": "tool_use", "id": number, "name": name, "input": arguments}, 300)
        part = {"type": "tool_result", "tool_use_id": number, "content": result, "is_error": failed}
        self._add("user", 3, {"role": "user", "content": [part]}, **({"toolUseResult": more} if more else {}))

    def _answer(self, part: dict[str, Any], tokens: int) -> None:
        usage = {"input_tokens": 4_000, "cache_read_input_tokens": 20_000, "output_tokens": tokens}
        message = {"id": f"msg_{self.session}_{len(self.entries)}", "role": "assistant", "model": "claude-opus-4-5"}
        self._add("assistant", 6, {**message, "content": [part], "usage": usage, "stop_reason": "end_turn"})

    def _add(self, kind: str, seconds: int, message: dict[str, Any], **more: Any) -> None:
        self._seconds += seconds
        minutes, rest = divmod(self._seconds, 60)
        about = {"userType": "external", "cwd": self.folder, "version": "2.1.33", "gitBranch": "main"}
        linked = {"uuid": f"{self.session[:8]}-{len(self.entries)}", "sessionId": self.session, "isSidechain": False}
        linked["parentUuid"] = self.entries[-1]["uuid"] if self.entries else None
        time = f"{self.day}T09:{minutes:02}:{rest:02}.000Z"
        self.entries.append({"type": kind, **linked, **about, "timestamp": time, "message": message, **more})

    def write(self, path: Path) -> None:
        """Write the file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(entry) + "\n" for entry in self.entries), "utf-8")


def home_of_agents(home: Path) -> None:
    """A home folder with sessions of two agent programs."""
    projects = home / ".claude/projects"
    detached = ClaudeCode("cc43d1f0-3c1e-4a55-9d5e-6f1c2b7a8e90", "/home/ann/tools/cli", "2026-03-04")
    _detached(detached)
    detached.write(projects / "cli" / f"{detached.session}.jsonl")
    hook = ClaudeCode("60b38a11-7a0c-4f7e-8f0b-0c5d9a1e2f34", "/home/ann/tools/cli", "2026-03-05")
    hook.user("Plan: a hook that runs when a session ends")
    hook.says("I would add `SessionEnd` beside the **start** hook:\n\n1. a row in the table\n2. a test")
    hook.write(projects / "cli" / f"{hook.session}.jsonl")
    page = ClaudeCode("ef95aa07-55cc-4b52-9a10-0e9f8d7c6b5a", "/home/ann/worktrees/page", "2026-02-18")
    page.user("OK, we're going to make a little page that shows the weather of a city")
    page.says("Done: `weather.html` asks for the city and draws the temperature.")
    page.write(projects / "page" / f"{page.session}.jsonl")
    rollout = home / ".codex/sessions/2026/02/05/rollout-2026-02-05T10-00-00-019df7c2-0000-7000-8000-000000000001.jsonl"
    rollout.parent.mkdir(parents=True)
    rollout.write_text("".join(json.dumps(entry) + "\n" for entry in _codex()), "utf-8")


def _detached(session: ClaudeCode) -> None:
    path = f"{session.folder}/detached_unix.go"
    session.user("why does this method only work on unix and not windows?")
    session.calls("Read", {"file_path": path}, "package cli\n\n// detached starts a process of its own\n")
    session.says("It is only implemented in `detached_unix.go`, **behind a build tag**.")
    session.user("Write it for windows too, and run the linter")
    before, after = "package cli\n\n// old\n", "package cli\n\n// detached for windows\nfunc detach() {}\n"
    session.calls(
        "Edit",
        {"file_path": path, "old_string": "// old\n", "new_string": "// detached for windows\nfunc detach() {}\n"},
        f"The file {path} has been updated.",
        filePath=path,
        oldString="// old\n",
        newString="// detached for windows\nfunc detach() {}\n",
        originalFile=before,
        structuredPatch=[
            {
                "oldStart": 1,
                "oldLines": 3,
                "newStart": 1,
                "newLines": 4,
                "lines": [" package cli", " ", "-// old", *(f"+{line}" for line in after.splitlines()[2:])],
            }
        ],
    )
    lint = {"command": "mise run lint", "description": "Run the linter"}
    told = "Exit code 1\ndetached_test.go:90: 90-109 lines are duplicate of detached_test.go:111-130 (dupl)\n"
    session.calls("Bash", lint, told, failed=True)
    session.calls("Bash", {"command": "sed -i 111,130d detached_test.go"}, "")
    session.calls("Bash", lint, "0 issues.\n")
    session.says("`detached` works on windows now, and the linter is content.")


def _codex() -> Iterator[dict[str, Any]]:
    about = {"id": "019df7c2-0000-7000-8000-000000000001", "cwd": "/home/ann/skills", "originator": "codex_cli_rs"}
    yield _rollout(0, "session_meta", {**about, "cli_version": "0.63.0", "timestamp": "2026-02-05T10:00:00.000Z"})
    yield _rollout(0, "turn_context", {"cwd": "/home/ann/skills", "model": "gpt-5-codex"})
    for seconds, role, kind, text in (
        (2, "user", "input_text", "Update main, and tell me what changed"),
        (9, "assistant", "output_text", "Main is up to date: two commits about windows."),
    ):
        yield _rollout(
            seconds, "response_item", {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        )


def _rollout(seconds: int, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": f"2026-02-05T10:00:{seconds:02}.000Z", "type": kind, "payload": payload}


# -- the screens -----------------------------------------------------------------------------------


def screen(command: str, home: Path, *, columns: int = 80) -> str:
    """What a command line shows on a terminal."""
    terminal, keyboard = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TURNLOG", "XDG", "LC_"))}
    environment |= {"HOME": str(home), "COLUMNS": str(columns), "LINES": "60", "NO_COLOR": "1", "TZ": "UTC"}
    environment |= {"PAGER": "cat", "LANG": "C.UTF-8", "PYTHONUTF8": "1"}
    words = [word.strip("'") for word in re.findall(r"'[^']*'|\S+", command)][1:]
    running = subprocess.Popen(
        [sys.executable, "-c", _RUN, *words],
        stdin=keyboard,
        stdout=keyboard,
        stderr=keyboard,
        cwd=home,
        env=environment,
    )
    os.close(keyboard)
    pieces = []
    while piece := _read(terminal):
        pieces.append(piece)
    running.wait()
    os.close(terminal)
    text = b"".join(pieces).decode("utf-8").replace("\r\n", "\n").replace(str(home), "~")
    return re.sub(r" in \d+\.\d s", " in 0.1 s", text)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # nobody writes to it any more
        return b""


def written(page: str) -> str:
    """The page with its screens as they have to be, in the order of the page."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve()
        home_of_agents(home)

        def made(match: re.Match[str]) -> str:
            lines = [f"$ {match[1]}", *screen(match[1], home).splitlines()]
            text = "\n".join(line.rstrip() for line in lines)
            return f"<!-- screen: {match[1]} -->\n```text\n{text}\n```\n"

        return _MARK.sub(made, page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
