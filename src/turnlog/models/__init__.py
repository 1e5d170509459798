"""Facts about models (limits, prices, cache rules, abilities), and the target that requests are made for.

`data/models.json` is the shipped table. Imported by `providers` and above, and by `stores` for usage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._platform.lazy import lazy_names

if TYPE_CHECKING:
    from .abilities import Abilities
    from .catalog import CacheRules, ModelFacts, Origin, Prices, model_abilities, model_facts, model_origins
    from .pricing import Cost, total_cost
    from .target import Target, UnknownModelWarning
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "abilities": "Abilities",
            "catalog": "CacheRules ModelFacts Origin Prices model_abilities model_facts model_origins",
            "pricing": "Cost total_cost",
            "target": "Target UnknownModelWarning",
        },
    )

__all__ = [
    "Abilities",
    "CacheRules",
    "Cost",
    "ModelFacts",
    "Origin",
    "Prices",
    "Target",
    "UnknownModelWarning",
    "model_abilities",
    "model_facts",
    "model_origins",
    "total_cost",
]
