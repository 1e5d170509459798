"""What other libraries do with a conversation that turnlog is made for: the table of docs/comparison.md.

Each library needs an environment of its own, beside turnlog: `pip install langgraph langgraph-checkpoint-sqlite`,
`pip install openai-agents` or `pip install litellm`. Measured are those that this Python has. No network, no key: a
script stands in for the model.

- trimming: 60 requests of an agent that reads files, within 3,000 tokens (openai-agents: 20 items, it has no limit in
  tokens). `refused`: requests with a call that nothing answers, or a result of no call. `lost`: requests without the
  task or without the newest message.
- killed: the process is killed by SIGKILL inside a tool, and the next process asks. What its request says of the call.
- disk: bytes after 400 turns of 800 characters. writers: user messages left of 75, when three processes write 25
  turns each. turn: processor time of a tool result and the next request, at 2,000 messages within 50,000 tokens.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from harness import BENCH, Report, bench, seconds

Chat = dict[str, Any]
TASK = "Port module A to B. Leave the database alone."
WORDS = "the importer reads every row and skips those without a total "


def call_of(n: int) -> Chat:
    """An assistant's message that reads a file."""
    function = {"name": "read", "arguments": json.dumps({"path": f"f{n}.py"})}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"c{n}", "type": "function", "function": function}],
    }


def result_of(n: int, lines: int) -> Chat:
    """What the file holds."""
    return {"role": "tool", "tool_call_id": f"c{n}", "name": "read", "content": "total = price * 2\n" * lines}


def steps(count: int) -> Iterator[list[Chat]]:
    """What is added to the conversation before each request: a user's message, or a call and its result."""
    yield [{"role": "system", "content": "You are a coding agent."}, {"role": "user", "content": TASK}]
    for n in range(1, count):
        if n % 15 == 0:
            yield [
                {"role": "assistant", "content": f"Part {n} is done."},
                {"role": "user", "content": f"Now part {n}."},
            ]
        else:
            yield [call_of(n), result_of(n, (20, 60, 60, 150)[n % 4])]


class TurnlogPeer:
    """turnlog, with SQLite and the default strategy."""

    name, needs = "turnlog", ("turnlog",)

    def __init__(self, folder: str, budget: int = 3_000) -> None:
        import turnlog

        target = turnlog.target("openai-chat", "gpt-4o")
        settings = turnlog.Settings()
        place = f"{folder}/t.db"
        self.session = turnlog.open("s", store=place, target=target, budget=budget, settings=settings, shared=True)

    def add(self, messages: list[Chat]) -> None:
        self.session.extend(messages)

    def request(self) -> list[Chat]:
        return self.session.request().body["messages"]

    def die(self) -> None:
        *_, record = self.session.extend([{"role": "user", "content": TASK}, call_of(1)])
        self.session.tool_started(record.message.parts[0])
        os.kill(os.getpid(), signal.SIGKILL)

    def close(self) -> None:
        self.session.close()

    def kept(self) -> int:
        return sum(record.message is not None and record.message.role == "user" for record in self.session.history())


class LangGraphPeer:
    """LangGraph's SqliteSaver, and trim_messages as its documentation shows it."""

    name, needs = "LangGraph SqliteSaver, trim_messages", ("langgraph", "langgraph-checkpoint-sqlite", "langchain-core")

    def __init__(self, folder: str, budget: int = 3_000) -> None:
        from langgraph.checkpoint.sqlite import SqliteSaver
        from langgraph.graph import START, MessagesState, StateGraph

        self.budget, self.view = budget, []
        graph = StateGraph(MessagesState)
        graph.add_node("model", self._model)
        graph.add_edge(START, "model")
        connection = sqlite3.connect(f"{folder}/l.db", check_same_thread=False, timeout=60)
        saver = SqliteSaver(connection)
        saver.setup()
        self.close = connection.close
        self.graph, self.config = graph.compile(checkpointer=saver), {"configurable": {"thread_id": "s"}}

    def _model(self, state: Any) -> Any:
        from langchain_core.messages import convert_to_openai_messages, trim_messages

        self.view = convert_to_openai_messages(
            trim_messages(
                state["messages"], max_tokens=self.budget, strategy="last", token_counter="approximate",
                start_on="human", end_on=("human", "tool"), include_system=True,
            )
        )  # fmt: skip
        return {}

    def add(self, messages: list[Chat]) -> None:
        self.added = messages

    def request(self) -> list[Chat]:
        self.graph.invoke({"messages": self.added}, self.config)
        return self.view

    def die(self) -> None:
        self.graph.update_state(
            self.config, {"messages": [{"role": "user", "content": TASK}, call_of(1)]}, as_node="model"
        )
        os.kill(os.getpid(), signal.SIGKILL)

    def kept(self) -> int:
        return sum(message.type == "human" for message in self.graph.get_state(self.config).values["messages"])


