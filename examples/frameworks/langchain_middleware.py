"""A LangChain agent whose requests fit a budget: needs `pip install langchain langchain-openai`, and OPENAI_API_KEY."""

import os

import turnlog
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import convert_to_messages, convert_to_openai_messages
from langchain_core.utils.function_calling import convert_to_openai_tool


class Fitting(AgentMiddleware):
    """Makes each request to `model` fit `max_tokens`. The agent's state keeps every message as it was."""

    def __init__(self, model: str, max_tokens: int):
        self.fitter = turnlog.Fitter("openai-chat", model=model, max_tokens=max_tokens)

    def wrap_model_call(self, request, handler):
        return handler(self.fitted(request))

    async def awrap_model_call(self, request, handler):
        return await handler(self.fitted(request))

    def fitted(self, request):
        given = [*filter(None, [request.system_message]), *request.messages]
        tools = [convert_to_openai_tool(tool) for tool in request.tools]
        fitted = self.fitter.fit({"messages": convert_to_openai_messages(given), "tools": tools})
        sent = convert_to_messages(fitted.body["messages"])
        for place, shown in enumerate(fitted.view):
            # Chat messages hold no thinking, signatures and cache marks: what is shown whole is sent as it was given
            if shown.treatment == "verbatim" or (shown.treatment == "repaired" and shown.message.role == "assistant"):
                sent[place] = given[shown.records[0] - 1]
        return request.override(messages=sent[1:] if request.system_message else sent)


def weather(city: str) -> str:
    """The weather of a city."""
    return f"4 degrees in {city}. " * 200


def main() -> None:
    model = os.environ.get("MODEL", "gpt-5-mini")
    fitting = Fitting(model, max_tokens=5_000)
    agent = create_agent(f"openai:{model}", [weather], system_prompt="Be brief.", middleware=[fitting])
    messages = []
    for city in ("Oslo", "Rome", "Lima"):
        messages = agent.invoke({"messages": [*messages, ("user", f"Is it warm in {city}?")]})["messages"]
        print(messages[-1].text)


if __name__ == "__main__":
    main()
