"""Shows the fields of msgspec structs in the reference that `make site` builds: as the arguments that make one.

mkdocs.yml names this file. Without it, the page of a struct would say nothing of its fields.
"""

from __future__ import annotations

from typing import Any

import griffe


class Structs(griffe.Extension):
    """Gives each struct the `__init__` that msgspec makes for it."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        if not any(str(base).split("(")[0].endswith("Struct") for base in cls.bases) or "__init__" in cls.members:
            return
        named = (one for one in cls.members.values() if one.is_attribute and one.annotation and one.name[0] != "_")
        fields = [one for one in named if "property" not in one.labels]
        kind = griffe.ParameterKind.positional_or_keyword
        given = [griffe.Parameter(one.name, annotation=one.annotation, kind=kind, default=one.value) for one in fields]
        made = griffe.Function("__init__", parameters=griffe.Parameters(griffe.Parameter("self", kind=kind), *given))
        cls.set_member("__init__", made)
