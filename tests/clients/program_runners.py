"""The real agent programs, installed beside the machine's caches, and pointed at a server on this machine."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from turnlog.models.target import Target, target
from turnlog.runners import ProgramRunner

PACKAGES = ("@anthropic-ai/claude-code@2.1.197", "@google/gemini-cli@0.61.0", "@openai/codex@0.169.0")
"""The newest that Node 20 runs."""

TARGETS: dict[str, Target] = {
    "claude": target("anthropic", "claude-sonnet-4-5"),
    "gemini": target("google", "gemini-2.5-flash"),
    "codex": target("openai-responses", "gpt-5"),
}


_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "turnlog-tests"
"""Read before a test has a cache folder of its own."""


def programs_folder(packages: Sequence[str] = PACKAGES) -> Path:
    """The folder with the commands, installed by npm if they are not there. Skips without Node or a registry."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("Node is absent: the agent programs cannot be installed")
    named = "-".join(package.rpartition("@")[2] for package in packages)
    folder = _CACHE / f"programs-{named}"
    folder.mkdir(parents=True, exist_ok=True)
    with (_CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one of the processes that run tests installs them
        if not (folder / "installed").exists():
            install = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *packages]
            run = subprocess.run(install, capture_output=True, text=True, check=False, timeout=600)
            if run.returncode:
                pytest.skip(f"npm cannot install the agent programs: {run.stderr.strip()[-300:]}")
            setup = folder / "node_modules" / "@anthropic-ai" / "claude-code" / "install.cjs"
            if setup.exists():
                subprocess.run(["node", str(setup)], check=False, capture_output=True, timeout=600)
            (folder / "installed").touch()
    return folder / "node_modules" / ".bin"


def program_runner(
    name: str, url: str, commands: Path, home: Path, *, key: str = "k", relaunch: bool = False, **more: Any
) -> ProgramRunner:
    """A runner of a real program with a home folder of its own, talking to the server at `url`. Without `relaunch`,
    Gemini CLI does not start itself a second time, to have more memory, which takes as long as all the rest."""
    work = home / "work"
    work.mkdir(parents=True, exist_ok=True)
    env = {"HOME": str(home), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    match name:
        case "claude":
            env |= {"ANTHROPIC_BASE_URL": url} | ({"ANTHROPIC_API_KEY": key} if key else {})
        case "gemini":
            env |= {"GOOGLE_GEMINI_BASE_URL": url} | ({"GEMINI_API_KEY": key} if key else {})
            env |= {} if relaunch else {"GEMINI_CLI_NO_RELAUNCH": "true"}
            settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}} if key else {}
            (home / ".gemini").mkdir(exist_ok=True)
            told = json.dumps({**settings, "privacy": {"usageStatisticsEnabled": False}})
            (home / ".gemini" / "settings.json").write_text(told, "utf-8")
        case _:
            env |= {"FAKE_KEY": key} if key else {}
            (home / ".codex").mkdir(exist_ok=True)
            config = f'name = "fake"\nbase_url = "{url}/v1"\nenv_key = "FAKE_KEY"\nwire_api = "responses"\n'
            head = 'model_provider = "fake"\n[model_providers.fake]\n'
            (home / ".codex" / "config.toml").write_text(head + config, "utf-8")
    return ProgramRunner(name, command=more.pop("command", commands / name), cwd=work, env=env, **more)


def home_for(name: str) -> Path:
    """A new home folder; Codex refuses one in the system's temporary folder."""
    _CACHE.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=_CACHE))
