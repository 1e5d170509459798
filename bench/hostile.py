"""Hostile text through every command: that none fails, what each takes, and how that grows.

    python bench/hostile.py [MEGABYTES]

Each command runs twice in a process of its own, on a quarter of the text and on all of it: a ratio near 4 is linear,
one near 16 would be quadratic. Says at the end whether any command wrote what a terminal would obey, or a page that
is not its own.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import unicodedata
from pathlib import Path

from turnlog.stores import open_store
from turnlog.testing.hostile import NEEDLE, hostile_body, hostile_session

MEGABYTES = 12
_COMMAND = (sys.executable, "-c", "import sys; from turnlog.cli import main; sys.exit(main())")
_ALLOWED = "\n\t\u200c\u200d\u00ad\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f"
_HARMFUL = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_RAW = {("export", "jsonl"), ("export", "json"), ("diff", "hostile"), ("diff", "every")}
"""What goes out as it is stored into a file or a pipe: records, and patches for git. A terminal gets it escaped."""


def commands() -> list[tuple[str, ...]]:
    """Every command that reads, on the imported session and on the one with every kind of record."""
    found: list[tuple[str, ...]] = [("import", "body.json"), ("ls",), ("ls", "--json"), ("search", NEEDLE), ("scan",)]
    for session in ("hostile", "every"):
        found += [
            ("show", session),
            ("show", session, "--json"),
            ("diff", session),
            ("diff", session, "--stat"),
            ("context", session),
            ("why", session),
            ("count", session),
            ("doctor", session, "--strict"),
            ("verify", session),
            ("compact", session, "--dry-run"),
            ("request", session, "--to", "anthropic", "--explain"),
        ]
        found += [("export", session, "--format", form) for form in ("html", "markdown", "jsonl", "json")]
    return [*found, ("check", "request.json"), ("fit", "request.json")]


def made(folder: Path, size: int) -> Path:
    """A folder with a store and a file, full of that many characters."""
    folder.mkdir()
    body = hostile_body(size)
    (folder / "body.json").write_text(json.dumps(body), "ascii")
    (folder / "request.json").write_text(json.dumps(body["request"]), "ascii")
    store = open_store(str(folder / "log.db"))
    hostile_session(store, "every", size)
    store.close()
    return folder


def run(folder: Path, words: tuple[str, ...]) -> tuple[float, float, int, bytes]:
    """Seconds, megabytes of memory so far at most, exit code and output of a command."""
    environment = {**os.environ, "TURNLOG_STORE": str(folder / "log.db")}
    start = time.perf_counter()
    done = subprocess.run([*_COMMAND, *words], capture_output=True, cwd=folder, env=environment, check=False)
    took = time.perf_counter() - start
    bad = done.returncode in (70, -9, -11) or b"Traceback" in done.stderr
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return took, used / 1e3, -1 if bad else done.returncode, done.stdout + b"\n" + done.stderr


def obeyed(output: bytes) -> set[str]:
    """What in an output a terminal or a reader's eye would obey."""
    return {
        char
        for char in set(output.decode("utf-8", "surrogateescape"))
        if unicodedata.category(char) in _HARMFUL and char not in _ALLOWED
    }


def main() -> int:
    size = int(float(sys.argv[1] if len(sys.argv) > 1 else MEGABYTES) * 1_000_000)
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        small, large = made(Path(name) / "small", size // 4), made(Path(name) / "large", size)
        for words in commands():
            little, *_ = run(small, words)
            took, used, code, output = run(large, words)
            line = " ".join(words)
            print(
                f"{line:<48} {little:6.2f} s {took:6.2f} s  x{took / little:4.1f}  exit {code}  {used:5.0f} MB so far"
            )
            if code == -1:
                wrong.append(f"{line}: failed: {output[-300:]!r}")
            elif (words[0], words[-1]) not in _RAW and (found := obeyed(output)):
                wrong.append(f"{line}: wrote {sorted(found)}")
            if words[-1] == "html" and b"<script" in output:
                wrong.append(f"{line}: a script in the page")
    print("\n".join(wrong) or "no command failed; nothing that a terminal obeys; no script in a page")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
