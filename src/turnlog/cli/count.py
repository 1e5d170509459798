"""`count`: count the tokens of a request or a session."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from ..errors import InputError
from ..providers.recognise import provider_of
from ..requests.count import TokenCount, count, count_conversation
from ..session.targets import last_model
from ..view.fold import select
from .arguments import add_command
from .documents import document
from .request import session_of
from .terminal import out_json, out_line

_NO_MODEL = "{}: no model is named; add --model MODEL"


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, store, "count")
    help_text = "a session, or a file: a request body or any transcript; - is a request body on standard input"
    parser.add_argument("source", metavar="SOURCE", help=help_text)
    parser.add_argument(
        "--model",
        metavar="MODEL",
        default="",
        help="count for this model (default: the one that the request or the session names)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=_count)


def _count(arguments: Namespace) -> int:
    count = _body(arguments) or _session(arguments)
    if arguments.json:
        out_json(asdict(count))
        return 0
    out_line(f"{count.tokens:,} tokens, {count.certainty} ({count.counter})")
    for kind, tokens in count.parts.items():
        if tokens:
            out_line(f"{tokens:>9,}  {kind.replace('_', ' ')}")
    return 0


def _body(arguments: Namespace) -> TokenCount | None:
    """The count of a request body; None if SOURCE is not one."""
    if arguments.source != "-" and not Path(arguments.source).is_file():
        return None
    try:
        body = json.loads(document(arguments.source))
        if not isinstance(body, dict):
            raise ValueError("not a JSON object")
        provider_of(body)
    except (ValueError, RecursionError, InputError) as error:
        if arguments.source == "-":
            raise InputError(
                f"-: standard input is not a request body ({error}); to count a transcript, save it to a file and give "
                "that file instead of -"
            ) from error
        return None
    if not (arguments.model or body.get("model")):
        raise InputError(_NO_MODEL.format(arguments.source))
    return count(body, model=arguments.model)


def _session(arguments: Namespace) -> TokenCount:
    with session_of(arguments) as session:
        configuration = session.configuration
        model = arguments.model or configuration.model or last_model(session)
        if not model:
            raise InputError(_NO_MODEL.format(arguments.source))
        messages = [shown.message for shown in select(session.history())[0]]
        return count_conversation(messages, configuration.tools, model, configuration.provider)
