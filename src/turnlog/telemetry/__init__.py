"""OpenTelemetry spans and metrics for events in a session: turns, model answers, tool runs.

They follow the semantic conventions for generative AI (`names`). Needs the extra `otel`; your OpenTelemetry SDK
determines where they are sent. No other package imports this one.
"""

from __future__ import annotations

import os
import warnings

from .._platform.given import text_given
from .._platform.texts import install_extra
from .._version import __version__
from ..errors import InputError

try:
    from opentelemetry import metrics, trace
except ImportError as error:
    raise ImportError(f"spans need OpenTelemetry's API: {install_extra('otel')}") from error

from ..redaction import Redactor
from ..session.operations import follow_records, system_texts
from ..session.session import Session
from .content import Contents
from .measures import Measures
from .names import CAPTURE, CAPTURED, SCHEMA_URL
from .spans import SessionSpans

__all__ = ["attach"]


def attach(
    session: Session,
    *,
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
    agent: str = "",
    content: bool | Redactor | None = None,
) -> SessionSpans:
    """Make spans and metrics of everything that `session` records from now on, until it is closed.

    `tracer_provider` provides the tracers, `meter_provider` the meters; None means OpenTelemetry's global one. `agent`
    is the name of the agent. Spans contain messages, system text, tools, arguments and results only with `content`,
    after secrets were replaced: by the redactor given as `content`, else by the session's redactor, else by the default
    one. With None, OpenTelemetry's variable OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT says whether. Raises
    InputError.
    """
    if not isinstance(session, Session):
        raise InputError(f"session must be a turnlog.Session, not {type(session).__name__}")
    text_given("agent", agent)
    if not isinstance(content, (bool, Redactor, type(None))):
        raise InputError(f"content must be True, False, None or a turnlog.Redactor, not {type(content).__name__}")
    redactor = content if isinstance(content, Redactor) else session.log.redactor or Redactor()
    spans = SessionSpans(
        trace.get_tracer("turnlog", __version__, tracer_provider, SCHEMA_URL),
        Measures(metrics.get_meter("turnlog", __version__, meter_provider, SCHEMA_URL)),
        session.id,
        session.configuration,
        Contents(redactor, wanted=_captured() if content is None else bool(content)),
        lambda: system_texts(session),
        agent=agent,
    )
    follow_records(session, spans.take)
    session.attach(spans)
    return spans


def _captured() -> bool:
    """What the environment says of contents. A value that is not known is no reason to send what was said."""
    value = os.environ.get(CAPTURE, "").strip()
    if value.lower() not in CAPTURED:
        known = ", ".join(name for name in CAPTURED if name)
        warnings.warn(f"{CAPTURE}={value}: not one of {known}; no contents are sent", stacklevel=3)
    return CAPTURED.get(value.lower(), False)
