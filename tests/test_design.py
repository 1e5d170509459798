"""What DESIGN.md and CONTRIBUTING.md say of the source is so."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("DESIGN.md", "CONTRIBUTING.md")
TAKEN = {"NAME", "PROVIDER", "TURNLOG_EXAMPLES", "PATH"}
"""Words in capitals that stand for something else, or are no names of the source."""


def test_the_plan_is_the_contract() -> None:
    """The drawing of packages and its table drift from what import-linter checks: a package is added and not drawn."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = [layer.split(" : ") for layer in contracts[0]["layers"]]
    text = (ROOT / "DESIGN.md").read_text("utf-8")
    drawn = [re.findall(r"│ (\w+)(?:, then (\w+))?", line) for line in text.splitlines() if line.startswith("    │ ")]
    floors = [{name for found in row for name in found if name} for row in drawn]
    assert floors == [*map(set, layers[:-2]), {"_platform", "errors"}]
    table = text.partition("| package | what it does |")[2].partition("\n\n")[0]
    listed = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert listed == {name for layer in layers for name in layer}


def test_files_that_are_named_exist() -> None:
    """A page sends its reader to a file that was renamed."""
    roots = [ROOT, ROOT / "src/turnlog", ROOT / "tests"]
    missing = []
    for page in PAGES:
        for name in re.findall(r"`([\w./*-]+\.(?:py|md|toml|json|txt))`", (ROOT / page).read_text("utf-8")):
            pattern = name.removeprefix("turnlog/")
            if "NAME" in pattern or any(any(root.glob(pattern)) for root in roots):
                continue
            if not any(any(root.rglob(pattern)) for root in roots[1:]):
                missing.append(f"{page}: {name}")
    assert missing == []


def test_names_in_capitals_exist() -> None:
    """A recipe tells a contributor to change a table that has another name by now."""
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py"), *(ROOT / "scripts").glob("*.py")]
    source = "\n".join(path.read_text("utf-8") for path in files if path != Path(__file__))
    known = set(re.findall(r"\b_?[A-Z][A-Z0-9_]{2,}\b", source))
    named = {
        (page, name)
        for page in PAGES
        for name in re.findall(r"`(_?[A-Z][A-Z0-9_]{2,})`", (ROOT / page).read_text("utf-8"))
    }
    assert {(page, name) for page, name in named if name not in known | TAKEN} == set()


def test_the_glossary_is_short_and_alive() -> None:
    """The list of words to know first grows until nobody reads it, or explains words that nothing uses."""
    words = (ROOT / "DESIGN.md").read_text("utf-8").partition("\n## Words\n")[2].partition("\n## ")[0]
    explained = re.findall(r"(?m)^\| \*\*([\w -]+)\*\* \| .{10,} \|$", words)
    source = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "src").rglob("*.py")))
    assert 20 <= len(explained) <= 35 and len(set(explained)) == len(explained)
    spellings = {word: re.compile(rf"\b{re.sub('[ -]', '[ _-]', word)}", re.IGNORECASE) for word in explained}
    assert [word for word, spelling in spellings.items() if not spelling.search(source)] == []
    assert 'under "Words"' in (ROOT / "docs" / "how-it-works.md").read_text("utf-8")
