"""The clerk whose approvals wait, with openai-agents: the state of the interrupted run in a file.

The state is only read where the tools are there: the page needs the server, too.
"""

import asyncio
import sys

from agents.mcp import MCPServerStdio
from later_tools import FOLDER, SERVER, decide

from agents import Agent, Runner, RunState, SQLiteSession, set_default_openai_api, set_tracing_disabled

FILE = FOLDER / "state.json"
server = MCPServerStdio({"command": sys.executable, "args": SERVER}, require_approval={"pay": "always"})
agent = Agent(name="clerk", model="gpt-4o", mcp_servers=[server])


async def run(given: str | RunState) -> None:
    session = SQLiteSession("clerk", FOLDER / "clerk.db")
    result = await Runner.run(agent, given, session=session, max_turns=20)
    if result.interruptions:
        FILE.write_text(result.to_state().to_string())
    print(result.final_output)


async def page(state: RunState) -> None:
    for item in state.get_interruptions():
        if decide(item.name, item.arguments):
            state.approve(item)
        else:
            state.reject(item)
    FILE.write_text(state.to_string())


async def main() -> None:
    set_tracing_disabled(True)
    set_default_openai_api("chat_completions")
    async with server:
        match sys.argv[1]:
            case "start":
                await run(sys.argv[2])
            case "page":
                await page(await RunState.from_string(agent, FILE.read_text()))
            case "go":
                await run(await RunState.from_string(agent, FILE.read_text()))


asyncio.run(main())
