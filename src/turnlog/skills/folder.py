"""Agent Skills on disk: a folder for each skill, with a file SKILL.md that begins with YAML between two lines `---`.

Fields and limits are those of https://agentskills.io/specification (read in November 2026).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec import Struct

from .._platform.given import kind_given
from .._platform.lazy import lazy_pattern
from .._platform.stdlib import LOG
from .._platform.texts import install_extra
from ..errors import InputError

FILE = "SKILL.md"

_LARGEST = 1_000_000
"""Bytes. A larger SKILL.md is no instruction that a model could read."""

_NAME = lazy_pattern(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LIMITS = {"name": 64, "description": 1_024, "compatibility": 500}
"""The most characters of fields."""

_FIELDS = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})

_FRONT = lazy_pattern(r"---[ \t]*\r?\n(.*?)(?:^|\n)---[ \t]*(?:\r?\n|\Z)(.*)", re.DOTALL | re.MULTILINE)


class Skill(Struct, frozen=True, repr_omit_defaults=True):
    """A skill: its `name`, what it is for (`description`), and what a model reads when it is loaded (`body`).

    `folder` is where its further files are, "" if it has none. `allowed_tools`, `license`, `compatibility` and
    `metadata` are as its file says; turnlog does not act on them.
    """

    name: str
    description: str
    body: str
    folder: str = ""
    license: str = ""
    compatibility: str = ""
    metadata: dict[str, str] = {}
    allowed_tools: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Skill({self.name!r}, {len(self.body):,} characters)"


class LoadedSkills(Struct, frozen=True):
    """The skills of a folder, by name, and one line for each that could not be read."""

    skills: tuple[Skill, ...] = ()
    problems: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Skill]:
        return iter(self.skills)

    def __len__(self) -> int:
        return len(self.skills)


def load_skills(folder: str | Path) -> LoadedSkills:
    """Read the skills in a folder: every folder in it that has a SKILL.md, or the folder itself if it has one.

    A damaged skill is left out; `problems` names it and says what is wrong. Needs the extra `skills` (PyYAML). Raises
    InputError if there is no such folder.
    """
    kind_given("load_skills: the folder", folder, (str, Path), "a path (str or Path)")
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"load_skills: there is no folder {str(folder)!r}")
    homes = [place] if (place / FILE).is_file() else sorted(inner for inner in place.iterdir() if inner.is_dir())
    skills: list[Skill] = []
    problems: list[str] = []
    for home in homes:
        if not (home / FILE).is_file():
            continue
        try:
            skills.append(_read(home))
        except (InputError, OSError, UnicodeError) as error:
            problems.append(f"{home / FILE}: {error}")
            LOG.warning("skill left out: %s", problems[-1])
    return LoadedSkills(tuple(sorted(skills, key=lambda skill: skill.name)), tuple(problems))


def _read(home: Path) -> Skill:
    file = home / FILE
    if file.stat().st_size > _LARGEST:
        raise InputError(f"it has more than {_LARGEST:,} bytes")
    match = _FRONT.match(file.read_text("utf-8-sig"))
    if match is None:
        raise InputError("it does not begin with fields between two lines of ---")
    fields = _fields(match[1])
    name = _text(fields, "name")
    if not _NAME.fullmatch(name):
        raise InputError(f"name {name!r}: use a-z, 0-9 and single hyphens between them")
    if name != home.resolve().name:
        raise InputError(f"name {name!r} is not the name of its folder, {home.resolve().name!r}")
    description = _text(fields, "description")
    if not name or not description.strip():
        raise InputError("name and description must not be empty")
    metadata = fields.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise InputError("metadata must be fields with a text each")
    allowed = fields.get("allowed-tools") or ""
    tools = allowed if isinstance(allowed, list) else str(allowed).replace(",", " ").split()
    return Skill(
        name,
        description.strip(),
        match[2].strip(),
        str(home.resolve()),
        _text(fields, "license", ""),
        _text(fields, "compatibility", ""),
        {str(key): str(value) for key, value in metadata.items()},
        tuple(map(str, tools)),
    )


def _fields(front: str) -> Mapping[str, Any]:
    try:
        yaml = import_module("yaml")
    except ImportError as error:
        raise InputError(f"skills are read with PyYAML: {install_extra('skills')}") from error
    try:
        fields = yaml.safe_load(front)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        message = " ".join(str(error).split())
        raise InputError(f"its fields are not YAML: {message[:200]}") from error
    if not isinstance(fields, Mapping):
        raise InputError("its fields are not YAML fields with a value each")
    if unknown := sorted(str(key) for key in fields if key not in _FIELDS):
        LOG.info("fields of a skill that turnlog does not know: %s", ", ".join(unknown))
    return fields


def _text(fields: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = fields.get(name, default)
    if value is None:
        raise InputError(f"{name} is missing")
    if not isinstance(value, str):
        raise InputError(f"{name} must be text, not {type(value).__name__}")
    if len(value) > _LIMITS.get(name, len(value)):
        raise InputError(f"{name} has {len(value):,} characters, and may have {_LIMITS[name]:,}")
    return value
