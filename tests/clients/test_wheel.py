"""The package as it is released: built, installed with nothing but what it needs into new environments, and run there,
on every Python from 3.11 on that this machine has."""

from __future__ import annotations

import email
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from email.message import Message
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import turnlog

ROOT = Path(__file__).resolve().parents[2]
RUN_ON = ("3.11", "3.12", "3.13")
"""The Pythons that the classifiers name. Each one is run here, and a newer one that the machine has."""
OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"
SESSION = " ".join(f"tests/session/test_{name}.py" for name in "answer inputs opening recovery turn".split())
WHOLE = (SESSION, "tests/log tests/models tests/agent")  # on the Python of this run, which has what they need
QUICK = ("tests/log/test_codec.py tests/log/test_errors.py tests/log/test_texts.py tests/models",)  # need no extra
_VERSION = "import sys, sysconfig; print(*sys.version_info[:2], bool(sysconfig.get_config_var('Py_GIL_DISABLED')))"
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_LOOK = """
import importlib, importlib.metadata, json, pkgutil, turnlog
lacking = set()
for module in pkgutil.walk_packages(turnlog.__path__, "turnlog.", onerror=lambda name: None):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            lacking.add((error.name or error.__cause__.name).partition(".")[0])
packages = [package.name.lower() for package in importlib.metadata.distributions()]
print(json.dumps([turnlog.__file__, turnlog.__version__, packages, sorted(lacking)]))
"""


class Built(NamedTuple):
    """A release: the package, and its source."""

    wheel: Path
    source: Path

    def metadata(self) -> Message:
        """What an index reads of the package. Its payload is the long description."""
        with zipfile.ZipFile(self.wheel) as archive:
            [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
            return email.message_from_string(archive.read(name).decode("utf-8"))


def _places() -> Iterator[Path]:
    """Where Pythons are: this one, those on the PATH, those that only a version manager knows."""
    yield Path(sys.executable)
    for folder in filter(None, os.environ.get("PATH", "").split(os.pathsep)):
        if Path(folder).name != "shims":  # they start what pyenv has chosen, and fail for the others
            yield from sorted(Path(folder).glob("python3.[1-9][0-9]"))
    home = Path.home()
    for folder in (
        Path(os.environ.get("PYENV_ROOT") or home / ".pyenv") / "versions",
        Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or home / ".local/share/uv/python"),
        home / ".local/share/mise/installs/python",
        home / ".asdf/installs/python",
    ):
        yield from sorted(folder.glob("*3.[1-9][0-9]*/bin/python3"))


@cache
def pythons() -> dict[str, Path]:
    """The Pythons of this machine from 3.11 on, by version. Those without a GIL are other Pythons."""
    known: dict[str, Path] = {}
    for place in _places():
        run = subprocess.run([place, "-I", "-c", _VERSION], capture_output=True, text=True, check=False)
        major, minor, free = run.stdout.split() if run.returncode == 0 else ("0", "0", "True")
        if free == "False" and (int(major), int(minor)) >= (3, 11):
            known.setdefault(f"{major}.{minor}", place)
    return known


VERSIONS = sorted({*RUN_ON, *pythons()}, key=lambda version: int(version.partition(".")[2]))
LISTS = [(version, tests) for version in VERSIONS for tests in (WHOLE if version == OWN else QUICK)]


