"""Sequences of file edits, and a check of the resulting patches by git."""

from __future__ import annotations

import os
import random as random_module
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from ..log.messages import sha256_hex
from ..log.records import FileChange, Record
from ..workspace.diff.hunks import make_hunks, write_hunks

_NAMES = (
    "a.txt",
    "b.py",
    "c",
    "ü.md",
    "日本.txt",
    "with space.txt",
    'quo"te',
    "back\\slash",
    "tab\tname",
    "-dash",
    "é è",
)
_FOLDERS = ("", "", "src/", "deep/er/", "dé jà/")
_WORDS = (
    "alpha",
    "beta",
    "gamma",
    "",
    "}",
    "    return x",
    "größe",
    "日本語",
    "-- sql",
    "+++ plus",
    "@@ at",
    "\\ back",
)


class File(Struct, frozen=True):
    """A file of a tree: its content, and whether it is executable."""

    data: bytes
    executable: bool = False

    @property
    def mode(self) -> str:
        """The file mode as git writes it."""
        return "100755" if self.executable else "100644"


class TreeEdits(Struct, frozen=True):
    """A tree before and after a sequence of edits, the records of the edits, and the blobs that they name."""

    before: dict[str, File]
    after: dict[str, File]
    records: tuple[Record, ...]
    blobs: dict[str, bytes]


def edit_sequence(seed: int, *, patches: bool = False) -> TreeEdits:
    """A random sequence, the same for the same seed. With `patches`, the records of most edits have a patch instead of
    contents, as in transcripts."""
    return _Writer(random_module.Random(seed), patches).written()


class _Writer:
    def __init__(self, random: random_module.Random, patches: bool) -> None:
        self.random = random
        self.patches = patches
        self.tree: dict[str, File] = {}
        self.blobs: dict[str, bytes] = {}
        self.changes: list[FileChange] = []

    def written(self) -> TreeEdits:
        for _ in range(self.random.randrange(6)):
            self.tree[self._new_path()] = File(self._data(), self.random.random() < 0.2)
        before = dict(self.tree)
        for _ in range(self.random.randrange(1, 14)):
            edits = (
                [self._create] + [self._modify] * 5 + [self._delete, self._rename, self._rename] if self.tree else []
            )
            self.random.choice(edits or [self._create])()
        records = tuple(Record(n, "", change) for n, change in enumerate(self.changes, 1))
        return TreeEdits(before, dict(self.tree), records, self.blobs)

    def _new_path(self) -> str:
        for number in range(100):
            name = self.random.choice(_FOLDERS) + self.random.choice(_NAMES) + (f"{number}" if number > 50 else "")
            if name not in self.tree:
                return name
        raise AssertionError("no name is left")

    def _data(self) -> bytes:
        kind = self.random.random()
        if kind < 0.08:
            return b""
        if kind < 0.16:
            return self.random.randbytes(self.random.randrange(1, 400)) + b"\0"
        end = self.random.choice((b"\n", b"\n", b"\r\n", b"\n\n"))
        lines = [self._line() for _ in range(self.random.randrange(1, 40))]
        return end.join(lines) + (end if self.random.random() < 0.6 else b"")

    def _line(self) -> bytes:
        if self.random.random() < 0.05:
            return bytes(
                self.random.choice((b"\xff\xfe", b"caf\xe9", b"\x1b[31mred", b"lone \r in it", b"\x0c", b"\t"))
            )
        words = " ".join(self.random.choices(_WORDS, k=self.random.randrange(1, 4)))
        return words.encode() + (b" %d" % self.random.randrange(30) if self.random.random() < 0.7 else b"")

    def _edited(self, data: bytes) -> bytes:
        if self.random.random() < 0.15:
            return self._data()
        lines = data.splitlines(keepends=True)
        for _ in range(self.random.randrange(1, 4)):
            index = self.random.randrange(len(lines) + 1)
            new = [self._line() + self.random.choice((b"\n", b"\n", b"\r\n")) for _ in range(self.random.randrange(3))]
            lines[index : index + self.random.randrange(3)] = new
        edited = b"".join(lines)
        return edited.removesuffix(b"\n") if self.random.random() < 0.2 else edited

    def _blob(self, data: bytes) -> str:
        self.blobs[sha256_hex(data)] = data
        return sha256_hex(data)

    def _record(self, action: str, path: str, was: File | None, now: File | None, old_path: str = "") -> None:
        facts = {
            "old_path": old_path,
            "old_mode": was.mode if was else "",
            "mode": now.mode if now else "",
        }
        if was and now and self.patches and b"\0" not in was.data + now.data and self.random.random() < 0.8:
            hunks = b"".join(write_hunks(make_hunks(was.data, now.data, context=self.random.choice((1, 3)))))
            facts["patch"] = self._blob(hunks) if hunks else ""
        only_moved = action == "renamed" and was is not None and now is not None and was.data == now.data
        if not facts.get("patch") and not (only_moved and self.random.random() < 0.5):
            facts["before"] = self._blob(was.data) if was else ""
            facts["after"] = self._blob(now.data) if now else ""
        self.changes.append(FileChange(path, action, **facts))  # type: ignore[arg-type]

    def _create(self) -> None:
        path = self._new_path()
        self.tree[path] = File(self._data(), self.random.random() < 0.2)
        self._record("created", path, None, self.tree[path])

    def _modify(self) -> None:
        path = self.random.choice(sorted(self.tree))
        was = self.tree[path]
        executable = was.executable ^ (self.random.random() < 0.1)
        self.tree[path] = File(self._edited(was.data), executable)
        self._record("modified", path, was, self.tree[path])

    def _delete(self) -> None:
        path = self.random.choice(sorted(self.tree))
        self._record("deleted", path, self.tree.pop(path), None)

    def _rename(self) -> None:
        old, new = self.random.choice(sorted(self.tree)), self._new_path()
        was = self.tree.pop(old)
        self.tree[new] = was if self.random.random() < 0.5 else File(self._edited(was.data), was.executable)
        self._record("renamed", new, was, self.tree[new], old)


