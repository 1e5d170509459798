"""`context`: draw what fills a model's window."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ..view.breakdown import Breakdown, Kind, Share
from .arguments import add_command
from .drawing import bar, clipped, colours, fitted, marker_line, room, stacked
from .request import session_of
from .targets import add_target, add_terms, target_of
from .terminal import Piece, out_json, out_line, out_lines, out_pieces, say

_COLOURS: dict[Kind, str] = {
    "system": "36",
    "tools": "34",
    "summary": "35",
    "user": "32",
    "assistant": "33",
    "tool results": "31",
    "images": "95",
    "framing": "90",
}
"""ANSI colours by kind."""

_TOOLS = 12
"""This many tools get their own line; the rest share a line."""


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, store, "context", "draw what fills the model's window")
    help_text = "a session, or a file: a request body or any transcript; - is standard input"
    parser.add_argument("source", metavar="SOURCE", help=help_text)
    add_target(parser)
    add_terms(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=_context)


def _context(arguments: Namespace) -> int:
    with session_of(arguments) as session:
        target = target_of(session, arguments)
        found = session.window.breakdown(target, budget=arguments.budget, strategy=arguments.strategy)
    if arguments.json:
        out_json(_json(found))
        return 0
    _draw(found)
    if found.tokens > found.marks.trigger:
        say("over the trigger: a request within this budget leaves something out or shortens it")
    return 0


def _json(found: Breakdown) -> dict[str, Any]:
    marks = found.marks
    return {
        "provider": found.provider,
        "model": found.model,
        "strategy": found.strategy,
        "tokens": found.tokens,
        "budget": msgspec.to_builtins(found.budget),
        "limit": marks.limit,
        "trigger": marks.trigger,
        "goal": marks.goal,
        "free": found.free,
        "certainty": found.certainty,
        "counter": found.counter,
        "curated": dict(found.curated),
        "parts": [{"kind": share.kind, "name": share.name, "tokens": share.tokens} for share in found.shares],
    }


def _draw(found: Breakdown) -> None:
    """Draw one bar for the whole window with the budget's marks below it, then one bar for each kind."""
    width = room()
    whole = max(found.marks.limit, found.tokens, 1)
    strategy = f", strategy {found.strategy}" if found.strategy else ""
    out_line(f"{found.provider} {found.model}{strategy}")
    out_line(f"{found.tokens:,} of {found.marks.limit:,} tokens, {found.certainty} ({found.counter})")
    if found.marks.limit < found.budget.max_tokens:
        out_line(f"budget {found.budget.max_tokens:,}, less a margin because counts are {found.certainty}")
    out_line("")
    sizes = fitted([share.tokens / whole for share in found.shares], width)
    styles = [_COLOURS[share.kind] for share in found.shares]
    pieces = stacked(sizes, width - sum(sizes))
    _paint([*zip(pieces[:-1], styles, strict=True), (pieces[-1], "90")])
    marks = [("goal", found.marks.goal), ("trigger", found.marks.trigger)]
    if found.marks.trigger == found.marks.limit:
        marks = [("goal", found.marks.goal), ("trigger, limit", found.marks.limit)]
    else:
        marks.append(("limit", found.marks.limit))
    out_lines(marker_line([(f"{name} {tokens:,}", tokens / whole) for name, tokens in marks], width))
    out_line("")
    _rows(found, whole, width)
    if found.curated:
        out_line("")
        saved = ", ".join(f"{kind} {tokens:,}" for kind, tokens in found.curated)
        out_line(f"tokens saved by curation of tool output: {saved}")


def _rows(found: Breakdown, whole: int, width: int) -> None:
    rows = [*_labelled(found.shares), ("free", found.free, "90")]
    names = min(30, max(10, width - 20), max(len(label) for label, _, _ in rows) + 1)
    bars = width - names - 18
    for label, tokens, style in rows:
        percent = f"{100 * tokens / whole:.1f} %"
        text = f"{clipped(label, names)}{tokens:>9,}  {percent:>6}"
        length = " " + bar(tokens / whole, bars) if bars >= 8 else ""
        _paint([(text, ""), (length, style)])


def _labelled(shares: Sequence[Share]) -> Iterator[tuple[str, int, str]]:
    """Label, tokens and style of each kind; below tool results, also of the largest tools."""
    tools = [share for share in shares if share.name]
    for share in shares:
        style = _COLOURS[share.kind]
        if not share.name:
            yield share.kind, share.tokens, style
        elif share is tools[0]:
            yield share.kind, sum(tool.tokens for tool in tools), style
            shown = tools if len(tools) <= _TOOLS + 1 else tools[:_TOOLS]
            yield from ((f"  {tool.name}", tool.tokens, style) for tool in shown)
            rest = tools[len(shown) :]
            if rest:
                yield f"  {len(rest):,} other tools", sum(tool.tokens for tool in rest), style


def _paint(pieces: Sequence[Piece]) -> None:
    """Print a line, in colours if they are wanted."""
    if colours():
        out_pieces(pieces)
    else:
        out_line("".join(text for text, _ in pieces).rstrip())
