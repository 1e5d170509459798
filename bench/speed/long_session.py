"""A session of very many records: how long its listing, its end, its changes of files, its next request and its page
take, and in what memory.

Each figure is of a process of its own, Python's start included, for a store of either kind. For `resume`
a session is opened and its next request made; `floor` starts Python and imports turnlog.
"""

from __future__ import annotations

import tempfile

from harness import Report, bench, watched
from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import FileChange, MessageRecord, UsageRecord
from turnlog.log.store import Draft
from turnlog.log.usage import Usage as Billed
from turnlog.models.target import target
from turnlog.session.session import Session
from turnlog.stores import open_store
from turnlog.tokens import counter_for
from turnlog.tokens.counters import count_message

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


@bench(quick={"records": 2_000, "rounds": 1})
def long_session(report: Report, *, records: int = 100_000, rounds: int = 3) -> None:
    """The listing, the end, the changes, the next request and the page of a session of 100,000 records."""
    with tempfile.TemporaryDirectory() as name:
        for kind, place in (("sqlite", f"{name}/long.db"), ("files", f"files:{name}/folder")):
            make(place, records)
            commands = {
                "floor": ("-c", "import turnlog"),
                "resume": ("-c", _REQUEST, place),
                **{
                    words: ("-c", _COMMAND, *words.split(), "--store", place)
                    for words in (
                        "ls", "show long --last 20", "diff long --stat", "diff long --turn -1",
                        "export long --format html",
                    )
                },
            }  # fmt: skip
            for what, command in commands.items():
                found = [watched(*command) for _ in range(rounds)]
                report.row(f"{kind}, {what}", {unit: min(one[unit] for one in found) for unit in found[0]})
