"""Whether `auto` refuses exactly the requests that cannot fit: those of the shared context bench, judged apart.

    python bench/refusals.py [--shared ../shared] [--budgets 0.1] [--limit SESSIONS] [--show]

Judged by the messages alone, without turnlog: a request cannot fit if its system text, the first user message (and, if
an agent wrote that one, the first that the user wrote), and the last group (a call with its results, each cut to its
ends, 60 tokens) exceed the budget. Exits with 1 if turnlog refuses another request than these.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from turnlog.errors import BudgetError
from turnlog.requests.fit import Fitter
from turnlog.view.program_prefaces import is_of_program

ROOT = Path(__file__).parent.parent
LEAST_CUT = 60
Messages = Sequence[dict[str, Any]]


def must_stay(messages: Messages) -> list[dict[str, Any]]:
    """The messages that no strategy may leave out."""
    said = [one for one in messages if one["role"] == "user"]
    own = [one for one in said if not _is_preface(one["content"])]
    last = len(messages) - 1
    while messages[last]["role"] == "tool":
        last -= 1
    stays = [one for one in messages if one["role"] == "system"] + said[:1] + own[:1] + list(messages[last:])
    return list({id(one): one for one in stays}.values())


def _is_preface(text: str) -> bool:
    return is_of_program(text) or text.startswith(("# AGENTS.md instructions for ", "<user_instructions>"))


def least(messages: Messages, size: Any) -> int:
    """The fewest tokens of a request for these messages."""
    found = 0
    for one in must_stay(messages):
        whole = size(one)
        frame = size({**one, "content": ""}) if one["role"] == "tool" else whole
        found += min(whole, frame + LEAST_CUT)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", default=str(ROOT.parent / "shared"))
    parser.add_argument("--budgets", default="0.1")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="each request on which the two differ, and the floor")
    options = parser.parse_args()
    sys.path.insert(0, str(Path(options.shared).resolve() / "bench" / "context"))
    from common import ntok, total
    from recall import get_data

    wrong = 0
    for share in map(float, options.budgets.split(",")):
        tally: Counter[str] = Counter()
        for session in get_data("dev")[: options.limit or None]:
            budget = session.budget(share)
            fitter = Fitter(max_tokens=budget, model="gpt-4o", provider="openai-chat", counter=total)
            for t in session.calls():
                history = session.messages[:t]
                impossible = least(history, ntok) > budget
                floor = {}
                try:
                    fitter.fit({"messages": history})
                except BudgetError as error:
                    floor = error.floor
                tally["calls"] += 1
                tally["refused"] += bool(floor)
                tally["impossible"] += impossible
                if impossible != bool(floor):
                    tally["differ"] += 1
                    if options.show:
                        print(session.id, t, "budget", budget, "least", least(history, ntok), floor, flush=True)
        wrong += tally["differ"]
        print(f"{share:.0%}: {dict(tally)}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
