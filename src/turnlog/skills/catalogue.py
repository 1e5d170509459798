"""What a model sees of skills and tools before they are loaded, and what it is told when they are."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from .._platform.lazy import lazy_pattern
from ..log.messages import Tool, compact_json
from ..log.references import tool_with_references
from ..tokens.counters import counter_for

LINE = 22
"""The most tokens of a line, counted as for a model that is not known. Models count up to a third more."""

TOOLS, SKILLS = "tools on demand", "skills"
"""The sections of the system prompt that list them."""

_TOOLS = "Tools on demand. Load one with find_tools before you use it.\n"
_SKILLS = "Skills. Load one with load_skill when its subject comes up.\n"
_SENTENCE = lazy_pattern(r"(?<=[.!?])\s")


@lru_cache(maxsize=4_096)
def line_of(name: str, description: str) -> str:
    """Name and one line of a description: its first sentence, as far as there is room."""
    first = _SENTENCE.split(" ".join(description.split()), maxsplit=1)[0].rstrip(".")
    count = counter_for("").text
    words = first.split(" ") if first else []
    while words and count(f"- {name}: {' '.join(words)}") > LINE:
        words.pop()
    return f"- {name}: {' '.join(words)}" if words else f"- {name}"


def list_of_tools(tools: Iterable[Tool]) -> str:
    """The section that lists tools on demand, by name; empty if there are none."""
    lines = sorted(line_of(tool.name, tool.description) for tool in tools if tool.on_demand)
    return _TOOLS + "\n".join(lines) if lines else ""


def list_of_skills(skills: Iterable[tuple[str, str]]) -> str:
    """The section that lists skills, each given by name and description; empty if there are none."""
    lines = sorted(line_of(name, description) for name, description in skills)
    return _SKILLS + "\n".join(lines) if lines else ""


def schema_text(tool: Tool) -> str:
    """A tool in full, as text."""
    parameters = compact_json(tool_with_references(tool).parameters or {"type": "object", "properties": {}})
    return f"{tool.description}\nParameters (JSON schema): {parameters}\nUse it with use_tool(name={tool.name!r}, ...)."
