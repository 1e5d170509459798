"""Functions as tools: their declaration from type hints and docstring, their arguments, and what they return."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, overload

import msgspec

from ..errors import InputError, flag_given, is_async, kind_given, number_given, text_given
from ..log.messages import Media, Opaque, Text, Tool, ToolCall, compact_json
from ..session.arguments import InvalidArguments
from ..session.inputs import Content
from .docstrings import described
from .parameters import Parameters, routine_of

_PARTS = (Text, Media, Opaque)
_BYTES = (bytes, bytearray, memoryview)
_ADDRESS = re.compile(r"<[^<>]* at 0x[0-9A-Fa-f]+>")
"""How Python writes an object that has no text of its own."""


class FunctionTool:
    """A function that a model may call; made by `tool`, or from a plain function by the loop.

    `declaration` is what requests declare. `needs_approval`: somebody is asked before each call. `repeatable`: a call
    that a crash interrupted runs again without asking, as it changes nothing or the same again. `seconds`: how long a
    call may take. `on_demand`: the model sees its name and one line until it loads it. Calling it calls the function.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str = "",
        description: str = "",
        needs_approval: bool = False,
        repeatable: bool = False,
        seconds: float | None = None,
        on_demand: bool = False,
    ) -> None:
        """Raises InputError for a function that cannot be declared: it has no name, `*args`, a parameter without a
        type hint, or one of a type that JSON has no form for."""
        if not callable(function):
            raise InputError(f"a tool is a function, a turnlog.Tool or a declaration, not {type(function).__name__}")
        self.function = function
        self.needs_approval = flag_given("needs_approval", needs_approval)
        self.repeatable = flag_given("repeatable", repeatable)
        self.seconds = None if seconds is None else number_given("seconds", seconds, above=0)
        self.name = text_given("name", name) or getattr(function, "__name__", "")
        if not self.name.isidentifier():
            raise InputError(f"the tool {function!r} has no name: give it one with turnlog.agent.tool(name=...)")
        text, descriptions = described(routine_of(function))
        self._parameters = Parameters(function, self.name, descriptions)
        description = text_given("description", description) or text
        on_demand = flag_given("on_demand", on_demand)
        self.declaration = Tool(self.name, description, self._parameters.schema, on_demand=on_demand)

    def __repr__(self) -> str:
        return f"FunctionTool({self.name})"

    def __call__(self, *args: Any, **arguments: Any) -> Any:
        return self.function(*args, **arguments)

    def read(self, call: ToolCall) -> dict[str, Any]:
        """The arguments of a call as the function takes them. Raises InputError, in words for the model, for arguments
        that do not fit."""
        kind_given("call", call, ToolCall, "a ToolCall, one of `Answer.tool_calls`")
        if isinstance(call.arguments, InvalidArguments):
            raise InputError(f"The tool was not run: {call.arguments}")
        return self._parameters.read(call.arguments or {})

    async def run(self, arguments: Mapping[str, Any]) -> Content:
        """What the function returns, as the content of a result. Raises InputError if it cannot be told to a model."""
        return content_of(await self.returned(arguments))

    async def returned(self, arguments: Mapping[str, Any]) -> Any:
        """What the function returns. A plain function runs in a thread. Raises InputError for unknown arguments."""
        known = self._parameters.names
        if not isinstance(arguments, Mapping) or any(name not in known for name in arguments):
            raise InputError(f"arguments must be a dict with keys of {', '.join(known)}, not {arguments!r:.100}")
        async with asyncio.timeout(self.seconds):
            if is_async(self.function):
                try:
                    return await self.function(**arguments)
                except SystemExit as error:  # it would end the event loop, and with it everybody's work
                    raise RuntimeError(f"SystemExit: {error}") from error
            return await called_in_thread(self.function, **arguments)


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...


@overload
def tool(
    *,
    name: str = "",
    description: str = "",
    needs_approval: bool = False,
    repeatable: bool = False,
    seconds: float | None = None,
    on_demand: bool = False,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function a tool: `@tool`, or `@tool(needs_approval=True)` with the options of `FunctionTool`. Functions
    without options need not be decorated."""
    if function is not None:
        return FunctionTool(function)
    return lambda one: FunctionTool(one, **options)


async def called_in_thread(function: Callable[..., Any], /, *args: Any, **arguments: Any) -> Any:
    """What a plain function returns, called in a thread. Raises RuntimeError in place of StopIteration and SystemExit,
    which cannot pass from a thread to an event loop."""

    def called() -> Any:
        try:
            return function(*args, **arguments)
        except (StopIteration, SystemExit) as error:
            raise RuntimeError(f"{type(error).__name__}: {error}") from error

    return await asyncio.to_thread(called)


def content_of(value: Any) -> Content:
    """What a tool returned, as the content of a result: text and parts as they are, None as no text, anything else as
    JSON. Raises InputError for a value that cannot be told to a model: bytes, NaN, a value that contains itself, an
    object without a text of its own."""
    if value is None:
        return ""
    if isinstance(value, (str, *_PARTS)):
        return value
    if isinstance(value, (list, tuple)) and any(isinstance(one, _PARTS) for one in value):
        return [one if isinstance(one, (str, *_PARTS)) else _json(one) for one in value]
    return _json(value)


def _json(value: Any) -> str:
    try:
        plain = msgspec.to_builtins(value, builtin_types=_BYTES, enc_hook=_plain)
        _check_tellable(plain)
        return msgspec.json.encode(value, enc_hook=_plain).decode()
    except RecursionError as error:
        raise _untold("a value that contains itself, or is nested too deeply,") from error
    except UnicodeEncodeError:  # half a character: it is replaced when it is sent
        return compact_json(plain)


def _plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)  # of pydantic
    if dump is not None:
        return dump(mode="json")
    text = str(value)
    if _ADDRESS.search(text):
        raise _untold(f"an object of type {type(value).__name__}, which has no text of its own,")
    return text


def _check_tellable(value: Any) -> None:
    """Raises InputError for bytes, and for numbers that JSON does not have."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack += [*item, *item.values()]
        elif isinstance(item, (list, tuple, set, frozenset)):
            stack += item
        elif isinstance(item, _BYTES):
            raise _untold(f"{type(item).__name__} (decode text; for media return session.media(data, mime))")
        elif isinstance(item, float) and not math.isfinite(item):
            raise _untold(f"the number {item}, which JSON does not have,")


def _untold(what: str) -> InputError:
    return InputError(f"{what} cannot be told to a model; return text, values that JSON has, or turnlog.Text and Media")
