"""OpenTelemetry spans for events in a session: turns, model answers, tool runs.

The spans follow the semantic conventions for generative AI (`names`). Needs the extra `otel`; your OpenTelemetry SDK
determines where the spans are sent. No other package imports this one.
"""

from __future__ import annotations

from .._platform.given import text_given
from .._platform.texts import install_extra
from .._version import __version__
from ..errors import InputError

try:
    from opentelemetry import trace
except ImportError as error:
    raise ImportError(f"spans need OpenTelemetry's API: {install_extra('otel')}") from error

from ..redaction import Redactor
from ..session.operations import follow_records
from ..session.session import Session
from .content import Contents
from .names import SCHEMA_URL
from .spans import SessionSpans

__all__ = ["attach"]


def attach(
    session: Session,
    *,
    tracer_provider: trace.TracerProvider | None = None,
    agent: str = "",
    content: bool | Redactor = False,
) -> SessionSpans:
    """Make spans of everything that `session` records from now on, until it is closed.

    `tracer_provider` provides the tracers; None means OpenTelemetry's global one. `agent` is the name of the agent.
    Spans contain messages, arguments and results only with `content`, after secrets were replaced: by the redactor
    given as `content`, else by the session's redactor, else by the default one. Raises InputError.
    """
    if not isinstance(session, Session):
        raise InputError(f"session must be a turnlog.Session, not {type(session).__name__}")
    text_given("agent", agent)
    if not isinstance(content, (bool, Redactor)):
        raise InputError(f"content must be True, False or a turnlog.Redactor, not {type(content).__name__}")
    redactor = content if isinstance(content, Redactor) else session.log.redactor or Redactor()
    spans = SessionSpans(
        trace.get_tracer("turnlog", __version__, tracer_provider, SCHEMA_URL),
        session.id,
        session.configuration,
        Contents(redactor, wanted=bool(content)),
        agent=agent,
    )
    follow_records(session, spans.take)
    session.attach(spans)
    return spans
