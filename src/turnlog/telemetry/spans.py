"""Records as spans and metrics: of each turn, each answer of a model, and each run of a tool.

Times are those of the records. An answer's span begins at the newest record that its request could have included,
because the log does not contain the time of the request. Only open spans, and what the next answer needs, are kept in
memory.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from .._platform.lazy import lazy_pattern
from ..log.actions import SHRINKING
from ..log.messages import Message, ToolCall, ToolResult
from ..log.records import (
    Approval,
    Configuration,
    Decision,
    MessageBody,
    MessageRecord,
    PartialAnswer,
    Record,
    ToolFinished,
    ToolStarted,
    TurnClosed,
    TurnOpened,
    TurnResumed,
    UsageRecord,
)
from ..log.usage import Usage
from ..models.makers import PROVIDER_ROWS
from ..providers import PROVIDERS
from ..session.events import Appended
from ..view.repair.pairing import may_answer
from . import names
from .content import Contents, utf8
from .measures import Measures

_KEPT = 200
"""At most this many open calls, and messages and events before the next answer, are kept; the oldest are dropped
first."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ERROR_NAME = lazy_pattern(r"([A-Za-z_][A-Za-z0-9_.]*)(?=:|\Z)")
_BEFORE_REQUEST = (
    Approval,
    Configuration,
    Decision,
    MessageRecord,
    PartialAnswer,
    ToolFinished,
    TurnOpened,
    TurnResumed,
)
_FAILURES = ("failed", "timeout", "aborted", "lost")

_Attributes = dict[str, Any]


class _Open(NamedTuple):
    """A span that is open, with what its metric needs: a span that is not sampled tells nothing."""

    span: trace.Span
    operation: str
    attributes: _Attributes
    begun: int | None


class _Call(NamedTuple):
    """An unanswered call: its record, its time, and the span of its run, if the run began."""

    call: ToolCall
    record: int
    time: str
    span: _Open | None = None


