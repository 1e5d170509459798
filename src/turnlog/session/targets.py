"""The target of a session that has none of its own: that of the model that answered last."""

from __future__ import annotations

from ..log.records import MessageRecord, UsageRecord
from ..models.catalog import find_model
from ..models.makers import PROVIDER_ROWS, makers
from ..models.target import Target
from ..providers import PROVIDERS
from ..providers.protocol import Parsed
from ..requests.standalone import aimed
from .session import Session


def chosen_target(session: Session, provider: str = "", model: str = "", server: str = "") -> Target | None:
    """The target that these name, with the session's own terms where they are silent (nothing named: the session's own
    target), else the target of the model that answered last; None if its provider is not known."""
    session_target, configuration = session.target, session.configuration
    if session_target is not None and not provider and not model and not server:
        return session_target
    if server and not provider:
        provider = next(row.maker.imitated for row in PROVIDER_ROWS.values() if row.maker.imitated)
    if not model and not provider:
        provider, model = configuration.provider, configuration.model or last_model(session)
    elif not model and provider == configuration.provider:
        model = configuration.model
    if not provider:
        entry = find_model(model) if model else None
        maker = makers().get((entry.facts.provider if entry else None) or "")
        provider = maker.provider if maker else configuration.provider or _billed_by(session, model)
    return aimed(Parsed(messages=(), configuration=configuration), provider, model, server) if provider else None


def _billed_by(session: Session, model: str) -> str:
    """The provider in the newest usage record of this model, if requests can be made for it."""
    bills = (each.body for each in session.log.of_kinds("usage", reverse=True) if isinstance(each.body, UsageRecord))
    return next((bill.provider for bill in bills if bill.model == model and bill.provider in PROVIDERS), "")


def last_model(session: Session) -> str:
    """The last model named in the log, else ""; an imported transcript has no configured model."""
    bodies = (record.body for record in session.log.of_kinds("message", "usage", reverse=True))
    return next((body.model for body in bodies if isinstance(body, (MessageRecord, UsageRecord)) and body.model), "")
