"""What a digest takes for texts that nobody writes by hand, as models and programs do."""

from __future__ import annotations

from time import process_time

import pytest
from test_digest import assistant, call, digest, result, user

from turnlog.log.messages import Message

DOCUMENT = "python3 - <<'EOF'\n{}\nEOF"


@pytest.mark.parametrize(
    "told",
    [
        call("a", "bash", command=DOCUMENT.format(f"open('a.bin', 'wb').write(bytes.fromhex('{'ab' * 14_000}'))")),
        call("a", "bash", command="python " * 4_000 + "open("),
        assistant("```bash\nls\n" * 20_000),
    ],
    ids=("a payload", "one word", "blocks without an end"),
)
def test_no_text_is_looked_at_again_and_again(told: Message) -> None:
    """A command that writes a file of 14 KB from its digits took ten seconds, an answer in which a model went round in
    circles forty, and the latter at every compaction."""
    begin = process_time()
    digest([user("Go on."), told, result("a", "<returncode>0</returncode>"), user("<returncode>0</returncode>")])
    digest([user("Go on."), told, user("<returncode>0</returncode>")])
    assert process_time() - begin < 1
