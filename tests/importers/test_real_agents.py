"""The shared real files of pi, cline, Claude's stream-json, WebVoyager and Tarko, and all the others.

`pytest -s tests/importers/test_real_agents.py -k counts` prints the table.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from test_real_transcripts import damaged
from transcript_stats import stats_of
from transcripts import of_kind

from turnlog.errors import ImportFailed
from turnlog.importers import Imported, detect, read_file
from turnlog.log.codec import decode_record, encode_record
from turnlog.log.messages import ToolCall
from turnlog.log.records import PartialAnswer, Record
from turnlog.log.store import check_session_id

FOLDERS = ("pi", "cline", "claude-agent-sdk", "webvoyager", "ui-tars")

# What is counted otherwise than in the manifest: there, here, and why.
EXPLAINED = {
    ("pi/large-session.jsonl", "parallel"): (4, 3),  # the fourth is in the answer that was cut off
    ("cline/session.messages.json", "messages"): (32, 33),  # the system prompt is a message too
    ("cline/session.json", "messages"): (40, 33),  # the manifest counts lines of JSON; here those of its messages file
    ("cline/session.json", "calls"): (0, 11),
    ("cline/basic.compaction.json", "messages"): (188, 11),  # lines of JSON again
    ("cline/agentic.compaction.json", "messages"): (68, 4),
    ("claude-agent-sdk/basic_conversation.json", "messages"): (411, 2),
    ("claude-agent-sdk/tool_use_conversation.json", "messages"): (599, 4),
    ("claude-agent-sdk/tool_use_conversation.json", "calls"): (0, 1),  # the manifest looked for none
    # Of 26 events 6 say that a call began to run: they are records, not messages.
    ("ui-tars/event-stream-with-many-images.json", "messages"): (26, 20),
}


def files(shared: Path) -> list[Path]:
    """The transcripts of these agents."""
    found = [path for folder in FOLDERS for path in sorted((shared / "data" / folder).rglob("*.json*"))]
    assert len(found) == 11
    return found


def counts(session: Imported) -> dict[str, int]:
    """As the manifest counts: answers that were cut off are messages, and calls cut off in them calls."""
    found = stats_of(session)
    cut = of_kind(session, PartialAnswer)
    calls = sum(isinstance(part, ToolCall) for one in cut for part in (*one.message.parts, *one.fragments))
    found["messages"] = found["canonical"] + len(cut)
    found["calls"] += calls
    found["unanswered"] += calls
    return found


def test_counts_agree_with_the_manifest(shared: Path) -> None:
    """A message, call, result or image lost on import would not be missed by any other test."""
    wanted = {row["file"]: row["stats"] for row in json.loads((shared / "data/manifest.json").read_text("utf-8"))}
    rows: list[str] = []
    different: dict[Any, Any] = {}
    for path in files(shared):
        name = path.relative_to(shared / "data").as_posix()
        (session,) = read_file(path)
        found = counts(session)
        assert session.warnings == ()
        assert found["orphans"] == 0 and found["results"] == found["calls"] - found["unanswered"]
        different |= {(name, key): (n, found[key]) for key, n in wanted[name].items() if found[key] != n}
        rows.append(f"{name:48} {len(session.drafts):5} records  { {key: n for key, n in found.items() if n} }")
    print("\n" + "\n".join(rows))  # noqa: T201  the table is what a person runs this test for
    assert different == EXPLAINED


def test_records_survive_the_codec(shared: Path) -> None:
    """What cannot be written cannot be imported."""
    for path in files(shared):
        for session in read_file(path):
            assert check_session_id(session.session_id)
            for n, draft in enumerate(session.drafts, 1):
                assert decode_record(encode_record(Record(n, draft.time, draft.body))).body == draft.body


def test_a_pi_session_that_went_on_begins_as_before(shared: Path) -> None:
    """Importing the grown file has to append what is new and keep no copy."""
    lines = (shared / "data/pi/large-session.jsonl").read_bytes().splitlines(keepends=True)
    whole = read_file(b"".join(lines))[0]
    for cut in (1, 33, 234, 700):
        earlier = read_file(b"".join(lines[:cut]))[0]
        assert whole.drafts[: len(earlier.drafts)] == earlier.drafts


@pytest.mark.parametrize("seed", range(60))
def test_damage_is_a_warning_and_never_a_crash(shared: Path, seed: int) -> None:
    """People import what they have left; an exception keeps all of it from them."""
    rng = random.Random(seed)
    path = rng.choice(files(shared))
    data = path.read_bytes()
    try:
        found = detect(path).read(damaged(data[: 1 << 18], rng))
    except ImportFailed:
        return
    for session in found:
        for n, draft in enumerate(session.drafts, 1):
            encode_record(Record(n, draft.time, draft.body))


def mutated(value: Any, rng: random.Random) -> Any:
    """A JSON value with some of its values replaced by ones that belong nowhere."""
    for _ in range(rng.randrange(1, 20)):
        node = value
        while isinstance(node, (dict, list)) and node:
            key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
            if not isinstance(node[key], (dict, list)) or rng.random() < 0.3:
                node[key] = rng.choice([None, True, -1, 1e308, float("nan"), "x", [], [[]], {}, {"type": 1}])
                break
            node = node[key]
    return value


@pytest.mark.parametrize("seed", range(60))
def test_a_field_of_another_kind_is_a_warning_and_never_a_crash(shared: Path, seed: int) -> None:
    """Formats change without notice: a text that became a list must not cost the session."""
    rng = random.Random(seed)
    path = rng.choice([path for path in files(shared) if path.suffix == ".json"])
    data = json.dumps(mutated(json.loads(path.read_bytes()), rng)).encode()
    try:
        found = read_file(data)
    except ImportFailed:
        return
    for session in found:
        for n, draft in enumerate(session.drafts, 1):
            encoded = encode_record(Record(n, draft.time, draft.body))
            assert encode_record(Record(n, draft.time, decode_record(encoded).body)) == encoded


@pytest.mark.slow
def test_every_other_file_is_read_or_refused_by_name(shared: Path) -> None:
    """A folder of anything can be imported: no file in it may end the import."""
    refused: dict[str, str] = {}
    for path in sorted((shared / "data").rglob("*")):
        if not path.is_file():
            continue
        try:
            assert read_file(path)
        except ImportFailed as error:
            refused[path.relative_to(shared / "data").as_posix()] = str(error)
    never = ("manifest.json", "models.json", "vocab/o200k_base.tiktoken", "token_truth/chains.jsonl")
    assert refused.keys() >= set(never)
    assert [name for name, told in refused.items() if str(shared / "data" / name) not in told] == []
    assert not [name for name in refused if name.split("/")[0] in FOLDERS and not name.endswith(".png")]
    assert len([name for name in refused if name.startswith("inspect-ai/")]) == 10
