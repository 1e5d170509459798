"""Options for the model and the budget, which several commands share."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..errors import InputError
from ..log.budget import PRESETS
from ..models.target import Target
from ..providers import PROVIDERS
from ..session.session import Session
from ..session.targets import chosen_target
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
    target = chosen_target(session, arguments.to, arguments.model, arguments.server)
    if target is None and arguments.model:
        raise InputError(f"the provider of the model {arguments.model!r} is not known; add --to PROVIDER")
    if target is None:
        raise InputError(
            f"session {session.id!r} has neither a target nor a model on record; add --model MODEL or --to PROVIDER"
        )
    if target.doubt:
        say(target.doubt)
    return target
