"""A LangChain agent with the middleware of the documentation, over many turns with a scripted model that thinks: what
each request was, as JSON. The model speaks as Anthropic's do: thinking, signatures, cache marks, parallel calls."""

import asyncio
import json
import sys
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_middleware import Fitting, weather

MARK = {"cache_control": {"type": "ephemeral"}}
LIMIT, TURNS = int(sys.argv[1]), int(sys.argv[2])
sent: list[list[Any]] = []


class Scripted(BaseChatModel):
    """Answers two requests of three with calls, every fourth with two."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **rest: Any) -> Any:
        """The tools change nothing."""
        return self

    def _generate(self, messages: Any, *rest: Any, **settings: Any) -> ChatResult:
        sent.append(messages)
        n = len(sent)
        calls = [{"id": f"t{n}_{k}", "name": "weather", "args": {"city": "Oslo"}} for k in range(1 + (n % 4 == 1))] * (
            n % 3 > 0
        )
        content = [
            {"type": "thinking", "thinking": f"thought {n}", "signature": f"signature {n}"},
            {"type": "text", "text": f"answer {n}", **MARK},
            *({"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]} for call in calls),
        ]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content, tool_calls=calls))])


async def main() -> None:
    """Half of the turns with `invoke`, half with `ainvoke`."""
    fitting = Fitting("claude-sonnet-4-5", LIMIT)
    agent = create_agent(Scripted(), [weather], system_prompt="Be brief.", middleware=[fitting])
    messages: list[Any] = []
    for turn in range(TURNS):
        said = HumanMessage([{"type": "text", "text": f"Is it warm? {turn}", **MARK}])
        state = {"messages": [*messages, said]}
        messages = (agent.invoke(state) if turn % 2 else await agent.ainvoke(state))["messages"]
    tools = [convert_to_openai_tool(weather)]
    bodies = [{"messages": convert_to_openai_messages(request), "tools": tools} for request in sent]
    kept = {message.id: message for message in messages}
    changed = [  # answers of the model that were sent otherwise than they were given
        message.id
        for request in sent
        for message in request
        if message.type == "ai" and (message.id not in kept or kept[message.id].content != message.content)
    ]
    unmarked = [  # the user's texts that lost their cache mark, of those that were sent
        message.text
        for request in sent
        for message in request
        if message.type == "human" and message.text.startswith("Is it warm?") and "cache_control" not in str(message)
    ]
    told = {"messages": len(messages), "bodies": bodies, "changed": changed, "unmarked": unmarked}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    asyncio.run(main())
