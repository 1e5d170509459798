"""The services that are closed with a session (model clients, tools): the last first, each whether or not another one
fails to close."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._platform.exceptions import described
from .._platform.given import text_given
from .._platform.stdlib import inspect
from ..errors import InputError


class _Closer(NamedTuple):
    """How a service is closed: the result of `aclose` may have to be awaited. `close` is None if it can only be closed
    asynchronously."""

    name: str
    close: Callable[[], Any] | None
    aclose: Callable[[], Any]


class Services:
    """The services of one session. `report` gets a line for each service that fails to close."""

    def __init__(self, report: Callable[[str], object]) -> None:
        self._report = report
        self._closers: list[_Closer] = []
        self.named: dict[str, Any] = {}
        """Those that were given a name."""

    def on_close(self, close: Callable[[], object]) -> None:
        """Call `close` when the session is closed."""
        self._closers.append(_Closer(getattr(close, "__qualname__", "") or repr(close), close, close))

    def attach(self, service: Any, name: str = "") -> Any:
        """Add a service, as `_attached`, under a name if one is given. Raises InputError if the name is taken."""
        self._check_free(name)
        return self._kept(name, self._attached(service))

    def _check_free(self, name: str) -> None:
        if text_given("name", name) in self.named:
            raise InputError(f"attach: this session has a service with the name {name!r} already; give another name")

    def _kept(self, name: str, service: Any) -> Any:
        if name:
            self.named[name] = service
        return service

    def _attached(self, service: Any) -> Any:
        """Add a service: an object with `close` or `aclose` as it is; any other context manager is entered. Returns the
        service, or what entering it returns. Raises InputError if it can be neither closed nor entered."""
        if self._closable(service):
            return service
        if _is_context(service, "__enter__", "__exit__"):
            given = type(service).__enter__(service)
            leave = _leaving(service, "__exit__")
            self._closers.append(_Closer(_name_of(service), leave, leave))
            return given
        if _is_context(service, "__aenter__", "__aexit__"):
            name = _name_of(service)
            raise InputError(f"{name} is an asynchronous context manager: use `await session.aattach({name})`")
        raise InputError(
            f"attach: {_name_of(service)} cannot be closed with the session; give an object with close() or aclose(), "
            "or a context manager"
        )

    async def aattach(self, service: Any, name: str = "") -> Any:
        """As `attach`, for asynchronous context managers too."""
        self._check_free(name)
        closable = _method(service, "close") or _method(service, "aclose")
        if closable or not _is_context(service, "__aenter__", "__aexit__"):
            return self._kept(name, self._attached(service))
        given = await type(service).__aenter__(service)
        self._closers.append(_Closer(_name_of(service), None, _leaving(service, "__aexit__")))
        return self._kept(name, given)

    def close(self) -> None:
        """Close all, the last first. A service that can only be closed asynchronously is reported as left open. Raises
        the first error after all were tried; a note on it lists the other failures."""
        errors: list[BaseException] = []
        self.named.clear()
        while self._closers:
            closer = self._closers.pop()
            try:
                _close(closer)
            except BaseException as error:  # noqa: BLE001 - raised below, when the others are closed
                self._failed(closer, error, errors)
        _raise_first(errors)

    async def aclose(self) -> None:
        """As `close`, also for services that are closed asynchronously."""
        errors: list[BaseException] = []
        self.named.clear()
        while self._closers:
            closer = self._closers.pop()
            try:
                done = closer.aclose()
                if inspect.isawaitable(done):
                    await done
            except BaseException as error:  # noqa: BLE001 - as above; a cancelled task still closes the others
                self._failed(closer, error, errors)
        _raise_first(errors)

    def forget(self) -> None:
        """Close nothing, as if the process were killed."""
        self._closers.clear()

    def _closable(self, service: Any) -> bool:
        """Add a service with a method to close it; False if it has none."""
        close = _method(service, "close")
        aclose = _method(service, "aclose") or close
        if aclose is None:
            return False
        waits = inspect.iscoroutinefunction(close)
        self._closers.append(_Closer(_name_of(service), None if waits else close, aclose))
        return True

    def _failed(self, closer: _Closer, error: BaseException, errors: list[BaseException]) -> None:
        errors.append(error)
        self._report(f"closing {closer.name} failed: {described(error)}")


def _close(closer: _Closer) -> None:
    done = closer.close() if closer.close is not None else None
    if inspect.iscoroutine(done):
        done.close()  # nobody is going to await it
    if inspect.isawaitable(done) or closer.close is None:
        raise InputError(
            f"{closer.name} is closed asynchronously and was left open: use `async with` for the session, "
            "or `await session.aclose()`"
        )


def _raise_first(errors: list[BaseException]) -> None:
    if errors:
        for other in errors[1:]:
            errors[0].add_note(f"closing something else failed too: {described(other)}")
        raise errors[0]


def _method(service: Any, name: str) -> Callable[[], Any] | None:
    method = getattr(service, name, None)
    return method if callable(method) else None


def _is_context(service: Any, enter: str, leave: str) -> bool:
    return hasattr(type(service), enter) and hasattr(type(service), leave)


def _leaving(service: Any, name: str) -> Callable[[], Any]:
    return lambda: getattr(type(service), name)(service, None, None, None)


def _name_of(service: Any) -> str:
    return f"{type(service).__module__}.{type(service).__qualname__}".removeprefix("builtins.")
