"""LangChain and LangGraph. FORM: `chat`, `responses`, `anthropic` or `google` with create_agent; `graph`: a graph made
by hand; with `-stream`."""

from __future__ import annotations

from typing import Any

import given
from langchain.agents import create_agent
from langchain_core.messages import AIMessageChunk
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

API, _, VARIANT = given.FORM.partition("-")


def model() -> Any:
    """The chat model of this form."""
    if API in ("chat", "responses", "graph"):
        from langchain_openai import ChatOpenAI

        more: dict[str, Any] = {"use_responses_api": True} if API == "responses" else {}
        name = "gpt-5" if API == "responses" else "gpt-4o"
        return ChatOpenAI(model=name, stream_usage=True, max_retries=0, **given.client("http_client"), **more)
    if API == "anthropic":
        import anthropic
        from langchain_anthropic import ChatAnthropic

        chat = ChatAnthropic(
            model="claude-sonnet-4-6", max_tokens=4_000, max_retries=0,
            thinking={"type": "enabled", "budget_tokens": 1_024}, model_kwargs={"cache_control": {"type": "ephemeral"}},
        )  # fmt: skip
        if given.GIVEN.mode != "plain":  # it has no argument for a client
            chat.__dict__["_client"] = anthropic.Anthropic(**chat._client_params, **given.client("http_client"))
        return chat
    from google import genai
    from langchain_google_genai import ChatGoogleGenerativeAI

    chat = ChatGoogleGenerativeAI(model="gemini-2.5-flash", base_url=given.URL, max_retries=0)
    # it has no argument for a client
    chat.client = genai.Client(http_options={"base_url": given.URL, **given.client("httpx_client")})
    return chat


def graph(chat: Any) -> Any:
    """The loop of an agent as a graph made by hand."""
    bound = chat.bind_tools([given.read_file])
    made = StateGraph(MessagesState)
    made.add_node("model", lambda state: {"messages": [bound.invoke([("system", given.SYSTEM), *state["messages"]])]})
    made.add_node("tools", ToolNode([given.read_file]))
    made.add_edge(START, "model")
    made.add_conditional_edges("model", tools_condition)
    made.add_edge("tools", "model")
    return made.compile(checkpointer=InMemorySaver())


CHAT = model()
AGENT: Any = (
    graph(CHAT)
    if API == "graph"
    else create_agent(CHAT, [given.read_file], system_prompt=given.SYSTEM, checkpointer=InMemorySaver())
)
THREAD: Any = {"configurable": {"thread_id": "files"}, "recursion_limit": 50}


def say(task: str) -> str:
    """One turn."""
    asked: Any = {"messages": [{"role": "user", "content": task}]}
    if VARIANT == "stream":
        pieces = [piece for piece, _ in AGENT.stream(asked, THREAD, stream_mode="messages")]
        assert any(isinstance(piece, AIMessageChunk) for piece in pieces)
        return str(AGENT.get_state(THREAD).values["messages"][-1].text)
    return str(AGENT.invoke(asked, THREAD)["messages"][-1].text)


given.talk(say)
