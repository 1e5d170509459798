"""Two hundred tools and forty skills on demand, with an agent of sixty turns on each wire format.

The tools are declarations of recorded requests; the agent is a script that looks at each request before it calls
anything, and talks to the fake server, which refuses what an API would refuse (bound thinking included). Bars: the
first request takes at most 30 tokens for each tool and skill and 500 more, the agent never has to call what it cannot
see, the prefix moves only by decisions, and no request is refused.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from typing import Any

from msgspec.structs import replace

import turnlog
from harness import Report, bench, module, shared
from turnlog.errors import TurnlogError
from turnlog.log.messages import Tool
from turnlog.log.records import Configuration, Decision
from turnlog.providers.tool_declarations import read_tools
from turnlog.skills import Skill

TOOLS, SKILLS = 200, 40
TARGETS = (
    ("openai-chat", "gpt-4o", {}, "/v1/chat/completions"),
    ("openai-responses", "gpt-5", {}, "/v1/responses"),
    ("openai-responses", "gpt-5.4", {}, "/v1/responses"),
    ("anthropic", "claude-sonnet-4-5", {"max_tokens": 999}, "/v1/messages"),
    ("anthropic", "claude-opus-5-5", {"max_tokens": 999, "thinking": {"type": "adaptive"}}, "/v1/messages"),
    ("google", "gemini-2.5-pro", {}, "/v1beta/models/gemini-2.5-pro:generateContent"),
    ("google-interactions", "gemini-2.5-pro", {}, "/v1beta/interactions"),
)


def tools_of() -> list[Tool]:
    """So many declarations of recorded requests, each with a name of its own."""
    found: dict[str, Tool] = {}
    with shared("data", "token_truth", "requests.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            for given in json.loads(line)["request"].get("tools") or ():
                try:
                    read = read_tools([given])
                except (TurnlogError, TypeError):
                    continue
                for tool in read:
                    name = tool.name
                    while name in found and found[name].parameters != tool.parameters:
                        name += "_b"
                    if tool.kind == "function" and re.fullmatch(r"[A-Za-z][\w-]*", name) and len(name) < 50:
                        found[name] = Tool(name, tool.description, tool.parameters, on_demand=True)
    listed = [found[name] for name in sorted(found)]
    more = [replace(tool, name=f"{tool.name}_again") for tool in listed]  # the recorded requests declare fewer
    return [*listed, *more[: max(0, TOOLS - len(listed))]][:TOOLS]


def skills() -> list[Skill]:
    """So many skills, with bodies of some two thousand tokens."""
    about = "Work on part {n} of the system. Use when the user names part {n} or asks how it is built and tested."
    return [Skill(f"part-{n}", about.format(n=n), f"How part {n} is built.\n" * 250) for n in range(SKILLS)]


def visible(body: dict[str, Any]) -> tuple[set[str], set[str]]:
    """The tools that a request declares in full or that were found in it, and those that its text explains."""
    text = json.dumps(body)
    declared = set()
    for given in body.get("tools") or ():
        for one in given.get("functionDeclarations", [given]):
            inner = one.get("function", one)
            if not inner.get("defer_loading"):
                declared.add(str(inner.get("name") or inner.get("type")))
    for name in list(text.split('"tool_reference", "tool_name": "'))[1:]:
        declared.add(name.split('"')[0])
    for item in body.get("input") or ():
        if isinstance(item, dict) and item.get("type") == "tool_search_output":
            declared |= {tool["name"] for tool in item["tools"]}
    explained = {part.split(",")[0] for part in text.split("[tool ")[1:]}
    return declared, explained


class Agent:
    """One session with one target, and what was counted in it."""

    def __init__(self, server: Any, given: tuple[str, str, dict[str, Any], str], tools: list[Tool]):
        provider, model, settings, self.path = given
        self.server, self.blind, self.moved, self.refused, self.loads, self.last = server, 0, 0, 0, 0, 0
        self.sizes: list[int] = []
        target = turnlog.target(provider, model, **settings)
        self.session = turnlog.open("s", store=":memory:", target=target, tools=tools, budget=24_000)
        self.session.skills.add(*skills())

    def ask(self, *calls: tuple[str, dict[str, Any]]) -> Any:
        """Send the request; the server answers with these calls, or with text."""
        request = self.session.request()
        since, self.last = [*self.session.log.records(self.last + 1)], self.session.history()[-1].n
        decided = any(isinstance(record.body, (Configuration, Decision)) for record in since)
        if request.cache is not None and request.cache.shared < request.cache.previous and not decided:
            self.moved += 1
        self.sizes.append(request.tokens)
        reply: dict[str, Any] = (
            {"tool_calls": [{"name": n, "args": a} for n, a in calls]} if calls else {"text": "Done."}
        )
        if "thinking" in request.body:
            reply["thinking"] = f"I think of step {len(self.sizes)}."
        self.server.script(reply)
        headers = {"content-type": "application/json", "authorization": "Bearer k", "x-api-key": "k"}
        headers |= {"anthropic-version": "2023-06-01", "x-goog-api-key": "k"}
        asked = urllib.request.Request(self.server.url + self.path, json.dumps(request.body).encode(), headers)
        try:
            with urllib.request.urlopen(asked) as answer:
                told = json.loads(answer.read())
        except urllib.error.HTTPError as error:
            self.refused += 1
            raise RuntimeError(error.read().decode()[:500]) from error
        for item in told.get("output") or ():
            if item.get("type") == "function_call" and item.get("name") == "tool_search":
                arguments = json.loads(item.pop("arguments"))
                item.pop("name")
                item.update(
                    type="tool_search_call", execution="client", arguments=arguments, id=f"tsc_{len(self.sizes)}"
                )
        return self.session.receive(told)

    def call(self, name: str, arguments: dict[str, Any]) -> None:
        """Have the model make one call, and run it."""
        for call in self.ask((name, arguments)).tool_calls:
            if self.session.skills.take(call) is not None:
                self.session.tool_result(call, f"{name} done. " + "It printed a line.\n" * 60)

    def use(self, name: str) -> None:
        """Use a tool, and load it first if the request does not show it."""
        declared, explained = visible(self.session.preview().body)
        if name not in declared and not ("use_tool" in declared and name in explained):
            self.loads += 1
            self.call("tool_search" if "tool_search" in declared else "find_tools", {"names": [name]})
            declared, explained = visible(self.session.preview().body)
        if name in declared:
            self.call(name, {})
        elif "use_tool" in declared and name in explained:
            self.call("use_tool", {"name": name, "arguments": {}})
        else:
            self.blind += 1

    def live(self, turns: int, tools: list[Tool]) -> None:
        """All turns."""
        for n in range(turns):
            with self.session.turn(f"Turn {n}: use the tool number {n * 7 % 40}."):
                self.use(tools[n * 7 % 40 * (len(tools) // 40)].name)
                if n % 5 == 0:
                    self.call("load_skill", {"name": f"part-{n % SKILLS}"})
                self.ask()


@bench(quick={"turns": 3})
def disclosure(report: Report, *, turns: int = 60) -> None:
    """Two hundred tools and forty skills on demand, with an agent of sixty turns on each wire format."""
    fake, tools = module("fake_server", shared("oracle")), tools_of()
    copies = sum("_again" in tool.name for tool in tools)
    report.row("tools", {"tools": len(tools), "copies under another name": copies}, at_least={"tools": TOOLS})
    bars = {"calls without sight": 0, "moves of the prefix without a decision": 0, "refused": 0}
    bars["tokens of the first request"] = 30 * (len(tools) + SKILLS) + 500
    for given in TARGETS:
        with fake.FakeServer(bind_thinking=True) as server:
            agent = Agent(server, given, tools)
            try:
                agent.live(turns, tools)
            except RuntimeError as error:
                report.say(f"{given[1]}: {error}")
            whole = [replace(tool, on_demand=False) for tool in tools]
            with turnlog.open("w", store=":memory:", target=agent.session.target, tools=whole) as plain:
                plain.user("Turn 0: use the tool number 0.")
                all_of_it = plain.request(plain.target).tokens
            made = {r.body.action for r in agent.session.history() if isinstance(r.body, Decision)}
            figures = {
                "tokens of the first request": agent.sizes[0],
                "with all schemas": all_of_it,
                "requests": len(agent.sizes),
                "loads": agent.loads,
                "calls without sight": agent.blind,
                "moves of the prefix without a decision": agent.moved,
                "refused": max(agent.refused, len(server.rejections())),
                "as decisions": " ".join(sorted(made)),
            }
            report.row(f"{given[0]} {given[1]}", figures, at_most=bars)