class LitellmPeer:
    """litellm's trim_messages; it keeps nothing."""

    name, needs = "litellm trim_messages", ("litellm",)

    def __init__(self, folder: str, budget: int = 3_000) -> None:
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
        self.budget, self.messages = budget, []

    def add(self, messages: list[Chat]) -> None:
        self.messages += messages

    def request(self) -> list[Chat]:
        from litellm.utils import trim_messages

        return trim_messages(list(self.messages), model="gpt-4o", max_tokens=self.budget)


class AgentsPeer:
    """openai-agents: SQLiteSession with a limit of 20 items, driven by its Runner."""

    name, needs = "openai-agents SQLiteSession", ("openai-agents",)

    def __init__(self, folder: str, budget: int = 3_000) -> None:
        from agents import (
            Agent,
            Model,
            ModelResponse,
            Runner,
            SQLiteSession,
            Usage,
            function_tool,
            set_tracing_disabled,
        )

        set_tracing_disabled(True)
        seen: list[Any] = []
        script: list[Any] = []

        class Scripted(Model):
            async def get_response(self, *_: Any, **asked: Any) -> Any:
                seen.append(asked["input"])
                return ModelResponse(output=[script.pop(0)], usage=Usage(), response_id=None)

            def stream_response(self, *rest: Any, **more: Any) -> Any:
                raise NotImplementedError

        @function_tool
        def read(path: str) -> str:
            if path == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            return self.results.pop(0)

        self.results: list[str] = []
        self.seen, self.script, self.runner = seen, script, Runner
        self.agent = Agent(name="a", instructions="You are a coding agent.", model=Scripted(), tools=[read])
        self.session = SQLiteSession("s", f"{folder}/o.db")
        self.close = self.session.close

    def turn(self, said: str, calls: int = 0, path: str = "f.py", answer: str = "Done.") -> None:
        """One turn: what the user says, so many calls, the answer."""
        from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

        from agents import RunConfig, SessionSettings

        arguments = json.dumps({"path": path})
        at = len(self.seen)
        self.script += [
            ResponseFunctionToolCall(type="function_call", call_id=f"c{at + n}", name="read", arguments=arguments)
            for n in range(calls)
        ]
        text = ResponseOutputText(type="output_text", text=answer, annotations=[])
        self.script.append(
            ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
        )
        limit = RunConfig(session_settings=SessionSettings(limit=20))
        asyncio.run(self.runner.run(self.agent, said, session=self.session, run_config=limit, max_turns=99))

    def requests(self) -> list[list[Chat]]:
        """The requests of the whole trimming scenario."""
        self.results = [result_of(n, (20, 60, 60, 150)[n % 4])["content"] for n in range(60)]
        for said in (TASK, "Now part 15.", "Now part 30.", "Now part 45."):
            self.turn(said, 14)
        return [[*map(_as_chat, request)] for request in self.seen]

    def die(self) -> None:
        self.turn(TASK, 1, "kill")

    def kept(self) -> int:
        return sum(item.get("role") == "user" for item in asyncio.run(self.session.get_items()))


PEERS: tuple[Any, ...] = (TurnlogPeer, LangGraphPeer, LitellmPeer, AgentsPeer)


def _as_chat(item: Chat) -> Chat:
    if item.get("type") == "function_call":
        return {"role": "assistant", "tool_calls": [{"id": item["call_id"]}]}
    if item.get("type") == "function_call_output":
        return {"role": "tool", "tool_call_id": item["call_id"]}
    return item


def judged(view: list[Chat]) -> tuple[bool, bool]:
    """Whether a provider would refuse a request, and whether the task or the newest message is missing."""
    waiting: set[str] = set()
    refused = False
    for message in view:
        if message["role"] == "tool":
            refused |= message["tool_call_id"] not in waiting
            waiting.discard(message["tool_call_id"])
        elif calls := message.get("tool_calls"):
            waiting |= {call["id"] for call in calls}
        else:
            refused |= bool(waiting)
    users = [str(message.get("content")) for message in view if message["role"] == "user"]
    return refused or bool(waiting), TASK not in users or not view or view[-1]["role"] not in ("user", "tool")


