"""The answer to a recorded request, taken from the bytes of the HTTP response as they come."""

from __future__ import annotations

import codecs
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from .._platform.exceptions import described
from ..models.target import Target
from ..providers import provider
from ..providers.error_bodies import error_chunk
from ..session import Session
from ..session.absorbing import says
from ..session.answer import TRANSPORT, Receiving


class ServerSentEvents:
    """Reads the JSON of server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html) from bytes
    that come in pieces."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # of a line, which may have a picture in it
        self._data: list[bytes] = []
        self._is_over = False

    def feed(self, piece: bytes) -> Iterator[Any]:
        """The values of the events that end in this piece. Raises msgspec.DecodeError."""
        self._rest.append(piece)
        if b"\n" not in piece:
            return
        *lines, rest = b"".join(self._rest).removeprefix(codecs.BOM_UTF8).split(b"\n")
        self._rest = [rest]
        for line in map(bytes.strip, lines):
            if line.startswith(b"data:"):
                self._data.append(line[5:].strip())
            elif not line:
                data, self._data = b"\n".join(self._data), []
                self._is_over = self._is_over or data == b"[DONE]"
                if data and not self._is_over:
                    yield msgspec.json.decode(data)


class Answering:
    """Takes the HTTP response to one request of a session, and records the answer in it, or a note if there is none."""

    def __init__(self, session: Session, target: Target, ended: Callable[[], object]) -> None:
        self._session, self._target, self._ended = session, target, ended
        self._status = 0
        self._decoder: Any = None
        self._whole: Callable[[bytes], bytes] | None = None
        self._events: ServerSentEvents | None = None
        self._receiving: Receiving | None = None
        self._pieces: list[bytes] = []
        self._lock = threading.RLock()  # the next request may end an answer that is still being read
        self.is_over = False
        self.is_answered = False
        """Whether a whole answer is on record."""
        self.says = b""
        """What the answer says."""
        self.reader: Callable[[], Any] = lambda: self
        """Returns what reads the response, None if nobody does any more."""

    def begin(self, status: int, kind: str, coding: str = "", whole: Callable[[bytes], bytes] | None = None) -> None:
        """Take the head of the response: its content type and coding. `whole` decodes a body whose coding is not
        decoded piece by piece."""
        self._status = status
        if coding.strip().lower() in ("gzip", "x-gzip", "deflate"):
            self._decoder = zlib.decompressobj(zlib.MAX_WBITS | 32)  # either, by its header
        elif coding.strip().lower() not in ("", "identity"):
            self._whole = whole
        if status < 400 and "text/event-stream" in kind.lower():
            self._events = ServerSentEvents()

    @property
    def is_awaited(self) -> bool:
        """Whether more of the answer may come."""
        return not self.is_over and self.reader() is not None

    def feed(self, piece: bytes, *, look: bool = True) -> bool:
        """Take bytes of the body as they came. Returns whether a checkpoint is due, which is made at once if `look` is
        true. Raises FormatError, StoreError, and errors of decoding."""
        with self._lock:
            if self.is_over:
                return False
            if self._decoder is not None:
                piece = self._decoder.decompress(piece)
            if self._events is None or self._whole is not None:
                self._pieces.append(piece)
            else:
                for value in self._events.feed(piece):
                    self._take(value, look=look)
            return self._receiving is not None and self._receiving.is_due

    def look(self) -> None:
        """Make a checkpoint if it is due."""
        if self._receiving is not None:
            self._receiving.look()

    def end(self, reason: str = "") -> None:
        """Record what came. `reason` says why it broke off, empty if it did not. A second call does nothing. Raises as
        `feed`."""
        with self._lock:
            if self.is_over:
                return
            try:
                self._end(reason)
                if self.is_answered:
                    self._ended()
            except BaseException as error:
                if self._receiving is not None:
                    with suppress(Exception):  # the first error is told
                        self._receiving.end(f"the rest could not be read: {described(error)}")
                raise
            finally:
                self.is_over = True  # last: until then nobody closes the session

    def _end(self, reason: str) -> None:
        body, answer = b"".join(self._pieces), None
        if self._whole is not None and body:
            body = self._whole(body)
        if self._status < 400 and self._events is None and body.lstrip().startswith((b"data:", b"event:")):
            self._events, self._whole = ServerSentEvents(), bytes  # of a server that does not say what it sends
        if self._status >= 400:
            self._refused(body)
        elif self._events is not None:
            for value in self._events.feed((body if self._whole is not None else b"") + b"\n\n"):
                self._take(value)
        elif body and not reason:
            values = msgspec.json.decode(body)
            for value in values if isinstance(values, list) else ():  # Google's stream without `alt=sse`
                self._take(value)
            if not isinstance(values, list):
                answer = self._session.receive(values, self._target)
        if self._receiving is not None:
            self._receiving.end(reason)
            answer = self._receiving.answer
        if answer is not None:
            self.is_answered, self.says = answer.complete, says([answer.message])
        elif self._status < 400:
            self._session.note(TRANSPORT, f"no answer came: {reason or 'nothing of a response was read'}")

    def _take(self, value: Any, *, look: bool = True) -> None:
        if self._receiving is None:
            self._receiving = self._session.receiving(self._target)
        self._receiving.feed(value, look=look)

    def _refused(self, body: bytes) -> None:
        text = ""
        with suppress(msgspec.DecodeError):
            value = msgspec.json.decode(body)
            text = error_chunk(value, provider(self._target.provider).answer_keys) if isinstance(value, dict) else ""
        told = f": {text}" if text else ""  # pages of gateways may quote the address, with a key in it
        self._session.note(TRANSPORT, f"the server refused the request with status {self._status}{told}")
