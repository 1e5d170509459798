"""What a loop reports: its events, its questions, and how it ended."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ..log.messages import Outcome, ToolCall
from ..log.usage import Usage
from ..models.pricing import Cost
from ..providers.protocol import Stop
from ..view.turns import TurnInfo

RunStop = Stop | Literal["steps", "seconds", "cost"]
"""How a loop ended: as its last answer did, or at a limit."""


class Question(Struct, frozen=True, repr_omit_defaults=True, kw_only=True):
    """The question whether a call may run. `may_have_run`: it may have run before, wholly or in part, and would run
    again."""

    call: ToolCall
    may_have_run: bool = False
    reason: str = ""


class RunResult(Struct, frozen=True, repr_omit_defaults=True, kw_only=True):
    """How a loop ended. `text` is the last answer, "" if there is none.

    `stop` is how that answer ended, see `turnlog.session.Answer.stop`; or `steps`, `seconds` or `cost`: the limit that
    was reached. `steps` is how many requests this run sent; `turn` is what the log says of the whole turn.
    """

    text: str
    stop: RunStop
    turn: TurnInfo
    steps: int = 0

    @property
    def usage(self) -> Usage:
        """The tokens that the requests of the turn were billed for."""
        return self.turn.usage

    @property
    def cost(self) -> Cost:
        """The cost of the turn at list prices."""
        return self.turn.cost


AgentEventKind = Literal[
    "text", "reasoning", "tool_call", "ran_tool", "tool_started", "tool_result", "usage", "error", "done"
]


class AgentEvent(Struct, frozen=True, repr_omit_defaults=True, kw_only=True):
    """Something that happens in a loop. `kind` says what:

    `text`, `reasoning`, `tool_call`, `ran_tool`, `usage`: of an answer, as in `turnlog.runners.RunnerEvent`; `error`:
    the answer broke off, `text` says why. `tool_started`: `call` begins to run. `tool_result`: `call` has a result,
    `text` is what the model is told and `outcome` how it ended. `done`: the loop has ended; `result` says how.
    """

    kind: AgentEventKind
    text: str = ""
    call: ToolCall | None = None
    usage: Usage | None = None
    outcome: Outcome | None = None
    result: RunResult | None = None
