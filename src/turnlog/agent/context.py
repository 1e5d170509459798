"""What a tool is told about its call, beside the arguments that the model wrote."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import get_ident
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Generic, NamedTuple, Union, get_args, get_origin

from .._platform.given import kind_given, text_given
from ..session.session import Session
from ..session.turn import Turn

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    _Deps = TypeVar("_Deps", default=Any)
else:  # Python has defaults of type variables from 3.13 on; only type checkers need this one
    from typing import TypeVar

    _Deps = TypeVar("_Deps")


class AgentWaits(BaseException):
    """An agent waits for an approval that comes later, and so does the call that runs it; its text says for which. Or
    it cannot work now, because of `error`, with which the run ends, or a limit that the run has reached, too. No
    Exception, as the call has not failed."""

    def __init__(self, text: str, error: Exception | None = None) -> None:
        super().__init__(text)
        self.error = error


class Caller(NamedTuple):
    """Who called a tool: the session and its turn; and what an agent that the call runs has of the loop: its `approve`,
    its `limits` (`agent.limits`), and whether its limit of cost is reached."""

    session: Session
    turn: Turn
    approve: Callable[[Any], Awaitable[Any]] | None
    limits: Any
    is_spent: Callable[[], bool]


class ToolContext(Generic[_Deps]):
    """What a function may know of its call: it gets one for a parameter with this type hint, which no model sees.

    `session_id` and `call_id` say where the call is on record, `labels` are those of the session when the call began,
    `deps` is what was given to the run as `deps`: `ToolContext[Shop]` says its type. Whoever calls a tool by hand
    (`FunctionTool.run`) makes one; `is_cancelled` and `tell` then answer `cancelled` and take what `progress` says, and
    `ask` answers `ask`.
    """

    def __init__(
        self,
        session_id: str = "",
        call_id: str = "",
        *,
        labels: Mapping[str, str] | None = None,
        deps: Any = None,
        is_cancelled: Callable[[], bool] | None = None,
        tell: Callable[[str], object] | None = None,
        ask: Callable[[str, Mapping[str, Any]], Awaitable[Any]] | None = None,
    ) -> None:
        self.session_id = text_given("session_id", session_id)
        self.call_id = text_given("call_id", call_id)
        self.labels = dict(kind_given("labels", labels or {}, Mapping, "a dict of texts, as for turnlog.open"))
        self.deps: _Deps = deps
        self._is_cancelled = is_cancelled
        self._tell = tell
        self._ask = ask
        self._given_up = False
        self.caller: Caller | None = None  # for tools that run agents

    def __repr__(self) -> str:
        return f"ToolContext({self.session_id!r}, {self.call_id!r})"

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the call any more: its turn was cancelled, or its time is over. A plain function,
        which runs in a thread that nobody can end, looks at it now and then and returns."""
        return self._given_up or (self._is_cancelled is not None and self._is_cancelled())

    def progress(self, text: str) -> None:
        """Tell those who follow the run how far the call is: an event `progress` of `stream`, which is not recorded.
        May be called from any thread; after the end of the call it does nothing."""
        text_given("text", text)
        if self._tell is not None and not self.cancelled:
            self._tell(text)

    async def ask(self, text: str, fields: Mapping[str, Any] | None = None) -> Any:
        """Ask the `approve` of the run in the middle of the call, and return what it says: a `Question` with `text` as
        its reason and `fields`, the JSON schema of an object that it may fill in. None: the run has nobody to ask. Only
        for `async` functions, in their own event loop."""
        return None if self._ask is None else await self._ask(text_given("text", text), fields or {})

    @contextmanager
    def during_call(self) -> Iterator[None]:
        """A context manager around the call: what goes on in a thread after it tells nothing more, and learns whether
        the call was given up."""
        try:
            yield
        except (asyncio.CancelledError, TimeoutError):
            self._given_up = True
            raise
        finally:
            self._tell = None


def is_context(hint: Any) -> bool:
    """Whether a type hint asks for the context: `ToolContext`, also with the type of `deps`, a note, or `| None`."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        others = [member for member in get_args(hint) if member is not NoneType]
        return len(others) == 1 and is_context(others[0])
    return hint is ToolContext or origin is ToolContext or (origin is Annotated and is_context(get_args(hint)[0]))


def in_this_loop(tell: Callable[[str], object]) -> Callable[[str], None]:
    """`tell`, to be called from any thread: it is called in the thread of the event loop that runs now, in order, and
    not after the loop's end."""
    loop, own_thread = asyncio.get_running_loop(), get_ident()

    def told(text: str) -> None:
        if get_ident() == own_thread:
            tell(text)
            return
        with suppress(RuntimeError):  # the loop is closed: a thread outlived the run
            loop.call_soon_threadsafe(tell, text)

    return told
