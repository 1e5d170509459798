"""What sessions say of their size beside what their requests count as: every real transcript, sent to each API.

Reported for each API, as the conversation stands and within the budget: how many requests are as large as
`Session.window.tokens` says, larger and smaller, the worst of both, and how many are over the budget.
"""

from __future__ import annotations

from collections import Counter

import turnlog
from harness import Report, bench, transcripts
from turnlog.errors import BudgetError
from turnlog.importers import Imported
from turnlog.models.target import Target, target
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

MOST = 1_500
"""Records of a session; longer ones are passed over."""
AIMS = (
    target("openai-chat", "gpt-4o"),
    target("openai-responses", "gpt-5"),
    target("anthropic", "claude-sonnet-4-5"),
    target("google", "gemini-2.5-pro"),
)


def sizes_of(imported: Imported, aim: Target, budget: int) -> tuple[int, int]:
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


@bench(quick={})
def sizes(report: Report, *, budget: int = 6_000) -> None:
    """What sessions say of their size beside what their requests count as, for every real transcript."""
    short = [one for _, one in transcripts() if len(one.drafts) <= MOST]
    for aim in AIMS:
        for limit in (0, budget):
            tally = Counter({name: 0 for name in ("as said", "larger", "smaller", "over the budget", "refused")})
            off: list[int] = []
            for one in short:
                try:
                    said, sent = sizes_of(one, aim, limit)
                except BudgetError:
                    tally["refused"] += 1
                    continue
                off.append(sent - said)
                tally["as said" if sent == said else "larger" if sent > said else "smaller"] += 1
                tally["over the budget"] += bool(limit) and sent > limit
            figures = {**tally, "off, least": min(off), "off, most": max(off)}
            report.row(f"{aim.provider}, {f'budget {limit:,}' if limit else 'whole'}", figures)
