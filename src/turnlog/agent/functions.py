"""Functions as tools: their declaration from type hints and docstring, their arguments, and what they return."""

from __future__ import annotations

import asyncio
import atexit
import inspect
import math
import re
import threading
import time
from collections import UserString, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence, Set, ValuesView
from concurrent.futures import Future
from contextvars import copy_context
from decimal import Decimal
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, TypedDict, Unpack, overload

import msgspec
from msgspec.structs import replace

from .._platform.exceptions import described
from .._platform.given import flag_given, is_async, kind_given, number_given, text_given
from .._platform.lazy import lazy_pattern
from .._platform.units import an
from ..errors import InputError
from ..log.messages import Media, Opaque, Text, Tool, ToolCall, ToolResult, bare, compact_json, free_text
from ..providers.tool_declarations import read_tools
from ..session.inputs import Content, InvalidArguments
from .context import ToolContext
from .parameters import Parameters, routine_of
from .schemas import SchemaParameters

# -- docstrings ------------------------------------------------------------------------------------
#
# Descriptions of a function and its parameters, read from its docstring.
#
# Four styles are read: Google's (`Args:`, `Keyword Args:`), NumPy's (`Parameters` underlined), Sphinx's (`:param
# name:`) and Epydoc's (`@param name:`). What stands behind such a section belongs to the description again, and so do
# all other sections, such as `Note:`; only what is returned or raised is left out, and what else there is to see.

_PARAMETERS = r"(?:(?:keyword|other)\s+)?(?:args|arguments|parameters|params)|receives"
_OTHERS = r"returns?|raises?|yields?|see\s+also"
_SECTION = lazy_pattern(rf"^(?:(?P<parameters>{_PARAMETERS})|{_OTHERS})\s*:?\s*$", re.IGNORECASE)
_SPHINX = lazy_pattern(
    r"^[:@](?:param|parameter|arg|argument|key|keyword|kwarg|kwparam)\s+(?:[^:]*\s)?\**(\w+)\s*:\s*(.*)$"
)
_FIELD = lazy_pattern(r"^[:@]\w+[^:]*:")
_GOOGLE = lazy_pattern(r"^\**(\w+)\s*(?:\(.*?\))?\s*:\s*(.*)$")
_NUMPY = lazy_pattern(r"^(\**\w+(?:\s*,\s*\**\w+)*)\s*(?::.*)?$")