def _run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    """What a command prints; fails if it ends in an error. Nothing of the environment leads to the source."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "TURNLOG"))}
    run = subprocess.run(
        command, cwd=cwd, env=kept | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert run.returncode == 0, f"{command} ended with {run.returncode}:\n{run.stdout[-8_000:]}"
    return run.stdout


def _install(python: Path, *packages: str) -> None:
    constraints = ("--constraint", str(ROOT / "constraints.txt"))
    _run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile", *constraints, *packages)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The source distribution, and the package built from it."""
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder))
    [wheel], [source] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Built(wheel, source)


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The Python of an environment in which there is the package and what it requires; skips where there is no such
    Python."""

    @cache
    def environment(version: str) -> Path:
        folder = tmp_path_factory.mktemp(f"python{version}")
        _run(pythons()[version], "-m", "venv", "--without-pip", folder)
        _install(folder / "bin" / "python", str(built.wheel))
        return folder / "bin" / "python"

    def for_version(version: str) -> Path:
        if version not in pythons():
            pytest.skip(f"Python {version} is absent: neither on the PATH nor known to pyenv, uv, mise or asdf")
        return environment(version)

    return for_version


def test_the_package_has_its_modules_and_data_and_nothing_else(built: Built) -> None:
    """A data file or `py.typed` that is missing breaks whoever installs it; tests and benches are only weight."""
    source = ROOT / "src"
    expected = {path.relative_to(source).as_posix() for path in (source / "turnlog").rglob("*") if path.is_file()}
    expected = {path for path in expected if "__pycache__" not in path and not path.endswith((".pyc", "~"))}
    with zipfile.ZipFile(built.wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        licences = [name for name in archive.namelist() if name.endswith("/licenses/LICENSE")]
    assert names == expected and "turnlog/py.typed" in names and len(licences) == 1


def test_the_description_leads_nowhere_that_an_index_does_not_have(built: Built) -> None:
    """A link to a file beside README, or a picture there, is broken on the page of a package index."""
    metadata = built.metadata()
    text = str(metadata.get_payload())
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert [link for link in _LINK.findall(text) if "://" not in link] == [] and "![" not in text
    assert text.startswith("# turnlog\n") and "## Compared with" in text and "source distribution" in text
    notes = set(re.findall(r"\[\^\d+\](?!:)", text))
    assert notes == set(re.findall(r"(?m)^(\[\^\d+\]):", text)) and notes


def test_the_source_has_what_readme_leads_to(built: Built) -> None:
    """The description says that the documentation is in the source distribution."""
    with tarfile.open(built.source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    links = {link.partition("#")[0] for link in _LINK.findall((ROOT / "README.md").read_text("utf-8"))}
    assert {link for link in links if "://" not in link and link not in names} == set()
    assert {"docs/api/errors.md", "tests/test_house.py", "Makefile", "constraints.txt"} <= names


def test_classifiers_name_the_pythons_that_are_run(built: Built) -> None:
    """A classifier is a promise: of a Python that nobody has run, it is a guess."""
    classifiers = built.metadata().get_all("Classifier", [])
    named = [name.rpartition(" :: ")[2] for name in classifiers if re.search(r":: Python :: 3\.\d+$", name)]
    assert named == list(RUN_ON) and built.metadata()["Requires-Python"] == f">={RUN_ON[0]}"
    assert [name for name in classifiers if name.startswith("Operating System")] == ["Operating System :: POSIX"]


@pytest.mark.parametrize("version", VERSIONS)
def test_it_runs_with_nothing_but_what_it_requires(
    version: str, installed: Callable[[str], Path], built: Built, tmp_path: Path
) -> None:
    """A module that needs an extra without saying so, warns on a newer Python, or a demo that lacks its data."""
    python = installed(version)
    found = _run(python, "-I", "-W", "error", "-c", _LOOK, cwd=tmp_path)
    file, number, packages, lacking = json.loads(found)
    assert Path(file).is_relative_to(python.parents[1]) and number == turnlog.__version__
    extras = [line for line in built.metadata().get_all("Requires-Dist", []) if "extra ==" in line]
    optional = {re.split(r"[^\w-]", line)[0] for line in extras}
    assert set(packages) & optional == set() and len(optional) >= 12
    missing = ["hypothesis", "mcp", "opentelemetry", "prompt_toolkit", "psycopg", "rich", "uvicorn"]
    assert lacking == missing  # the first: for tests
    told = _run(python.parent / "turnlog", "demo", cwd=tmp_path, HOME=str(tmp_path))
    assert "0 problems found" in told


@pytest.mark.parametrize(("version", "tests"), LISTS)
def test_its_tests_pass(version: str, tests: str, installed: Callable[[str], Path], tmp_path: Path) -> None:
    """What works from the source alone, as a file was not packed; or not on this Python."""
    python = installed(version)
    if version == OWN:  # this environment has what the tests need; its turnlog stands behind the installed one
        [packages] = python.parents[1].glob("lib/python*/site-packages")
        (packages / "tests.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n", "utf-8")
    else:
        _install(python, "pytest", "hypothesis")
    # On this Python three cases of each test, as in `make test-fast`, since `make test` runs them all on it; on others
    # every case, since nothing else runs them there. tests/conftest.py goes by how the expression ends.
    marks = "not clients and not slow" if version == OWN else "not slow and not clients"
    options = ("-p", "no:cacheprovider", "-m", marks, "-k", "not postgres")  # no server is started
    report = _run(python, "-m", "pytest", *options, *tests.split(), HOME=str(tmp_path), TURNLOG_EXAMPLES="fast")
    [file] = re.findall(r"(?m)^turnlog: (.*)$", report)
    assert Path(file).is_relative_to(python.parents[1]), "the source was tested, not the package"
