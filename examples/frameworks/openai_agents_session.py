"""openai-agents with its history in turnlog: needs `pip install openai-agents`, and OPENAI_API_KEY."""

import asyncio
import os
import threading

import turnlog
from agents import Agent, Runner, SessionSettings, TResponseInputItem, function_tool
from agents.memory import SessionABC

# openai-agents keeps items of the Responses API, whichever model it asks
FORMAT = turnlog.target("openai-responses", "gpt-5-mini")


class TurnlogSession(SessionABC):
    """The items of a conversation as a turnlog session. What is popped or cleared stays on record."""

    def __init__(self, session_id, store, session_settings=None):
        self.session_id = session_id
        self.session_settings = SessionSettings().resolve(session_settings)
        self._session = turnlog.open(session_id, store=store, target=FORMAT, shared=True)
        self._lock, self._closed = threading.Lock(), False

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        limit = self.session_settings.limit if limit is None else limit
        items = await self._run(self._session.messages)
        return items if limit is None else items[max(0, len(items) - limit) :]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        await self._run(self._session.extend, items)

    async def pop_item(self) -> TResponseInputItem | None:
        return await self._run(self._take_back, 1)

    async def clear_session(self) -> None:
        await self._run(self._take_back, None)

    def close(self) -> None:
        self._closed = True
        self._session.close()

    def _take_back(self, count: int | None):
        if items := self._session.messages():
            self._session.rewind(messages=count or len(items))
        return items[-1] if items else None

    async def _run(self, work, *arguments):
        def alone():
            with self._lock:  # so that the item that is popped is the one that is returned
                if self._closed:
                    raise RuntimeError(f"{type(self).__name__} is closed")
                return work(*arguments)

        return await asyncio.to_thread(alone)


@function_tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"4 degrees in {city}"


async def main() -> None:
    session = TurnlogSession("trip", os.environ.get("STORE", "agents.db"))
    agent = Agent("Guide", instructions="Be brief.", model=os.environ.get("MODEL", "gpt-5-mini"), tools=[weather])
    for question in ("Is it warm in Oslo?", "And in Rome?"):
        print((await Runner.run(agent, question, session=session)).final_output)
    session.close()


if __name__ == "__main__":
    asyncio.run(main())
