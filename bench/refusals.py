"""Whether turnlog refuses exactly the requests that cannot fit: those of the shared context bench, judged apart.

    python bench/refusals.py [--shared ../shared] [--budgets 0.1] [--strategies auto] [--limit SESSIONS] [--show]

`--strategies all` takes all presets. Judged by the messages alone, without turnlog: a request cannot fit if its system
text, the first user message (and, if an agent wrote that one, the first that the user wrote), and the last group (a
call with its results, each cut to its ends, 60 tokens) exceed the budget. Exits with 1 if turnlog refuses another
request than these.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from turnlog.errors import BudgetError
from turnlog.log.budget import PRESETS
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
    parser.add_argument("--strategies", default="auto")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="each request on which the two differ, and the floor")
    options = parser.parse_args()
    sys.path.insert(0, str(Path(options.shared).resolve() / "bench" / "context"))
    from common import ntok, total
    from recall import get_data

    names = list(PRESETS) if options.strategies == "all" else options.strategies.split(",")
    wrong = 0
    for share in map(float, options.budgets.split(",")):
        tallies: dict[str, Counter[str]] = {name: Counter() for name in names}
        for session in get_data("dev")[: options.limit or None]:
            budget = session.budget(share)
            calls = session.calls()
            floors = {t: least(session.messages[:t], ntok) for t in calls}
            for name in names:
                fitter = Fitter(max_tokens=budget, model="gpt-4o", provider="openai-chat", counter=total, strategy=name)
                for t in calls:
                    refusal = refused(fitter, session.messages[:t])
                    differ = bool(refusal) != (floors[t] > budget)
                    found = {"calls": 1, "refused": bool(refusal), "impossible": floors[t] > budget, "differ": differ}
                    tallies[name].update(found)
                    if differ and options.show:
                        print(session.id, t, name, "budget", budget, "least", floors[t], refusal, flush=True)
        for name, tally in tallies.items():
            wrong += tally["differ"]
            print(f"{share:.0%} {name}: {dict(tally)}", flush=True)
    return 1 if wrong else 0


def refused(fitter: Fitter, history: Messages) -> dict[str, int]:
    """The floor of the error with which a history is refused; {} if it is not."""
    try:
        fitter.fit({"messages": history})
    except BudgetError as error:
        return error.floor
    return {}


if __name__ == "__main__":
    sys.exit(main())
