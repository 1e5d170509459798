"""`fit`: make a request body fit a budget, without a store."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from .._platform.units import counted
from ..display.request_words import change_lines
from ..log.budget import PRESETS
from ..requests.fit import fit
from .arguments import add_command, number
from .documents import json_object
from .targets import PROVIDER_OF_BODY
from .terminal import as_json, out_bytes, say


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, None, "fit")
    parser.add_argument("file", metavar="FILE", help="a request body as JSON; - is standard input")
    text = "the most tokens of the whole request (default: what the model takes)"
    parser.add_argument("--max-tokens", metavar="N", type=number("tokens", 1), default=0, help=text)
    parser.add_argument("--model", metavar="MODEL", default="", help="fit for this model (default: the body's own)")
    parser.add_argument("--as", metavar="PROVIDER", dest="provider", default="", help=PROVIDER_OF_BODY)
    parser.add_argument(
        "--strategy", metavar="NAME", default="auto", help=f"what leaves first: {', '.join(PRESETS)} (default: auto)"
    )
    parser.set_defaults(run=_fit)


def _fit(arguments: Namespace) -> int:
    body = json_object(arguments.file)
    fitted = fit(
        body,
        max_tokens=arguments.max_tokens,
        model=arguments.model,
        strategy=arguments.strategy,
        provider=arguments.provider,
    )
    out_bytes([as_json(fitted.body, indent=2).encode("utf-8"), b"\n"])
    for line in change_lines([*(("edit", edit) for edit in fitted.edits), *(("loss", loss) for loss in fitted.losses)]):
        say(line)
    done = f"{counted(len(fitted.edits), 'edit')}, {counted(len(fitted.losses), 'loss')}"
    say(f"{arguments.file}: {counted(len(fitted.view), 'message')}, {fitted.tokens:,} tokens, {done}")
    return 0