class SessionSpans:
    """Makes spans of one session's records. See `turnlog.telemetry.attach`."""

    def __init__(
        self,
        tracer: trace.Tracer,
        measures: Measures,
        session_id: str,
        configuration: Configuration,
        contents: Contents,
        system: Callable[[], list[str]],
        *,
        agent: str = "",
    ) -> None:
        self._tracer = tracer
        self._measures = measures
        self._system = system
        self._session = session_id
        self._configuration = configuration
        self._contents = contents
        self._agent = contents.name(agent)
        self._turn: tuple[str, _Open] | None = None
        self._calls: dict[str, _Call] = {}
        self._since = ""
        self._waiting: deque[tuple[str, _Attributes, str]] = deque(maxlen=_KEPT)
        self._said: deque[Message] = deque(maxlen=_KEPT)

    def take(self, appended: Appended) -> None:
        """Make spans of appended records. An exception of an exporter is raised after all records were processed."""
        error: Exception | None = None
        for record in appended.records:
            try:
                self._take(record, appended)
            except Exception as raised:  # noqa: BLE001 - a span that fails must not leave the others open
                error = error or raised
            if isinstance(record.body, _BEFORE_REQUEST):
                self._since = record.time
        if error is not None:
            raise error

    def close(self) -> None:
        """End the open spans, because the session is closed."""
        last_time = self._since
        for key in list(self._calls):
            self._end_call(key, "aborted", last_time)
        self._end_turn("", "", last_time)

    def _take(self, record: Record, appended: Appended) -> None:
        match record.body:
            case TurnOpened(turn_id=turn_id) | TurnResumed(turn_id=turn_id):
                self._begin_turn(turn_id, record)
            case TurnClosed(turn_id=turn_id, status=status, reason=reason):
                if self._turn is not None and self._turn[0] == turn_id:
                    self._end_turn(status, reason, record.time)
            case MessageRecord(message=message) | PartialAnswer(message=message):
                self._message(record, message, appended)
            case ToolStarted() as started:
                self._begin_call(started, record)
            case ToolFinished() as finished:
                self._finish_call(finished, record, appended)
            case Approval(state=state, call_id=call_id):
                attributes = {"turnlog.approval": state, names.CALL_ID: utf8(call_id), names.RECORD: record.n}
                self._event("turnlog.approval", attributes, record.time)
            case Decision(action=action, first=first, last=last) if action in SHRINKING:
                what = {"turnlog.decision": action, "turnlog.decision.first": first, "turnlog.decision.last": last}
                self._event("turnlog.compacted", {**what, names.RECORD: record.n}, record.time)
            case Configuration() as configuration:
                self._configuration = configuration

    # -- turns -----------------------------------------------------------------------------------

    def _begin_turn(self, turn_id: str, record: Record) -> None:
        self._end_turn("", "", record.time)
        configuration = self._configuration
        asked = _model(configuration.provider, self._contents.name(configuration.model))
        attributes = {names.TURN_ID: turn_id, names.RECORD: record.n, **asked}
        if self._agent:
            attributes[names.AGENT_NAME] = self._agent
        title = f"{names.INVOKE_AGENT} {self._agent}".rstrip()
        self._turn = turn_id, self._start(title, names.INVOKE_AGENT, attributes, record.time)

    def _end_turn(self, status: str, reason: str, time: str) -> None:
        turn, self._turn = self._turn, None
        if turn is None:
            return
        try:
            for key in [key for key, open_call in self._calls.items() if open_call.span is not None]:
                self._end_call(key, "aborted", time)
        finally:
            span = turn[1]
            span.span.set_attribute(names.TURN_STATUS, status or "failed")
            if status == "failed":
                self._fail(span, reason)
            self._end(span, time)

    # -- models ----------------------------------------------------------------------------------

    def _message(self, record: Record, message: Message, appended: Appended) -> None:
        if message.role == "assistant":
            self._ask(message, record)
            if appended.asked is not None:
                self._answer(record, message, appended)
            self._said.clear()
            return
        for part in message.parts:
            open_call = self._calls.get(part.call_id) if isinstance(part, ToolResult) else None
            if isinstance(part, ToolResult) and open_call is not None and may_answer(part, open_call.call):
                self._end_call(part.call_id, part.outcome, record.time, result=part)
        if self._contents.wanted:
            self._said.append(message)

    def _ask(self, message: Message, record: Record) -> None:
        """Remember the calls of an answer. An earlier call with the same id cannot be answered any more."""
        for part in message.parts:
            if isinstance(part, ToolCall):
                self._end_call(part.id, "aborted", record.time)
                self._calls[part.id] = _Call(part, record.n, record.time)
        while len(self._calls) > _KEPT:
            self._end_call(next(iter(self._calls)), "aborted", record.time)

    def _answer(self, record: Record, message: Message, appended: Appended) -> None:
        target, body = appended.asked, record.body
        assert target is not None and isinstance(body, MessageBody)
        attributes = {
            names.RECORD: record.n,
            **_model(target.provider, self._contents.name(target.model)),
            **self._settings(target.provider),
        }
        bill = next((other.body for other in appended.records if isinstance(other.body, UsageRecord)), None)
        if bill is not None:
            attributes |= _usage(bill.usage)
        if model := body.model or (bill.model if bill else ""):
            attributes[names.RESPONSE_MODEL] = utf8(model)
        stop = body.stop if isinstance(body, MessageRecord) else "error"
        if isinstance(body, MessageRecord) and body.response_id:
            attributes[names.RESPONSE_ID] = utf8(body.response_id)
        if stop:
            attributes[names.FINISH_REASONS] = [utf8(stop)]
        if self._contents.wanted:
            attributes |= self._told(message)
        title = f"{names.CHAT} {self._contents.name(target.model)}"
        span = self._start(title, names.CHAT, attributes, self._since or record.time, SpanKind.CLIENT)
        while self._waiting:
            _add_event(span.span, *self._waiting.popleft())
        if isinstance(body, PartialAnswer):
            self._fail(span, body.reason)
        self._end(span, record.time)
        self._measures.billed(span.attributes, bill.usage if bill else None)

    def _told(self, answer: Message) -> _Attributes:
        """What was said and what the model was given."""
        told = {
            names.INPUT_MESSAGES: self._contents.messages(self._said),
            names.OUTPUT_MESSAGES: self._contents.messages([answer]),
        }
        if texts := self._system():
            told[names.SYSTEM_INSTRUCTIONS] = self._contents.system(texts)
        if tools := self._configuration.tools:
            told[names.TOOL_DEFINITIONS] = self._contents.definitions(tools)
        return told

    def _settings(self, provider: str) -> _Attributes:
        """The settings of requests to that provider for which the conventions have a name."""
        configuration = self._configuration
        if configuration.provider != provider:
            return {}
        paths = PROVIDERS[provider].setting_paths.values() if provider in PROVIDERS else ()
        nested = {_plain(path[0]) for path in paths if len(path) > 1}
        inner = (value for key, value in configuration.settings.items() if _plain(key) in nested)
        settings = {**configuration.settings, **next((group for group in inner if isinstance(group, dict)), {})}
        named = {
            word: next((settings[key] for key in keys if _is_number(settings.get(key))), None)
            for word, keys in names.SETTINGS.items()
        }
        return {
            word: int(value) if word in names.WHOLE else float(value)
            for word, value in named.items()
            if value is not None
        }

    # -- tools -----------------------------------------------------------------------------------

    def _begin_call(self, started: ToolStarted, record: Record) -> None:
        open_call = self._calls.pop(started.call_id, None)
        if open_call is not None and open_call.record != started.call_record:  # an older call with the same id
            self._calls[started.call_id] = open_call
            return
        if open_call is None:
            open_call = _Call(ToolCall(started.call_id, started.name), started.call_record, record.time)
        self._calls[started.call_id] = open_call._replace(span=self._start_tool(open_call, record.time))

    def _finish_call(self, finished: ToolFinished, record: Record, appended: Appended) -> None:
        key, outcome, seconds = finished.call_id, finished.outcome, finished.seconds
        open_call = self._calls.get(key)
        if open_call is not None and open_call.record == finished.call_record:
            result = _result_in(appended, open_call.call)
            self._end_call(key, outcome, record.time, finished.reason, result, seconds=seconds)

    def _end_call(
        self,
        key: str,
        outcome: str,
        time: str,
        reason: str = "",
        result: ToolResult | None = None,
        *,
        seconds: float = 0.0,
    ) -> None:
        """End the run of a call, if it is still open. If the beginning of the run was not recorded, the span begins
        `seconds` before its end or, without `seconds`, at the time of the call; a call that never ran has no span."""
        open_call = self._calls.pop(key, None)
        if open_call is None or (open_call.span is None and (result is None or result.synthetic) and not seconds):
            return
        span = open_call.span
        if span is None:
            ended = _nanoseconds(time)
            begun = None if ended is None or not seconds else ended - round(seconds * 1e9)
            span = self._start_tool(open_call, open_call.time, begun)
        span.span.set_attribute(names.OUTCOME, outcome)
        if result is not None and not result.synthetic and self._contents.wanted:
            span.span.set_attribute(names.RESULT, self._contents.result(result))
        if outcome in _FAILURES:
            self._fail(span, reason, outcome)
        self._end(span, time)

    def _start_tool(self, known: _Call, time: str, begun: int | None = None) -> _Open:
        call = known.call
        attributes = {
            names.TOOL_NAME: utf8(call.name),
            names.TOOL_TYPE: "function",
            names.CALL_ID: utf8(call.id),
            names.RECORD: known.record,
        }
        if self._agent:
            attributes[names.AGENT_NAME] = self._agent
        if self._contents.wanted:
            attributes[names.ARGUMENTS] = self._contents.arguments(call)
        title = f"{names.EXECUTE_TOOL} {call.name}"
        return self._start(title, names.EXECUTE_TOOL, attributes, time, begun=begun)

    # -- spans -----------------------------------------------------------------------------------

    def _start(
        self,
        title: str,
        operation: str,
        attributes: Mapping[str, Any],
        time: str,
        kind: SpanKind = SpanKind.INTERNAL,
        *,
        begun: int | None = None,
    ) -> _Open:
        """A span inside the open turn, else inside the current span."""
        begun = _nanoseconds(time) if begun is None else begun
        attributes = {names.OPERATION: operation, names.CONVERSATION: self._session, **attributes}
        context = None if self._turn is None else trace.set_span_in_context(self._turn[1].span)
        span = self._tracer.start_span(utf8(title), context, kind, attributes, start_time=begun)
        return _Open(span, operation, attributes, begun)

    def _end(self, span: _Open, time: str) -> None:
        """End a span, and measure what it is about, also if no span can be ended."""
        ended = _nanoseconds(time)
        try:
            span.span.end(end_time=ended)
        finally:
            self._measures.ended(span.operation, span.attributes, span.begun, ended)

    def _event(self, name: str, attributes: _Attributes, time: str) -> None:
        """Add an event to the open turn; without an open turn, to the next answer."""
        if self._turn is None:
            self._waiting.append((name, attributes, time))
        else:
            _add_event(self._turn[1].span, name, attributes, time)

    def _fail(self, span: _Open, reason: str, otherwise: str = names.OTHER_ERROR) -> None:
        """Mark a span as failed. A reason such as `TimeoutError: ...` names its type of error."""
        text = self._contents.reason(reason)
        match = _ERROR_NAME.match(text)
        span.attributes[names.ERROR_TYPE] = match[1] if match else otherwise
        span.span.set_attribute(names.ERROR_TYPE, span.attributes[names.ERROR_TYPE])
        span.span.set_status(Status(StatusCode.ERROR, text or otherwise))


