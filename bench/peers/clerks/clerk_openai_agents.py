"""The clerk with openai-agents: its session in SQLite, its approvals by interruptions."""

import asyncio
import sys

from clerk_tools import FOLDER, ask, bill, pay

from agents import Agent, Runner, SQLiteSession, function_tool, set_default_openai_api, set_tracing_disabled


async def main() -> None:
    set_tracing_disabled(True)
    set_default_openai_api("chat_completions")
    agent = Agent(name="clerk", model="gpt-4o", tools=[function_tool(bill), function_tool(pay, needs_approval=True)])
    session = SQLiteSession("clerk", FOLDER / "clerk.db")
    result = await Runner.run(agent, sys.argv[1], session=session, max_turns=20)
    while result.interruptions:
        state = result.to_state()
        for item in result.interruptions:
            if ask(item.name, item.arguments, ""):
                state.approve(item)
            else:
                state.reject(item)
        result = await Runner.run(agent, state, session=session, max_turns=20)
    print(result.final_output)


asyncio.run(main())
