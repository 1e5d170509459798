"""Real transcripts: next to nothing in them is a secret, and nothing else may change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from real_transcripts import imported
from turnlog import Redactor
from turnlog.redaction.drafts import redacted

EXACT = {"id", "call_id", "item_id", "response_id", "signature", "encrypted", "sha256", "model", "before", "after"}


def exact(value: Any) -> Iterator[tuple[str, str]]:
    """The fields of a record, as builtins, that have to stay byte for byte."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key in EXACT and isinstance(item, str):
                yield key, item
            else:
                yield from exact(item)
    elif isinstance(value, list):
        for item in value:
            yield from exact(item)


@pytest.mark.slow
def test_transcripts_stay_as_they_are(shared: Path) -> None:
    """Holes in ordinary conversations, or an id, a signature or a cipher that is taken for a key."""
    redactor, records, changed = Redactor(), 0, 0
    for _, session in imported(shared):
        for draft in session.drafts:
            clean, counts = redacted(draft.body, redactor)
            records += 1
            changed += bool(counts)
            assert bool(counts) == (clean is not draft.body)
            if counts:
                before, after = msgspec.to_builtins(draft.body), msgspec.to_builtins(clean)
                assert list(exact(before)) == list(exact(after))
    assert records > 20_000
    assert changed < records / 1_000  # 7 when this was written, all of them passwords in URLs and a signed URL
