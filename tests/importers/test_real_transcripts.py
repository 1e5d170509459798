"""The shared real transcripts: what the manifest counted in each is what was imported.

`pytest -s tests/importers/test_real_transcripts.py -k counts` prints the table.
"""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest
from transcript_stats import message_lines, stats_of
from transcripts import messages_of, of_kind, real_transcripts

from turnlog.errors import ImportFailed
from turnlog.importers import Imported, read_file
from turnlog.log.codec import decode_record, encode_record
from turnlog.log.records import Configuration, MessageRecord, Record
from turnlog.log.store import check_session_id
from turnlog.models.target import target
from turnlog.providers import provider
from turnlog.view.types import Shown

SMALL_FIXTURE = {"calls": 1, "orphans": 1, "images": -2}
"""codex-small.jsonl has its ids overwritten with one text: the manifest counts two calls of one id
once and takes a result that precedes its call for its answer. It counts two images without URL."""


UNREAD = {"codex-small.jsonl": {6, 23, 33, 49, 114, 116}}
"""The lines with content that is not read: messages of other agents, images that are none, trimmed items."""


def explained(path: Path, session: Imported) -> dict[str, int]:
    """What we count otherwise than the manifest, and why."""
    told: dict[str, int] = {}
    # The system prompt in session_meta becomes a message; the manifest counts items only.
    told["messages"] = sum(message.role == "system" for message in messages_of(session)[:1] if _is_prompt(message))
    if path.name == "codex-small.jsonl":
        # The same, less a ghost snapshot that the manifest counts as a message.
        told = {**SMALL_FIXTURE, "messages": 0}
    return told


def _is_prompt(message: Any) -> bool:
    return message.form is not None and message.form.shape == "instructions"


@pytest.mark.slow
def test_counts_agree_with_the_manifest(shared: Path) -> None:
    """A message, call, image or interrupt lost on import would not be missed by any other test."""
    rows, wrong = [], []
    for path, _, wanted in real_transcripts(shared):
        session = read_file(path)[0]
        found, told = stats_of(session), explained(path, session)
        different = {key: (n, found[key]) for key, n in wanted.items() if n != found[key]}
        rows.append(f"{path.name[-44:]:44} {len(session.drafts):5} records {found['canonical']:4} messages {different}")
        wrong += [(path.name, key, pair) for key, pair in different.items() if pair[1] - pair[0] != told.get(key, 0)]
        unread = {damage.line for damage in session.warnings if damage.message.startswith("not read: ")}
        assert (len(session.warnings), unread) == (len(UNREAD.get(path.name, ())), UNREAD.get(path.name, set()))
    print("\n" + "\n".join(rows))  # noqa: T201  the table is what a person runs this test for
    assert wrong == []
    assert len(rows) == 47


def test_tau_bench_counts(shared: Path) -> None:
    """The manifest counts 581 distinct call ids a conversation; 621 calls were made, 40 with reused ids."""
    found = read_file(shared / "data/tau-bench/gpt-4o-airline.dev.json")
    stats = [stats_of(session) for session in found]
    totals = {key: sum(row[key] for row in stats) for key in ("canonical", "calls", "unanswered", "orphans")}
    assert (len(found), totals) == (100, {"canonical": 2962, "calls": 621, "unanswered": 0, "orphans": 0})


def wire_of(lines: list[bytes], session: Imported, record: MessageRecord) -> tuple[list[Any], list[Any]]:
    """What the transcript's lines hold for a message, and what rendering it gives."""
    seen = [json.loads(lines[number - 1]) for number in message_lines(record.source)]
    name, model = (
        ("openai-responses", "gpt-5") if session.format == "codex-rollout" else ("anthropic", "claude-opus-4-5")
    )
    request = (
        provider(name)
        .render(
            [Shown(record.message, (1,))], Configuration(provider=name), target(name, model), session.blobs.__getitem__
        )
        .body
    )
    if session.format == "codex-rollout":
        return [line.get("payload", line) for line in seen], request["input"]
    contents = [line["message"]["content"] for line in seen]
    want = [block for content in contents for block in ([content] if isinstance(content, str) else content)]
    made = [message["content"] for message in request["messages"]]
    return want, [block for content in made for block in ([content] if isinstance(content, str) else content)]


@pytest.mark.slow
def test_rendering_gives_back_what_was_read(shared: Path) -> None:
    """Blocks and items of every message, word for word: nothing is lost on the way in."""
    checked, wrong = 0, []
    for path, _, _ in real_transcripts(shared):
        session = read_file(path)[0]
        lines = path.read_bytes().split(b"\n")
        for record in of_kind(session, MessageRecord):
            if _is_prompt(record.message):
                continue
            want, got = wire_of(lines, session, record)
            checked += 1
            if want != got:
                wrong.append((path.name, record.source))
    assert wrong == []
    assert checked > 4_000


def test_records_survive_the_codec(shared: Path) -> None:
    """What cannot be written cannot be imported."""
    for path, _, _ in real_transcripts(shared):
        if path.stat().st_size < 300_000:
            for session in read_file(path):
                assert check_session_id(session.session_id)
                for n, draft in enumerate(session.drafts, 1):
                    assert decode_record(encode_record(Record(n, draft.time, draft.body))).body == draft.body


def test_a_session_that_went_on_begins_as_before(shared: Path) -> None:
    """Five saves of one session: importing the next one can append what is new."""
    saves = sorted((shared / "data/claude-code-entire/snapshots-cc432c40").glob("*.jsonl"))
    found = [read_file(save)[0] for save in saves]
    assert len({session.session_id for session in found}) == 1
    for earlier, later in itertools.pairwise(found):
        assert later.drafts[: len(earlier.drafts)] == earlier.drafts


def damaged(data: bytes, rng: random.Random) -> bytes:
    """`data` as crashes, disks and editors leave it."""
    kind = rng.choice(["truncate", "flip", "shuffle", "repeat", "nul", "glue", "crlf"])
    at = rng.randrange(len(data))
    lines = data.split(b"\n")
    if kind == "truncate":
        return data[:at]
    if kind == "flip":
        changed = bytearray(data)
        for _ in range(30):
            changed[rng.randrange(len(data))] = rng.randrange(256)
        return bytes(changed)
    if kind == "shuffle":
        rng.shuffle(lines)
        return b"\n".join(lines)
    if kind == "repeat":
        return b"\n".join(line for line in lines for _ in range(rng.choice([1, 2])))
    if kind == "nul":
        return data[:at] + b"\0" * 4096 + data[at:]
    if kind == "glue":
        return data.replace(b"\n", b"", 5)
    return b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n")


@pytest.mark.parametrize("seed", range(60))
def test_damage_is_a_warning_and_never_a_crash(shared: Path, seed: int) -> None:
    """People import what they have left; an exception keeps all of it from them."""
    rng = random.Random(seed)
    path = rng.choice([path for path, _, _ in real_transcripts(shared) if path.stat().st_size < 400_000])
    data = damaged(path.read_bytes(), rng)
    try:
        found = read_file(data)
    except ImportFailed:
        return
    for session in found:
        for n, draft in enumerate(session.drafts, 1):
            encode_record(Record(n, draft.time, draft.body))
    assert found == read_file(data)
