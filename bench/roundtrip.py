"""Recorded request bodies there and back: parsed, stored, read again, rendered.

    python bench/roundtrip.py --shared ../shared

For every recorded body of the four APIs: its messages and configuration are appended to an SQLite
store, read from it again, and rendered without repair; the result must equal the body.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from turnlog.log.records import Configuration, MessageRecord
from turnlog.log.store import Draft
from turnlog.models.target import target
from turnlog.providers import provider
from turnlog.stores import open_store
from turnlog.view.types import Shown

ROOT = Path(__file__).parent.parent
APIS = {
    "openai.chat": "openai-chat",
    "openai.responses": "openai-responses",
    "anthropic.messages": "anthropic",
    "google.generateContent": "google",
}


def filled(value: Any, blobs: Path) -> Any:
    """The body with the base64 of a blob wherever one is named."""
    if isinstance(value, str) and "@blob:" in value:
        return re.sub(r"@blob:([\w.]+)", lambda m: base64.b64encode((blobs / m[1]).read_bytes()).decode(), value)
    if isinstance(value, dict):
        return {key: filled(item, blobs) for key, item in value.items()}
    return [filled(item, blobs) for item in value] if isinstance(value, list) else value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", default=str(ROOT.parent / "shared"))
    truth = Path(parser.parse_args().shared) / "data/token_truth"
    same: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"{folder}/roundtrip.db")
        for line in (truth / "requests.jsonl").open():
            row = json.loads(line)
            if row["api"] not in APIS:
                continue
            speaker = provider(APIS[row["api"]])
            body = filled(row["request"], truth / "blobs")
            parsed = speaker.parse(body)
            for data in parsed.blobs.values():
                store.put_blob(data)
            store.create(row["id"])
            store.append(row["id"], [Draft(b) for b in (parsed.configuration, *map(MessageRecord, parsed.messages))])
            records = list(store.read(row["id"]))
            configuration = records[0].body
            assert isinstance(configuration, Configuration)
            view = [Shown(record.message, (record.n,)) for record in records if record.message is not None]
            aim = target(speaker.name, configuration.model or "any")
            seen[speaker.name] += 1
            same[speaker.name] += speaker.render(view, configuration, aim, store.get_blob).body == body
        store.close()
    for name, count in seen.items():
        print(f"{name:18} {same[name]:>5,} of {count:>5,} come back equal ({same[name] / count:.2%})")
    return 0 if same == seen else 1


if __name__ == "__main__":
    sys.exit(main())
