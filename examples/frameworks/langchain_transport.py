"""LangChain's agent, a LangGraph graph, with turnlog: each model call is on record and stays within 8,000 tokens.

Needs `pip install langchain langchain-openai`; the key is in OPENAI_API_KEY, and another server in OPENAI_BASE_URL. A
graph made by hand needs nothing else: what counts is the chat model. For `ainvoke`, give it `http_async_client` too.
"""

import sys
from pathlib import Path

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from turnlog import transport


def read_file(path: str) -> str:
    """Read a file of the project."""
    return Path(path).read_text()


def main(tasks: list[str]) -> None:
    """Do one task after the other, in one conversation."""
    with transport.client("agents.db", budget=8_000) as http:
        model = ChatOpenAI(model="gpt-4o", http_client=http)
        agent = create_agent(model, [read_file], system_prompt="Be brief.", checkpointer=InMemorySaver())
        for task in tasks:
            asked = {"messages": [{"role": "user", "content": task}]}
            result = agent.invoke(asked, {"configurable": {"thread_id": "files"}})
            print(result["messages"][-1].text)


main(sys.argv[1:])
