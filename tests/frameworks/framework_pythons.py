"""Environments for programs of frameworks, each with its own packages: they do not agree on the versions of others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from environments import NotMade, python_of

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "frameworks"
FOLDER = Path(os.environ.get("TURNLOG_FRAMEWORKS") or ROOT / ".venv-frameworks")
"""Where the environments are, by name; they stay there for the next run."""


def python_with(name: str, *packages: str) -> Path:
    """The Python of the environment of that name, with turnlog and these packages. Skips where it cannot be made."""
    python, stamp = FOLDER / name / "bin" / "python", FOLDER / name / ".packages"
    wanted = "\n".join(packages)
    if stamp.exists() and stamp.read_text("utf-8") == wanted:
        return python
    stamp.unlink(missing_ok=True)
    run(sys.executable, "-m", "venv", python.parent.parent)
    run(python, "-m", "pip", "install", "--quiet", *packages, "--editable", ROOT)
    stamp.write_text(wanted, "utf-8")
    return python


def pinned(name: str) -> Path:
    """The Python of an environment of `environments.txt`, without turnlog: `environment` has it on the path. Skips
    where it cannot be made."""
    try:
        return python_of(name)
    except NotMade as error:
        pytest.skip(f"the environment for {name} cannot be made: {error}")


def run(*words: str | Path) -> None:
    """Run a command that sets something up; skips with its last words if it fails."""
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{' '.join(map(str, words))[:200]}: {done.stderr.strip()[-500:]}")


def environment(url: str = "", **more: str) -> dict[str, str]:
    """The variables of a program that asks the server at `url`. It finds the programs of the documentation."""
    path = os.pathsep.join(map(str, (EXAMPLES, Path(__file__).parent, ROOT / "src")))
    keys = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "none", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
    return {**os.environ, **keys, "PYTHONPATH": path, **more}