def has_git() -> bool:
    """Whether git is installed."""
    return shutil.which("git") is not None


def git_judges(before: Mapping[str, File], after: Mapping[str, File], patch: bytes) -> str:
    """What is wrong with a patch from one tree to the other. "" if `git apply --check` accepts the patch, applying it
    gives the files of `after` byte for byte with their modes, and its reverse gives those of `before`. Runs in a
    temporary folder outside any repository."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for path, file in before.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(file.data)
            (root / path).chmod(0o755 if file.executable else 0o644)
        for step, options, wanted in (
            ("check", ["--check"], before),
            ("apply", [], after),
            ("check of the reverse", ["-R", "--check"], after),
            ("reverse", ["-R"], before),
        ):
            if error := _git_apply(root, options, patch):
                return f"git apply, {step}: {error}"
            if (files := dict(_files(root))) != dict(wanted):
                wrong = sorted(path for path in files.keys() | wanted.keys() if files.get(path) != wanted.get(path))
                return f"git apply, {step}: other files than there should be: {wrong}"
    return ""


def _git_apply(root: Path, options: list[str], patch: bytes) -> str:
    if not patch:
        return ""
    # Independent of the caller's repository and git settings.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"GIT_CEILING_DIRECTORIES": str(root.parent), "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
    command = ["git", "apply", "--whitespace=nowarn", *options]
    done = subprocess.run(command, cwd=root, input=patch, capture_output=True, env=environment, check=False)
    return (done.stderr.decode("utf-8", "replace").strip() or "it failed") if done.returncode else ""


def _files(root: Path) -> Iterator[tuple[str, File]]:
    for path in root.rglob("*"):
        if path.is_file():
            yield str(path.relative_to(root).as_posix()), File(path.read_bytes(), os.access(path, os.X_OK))
