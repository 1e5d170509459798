"""Options for the model and the budget, which several commands share."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..errors import InputError
from ..log.budget import PRESETS
from ..log.records import MessageRecord, UsageRecord
from ..models.catalog import find_model
from ..models.makers import PROVIDER_ROWS, makers
from ..models.target import Target
from ..providers import PROVIDERS
from ..providers.protocol import Parsed
from ..requests.standalone import aimed
from ..session.session import Session
from .arguments import number
from .terminal import say

PROVIDER_OF_BODY = f"the provider of the request: {', '.join(PROVIDERS)} (default: detected from the body)"
"""Help text of `--as`."""

SERVER_OF_BODY = "a server that imitates OpenAI's Chat API (`turnlog models --servers`; default: by URL or model)"
"""Help text of `--server`."""


def add_target(parser: ArgumentParser) -> None:
    """Add `--to` and `--model`."""
    parser.add_argument(
        "--to", metavar="PROVIDER", default="", help=f"one of {', '.join(PROVIDERS)} (default: the session's provider)"
    )
    parser.add_argument(
        "--model", metavar="MODEL", default="", help="default: the session's model, else the one that answered last"
    )
    parser.add_argument("--server", metavar="SERVER", default="", help=SERVER_OF_BODY)


def add_terms(parser: ArgumentParser) -> None:
    """Add `--budget` and `--strategy`."""
    text = "the most tokens of a request, for this run only (default: the session's budget)"
    parser.add_argument("--budget", metavar="N", type=number("tokens", 1), help=text)
    text = f"what leaves first, for this run only: {', '.join(PRESETS)} (default: the session's strategy)"
    parser.add_argument("--strategy", metavar="NAME", help=text)


def target_of(session: Session, arguments: Namespace) -> Target:
    """The target of `--to`, `--model` and `--server`, else the session's, else that of the model that answered last.

    Raises InputError if the provider cannot be determined, UnknownProvider.
    """
    target = _target(session, arguments.to, arguments.model, arguments.server)
    if target is None and arguments.model:
        raise InputError(f"the provider of the model {arguments.model!r} is not known; add --to PROVIDER")
    if target is None:
        raise InputError(
            f"session {session.id!r} has neither a target nor a model on record; add --model MODEL or --to PROVIDER"
        )
    if target.doubt:
        say(target.doubt)
    return target


def usual_target(session: Session) -> Target | None:
    """The session's target, else that of the model that answered last; None if neither is known."""
    return _target(session, "", "", "")


def _target(session: Session, provider: str, model: str, server: str) -> Target | None:
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
    bills = (record.body for record in reversed(session.history()) if isinstance(record.body, UsageRecord))
    return next((bill.provider for bill in bills if bill.model == model and bill.provider in PROVIDERS), "")


def last_model(session: Session) -> str:
    """The last model named in the log, else ""; an imported transcript has no configured model."""
    bodies = (record.body for record in reversed(session.history()))
    return next((body.model for body in bodies if isinstance(body, (MessageRecord, UsageRecord)) and body.model), "")
