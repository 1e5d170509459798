"""Reading Agent Skills from a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

import turnlog
from turnlog.errors import InputError
from turnlog.skills.catalogue import LINE, line_of, list_of_skills, list_of_tools
from turnlog.skills.ready import found_by
from turnlog.tokens.counters import counter_for

GOOD = """---
name: pdf-forms
description: Fill in PDF forms. Use when the user names a form.
license: MIT
compatibility: Needs pdftk
metadata:
  author: somebody
  version: "1.0"
allowed-tools: Read Bash(pdftk:*)
---

# PDF forms
Use pdftk.
"""


def _skill(root: Path, name: str, text: str) -> None:
    (root / name).mkdir()
    (root / name / "SKILL.md").write_bytes(text.encode())


def test_a_skill_is_read_with_all_its_fields(tmp_path: Path) -> None:
    """A field that is lost, or a body with the fields in it."""
    _skill(tmp_path, "pdf-forms", GOOD)
    (tmp_path / "not-a-skill").mkdir()
    (tmp_path / "README.md").write_text("no skill")
    found = turnlog.load_skills(tmp_path)
    (skill,) = found
    assert (len(found), found.problems) == (1, ())
    assert (skill.name, skill.description) == ("pdf-forms", "Fill in PDF forms. Use when the user names a form.")
    assert skill.body == "# PDF forms\nUse pdftk."
    assert (skill.license, skill.compatibility) == ("MIT", "Needs pdftk")
    assert skill.metadata == {"author": "somebody", "version": "1.0"}
    assert skill.allowed_tools == ("Read", "Bash(pdftk:*)")
    assert Path(skill.folder) == (tmp_path / "pdf-forms").resolve()
    assert turnlog.load_skills(tmp_path / "pdf-forms").skills == (skill,)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# no fields", "it does not begin with fields between two lines of ---"),
        ("---\nname: bad\n", "it does not begin with fields"),
        ("---\nname: [\n---\n", "its fields are not YAML"),
        ("---\n- a\n---\n", "its fields are not YAML fields"),
        ("---\ndescription: x\n---\n", "name is missing"),
        ("---\nname: bad\n---\n", "description is missing"),
        ("---\nname: bad\ndescription: ' '\n---\n", "name and description must not be empty"),
        ("---\nname: 7\ndescription: x\n---\n", "name must be text, not int"),
        ("---\nname: Bad\ndescription: x\n---\n", "name 'Bad': use a-z, 0-9 and single hyphens"),
        ("---\nname: bad--name\ndescription: x\n---\n", "use a-z, 0-9 and single hyphens"),
        ("---\nname: other\ndescription: x\n---\n", "name 'other' is not the name of its folder, 'bad'"),
        (f"---\nname: bad\ndescription: {'x' * 1_025}\n---\n", "description has 1,025 characters, and may have 1,024"),
        (f"---\nname: bad\ndescription: x\ncompatibility: {'x' * 501}\n---\n", "compatibility has 501 characters"),
        ("---\nname: bad\ndescription: x\nmetadata: y\n---\n", "metadata must be fields with a text each"),
        ("---\nname: bad\ndescription: !!python/object/apply:os.getcwd []\n---\n", "its fields are not YAML"),
        ("x" * 1_000_001, "it has more than 1,000,000 bytes"),
    ],
)
def test_a_damaged_skill_is_named_and_left_out(tmp_path: Path, text: str, said: str) -> None:
    """One bad file that hides all skills, or one that is left out without a word."""
    _skill(tmp_path, "pdf-forms", GOOD)
    _skill(tmp_path, "bad", text)
    found = turnlog.load_skills(tmp_path)
    assert [skill.name for skill in found] == ["pdf-forms"]
    (problem,) = found.problems
    assert "bad" in problem.split("SKILL.md")[0]
    assert said in problem


def test_other_spellings_of_a_file_are_read(tmp_path: Path) -> None:
    """A file of Windows, with a mark of its encoding, with a rule in its text, or with nothing but fields."""
    _skill(tmp_path, "a", "\ufeff---\r\nname: a\r\ndescription: >-\r\n  Two\r\n  lines\r\n---\r\nOne\r\n---\r\nTwo\r\n")
    _skill(tmp_path, "b", "---\nname: b\ndescription: x\nallowed-tools: [Read, Write]\n---")
    first, second = turnlog.load_skills(tmp_path)
    assert (first.description, first.body.split()) == ("Two lines", ["One", "---", "Two"])
    assert (second.body, second.allowed_tools) == ("", ("Read", "Write"))


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """A wrong path that looks like a folder without skills."""
    with pytest.raises(InputError, match="there is no folder"):
        turnlog.load_skills(tmp_path / "none")


def test_lines_are_short_and_in_one_order() -> None:
    """A list that depends on the order in which skills or tools were given, or a line that takes a page."""
    count = counter_for("").text
    long = "Reads " + "very " * 200 + "long files. And more."
    assert count(line_of("read", long)) <= LINE
    assert line_of("read", "Reads a file. Then it stops.") == "- read: Reads a file"
    assert line_of("read", "") == "- read"
    tools = [turnlog.Tool(name, "Does it.", on_demand=name != "c") for name in "dcba"]
    assert list_of_tools(tools).splitlines()[1:] == ["- a: Does it", "- b: Does it", "- d: Does it"]
    assert list_of_tools(tools[1:2]) == list_of_skills([]) == ""


def test_a_query_finds_by_name_and_description() -> None:
    """A search that depends on case, plural or the order of tools."""
    tools = [
        turnlog.Tool("createIssue", "Opens a ticket in the tracker."),
        turnlog.Tool("list_issues", "Lists tickets."),
        turnlog.Tool("read_file", "Reads a file from disk."),
    ]
    assert [tool.name for tool in found_by("create an issue", tools)][:1] == ["createIssue"]
    assert [tool.name for tool in found_by("files", tools)] == ["read_file"]
    assert found_by("weather", tools) == []
