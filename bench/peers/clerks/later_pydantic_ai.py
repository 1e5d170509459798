"""The clerk whose approvals wait, with pydantic-ai: the conversation in a file, the decisions in another."""

import sys

from fastmcp.client.transports import StdioTransport
from later_tools import FOLDER, SERVER, decide
from pydantic import TypeAdapter
from pydantic_ai import Agent, ConversationTypeAdapter, DeferredToolRequests, DeferredToolResults, UsageLimits
from pydantic_ai.mcp import MCPToolset

FILE, DECIDED = FOLDER / "clerk.json", FOLDER / "decided.json"
ResultsTypeAdapter = TypeAdapter(DeferredToolResults)
server = MCPToolset(StdioTransport(sys.executable, SERVER))
asking = server.approval_required(lambda ctx, tool, arguments: tool.name == "pay")
agent = Agent("openai-chat:gpt-4o", toolsets=[asking], output_type=[str, DeferredToolRequests])


def run(text: str | None, **stored: object) -> None:
    result = agent.run_sync(text, **stored, usage_limits=UsageLimits(request_limit=20))
    FILE.write_bytes(ConversationTypeAdapter.dump_json(result.conversation))
    print(result.output)


def page() -> None:
    requests = ConversationTypeAdapter.validate_json(FILE.read_bytes()).deferred_tool_requests
    approvals = {call.tool_call_id: decide(call.tool_name, call.args) for call in requests.approvals}
    DECIDED.write_bytes(ResultsTypeAdapter.dump_json(requests.build_results(approvals=approvals)))


def go() -> None:
    conversation = ConversationTypeAdapter.validate_json(FILE.read_bytes())
    run(None, conversation=conversation, deferred_tool_results=ResultsTypeAdapter.validate_json(DECIDED.read_bytes()))


match sys.argv[1]:
    case "start":
        run(sys.argv[2])
    case "page":
        page()
    case "go":
        go()
