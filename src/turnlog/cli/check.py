"""`check`: would a provider accept this request?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from .._platform.units import counted
from ..errors import InputError
from ..providers.recognise import provider_of
from ..requests.standalone import Violation, check
from .arguments import add_command
from .documents import json_object
from .targets import PROVIDER_OF_BODY, SERVER_OF_BODY
from .terminal import out_each, say


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, None, "check")
    parser.add_argument("file", metavar="FILE", help="the request body as JSON; - is standard input")
    parser.add_argument("--as", dest="provider", metavar="PROVIDER", help=PROVIDER_OF_BODY)
    parser.add_argument("--model", metavar="MODEL", default="", help="check for this model instead of the body's own")
    parser.add_argument("--server", metavar="SERVER", default="", help=SERVER_OF_BODY)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.set_defaults(run=_check)


def _check(arguments: Namespace) -> int:
    body = json_object(arguments.file)
    try:
        provider = arguments.provider or provider_of(body)
    except InputError as error:
        raise InputError(f"{arguments.file}: {error}; name the provider with --as PROVIDER") from error
    violations = check(body, provider, model=arguments.model, server=arguments.server)
    number = len(list(out_each(violations, _line, arguments)))
    summary = counted(number, "violation") if number else "no violations"
    say(f"{arguments.file}: {summary}, checked as {provider}" + (f" at {arguments.server}" if arguments.server else ""))
    return 1 if number else 0


def _line(violation: Violation) -> str:
    where = ", ".join(map(str, violation.messages))
    return f"{violation.kind}: {violation}" + (f" (message {where})" if where else "")
