"""Files of many conversations: read in pieces, in any damage; trees in order; what the formats have of their own."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sample_chatgpt import SAMPLE as CHATGPT
from sample_claude_ai import SAMPLE as CLAUDE_AI
from transcripts import jsonl, messages_of

from turnlog.importers import read_file
from turnlog.importers.conversations import in_order, values_of
from turnlog.importers.sync.session import sync_session
from turnlog.importers.transcript import Transcript
from turnlog.log.messages import Media, Reasoning, Text, ToolCall, ToolResult
from turnlog.log.records import Decision
from turnlog.stores.memory import MemoryStore


def _sharegpt(n: int, text: str = "Name the fjords") -> dict[str, Any]:
    return {"conversations": [{"from": "human", "value": f"{text} {n}"}, {"from": "gpt", "value": "Hardanger"}]}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["list", "pretty list", "lines"])
def test_pieces_of_a_long_file_are_read_as_the_whole(form: str, tmp_path: Path) -> None:
    """A value that ends in another piece than it begins in would be taken for damage."""
    rng = random.Random(5)
    values = [{"n": n, "text": 'é\n"[{' * rng.choice([1, 10, 100_000, 700_000])} for n in range(12)]
    data = {
        "list": json.dumps(values, ensure_ascii=False).encode(),
        "pretty list": b"\xef\xbb\xbf" + json.dumps(values, indent=2).encode(),
        "lines": jsonl(values),
    }[form]
    path = tmp_path / "long.json"
    path.write_bytes(data)
    file = Transcript(path)
    assert [line.value for line in values_of(file)] == values
    assert [line.number for line in values_of(file)] == list(range(1, 13))
    assert [line.value for line in values_of(Transcript(data))] == values
    path.write_bytes(json.dumps(values).encode("utf-16"))
    assert [line.value for line in values_of(file)] == values
    assert file.warnings == []


def test_damage_costs_one_line_of_lines_and_the_rest_of_a_list(tmp_path: Path) -> None:
    """Damage that is not told, or that takes the lines behind it too, loses conversations in silence."""
    path = tmp_path / "lines.jsonl"
    path.write_bytes(jsonl([_sharegpt(1)]) + b'{"conversations": [}\n' + b"\0\n\xff\n" + jsonl([_sharegpt(2)]))
    first, second = read_file(path)
    assert [text for each in (first, second) for text in messages_of(each)[0].parts] == [
        Text("Name the fjords 1"),
        Text("Name the fjords 2"),
    ]
    assert [warning.line for warning in (*first.warnings, *second.warnings)] == [2, 4, 0]
    path.write_bytes(json.dumps([_sharegpt(1), _sharegpt(2)]).encode()[:-20])
    (first,) = read_file(path)
    assert "1 entries before the damage were read" in first.warnings[0].message


@pytest.mark.slow
def test_a_long_export_takes_little_memory(tmp_path: Path) -> None:
    """An export of years of work would need many times its size in memory to be read at once."""
    path = tmp_path / "conversations.json"
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        for n in range(900):
            file.write(("," if n else "") + json.dumps(_sharegpt(n, "words " * 10_000)))
        file.write("]")
    program = (
        "import resource, sys\n"
        "from turnlog.importers import read_file, read_sessions\n"
        f"read_file({jsonl([_sharegpt(1)])!r})\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "n = sum(1 for _ in read_sessions(sys.argv[1]))\n"
        "print(n, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    count, grown = map(int, done.stdout.split())
    assert count == 900
    assert path.stat().st_size > 50_000_000
    assert sys.platform == "darwin" or grown < 25_000  # KB


def test_conversations_that_are_the_same_are_sessions_of_their_own() -> None:
    """Of two conversations with one id, the second would be taken for a change of the first."""
    sessions = read_file(jsonl([_sharegpt(1), _sharegpt(1), _sharegpt(2)]))
    assert len({each.session_id for each in sessions}) == 3


def test_a_tree_is_read_with_the_branch_that_was_shown_last() -> None:
    """The conversation that continues is the one at the end; a circle, which damage makes, has no end."""
    parents = {"a": "", "b": "a", "c": "a", "d": "b", "e": "c", "x": "y", "y": "x"}
    assert in_order(parents, "d") == ["a", "c", "e", "b", "d", "x", "y"]
    assert in_order(parents, "e") == ["a", "b", "d", "c", "e", "x", "y"]
    assert in_order(parents, "x") == ["a", "b", "d", "c", "e", "x", "y"]


def test_a_file_beside_an_export_of_chatgpt_is_read(tmp_path: Path) -> None:
    """Images are the half of many conversations; the export has them beside it."""
    (tmp_path / "file_1-sanitized.png").write_bytes(b"an image")
    path = tmp_path / "conversations.json"
    path.write_bytes(CHATGPT.data)
    first = read_file(path)[0]
    (image,) = (part for message in messages_of(first) for part in message.parts if isinstance(part, Media))
    assert (image.kind, image.mime, first.blobs[image.sha256]) == ("image", "image/png", b"an image")
    assert first.files == (str(path), str(tmp_path / "file_1-sanitized.png"))
    assert not any("image_asset_pointer" in warning.message for warning in first.warnings)


def test_messages_of_a_tool_in_a_row_are_one_result() -> None:
    """A call with two results is refused by every API, and the pages that were found after the first would be lost."""
    first = read_file(CHATGPT.data)[0]
    results = [part for message in messages_of(first) for part in message.parts if isinstance(part, ToolResult)]
    assert [len(result.parts) for result in results] == [1, 4, 2]
    assert [result.outcome for result in results] == ["ok", "ok", "failed"]
    assert [result.name for result in results] == [
        "python",
        "web.run",
        "dalle.text2im",
    ]  # the export says "web", "dalle"
    (decision,) = (draft.body for draft in first.drafts if isinstance(draft.body, Decision))
    assert decision.action == "rewind"


def test_thinking_calls_and_results_in_texts_are_read() -> None:
    """What stands between tags would be shown, and sent, as if it had been said."""
    turns = [
        (
            "gpt",
            '<think>\nI look\n</think>\nNow.\n<tool_call>\n{"name": "ls", "arguments": {"path": "/"}}\n</tool_call>',
        ),
        ("tool", '<tool_response>\n{"tool_call_id": "c", "name": "ls", "content": "a b"}\n</tool_response>'),
    ]
    (session,) = read_file(jsonl([{"conversations": [{"from": who, "value": what} for who, what in turns]}]))
    answer, result = messages_of(session)
    assert answer.parts == (Reasoning("openai-chat", "I look"), Text("Now."), ToolCall("call-1", "ls", {"path": "/"}))
    assert result.parts == (ToolResult("call-1", "ls", (Text("a b"),)),)


def test_a_later_export_continues_its_conversations() -> None:
    """People export again after some months: every conversation that went on would be there twice."""
    chatgpt, claude = json.loads(CHATGPT.data), json.loads(CLAUDE_AI.data)
    del chatgpt[0]["mapping"]["n14"]
    chatgpt[0].update(current_node="n13", update_time=1)
    claude[0]["chat_messages"].pop()
    for earlier, later in ((chatgpt, CHATGPT.data), (claude, CLAUDE_AI.data)):
        store = MemoryStore()
        for data, status in ((json.dumps(earlier).encode(), "new"), (later, "continued"), (later, "unchanged")):
            assert sync_session(store, read_file(data)[0], None).status == status
