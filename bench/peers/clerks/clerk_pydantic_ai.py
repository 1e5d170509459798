"""The clerk with pydantic-ai: its history in a file, written after each run, its approvals by deferred calls."""

import sys

from clerk_tools import FOLDER, ask, bill, pay
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ModelMessagesTypeAdapter, Tool, UsageLimits

agent = Agent(
    "openai-chat:gpt-4o", tools=[bill, Tool(pay, requires_approval=True)], output_type=[str, DeferredToolRequests]
)
limits = UsageLimits(request_limit=20)
file = FOLDER / "clerk.json"
history = ModelMessagesTypeAdapter.validate_json(file.read_bytes()) if file.exists() else None
result = agent.run_sync(sys.argv[1], message_history=history, usage_limits=limits)
while isinstance(result.output, DeferredToolRequests):
    file.write_bytes(result.all_messages_json())
    answers = DeferredToolResults()
    for call in result.output.approvals:
        answers.approvals[call.tool_call_id] = ask(call.tool_name, call.args, "")
    result = agent.run_sync(message_history=result.all_messages(), deferred_tool_results=answers, usage_limits=limits)
file.write_bytes(result.all_messages_json())
print(result.output)
