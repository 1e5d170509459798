"""`count`: how many tokens a request or a session is."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from ..errors import InputError
from ..requests.count import TokenCount, count, count_conversation
from ..requests.standalone import detect
from ..view.fold import select
from .documents import document
from .request import session_of
from .targets import last_model
from .terminal import out_json, out_line


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("count", parents=[store], help="count the tokens of a request or a session")
    help_text = "a session, or a file: a request body or any transcript; - is a request body on standard input"
    parser.add_argument("source", metavar="SOURCE", help=help_text)
    parser.add_argument("--model", metavar="MODEL", default="", help="count for this model (default: its own)")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=_count)


def _count(arguments: Namespace) -> int:
    found = _body(arguments) or _session(arguments)
    if arguments.json:
        out_json(asdict(found))
        return 0
    out_line(f"{found.tokens:,} tokens, {found.certainty} ({found.counter})")
    for kind, tokens in found.parts.items():
        if tokens:
            out_line(f"{tokens:>9,}  {kind.replace('_', ' ')}")
    return 0


def _body(arguments: Namespace) -> TokenCount | None:
    """The count of a request body, if SOURCE is one."""
    if arguments.source != "-" and not Path(arguments.source).is_file():
        return None
    try:
        body = json.loads(document(arguments.source))
        if not isinstance(body, dict):
            raise ValueError("it is no JSON object")
        detect(body)
    except (ValueError, RecursionError, InputError) as error:
        if arguments.source == "-":
            raise InputError(f"-: no request body ({error}); save a transcript to a file and name it") from error
        return None
    if not (arguments.model or body.get("model")):
        raise InputError(f"{arguments.source}: names no model; say which to count for with --model")
    return count(body, model=arguments.model)


def _session(arguments: Namespace) -> TokenCount:
    with session_of(arguments) as session:
        now = session.configuration
        model = arguments.model or now.model or last_model(session)
        if not model:
            raise InputError(f"{arguments.source}: names no model; say which to count for with --model")
        said = [shown.message for shown in select(session.history())[0]]
        return count_conversation(said, now.tools, model, now.provider)
