"""Skills and tools that a model sees by name first, and in full when it needs them.

`load_skills` reads Agent Skills from a folder. `Session.skills` shows them in a session; with the ready tools here a
model asks for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._platform.lazy import lazy_names

if TYPE_CHECKING:
    from .folder import LoadedSkills, Skill, load_skills
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "folder": "LoadedSkills Skill load_skills",
        },
    )

__all__ = ["LoadedSkills", "Skill", "load_skills"]
