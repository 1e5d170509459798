"""References ("that file", "it") in the shared transcripts, for people to label and for `bench/memory.py` to resolve.

    python bench/references.py draw FILE [--shared ../shared] [--number 120]    references to label, with their context
    python bench/references.py take FILE [--shared ../shared]                   the labels, as bench/references.jsonl

`draw` writes one JSON object a line: a reference, marked with « and » in its message, and the messages before that one.
Who labels them adds `entity`: what the reference stands for, as `kind:value` with the value as the
transcript has it, or null if it stands for no file, symbol, command, URL, error, id, branch or person. `take` keeps of
each label where it is, and a hash of the message, as the transcripts are not part of this repository. The rules are
made with the first `half` alone; the second is for the end. `take --half 3` adds a later drawing to what is there.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from turnlog.importers import Imported
from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import MessageRecord
from turnlog.view.program_prefaces import is_inserted, is_of_program

ROOT = Path(__file__).parent.parent
LABELS = Path(__file__).parent / "references.jsonl"
_THING = (
    "file|script|test|error|exception|failure|function|method|class|command|branch|url|link|page|issue|commit|module"
    "|test file|config|document|reservation|order|flight|user|type|struct|variable"
)
_KINDS = {
    "named": re.compile(rf"\b(?:that|this|the same|those|these) (?:{_THING})s?\b", re.IGNORECASE),
    "the": re.compile(rf"\bthe (?:{_THING})\b(?! (?:to|of|for|named|called|`))", re.IGNORECASE),
    "it": re.compile(r"\b(?:it|that)(?=[.,;!?)]|$)|\b(?<=[a-z] )it\b", re.IGNORECASE),
    "nth": re.compile(
        r"\bthe (?:first|second|third|last|latter|former|other|previous) (?:one|file|test|error|option)\b"
    ),
}
_SHARES = {"named": 0.35, "the": 0.25, "it": 0.3, "nth": 0.1}
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|<(\w[\w-]*)>.*?</\1>", re.DOTALL)
_LONGEST = 4_000  # characters of a message that references are looked for in
_BEFORE, _CLIP, _AROUND = 10, 700, 900  # messages before, characters of each, and around a reference
_FEWEST = 4  # messages before a reference
_EACH = 7  # references of one file


def sessions(shared: Path) -> Iterator[tuple[str, Imported]]:
    """Every session of the shared transcripts, with its file; of files that begin alike, the longest."""
    sys.path[:0] = [str(ROOT / "tests"), str(shared / "oracle")]
    for path, session in importlib.import_module("real_transcripts").imported(shared):
        name = path.relative_to(shared / "data").as_posix()
        if "/snapshots-" not in name or "/5-" in name:
            yield name, session


def numbered(session: Imported) -> list[tuple[int, Message]]:
    """The messages of a session with their record numbers."""
    return [(n, one.body.message) for n, one in enumerate(session.drafts, 1) if isinstance(one.body, MessageRecord)]


def own_text(message: Message) -> str:
    """The text of a message, if it is one text that somebody wrote."""
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    if message.role == "system" or len(texts) != 1 or is_of_program(texts[0]) or is_inserted(texts[0]):
        return ""
    return texts[0] if len(texts[0]) <= _LONGEST else ""


def found(session: Imported) -> Iterator[dict[str, Any]]:
    """The references in a session."""
    messages = numbered(session)
    for at, (n, message) in enumerate(messages):
        text = own_text(message)
        plain = _CODE.sub(lambda code: "\0" * len(code[0]), text)
        for kind, sign in _KINDS.items():
            for one in sign.finditer(plain) if at >= _FEWEST else ():
                yield {"kind": kind, "record": n, "at": at, "start": one.start(), "reference": one[0], "text": text}


def shown(number: int, message: Message) -> str:
    """A message as somebody who labels reads it."""
    pieces = []
    for part in message.parts:
        if isinstance(part, Text):
            pieces.append(part.text)
        elif isinstance(part, ToolCall):
            pieces.append(f"CALL {part.name}({part.raw_arguments})")
        elif isinstance(part, ToolResult):
            pieces.append("RESULT " + " ".join(one.text for one in part.parts if isinstance(one, Text)))
    text = " | ".join(clipped(piece) for piece in pieces)
    return f"[{number}] {message.role}: {text}"


def clipped(text: str) -> str:
    """The two ends of a text."""
    return text if len(text) <= _CLIP else f"{text[: _CLIP * 2 // 3]} [...] {text[-_CLIP // 3 :]}"


def draw(shared: Path, number: int, seed: int) -> list[dict[str, Any]]:
    """`number` references: some of each kind and, as far as there are, of each file, those of users first."""
    chance = random.Random(seed)
    pools: dict[str, list[tuple[str, Imported, dict[str, Any]]]] = defaultdict(list)
    for name, session in sessions(shared):
        for one in found(session):
            pools[one["kind"]].append((name, session, one))
    taken: dict[str, int] = defaultdict(int)
    drawn: list[dict[str, Any]] = []
    used: set[tuple[str, str, int]] = set()
    alike: set[str] = set()
    for kind, share in sorted(_SHARES.items(), key=lambda item: item[1]):
        pool = pools[kind]
        chance.shuffle(pool)
        people = [one for one in pool if numbered(one[1])[one[2]["at"]][1].role == "user"]
        half = people[: int(number * share / 2)]
        wanted = int(number * share)
        for name, session, one in [*half, *pool, *people]:
            place = name, session.session_id, one["record"]
            group = name.split("/")[0]
            around = one["text"][max(0, one["start"] - 40) : one["start"] + 20].strip()
            if wanted == 0 or place in used or around in alike or taken[name] >= _EACH or taken[group] >= 3 * _EACH:
                continue
            used.add(place)
            alike.add(around)
            taken[name] += 1
            taken[group] += name != group
            wanted -= 1
            messages = numbered(session)
            text, start, end = one["text"], one["start"], one["start"] + len(one["reference"])
            marked = f"{text[max(0, start - _AROUND) : start]}«{one['reference']}»{text[end : end + _AROUND]}"
            drawn.append(
                {
                    "id": f"r{len(drawn) + 1:03}",
                    "file": name,
                    "session": session.session_id,
                    "record": one["record"],
                    "start": start,
                    "reference": one["reference"],
                    "role": messages[one["at"]][1].role,
                    "message": marked,
                    "before": [shown(*each) for each in messages[max(0, one["at"] - _BEFORE) : one["at"]]],
                    "hash": sha256(text.encode()).hexdigest()[:16],
                }
            )
    return drawn


def take(drawn: Path, half: int) -> list[dict[str, Any]]:
    """The labelled references without their texts, in halves, or all as `half` beside what is there."""
    labelled = drawn.with_suffix(".labelled.jsonl")
    labels = {one["id"]: one for one in map(json.loads, labelled.read_text("utf-8").splitlines())}
    kept = ("id", "file", "session", "record", "start", "reference", "hash")
    places = map(json.loads, drawn.read_text("utf-8").splitlines())
    labelled_places = [one for one in places if one["id"] in labels]
    there = map(json.loads, LABELS.read_text("utf-8").splitlines()) if half else ()
    return [
        *there,
        *(
            {**{key: one[key] for key in kept}, "entity": labels[one["id"]]["entity"], "half": half or 1 + at % 2}
            for at, one in enumerate(labelled_places)
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("draw", "take"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--number", type=int, default=120)
    parser.add_argument("--seed", type=int, default=25)
    parser.add_argument("--half", type=int, default=0)
    options = parser.parse_args()
    lines = (
        draw(options.shared, options.number, options.seed)
        if options.what == "draw"
        else take(options.file, options.half)
    )
    place = options.file if options.what == "draw" else LABELS
    place.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    print(f"{len(lines)} references written to {place}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
