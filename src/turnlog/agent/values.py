"""What a loop reports: its events, its questions, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Generic, Literal, TypeVar

from msgspec import UNSET, Struct, UnsetType

from ..errors import InputError
from ..log.bills import Bills, added, total_usage
from ..log.messages import Outcome, ToolCall
from ..log.usage import Usage
from ..models.pricing import Cost, total_cost
from ..providers.protocol import Stop
from ..view.turns import TurnInfo

RunStop = Stop | Literal["steps", "seconds", "cost", "output", "awaiting_approval"]
"""How a loop ended: as its last answer did, or at a limit. `output`: no answer fitted the type that was asked for.
`awaiting_approval`: calls wait for an approval that comes later."""


class Postponed(Enum):
    """The type of `LATER`."""

    LATER = "later"


LATER: Final = Postponed.LATER
"""What `approve` returns if somebody is to say later whether a call may run."""

T = TypeVar("T")


class Question(Struct, frozen=True, repr_omit_defaults=True, kw_only=True):
    """The question whether a call may run. `may_have_run`: it may have run before, wholly or in part, and would run
    again. `reason`: why it is asked; what an MCP server asks in the middle of the call, which has begun then. `fields`:
    the JSON schema of an object that it asks for: a dict in place of True gives it."""

    call: ToolCall
    may_have_run: bool = False
    reason: str = ""
    fields: Mapping[str, Any] = {}


class RunResult(Struct, Generic[T], frozen=True, repr_omit_defaults=True, kw_only=True):
    """How a loop ended. `text` is the last answer, "" if there is none.

    `stop` is how that answer ended, see `turnlog.session.Answer.stop`; or `steps`, `seconds`, `cost` or `output`: the
    limit that was reached (`turn.reason` says more); or `awaiting_approval`. `steps` is how many requests this run
    sent; `turn` is what the log says of the whole turn, and `agents` what the agents that its calls ran were billed.
    """

    text: str
    stop: RunStop
    turn: TurnInfo
    steps: int = 0
    agents: Bills = {}
    value: T | UnsetType = UNSET
    """The answer as the type that was asked for, if it came to that."""

    @property
    def output(self) -> T:
        """The answer as the type that the run was given as `output`; None if it was given none. Raises InputError if
        the run ended before such an answer: `stop` is not `end` then."""
        if self.value is UNSET:
            raise InputError(f"the run ended without an answer of the type asked for: its stop is {self.stop!r}")
        return self.value

    @property
    def usage(self) -> Usage:
        """The tokens that the requests of the turn, and of its agents, were billed for."""
        return total_usage(added([self.turn.bills, self.agents]))

    @property
    def cost(self) -> Cost:
        """The cost of the turn and its agents at list prices."""
        return total_cost(added([self.turn.bills, self.agents]))


LoopEventKind = Literal[
    "text", "reasoning", "tool_call", "ran_tool", "tool_started", "progress", "tool_result", "usage", "error", "waiting"
]


class LoopEvent(Struct, frozen=True, repr_omit_defaults=True, kw_only=True):
    """Something that happens in a loop. `kind` says what:

    `text`, `reasoning`, `tool_call`, `ran_tool`, `usage`: of an answer, as in `turnlog.runners.RunnerEvent`; `error`:
    the answer broke off, `text` says why. `tool_started`: `call` begins to run. `progress`: `call` says in `text` how
    far it is. `tool_result`: `call` has a result, `text` is what the model is told and `outcome` how it ended.
    `waiting`: the request is sent again in `seconds`, as `text` says.
    """

    kind: LoopEventKind
    text: str = ""
    call: ToolCall | None = None
    usage: Usage | None = None
    outcome: Outcome | None = None
    result: None = None
    seconds: float = 0.0


class DoneEvent(Struct, frozen=True, repr_omit_defaults=True, kw_only=True):
    """The last event of a loop, its `kind` is `done`: the `result` says how it ended. The other fields are those of
    `LoopEvent`, and empty."""

    kind: Literal["done"] = "done"
    text: str = ""
    call: None = None
    usage: None = None
    outcome: None = None
    result: RunResult[Any]
    seconds: float = 0.0


AgentEvent = LoopEvent | DoneEvent
"""What `stream` and `astream` give. `result` is a RunResult where `kind` is `done`, else None; type checkers know."""
