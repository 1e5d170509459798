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
    parser = add_command(commands, store, "context")
    help_text = "a session, or a file: a request body or any transcript; - is standard input"
    parser.add_argument("source", metavar="SOURCE", help=help_text)
    add_target(parser)
    add_terms(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=_context)


def _context(arguments: Namespace) -> int:
    with session_of(arguments) as session:
        target = target_of(session, arguments)
        breakdown = session.window.breakdown(target, budget=arguments.budget, strategy=arguments.strategy)
    if arguments.json:
        out_json(_json(breakdown))
        return 0
    _draw(breakdown)
    if breakdown.tokens > breakdown.marks.trigger:
        say("over the trigger: a request within this budget leaves something out or shortens it")
    return 0


def _json(breakdown: Breakdown) -> dict[str, Any]:
    marks = breakdown.marks
    return {
        "provider": breakdown.provider,
        "model": breakdown.model,
        "strategy": breakdown.strategy,
        "tokens": breakdown.tokens,
        "budget": msgspec.to_builtins(breakdown.budget),
        "limit": marks.limit,
        "trigger": marks.trigger,
        "goal": marks.goal,
        "free": breakdown.free,
        "certainty": breakdown.certainty,
        "counter": breakdown.counter,
        "curated": dict(breakdown.curated),
        "parts": [{"kind": share.kind, "name": share.name, "tokens": share.tokens} for share in breakdown.shares],
    }


def _draw(breakdown: Breakdown) -> None:
    """Draw one bar for the whole window with the budget's marks below it, then one bar for each kind."""
    width = room()
    whole = max(breakdown.marks.limit, breakdown.tokens, 1)
    strategy = f", strategy {breakdown.strategy}" if breakdown.strategy else ""
    out_line(f"{breakdown.provider} {breakdown.model}{strategy}")
    out_line(f"{breakdown.tokens:,} of {breakdown.marks.limit:,} tokens, {breakdown.certainty} ({breakdown.counter})")
    if breakdown.marks.limit < breakdown.budget.max_tokens:
        out_line(f"budget {breakdown.budget.max_tokens:,}, less a margin because counts are {breakdown.certainty}")
    out_line("")
    sizes = fitted([share.tokens / whole for share in breakdown.shares], width)
    styles = [_COLOURS[share.kind] for share in breakdown.shares]
    pieces = stacked(sizes, width - sum(sizes))
    _paint([*zip(pieces[:-1], styles, strict=True), (pieces[-1], "90")])
    marks = [("goal", breakdown.marks.goal), ("trigger", breakdown.marks.trigger)]
    if breakdown.marks.trigger == breakdown.marks.limit:
        marks = [("goal", breakdown.marks.goal), ("trigger, limit", breakdown.marks.limit)]
    else:
        marks.append(("limit", breakdown.marks.limit))
    out_lines(marker_line([(f"{name} {tokens:,}", tokens / whole) for name, tokens in marks], width))
    out_line("")
    _rows(breakdown, whole, width)
    if breakdown.curated:
        out_line("")
        saved = ", ".join(f"{kind} {tokens:,}" for kind, tokens in breakdown.curated)
        out_line(f"tokens saved by curation of tool output: {saved}")


def _rows(breakdown: Breakdown, whole: int, width: int) -> None:
    rows = [*_labelled(breakdown.shares), ("free", breakdown.free, "90")]
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
