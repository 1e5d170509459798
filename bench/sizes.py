"""What sessions say of their size beside what their requests count as: every real transcript, sent to each API.

    python bench/sizes.py [--shared ../shared] [--budget 6000]

Prints for each API, as the conversation stands and within the budget: how many requests are as large as
`Session.window.tokens` says, larger and smaller, the worst of both, and how many are over the budget.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from pathlib import Path

import turnlog
from turnlog.errors import BudgetError
from turnlog.importers import Imported
from turnlog.models.target import Target, target
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))
MOST = 1_500
"""Records of a session; longer ones are passed over."""
AIMS = (
    target("openai-chat", "gpt-4o"),
    target("openai-responses", "gpt-5"),
    target("anthropic", "claude-sonnet-4-5"),
    target("google", "gemini-2.5-pro"),
)


def sizes(imported: Imported, aim: Target, budget: int) -> tuple[int, int]:
    """What the session says, and what its request counts as. Raises BudgetError."""
    store = MemoryStore()
    for data in imported.blobs.values():
        store.put_blob(data)
    store.create("s")
    store.append("s", imported.drafts)
    session = Session(store, store.info("s"))
    session.switch(aim)
    if budget:
        session.configure(budget=budget)
    request = session.request().body
    return session.window.tokens, turnlog.count(request, model=aim.model, provider=aim.provider).tokens


def main() -> int:
    from real_transcripts import imported

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", default=str(ROOT.parent / "shared"))
    parser.add_argument("--budget", type=int, default=6_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore", turnlog.models.UnknownModelWarning)
    sessions = [one for _, one in imported(Path(options.shared)) if len(one.drafts) <= MOST]
    for aim in AIMS:
        for budget in (0, options.budget):
            tally: Counter[str] = Counter()
            off: list[int] = []
            for one in sessions:
                try:
                    said, sent = sizes(one, aim, budget)
                except BudgetError:
                    tally["refused"] += 1
                    continue
                off.append(sent - said)
                tally["as said" if sent == said else "larger" if sent > said else "smaller"] += 1
                tally["over the budget"] += bool(budget) and sent > budget
            names = ("as said", "larger", "smaller", "over the budget", "refused")
            told = ", ".join(f"{tally[name]} {name}" for name in names)
            limit = f"budget {budget:,}" if budget else "whole"
            print(f"{aim.provider:17} {limit:13} {told}; off {min(off):+} to {max(off):+}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