def trimming(peer: Any, folder: str) -> str:
    """The row of that name."""
    if isinstance(made := peer(folder), AgentsPeer):
        views = made.requests()
    else:
        views = []
        for added in steps(60):
            made.add(added)
            views.append(made.request())
    found = [judged(view) for view in views]
    return f"{sum(refused for refused, _ in found)} refused, {sum(lost for _, lost in found)} lost of {len(found)}"


def command(work: str, peer: Any, folder: str) -> list[str]:
    """What has another process do a piece of work."""
    code = f"import sys; sys.path.insert(0, ''); from peers.libraries import *; {work}_in({peer.__name__}, {folder!r})"
    return [sys.executable, "-c", code]


def die_in(peer: Any, folder: str) -> None:
    """Be killed inside a tool."""
    peer(folder).die()


def talk_in(peer: Any, folder: str) -> None:
    """Write 25 turns."""
    talk(peer, folder, 25, 200)


def killed(peer: Any, folder: str) -> str:
    """The row of that name."""
    if not hasattr(peer, "die"):
        return "keeps nothing"
    run = subprocess.run(command("die", peer, folder), cwd=BENCH, capture_output=True, check=False)
    assert run.returncode == -signal.SIGKILL, run.stderr.decode()
    made = peer(folder)
    if isinstance(made, AgentsPeer):
        made.turn("Well?")
        view = [_as_chat(item) for item in made.seen[-1]]
    else:
        made.add([{"role": "user", "content": "Well?"}])
        view = made.request()
    called = any(message.get("tool_calls") for message in view)
    told = next((message["content"] for message in view if message["role"] == "tool"), "")
    return told or ("refused: the call has no result" if called else "the call is gone, and the model is not told")


def talk(peer: Any, folder: str, turns: int, size: int) -> Any:
    """So many turns of a user's message and an answer."""
    made = peer(folder)
    for n in range(turns):
        said, answer = (f"{who} {n} {WORDS * 20}"[: size // 2] for who in ("question", "answer"))
        if isinstance(made, AgentsPeer):
            made.turn(said, answer=answer)
        else:
            made.add([{"role": "user", "content": said}])
            made.request()
            made.add([{"role": "assistant", "content": answer}])
    return made


def disk(peer: Any, folder: str) -> str:
    """The row of that name."""
    if not hasattr(peer, "kept"):
        return "keeps nothing"
    talk(peer, folder, 400, 800).close()
    return f"{sum(file.stat().st_size for file in Path(folder).rglob('*') if file.is_file()) / 1e6:.1f} MB"


def writers(peer: Any, folder: str) -> str:
    """The row of that name."""
    if not hasattr(peer, "kept"):
        return "keeps nothing"
    peer(folder)
    talking = command("talk", peer, folder)
    running = [subprocess.Popen(talking, cwd=BENCH, stderr=subprocess.DEVNULL) for _ in range(3)]
    failed = sum(one.wait() != 0 for one in running)
    return f"{peer(folder).kept()} of 75" + (f", {failed} processes failed" if failed else "")


def turn(peer: Any, folder: str) -> str:
    """The row of that name."""
    if peer is AgentsPeer:
        return "no limit in tokens"
    made, taken = peer(folder, 50_000), []
    made.add([message for added in steps(1_000) for message in added])
    made.request()
    for n in range(1_000, 1_010):
        taken.append(seconds(lambda n=n: (made.add([call_of(n), result_of(n, 20)]), made.request())))  # type: ignore[misc]
        if sum(taken) > 60:  # slow: one turn will do
            break
    return f"{1000 * median(taken):,.1f} ms"


@bench(quick={})
def libraries(report: Report) -> None:
    """What other libraries do with a conversation that turnlog is made for: the table of docs/comparison.md."""
    for peer in PEERS:
        if importlib.util.find_spec(peer.needs[0].replace("openai-", "").replace("-", "_")) is None:
            report.say(f"{peer.name}: skipped: {peer.needs[0]} is not installed")
            continue
        versions = ", ".join(f"{name} {version(name)}" for name in peer.needs)
        figures: dict[str, str] = {}
        for measure in (trimming, killed, disk, writers, turn):
            with tempfile.TemporaryDirectory(prefix="peers-") as folder:
                figures[f"({measure.__name__})"] = measure(peer, folder)
        report.row(versions, figures)
