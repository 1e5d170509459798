"""`compact` makes a session's requests smaller; `undo` undoes the last such decision."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from .._platform.units import counted
from ..display.request_words import fates, saving, span
from ..log.actions import SHRINKING
from ..log.records import Decision
from ..session.compactor import Compaction
from ..session.targets import chosen_target
from ..view.explain import Ruling
from .arguments import AN_ID, add_command, number
from .decisions import decision_json, decision_lines
from .stores import opened_session
from .targets import add_target, add_terms, target_of
from .terminal import out_json, out_line, out_lines, say


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the commands to the parser."""
    compact = add_command(commands, store, "compact")
    compact.add_argument("id", metavar="ID", help=AN_ID)
    text = "summarise all but the newest N turns (default: apply the strategy until requests are half as large)"
    compact.add_argument("--keep", metavar="N", type=number("turns", 1), help=text)
    add_terms(compact)
    add_target(compact)
    compact.add_argument("--dry-run", action="store_true", help="show what would be decided, and record nothing")
    compact.add_argument("--json", action="store_true", help="one JSON object")
    compact.set_defaults(run=_compact)
    undo = add_command(commands, store, "undo")
    undo.add_argument("id", metavar="ID", help=AN_ID)
    undo.add_argument("--json", action="store_true", help="one JSON object")
    undo.set_defaults(run=_undo)


def _compact(arguments: Namespace) -> int:
    dry = arguments.dry_run
    with opened_session(arguments, write=not dry) as session:
        target = target_of(session, arguments)
        before = session.window.breakdown(target).tokens  # a session reads no more records than a view can contain
        done = session.compact(
            keep=arguments.keep, target=target, budget=arguments.budget, strategy=arguments.strategy, dry_run=dry
        )
        explained = session.explain(done.decisions if dry else None, target)
    rulings = [Ruling(n, "", decision) for n, decision in done.decisions.items()]
    if arguments.json:
        decisions = [decision_json(ruling) for ruling in rulings]
        out_json({"before": before, "after": done.after, "recorded": not dry, "decisions": decisions})
        return 0
    out_line(_sum(arguments.id, done, before, dry))
    out_lines(decision_lines(rulings, explained))
    out_line(fates(explained.accounts.values()))
    if dry:
        say("nothing recorded: a dry run")
    elif rulings:
        name = arguments.id
        say(f"`turnlog why {name}` shows what each message became, `turnlog undo {name}` undoes the last decision")
    return 0


def _sum(name: str, done: Compaction, before: int, dry: bool) -> str:
    if not done.decisions:
        return f"{name}: nothing to compact, {before:,} tokens"
    share = 100 - 100 * done.after // max(1, before)
    verb = "would become" if dry else "became"
    return f"{name}: {before:,} tokens {verb} {done.after:,}, {share} % less"


def _undo(arguments: Namespace) -> int:
    with opened_session(arguments, write=True) as session:
        target = chosen_target(session)
        before, whole = session.explain(target=target), session.window.breakdown(target).tokens if target else None
        record = session.undo("compaction")
        after = session.explain(target=target)
        picture = session.window.breakdown(target) if target else None
    taken = record.body.supersedes if isinstance(record.body, Decision) else 0
    ruling = next(ruling for ruling in before.rulings if ruling.n == taken)
    # Counted as in `context`; the messages alone if no model is known.
    sizes = (whole, picture.tokens) if whole is not None and picture else (before.shown, after.shown)
    became = ((n, account, before.accounts.get(n)) for n, account in after.accounts.items())
    # Messages that were cleared since, or that another decision leaves out too, stay hidden.
    changed = [
        n for n, current, was in became if current != was and not (was and current.fate == was.fate == "left out")
    ]
    if arguments.json:
        row = {"ended_by": record.n, "records": changed, "tokens_back": sizes[1] - sizes[0]}
        out_json({**decision_json(ruling), **row})
        return 0
    decision = ruling.decision
    out_line(
        f"took back decision {taken}: {decision.action}, {span(ruling, before.rulings)}, {decision.why}".rstrip(", ")
    )
    out_line(f"{counted(len(changed), 'message')} shown as before it: {saving(*sizes)}")
    left = [other for other in after.rulings if not other.ended_by and other.decision.action in SHRINKING]
    if left:
        say(f"still in force: {counted(len(left), 'decision')} before it, which another `turnlog undo` takes back")
    if picture is not None and picture.tokens > picture.marks.trigger:
        say(f"over the trigger of {picture.marks.trigger:,} tokens: the next request makes room again")
    return 0
