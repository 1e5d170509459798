"""The limits of a run, and of the run that calls it as an agent: what is spent, and how much time is left."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from .._platform.given import number_given
from ..errors import InputError
from ..log.bills import added
from ..models.pricing import total_cost
from ..session.family import bills_of
from ..session.session import Session
from ..session.turn import Turn
from .context import Caller
from .functions import FunctionTool


class LoopLimits:
    """The limits of a run, of its options: `steps` requests, `parallel` calls at the same time, `seconds`, and a `cost`
    in dollars for the whole turn. `until` is when its time is over, on the clock of the event loop; `above` is the call
    that runs this agent, whose limits hold as well."""

    def __init__(self, session: Session, options: Mapping[str, Any], above: Caller | None) -> None:
        """Raises InputError."""
        self.steps, self.parallel = options.get("max_steps", 50), options.get("parallel", 8)
        for name, value in (("max_steps", self.steps), ("parallel", self.parallel)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{name} must be a whole number from 1 on, not {value!r}")
        self.seconds, cost = options.get("max_seconds"), options.get("max_cost")
        for name, amount in (("max_seconds", self.seconds), ("max_cost", cost)):
            if amount is not None:
                number_given(name, amount, above=0)
        self.cost = None if cost is None else Decimal(str(cost))
        self.until: float | None = None
        self._session = session
        self._above = above

    def seconds_left(self) -> float | None:
        """The seconds until the first time limit; None if there is none."""
        own = None if self.until is None else self.until - asyncio.get_running_loop().time()
        above = None if self._above is None else self._above.limits.seconds_left()
        return min((left for left in (own, above) if left is not None), default=None)

    def is_spent(self, turn: Turn, tools: Iterable[FunctionTool]) -> bool:
        """Whether a limit of cost is reached. Raises InputError if nobody knows."""
        if self.cost is not None and self._spent(turn, tools) >= self.cost:
            return True
        return self._above is not None and self._above.is_spent()

    def _spent(self, turn: Turn, tools: Iterable[FunctionTool]) -> Decimal:
        """The cost of a turn with that of the agents that its calls run."""
        info = turn.info
        agents = info.calls if any(tool.runs_agent for tool in tools) else ()
        cost = total_cost(added([info.bills, bills_of(self._session, agents)]))
        if cost.incomplete:
            raise InputError("max_cost: more was billed in this turn than its transcript says; start another turn")
        if cost.unpriced:
            models = ", ".join(cost.unpriced)
            raise InputError(f"max_cost: the price of {models} is not known; add it to the table of models")
        return cost.at_least
