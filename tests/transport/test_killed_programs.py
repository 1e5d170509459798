"""Programs over the HTTP client that are killed with SIGKILL at random instants and started again, and many at once on
one store."""

from __future__ import annotations

import json
import logging
import os
import random
import select
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from model_servers import PATHS, ModelServer, Pieces, answer_in, events_of

from draws import draws
from turnlog import transport
from turnlog.log.messages import ToolCall, text_of
from turnlog.log.records import MessageRecord
from turnlog.session import SessionLog
from turnlog.stores import open_store

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a program is killed in a process that is forked")

QUESTIONS = 6
PLACES = {"sqlite": "{}/log.db", "files": "files:{}/log"}


def reply(request: object) -> tuple[int, dict[str, str], Pieces]:
    """An answer that takes its time, streamed for every other question; every third question needs a tool."""
    messages = json.loads(request.content)["messages"]  # type: ignore[attr-defined]
    last, number = messages[-1], sum(message["role"] == "user" for message in messages)
    time.sleep(random.uniform(0, 0.01))
    if last["role"] == "user" and number % 3 == 0:
        calls = [f"Look {number}.", ToolCall(f"c{number}", "look", {})]
        return 200, {"content-type": "application/json"}, [json.dumps(answer_in("openai-chat", calls, number)).encode()]
    if number % 2:
        return 200, {"content-type": "text/event-stream"}, [*events_of(f"The answer {number}.", number)]
    whole = answer_in("openai-chat", [f"The answer {number}."], number)
    return 200, {"content-type": "application/json"}, [json.dumps(whole).encode()]


def answered(content: bytes, *, streamed: bool) -> dict[str, object]:
    """The message of an answer, as a framework keeps it."""
    if not streamed:
        message: dict[str, object] = json.loads(content)["choices"][0]["message"]
        return message
    chunks = [json.loads(line[6:]) for line in content.splitlines() if line.startswith(b"data: {")]
    pieces = [choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"]]
    return {"role": "assistant", "content": "".join(pieces)}


def work(place: str, kept: Path, who: str, *, name: str = "") -> None:
    """Ask all questions, with the history in a file as the only memory."""
    client = transport.client(place, transport=ModelServer(reply))
    history = json.loads(kept.read_text()) if kept.exists() else []
    while sum(message["role"] == "user" for message in history) < QUESTIONS or history[-1]["role"] != "assistant":
        if not history or history[-1]["role"] == "assistant":
            number = sum(message["role"] == "user" for message in history)
            history.append({"role": "user", "content": f"Question {number} of {who}"})
        with transport.session(name):
            content = client.post(PATHS["openai-chat"], json={"model": "gpt-4o", "messages": history}).content
        message = answered(content, streamed=content.startswith(b"data:"))
        history.append(message)
        for call in message.get("tool_calls", ()):  # type: ignore[attr-defined]
            history.append({"role": "tool", "tool_call_id": call["id"], "content": "seen"})
        written = kept.with_suffix(".new")
        written.write_text(json.dumps(history))
        written.replace(kept)
    assert client.failures == 0
    client.close()


def started(place: str, kept: Path, who: str, name: str) -> tuple[int, int]:
    """A process that works, and what can be read when it ends."""
    read, write = os.pipe()
    child = os.fork()
    if child:
        os.close(write)
        return child, read
    try:
        random.seed()
        logging.basicConfig(level=logging.WARNING, force=True)  # who reads a failure sees why
        work(place, kept, who, name=name)
        os._exit(0)
    except BaseException:  # noqa: BLE001 - a forked process must not go on with the tests
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    raise AssertionError("not reached")


def texts(place: str) -> dict[str, list[str]]:
    """What was said in each session, by the log, which has to be in order."""
    store = open_store(place)
    found = {}
    for info in store.sessions():
        assert SessionLog(store, info.id).validate() == []
        messages = (record.body.message for record in store.read(info.id) if isinstance(record.body, MessageRecord))
        said = [text_of(message) for message in messages if message.role == "user"]
        found[info.id] = [text for text in said if text]  # without results of calls
    store.close()
    return {session_id: said for session_id, said in found.items() if said}  # others were killed at their beginning


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), [("sqlite", "named"), ("files", "")])
def test_a_killed_program_goes_on_in_its_session(kind: str, name: str, tmp_path: Path) -> None:
    """After a crash the program goes on in another session, or a question is on record twice."""
    place, kills, programs = PLACES[kind].format(tmp_path), 0, 0
    while programs < draws(1, 100) or not kills:  # a fast machine may end a program before the first kill
        who, programs = programs, programs + 1
        kept = tmp_path / f"kept{who}.json"
        while True:
            child, end = started(place, kept, f"program {who}", name and f"{name} {who}")
            if kills < draws(3, 50) * (who + 1) and not select.select([end], [], [], random.uniform(0.01, 0.2))[0]:
                os.kill(child, signal.SIGKILL)
                kills += 1
            status = os.waitpid(child, 0)[1]
            os.close(end)
            if not os.WIFSIGNALED(status):
                assert status == 0
                break
    found = texts(place)
    asked = [[f"Question {n} of program {each}" for n in range(QUESTIONS)] for each in range(programs)]
    assert sorted(found.values()) == sorted(asked)


@pytest.mark.slow
def test_twenty_programs_on_one_store(tmp_path: Path) -> None:
    """Programs that ask at once write into each other's sessions, or wait for each other."""
    place = PLACES["sqlite"].format(tmp_path)
    who = [f"program {n}" for n in range(20)]
    children = [started(place, tmp_path / f"{each}.json", each, "")[0] for each in who]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * len(who)
    found = texts(place)
    assert sorted(found.values()) == sorted([f"Question {n} of {each}" for n in range(QUESTIONS)] for each in who)
    assert Counter(map(len, found.values())) == {QUESTIONS: 20}
