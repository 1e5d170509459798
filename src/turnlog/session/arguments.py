"""Arguments of tool calls that are no JSON: a value in their place that says so."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..errors import InputError
from ..log.messages import ARGUMENTS_DEPTH, Part, ToolCall, ToolResult


class InvalidArguments(Struct, frozen=True):
    """The `arguments` of a call in `Answer.tool_calls` if the model wrote no JSON: the `raw` text that it wrote, and
    the `reason` why that is no JSON. It counts as false. Looking up a key in it raises an InputError that says so."""

    raw: str
    reason: str

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"the model wrote arguments that are no JSON ({self.reason}): {self.raw:.200}"

    def __getitem__(self, key: str) -> Any:
        raise InputError(
            f"{self}; record this text as the result of the call (outcome 'failed'): the model then repairs it"
        )

    def keys(self) -> Any:
        """Raises InputError, as `arguments["key"]` and `**arguments` do."""
        return self["keys"]


def to_run(call: ToolCall) -> ToolCall:
    """A call of an answer as a program runs it: arguments that are no JSON say so."""
    if call.kind != "function" or call.arguments is not None or call.raw is None:
        return call
    return replace(call, arguments=InvalidArguments(call.raw, _reason(call.raw)))


def as_recorded(part: Part) -> Part:
    """A part as it is recorded: `to_run` taken back, and outcomes in the words of the log."""
    if isinstance(part, ToolResult) and str(part.outcome) == "cancelled":
        return replace(part, outcome="canceled")
    if isinstance(part, ToolCall) and isinstance(part.arguments, InvalidArguments):
        return replace(part, arguments=None)
    return part


def _reason(raw: str) -> str:
    """Why a text is not taken for JSON."""
    if not raw.strip():
        return "the text is empty"
    try:
        json.loads(raw, parse_constant=_refuse)
    except ValueError as error:  # also a number of more digits than Python reads
        return str(error)
    except RecursionError:
        pass
    else:
        if raw.count("{") + raw.count("[") <= ARGUMENTS_DEPTH:
            return "a number in it is too large for JSON"
    return f"it is nested more than {ARGUMENTS_DEPTH} levels deep"


def _refuse(name: str) -> Any:
    raise ValueError(f"JSON has no {name}")
