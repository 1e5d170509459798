"""Draws docs/chat.svg and docs/chat-model.svg: what `turnlog chat` shows in a real terminal. Needs tmux.

python scripts/chat_pictures.py
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

DOCS = Path(__file__).parent.parent / "docs"
COLUMNS, LINES = 92, 26
CALL = 'CALL edit_file {"path": "shop.py", "old": "rate = 2", "new": "rate = 3"}'
SCENES = {
    "chat": (
        (
            (
                "# What I found\nThe **rate** is in `shop.py`, line 2:\n\n```py\nrate = 2\n```\n\nShall I change it?",
                "found",
            ),
            (CALL, "why not:"),
            ("y", "files changed"),
        ),
        LINES + 4,
    ),
    "chat-model": (
        (
            ("The totals are wrong.", "You said"),
            ("/context", "framing"),
            ("/model anthropic/claude-sonnet-4-5", "next answer"),
            ("/re", "restore"),
        ),
        LINES + 6,
    ),
}


def main() -> None:
    for name, (lines, height) in SCENES.items():
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "shop.py").write_text("# prices\nrate = 2\n")
            draw(name, lines, height, folder)


def draw(name: str, lines: tuple[tuple[str, str], ...], height: int, folder: str) -> None:
    """One picture: type these lines, each until the terminal shows a text, and draw what it shows then."""
    tmux = ["tmux", "-L", f"picture-{name}"]
    turnlog = Path(sys.executable).parent / "turnlog"
    command = f"HOME={folder} {turnlog} chat --model scripted/demo --session shop; cat"
    size = ["-x", str(COLUMNS), "-y", str(height)]
    subprocess.run([*tmux, "new-session", "-d", "-s", "x", *size, "-c", folder, command], check=True)
    try:
        wait(tmux, "/help lists")
        for line, until in lines:
            for part in line.split("\n"):
                subprocess.run([*tmux, "send-keys", "-t", "x", "-l", part], check=True)
                subprocess.run([*tmux, "send-keys", "-t", "x", *(["M-Enter"] if part != line.split("\n")[-1] else [])])
            if line != "/re":
                subprocess.run([*tmux, "send-keys", "-t", "x", "Enter"], check=True)
            wait(tmux, until)
        time.sleep(1)
        shown = subprocess.run(
            [*tmux, "capture-pane", "-p", "-e", "-t", "x"], capture_output=True, text=True, check=True
        )
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
    console = Console(record=True, width=COLUMNS, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(Text.from_ansi(shown.stdout.rstrip()))
    drawing = console.export_svg(title="turnlog chat", unique_id=name)
    own = re.sub(r"@font-face \{.*?\}\s*", "", drawing, flags=re.DOTALL)  # fonts would be fetched from elsewhere
    (DOCS / f"{name}.svg").write_text(own.replace("Fira Code, ", "ui-monospace, Menlo, Consolas, "), encoding="utf-8")


def wait(tmux: list[str], text: str) -> None:
    """Wait until the terminal shows a text."""
    for _ in range(300):
        shown = subprocess.run(
            [*tmux, "capture-pane", "-p", "-J", "-t", "x"], capture_output=True, text=True, check=True
        )
        if text in shown.stdout:
            return
        time.sleep(0.1)
    raise SystemExit(f"no {text!r} in:\n{shown.stdout}")


if __name__ == "__main__":
    main()
