"""The examples of docs/frameworks.md as a reader would start them: two tasks, on record, within the budget."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from environments import sections
from framework_pythons import pinned
from framework_runs import ROOT, Bench, Run, findings

EXAMPLES = ROOT / "examples" / "frameworks"
NAMES = [name for name in sections() if name != "versions"]


def test_each_environment_has_an_example() -> None:
    """A framework would be tested and shown to nobody, or the other way round."""
    assert sorted(f"{name}_transport.py" for name in NAMES) == sorted(
        path.name for path in EXAMPLES.glob("*_transport.py")
    )


@pytest.mark.parametrize("name", NAMES)
def test_an_example_runs(name: str, bench: Bench, tmp_path: Path) -> None:
    """A reader who copies a page's program would get an error, or a log without the conversation."""
    python = pinned(name)
    bench.serve()
    (tmp_path / "src").mkdir()
    for part in ("one", "two"):
        (tmp_path / "src" / f"{part}.py").write_text(f"# src/{part}.py\nprice = 1\n", "utf-8")
    url = bench.proxy.url
    where = {"OPENAI_BASE_URL": f"{url}/v1", "ANTHROPIC_BASE_URL": url, "GOOGLE_GEMINI_BASE_URL": url}
    keys = {name: "k" for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")}
    home = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT / "src")}
    tasks = ["Turn 1: read src/one.py.", "Turn 2: read src/two.py."]
    command = [str(python), str(EXAMPLES / f"{name}_transport.py"), *tasks]
    done = subprocess.run(
        command, cwd=tmp_path, env={**home, **where, **keys}, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "src/two.py: rows of prices" in done.stdout
    run = Run({}, bench.server.requests)
    assert (run.refused, len(run.answered)) == ([], 4)
    assert findings(tmp_path / "agents.db", run) == []