def documented(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The description in a function's docstring, without its sections, and the description of each parameter."""
    lines = (inspect.getdoc(function) or "").splitlines()
    description_lines: list[str] = []
    parameter_lines: dict[str, list[str]] = {}
    names: list[str] = []
    section, depth = "", 0
    for i, line in enumerate(lines):
        text, indent = line.strip(), len(line) - len(line.lstrip())
        underlined = i + 1 < len(lines) and bool(re.fullmatch(r"\s*-{3,}\s*", lines[i + 1]))
        if indent == 0 and (header := _SECTION.match(text)) and (text.endswith(":") or underlined):
            kind = "numpy" if underlined else "google"
            section, names, depth = kind if header["parameters"] else f"other {kind}", [], 0
        elif re.fullmatch(r"-{3,}", text):
            continue
        elif sphinx := _SPHINX.match(text):
            section, names, depth = "sphinx", [sphinx[1]], indent
            parameter_lines[sphinx[1]] = [sphinx[2]]
        elif section == "sphinx" and _FIELD.match(text):
            names = []
        elif text and not indent and _is_over(section, underlined, blank=i > 0 and not lines[i - 1].strip()):
            section = ""
            description_lines += ["", line] if description_lines and description_lines[-1] else [line]
        elif section in ("google", "numpy", "sphinx"):
            starts = None if underlined else _entry(text, indent, depth, section)
            if starts is not None:
                names, rest = starts
                depth = indent
                parameter_lines.update({name: [rest] for name in names})
            elif text:
                for name in names:
                    parameter_lines[name].append(text)
        elif not section:
            description_lines.append(line)
    descriptions = {parameter: " ".join(filter(None, texts)) for parameter, texts in parameter_lines.items()}
    return "\n".join(description_lines).strip(), descriptions


def _is_over(section: str, underlined: bool, *, blank: bool) -> bool:
    """Whether a line without indentation ends the section. NumPy's sections end only at a header, Sphinx's only after a
    blank line."""
    return bool(section) and (underlined or section.endswith("google") or (section == "sphinx" and blank))


def _entry(text: str, indent: int, depth: int, section: str) -> tuple[list[str], str] | None:
    """The parameter names and first words of an entry, if the line begins one; a deeper line continues the entry
    before."""
    if not text or section == "sphinx" or (depth and indent > depth):
        return None
    if indent and (google := _GOOGLE.match(text)):
        return [google[1]], google[2]
    if not indent and section == "numpy" and (numpy := _NUMPY.match(text)):
        return [name.strip(" *") for name in numpy[1].split(",")], ""
    return None


_PARTS = (Text, Media, Opaque)
_BYTES = (bytes, bytearray, memoryview)
_UNTOUCHED = (*_BYTES, Decimal)
_NO_CONTENT = (
    *(type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, partial),
    *(Iterator, AsyncIterator, Awaitable),
)
"""Types whose text is a name or an address, not content: code, iterators and awaitables."""
_OF_OBJECT: Any = (object.__str__, object.__repr__)
_ADDRESS = lazy_pattern(r" at 0x[0-9A-Fa-f]{6,}")
"""The address in Python's default text of an object, also inside the text of another object."""


LONGEST_NAME = 64  # characters that all providers take (`name_max` in their rules)
_NAME = lazy_pattern(rf"[\w-]{{1,{LONGEST_NAME}}}")
"""Names of tools. Of letters that it does not take a provider makes others."""


class FunctionTool:
    """A function that a model may call; made by `tool`, or by the loop from a plain function.

    `declaration` is what requests declare. `needs_approval`: `approve` is asked before each call. `repeatable`: a call
    that a crash interrupted runs again without asking, because repeating it does no harm. `seconds`: the most time that
    a call may take. `on_demand`: the model sees only name and one line until it loads the tool. `parameters`: the
    JSON schema of the arguments, in place of what the function's type hints say; arguments that fit it are passed by
    name as they are. `declared`: a `turnlog.Tool`, or a declaration as a provider documents it, in place of name,
    description and parameters (of a tool that a provider defines and you run, as its shell, the type hints say what
    arguments there are). Calling the FunctionTool calls the function.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str = "",
        description: str = "",
        parameters: Mapping[str, Any] | None = None,
        declared: Tool | Mapping[str, Any] | None = None,
        needs_approval: bool = False,
        repeatable: bool = False,
        seconds: float | None = None,
        on_demand: bool = False,
    ) -> None:
        """Raises InputError for a function that cannot be declared: without a name, with `*args`, or with a parameter
        that has no type hint or a type without a JSON form; and for one that does not take what its schema declares."""
        if not callable(function):
            kind = type(function).__name__
            kind += f"; a server is turnlog.agent.mcp_server({function!r:.80})" if isinstance(function, str) else ""
            raise InputError(f"a tool is a function, a turnlog.Tool or a declaration, not {kind}")
        self.function = function
        self.needs_approval = flag_given("needs_approval", needs_approval)
        self.runs_agent = False
        self.repeatable = flag_given("repeatable", repeatable)
        self.seconds = None if seconds is None else number_given("seconds", seconds, above=0)
        given, *others = (Tool(""),) if declared is None else read_tools([declared]) or (None,)
        if given is None or others:
            raise InputError(f"one function is one tool: {declared!r:.100} declares {len(others) + 1 if given else 0}")
        self.name = text_given("name", name) or given.name or getattr(function, "__name__", "")
        if not _NAME.fullmatch(self.name):
            what = f"a tool called {self.name!r}" if self.name else f"the tool {function!r} has no name"
            raise InputError(f"{what}: turnlog.agent.tool(name=) takes 1 to {LONGEST_NAME} letters, digits, _ and -")
        self.may_ask = self.name if self.needs_approval else ""  # for an agent: which of its tools
        text, descriptions = documented(routine_of(function))
        self._parameters = _parameters(function, self.name, descriptions, given, parameters)
        self.declaration = replace(
            given,
            name=self.name,
            description=text_given("description", description) or given.description or text,
            parameters=self._parameters.schema if given.kind == "function" else None,
            on_demand=flag_given("on_demand", on_demand) or given.on_demand,
        )

    def __repr__(self) -> str:
        return f"FunctionTool({self.name})"

    def __call__(self, *args: Any, **arguments: Any) -> Any:
        return self.function(*args, **arguments)

    def read(self, call: ToolCall) -> dict[str, Any]:
        """The arguments of a call, converted to the function's types. Raises InputError, worded for the model, for
        arguments that do not fit."""
        kind_given("call", call, ToolCall, "a ToolCall, one of `Answer.tool_calls`")
        if isinstance(call.arguments, InvalidArguments):
            raise InputError(f"The tool was not run: {call.arguments}")
        return self._parameters.read({"input": call.raw or ""} if call.kind == "custom" else call.arguments or {})

    @property
    def wants_context(self) -> bool:
        """Whether the function has a parameter for the ToolContext."""
        return bool(self._parameters.context)

    async def run(self, arguments: Mapping[str, Any], context: ToolContext | None = None) -> Content:
        """The function's return value as the content of a result. Raises InputError for a value that no model can be
        told."""
        return content_of(await self.returned(arguments, context))

    async def returned(self, arguments: Mapping[str, Any], context: ToolContext | None = None) -> Any:
        """What the function returns. A plain function runs in a thread. Raises InputError for unknown arguments, and
        without a context for a function that takes one."""
        if not isinstance(arguments, Mapping) or not all(map(self._parameters.takes, arguments)):
            names = ", ".join(self._parameters.names)
            raise InputError(f"arguments must be a dict with keys of {names}, not {arguments!r:.100}")
        if context is not None or self.wants_context:
            kind_given("context", context, ToolContext, f"a turnlog.agent.ToolContext: tool {self.name!r} takes one")
        if context is None or not self.wants_context:
            return await self._called(arguments)
        with context.during_call():
            return await self._called({**arguments, self._parameters.context: context})

    async def _called(self, arguments: Mapping[str, Any]) -> Any:
        async with asyncio.timeout(self.seconds):
            if is_async(self.function):
                try:
                    return await self.function(**arguments)
                except SystemExit as error:  # it would end the event loop, and with it everybody's work
                    raise RuntimeError(described(error)) from error
            return await called_in_thread(partial(self.function, **arguments), seconds=self.seconds)


def _parameters(
    function: Callable[..., Any], name: str, descriptions: Mapping[str, str], given: Tool, own: Any
) -> Parameters | SchemaParameters:
    """What reads the arguments: the schema that was given, else the function's type hints."""
    schema = free_text() if given.kind == "custom" else given.parameters if own is None else own
    return Parameters(function, name, descriptions) if schema is None else SchemaParameters(function, name, schema)


class ToolOptions(TypedDict, total=False):
    """The options of a tool, as `FunctionTool` explains them."""

    parameters: Mapping[str, Any] | None
    needs_approval: bool
    repeatable: bool
    seconds: float | None
    on_demand: bool


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...


@overload
def tool(
    name: str | Tool | Mapping[str, Any],
    description: str = "",
    *,
    call: Callable[..., Any],
    **options: Unpack[ToolOptions],
) -> FunctionTool: ...


@overload
def tool(
    name: str | Tool | Mapping[str, Any] = "", description: str = "", **options: Unpack[ToolOptions]
) -> Callable[[Callable[..., Any]], FunctionTool]: ...


def tool(name: Any = "", description: str = "", *, call: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Make a function a tool: `@tool`, `@tool(needs_approval=True)` with the options of `FunctionTool`, or
    `tool("name", "what it does", parameters={...}, call=function)` for a tool that has a JSON schema of its own. In
    place of the name may stand a `turnlog.Tool`, or a declaration as a provider documents it. Functions without options
    need not be decorated."""
    if callable(name):
        if call is not None or description or options:
            raise InputError("a function takes its options as @turnlog.agent.tool(...), or with a name and call=")
        return FunctionTool(name)
    if isinstance(name, (Tool, Mapping)):
        options["declared"], name = name, ""
    options |= {"name": name, "description": description}
    return (lambda decorated: FunctionTool(decorated, **options)) if call is None else FunctionTool(call, **options)


_UNTIL: dict[threading.Thread, float] = {}
"""The threads of the calls that run, and until when the end of the program waits for them."""


async def called_in_thread(function: Callable[..., Any], /, *args: Any, seconds: float | None = None) -> Any:
    """Call a plain function of the user in a thread of its own and return its result. It may run an agent, or never
    return: in a pool of threads, some such calls would stop all agents of the process.

    If the task is cancelled, the call goes on. The end of the program waits for it, at most until it has taken
    `seconds`. Raises RuntimeError in place of StopIteration, and of SystemExit and KeyboardInterrupt, which
    would end the event loop and all that runs in it."""
    until = threading.TIMEOUT_MAX if seconds is None else time.monotonic() + seconds
    context, result = copy_context(), Future[Any]()
    result.set_running_or_notify_cancel()  # it cannot be cancelled any more

    def called() -> None:
        _UNTIL[thread] = until
        try:
            result.set_result(context.run(function, *args))
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
            is_kept = isinstance(error, Exception) and not isinstance(error, StopIteration)
            result.set_exception(error if is_kept else RuntimeError(described(error)))
        finally:
            del _UNTIL[thread]

    thread = threading.Thread(target=called, name="turnlog-call", daemon=True)
    thread.start()
    return await asyncio.wrap_future(result)


@atexit.register
def _wait_for_calls() -> None:
    while running := [each for each in list(_UNTIL.items()) if each[1] > time.monotonic()]:
        running[0][0].join(max(0, running[0][1] - time.monotonic()))


def content_of(value: Any) -> Content:
    """The content of a result for a returned value: text and parts unchanged, the parts of a ToolResult, None as empty
    text, anything else as JSON. Raises InputError for a value that no model can be told: bytes, NaN, a value that
    contains itself, a function, a file, an object without a text of its own, or one whose text cannot be made."""
    try:
        if value is None:
            return ""
        if isinstance(value, _PARTS):
            return value
        if isinstance(value, ToolResult):
            return value.parts or ""
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, (list, tuple)) and any(isinstance(item, _PARTS) for item in value):
            return [item if isinstance(item, _PARTS) else _json(item, bare_text=True) for item in value]
        return _json(value)
    except RecursionError as error:
        raise _untold("a value that contains itself, or is nested too deeply,") from error
    except InputError:
        raise
    except Exception as error:  # of the value's own code, or Python's limit on digits: the tool itself has run
        raise _untold(f"{an(type(value).__name__)}, whose text cannot be made ({described(error)}),") from error


def _json(value: Any, *, bare_text: bool = False) -> str:
    if bare_text and isinstance(value, str):
        return str.__str__(value)
    plain = _tellable(msgspec.to_builtins(value, builtin_types=_UNTOUCHED, enc_hook=_plain))
    try:
        return msgspec.json.encode(plain).decode()
    except UnicodeEncodeError:  # half a character: it is replaced when it is sent
        return compact_json(plain)


def _plain(value: Any) -> Any:
    """Convert a value of a type that msgspec does not know: to its JSON form if it has one, else to its text."""
    kind = type(value)
    if isinstance(value, (str, int, float)):
        return bare(value)
    if hasattr(kind, "model_dump"):  # of pydantic
        return value.model_dump(mode="json")
    if hasattr(kind, "tolist"):  # of numpy and array
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (Sequence, Set, ValuesView, deque)) and not isinstance(value, UserString):
        return list(value)
    has_text = (kind.__str__, kind.__repr__) != _OF_OBJECT and not isinstance(value, _NO_CONTENT)
    text = str(value) if has_text else ""
    if not has_text or _ADDRESS.search(text):
        raise _untold(f"an object of type {kind.__name__}, which has no text of its own,")
    return str.__str__(text)


def _tellable(value: Any) -> Any:
    """Convert a value of plain types to JSON's types. Raises InputError for bytes, for numbers that JSON does not have,
    and for a dict in which two keys would become one."""
    if isinstance(value, dict):
        told: dict[str, Any] = {}
        for key, item in value.items():
            name = key if isinstance(key, str) else _name(_tellable(key))
            if name in told:
                raise _untold(f"a dict with two keys that are both {name!r:.100} in JSON")
            told[name] = _tellable(item)
        return told
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_tellable(item) for item in value]
    if isinstance(value, _BYTES):
        raise _untold(f"{type(value).__name__} (decode text; for media return session.media(data, mime))")
    if isinstance(value, (float, Decimal)) and not math.isfinite(value):
        raise _untold(f"the number {value}, which JSON does not have,")
    return str(value) if isinstance(value, Decimal) else value


def _name(key: Any) -> str:
    """A dict key as text: a string unchanged, anything else as JSON."""
    return key if isinstance(key, str) else msgspec.json.encode(key).decode()


def _untold(what: str) -> InputError:
    return InputError(f"{what} cannot be told to a model; return text, values that JSON has, or turnlog.Text and Media")
