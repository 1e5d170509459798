"""Virtual environments for frameworks: one for each, since their requirements contradict each other.

`environments.txt` has what each installs: a section for each, and exact versions of all that they bring. After an
upgrade: `python tests/frameworks/environments.py` writes the versions that are installed.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
from hashlib import blake2b
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / ".venv-frameworks"
LISTED = Path(__file__).parent / "environments.txt"
VERSIONS = "versions"
HEAD = (
    "# What each framework's environment installs, and the exact versions of all that comes with it: environments.py\n"
)


class NotMade(Exception):
    """An environment could not be made; the message says why."""


def sections() -> dict[str, list[str]]:
    """The lines of each section."""
    found: dict[str, list[str]] = {}
    for line in LISTED.read_text("utf-8").splitlines():
        if line.startswith("["):
            found[line.strip("[]")] = []
        elif line and not line.startswith("#"):
            found[[*found][-1]].append(line)
    return found


def python_of(name: str) -> Path:
    """The Python of an environment, which is made or made anew if its requirements changed. Raises NotMade."""
    listed = sections()
    wanted = [*listed[name], "msgspec", "tiktoken", "wcwidth"]  # the last three are what turnlog needs
    digest = blake2b("\n".join([*wanted, *listed[VERSIONS], sys.version]).encode(), digest_size=8).hexdigest()
    folder, stamp = PLACE / name, PLACE / f"{name}.{digest}"
    PLACE.mkdir(exist_ok=True)
    with (PLACE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists():
            versions = PLACE / f"{name}.versions.txt"
            versions.write_text("\n".join(listed[VERSIONS]), "utf-8")
            _run(sys.executable, "-m", "venv", "--clear", str(folder))
            install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            _run(*install, "--constraint", str(versions), *wanted)
            stamp.touch()
    return folder / "bin" / "python"


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no words").splitlines()[-1]
        raise NotMade(f"{' '.join(command[:4])} ended with {done.returncode}: {last}")
    return done.stdout


def freeze() -> None:
    """Write the versions of the environments that are there. Where two differ, each has its own in its section."""
    listed, installed = sections(), dict[str, dict[str, str]]()
    names = [name for name in listed if name != VERSIONS]
    for name in names:
        lines = _run(str(PLACE / name / "bin" / "python"), "-m", "pip", "freeze").split()
        installed[name] = dict(line.split("==") for line in lines)
    versions: dict[str, set[str]] = {}
    for packages in installed.values():
        for package, version in packages.items():
            versions.setdefault(package, set()).add(version)
    text = [HEAD]
    for name in names:
        asked = [line.split("==")[0] for line in listed[name]]
        own = [package for package in installed[name] if len(versions[package]) > 1 and package not in asked]
        pins = [f"{package}=={installed[name][package.split('[')[0]]}" for package in [*asked, *own]]
        text.append(f"[{name}]\n" + "\n".join(dict.fromkeys(pins)) + "\n")
    same = [f"{package}=={next(iter(found))}" for package, found in sorted(versions.items()) if len(found) == 1]
    text.append(f"[{VERSIONS}]\n" + "\n".join(same) + "\n")
    LISTED.write_text("\n".join(text), "utf-8")


if __name__ == "__main__":
    freeze()