def _plain(key: str) -> str:
    """A key without regard to its spelling: `generationConfig` and `generation_config` are one."""
    return key.replace("_", "").lower()


def _model(provider: str, model: str) -> _Attributes:
    """Provider and model, if they are known."""
    row = PROVIDER_ROWS.get(provider)
    attributes = {names.PROVIDER: row.maker.otel_name if row else utf8(provider), names.REQUEST_MODEL: model}
    return {word: value for word, value in attributes.items() if value}


def _usage(usage: Usage) -> _Attributes:
    """The usage, without parts that are zero."""
    attributes = {names.INPUT_TOKENS: usage.input, names.OUTPUT_TOKENS: usage.output}
    parts = {
        names.CACHE_READ: usage.cached,
        names.CACHE_WRITE: usage.cache_write,
        names.REASONING_TOKENS: usage.reasoning,
    }
    return attributes | {word: tokens for word, tokens in parts.items() if tokens}


def _result_in(appended: Appended, call: ToolCall) -> ToolResult | None:
    """The result of a call, if it was appended together with the end of its run."""
    for record in appended.records:
        for part in record.message.parts if record.message else ():
            if isinstance(part, ToolResult) and part.call_id == call.id and may_answer(part, call):
                return part
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _nanoseconds(time: str) -> int | None:
    """The time of a record, in nanoseconds since 1970; None if it is not a time."""
    try:
        moment = datetime.fromisoformat(time)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def _add_event(span: trace.Span, name: str, attributes: _Attributes, time: str) -> None:
    span.add_event(name, attributes, timestamp=_nanoseconds(time))
