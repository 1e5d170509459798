"""Real transcripts before the judge: whole and cut, for every API, with nothing lost in silence."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from accounting import unaccounted
from judging import errors_of
from turnlog.importers import Imported, read_file
from turnlog.log.records import Configuration, Record
from turnlog.log.store import Draft
from turnlog.models.target import Target, target
from turnlog.requests.build import build
from turnlog.requests.translate import plan
from turnlog.view.fold import select
from turnlog.view.tool_calls import fate_of

__all__ = ["FOLDERS", "JUDGED", "cuts", "imported", "judge", "records_of"]

FOLDERS = (
    "claude-code-entire", "claude-code-log", "agentcmd/claude", "cua", "codex-entire", "agentcmd/codex", "vibe-tracker",
    "agent-sessions-fixtures", "codexbar-forks", "tau-bench",
    "pi", "cline", "claude-agent-sdk", "webvoyager", "ui-tars",
    "gemini-entire", "gemini-cli-sessions", "agentcmd/gemini", "gemini-cli-responses",
    "swe-agent", "mini-swe-agent", "openhands",
)  # fmt: skip
"""Where the shared material holds transcripts that there are importers for."""

JUDGED: tuple[Target, ...] = (
    target("openai-chat", "gpt-4o"),
    target("openai-responses", "gpt-5", store=False),
    target("anthropic", "claude-sonnet-4-5"),
    target("google", "gemini-3-pro"),
)


_NO_CONFIGURATION = Configuration()


def imported(shared: Path, folders: Iterable[str] = FOLDERS) -> Iterator[tuple[Path, Imported]]:
    """Every session of every transcript in these folders."""
    for folder in folders:
        for path in sorted((shared / "data" / folder).rglob("*")):
            if path.suffix in (".jsonl", ".json", ".responses", ".traj") and not path.name.endswith(".meta.json"):
                yield from ((path, session) for session in _read(path))


@cache
def _read(path: Path) -> list[Imported]:
    """The sessions of a transcript, read once in a run: many tests go through all of them."""
    return read_file(path)


def records_of(drafts: Iterable[Draft]) -> list[Record]:
    """Drafts as an empty log would number them."""
    return [Record(n, draft.time, draft.body) for n, draft in enumerate(drafts, start=1)]


def cuts(session: Imported, times: int) -> Iterator[list[Record]]:
    """The whole log, then its beginning or its end, cut at random records."""
    records = records_of(session.drafts)
    yield records
    chance = random.Random(session.session_id)
    for turn in range(times if len(records) > 1 else 0):
        at = chance.randrange(1, len(records))
        yield records[:at] if turn % 2 else records[at:]


def judge(records: list[Record], session: Imported, aim: Target, oracle: ModuleType) -> tuple[list[str], set[str]]:
    """What is wrong with the request for these records, and the kinds of edits it took. Of a curated tool output, the
    curated text has to be sent."""
    view, hidden = select(records)
    prepared = build(plan(_NO_CONFIGURATION, aim), view, session.blobs.__getitem__, fate_of(records))
    curated = {n: shown.message for shown in view if shown.treatment == "curated" for n in shown.records}
    numbered = [(record.n, curated.get(record.n, record.message)) for record in records if record.message is not None]
    changes = [*hidden, *prepared.edits, *prepared.losses]
    missing = unaccounted(numbered, prepared.body, changes, session.blobs)
    return [*errors_of(oracle, aim, prepared.body), *missing], {edit.kind for edit in (*hidden, *prepared.edits)}
