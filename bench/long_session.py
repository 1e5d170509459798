"""A session of very many records: how long its listing, its end, its changes of files, its next request and its page
take, and in what memory.

    python bench/long_session.py [RECORDS]

Each figure is of a process of its own, Python's start included, for a store of either kind. For `resume`
a session is opened and its next request made; `floor` starts Python and imports turnlog.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile

from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import FileChange, MessageRecord, UsageRecord
from turnlog.log.store import Draft
from turnlog.log.usage import Usage as Billed
from turnlog.models.target import target
from turnlog.session.session import Session
from turnlog.stores import open_store
from turnlog.tokens import count_message, counter_for

RECORDS = 100_000
ROUNDS = 3
_WATCH = """
import resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
took = time.perf_counter() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(took, used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
_COMMAND = "import sys; from turnlog.cli import main; sys.exit(main())"
_REQUEST = """
import sys
from turnlog.session.session import Session
from turnlog.stores import open_store
store = open_store(sys.argv[1])
Session(store, store.info("long")).request()
"""


def make(place: str, records: int) -> None:
    """A session of short turns: a question, a call, its result, an answer; every tenth changes one of fifty files and
    is billed."""
    store = open_store(place)
    session = Session(store, store.create("long", title="A long one"))
    session.system("You are brief.")
    session.switch(target("openai-chat", "gpt-4o"))
    counter = counter_for("openai-chat", "gpt-4o")
    held: dict[int, str] = {}
    for start in range(2, records, 1000):
        drafts = []
        for n in range(start // 4, min(start + 1000, records) // 4):
            call = ToolCall(f"c{n}", "look", {"at": f"file {n}"})
            result = ToolResult(f"c{n}", "look", (Text(f"line {n} of what was found\n" * 20),))
            turn = (
                Message("user", (Text(f"What is in file {n}?"),)),
                Message("assistant", (call,)),
                Message("user", (result,)),
                Message("assistant", (Text(f"Nothing of note in file {n}. " * 5),)),
            )
            drafts += [Draft(MessageRecord(message, count=count_message(message, counter))) for message in turn]
            if n % 10 == 0:
                blob = store.put_blob(f"one\ntwo {n}\nthree\n".encode() * 20)
                before, held[n % 50] = held.get(n % 50, ""), blob
                action = "modified" if before else "created"
                drafts.append(Draft(FileChange(f"src/file{n % 50}.py", action, before, blob)))
                drafts.append(Draft(UsageRecord("openai-chat", "gpt-4o", Billed(input=1_000, output=20))))
        store.append("long", drafts)
    store.close()


def measured(*command: str) -> tuple[float, float, float]:
    """Seconds, seconds of CPU, and the most memory, in MB, of a command."""
    done = subprocess.run([sys.executable, "-c", _WATCH, *command], capture_output=True, text=True, check=True)
    took, cpu, held = map(float, done.stdout.split())
    return took, cpu, held / (1e6 if sys.platform == "darwin" else 1e3)


def main() -> int:
    records = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    python = sys.executable
    with tempfile.TemporaryDirectory() as name:
        for place in (f"{name}/long.db", f"files:{name}/folder"):
            make(place, records)
            commands = {
                "floor": (python, "-c", "import turnlog"),
                "ls": (python, "-c", _COMMAND, "ls", "--store", place),
                "show --last 20": (python, "-c", _COMMAND, "show", "long", "--last", "20", "--store", place),
                "diff --stat": (python, "-c", _COMMAND, "diff", "long", "--stat", "--store", place),
                "diff --turn -1": (*(python, "-c", _COMMAND, "diff", "long"), "--turn", "-1", "--store", place),
                "resume": (python, "-c", _REQUEST, place),
                "export html": (*(python, "-c", _COMMAND, "export", "long"), "--format", "html", "--store", place),
            }
            for what, command in commands.items():
                found = [measured(*command) for _ in range(ROUNDS)]
                took, cpu, memory = map(min, zip(*found, strict=True))
                kind = "files" if place.startswith("files") else "sqlite"
                print(f"{kind}, {records:,} records, {what}: {took:.2f} s, {cpu:.2f} s of CPU, {memory:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
