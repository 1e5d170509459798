"""Facts about models (limits, prices, cache rules, abilities), and the target that requests are made for.

`data/models.json` and `data/prices.json` are the shipped tables. Imported by `providers` and above, and by `stores` for
usage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._platform.lazy import lazy_names

if TYPE_CHECKING:
    from .catalog import ModelFacts, model_facts
    from .pricing import Cost
    from .servers import Server
    from .target import Target, UnknownModelWarning
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "catalog": "ModelFacts model_facts",
            "pricing": "Cost",
            "servers": "Server",
            "target": "Target UnknownModelWarning",
        },
    )

__all__ = ["Cost", "ModelFacts", "Server", "Target", "UnknownModelWarning", "model_facts"]
