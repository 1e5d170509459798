"""Tools and system text that change in mid-session: told where they change, or at the beginning."""

from __future__ import annotations

from typing import Any

import pytest

import turnlog
from thinking_sessions import BETAS, TOOLS, system_told, tools_told
from turnlog.log.records import Decision
from turnlog.stores import MemoryStore

MODEL = "claude-opus-5-5"


def _aim(model: str, **settings: Any) -> turnlog.Target:
    return turnlog.target("anthropic", model, thinking={"type": "adaptive"}, max_tokens=2_000, **settings)


def _opened(model: str = MODEL, *, betas: bool = True, **settings: Any) -> turnlog.Session:
    """A session with three answers, each with a thought."""
    aim = _aim(model, **({"betas": [*BETAS]} if betas else {}), **settings)
    session = turnlog.open("s", store=":memory:", target=aim, tools=TOOLS[:2])
    session.configure(strategy=turnlog.Strategy(cache_marks=False))
    session.system("Be brief.")
    for n in range(3):
        _ask(session, n)
    session.user("And now?")
    return session


def _ask(session: turnlog.Session, n: int) -> None:
    session.user(f"Question {n}? " + "word " * 500)
    session.request()
    thought = {"type": "thinking", "thinking": f"Hm {n}.", "signature": f"s{n}"}
    content = [thought, {"type": "text", "text": f"Answer {n}."}]
    session.receive({"type": "message", "role": "assistant", "content": content})


def _thoughts(body: dict[str, Any]) -> int:
    contents = [message["content"] for message in body["messages"] if isinstance(message["content"], list)]
    return sum(block["type"] == "thinking" for content in contents for block in content)


def _names(decisions: Any) -> list[str]:
    return [record.body.action for record in decisions if isinstance(record.body, Decision)]


def test_changes_are_told_where_they_were_made() -> None:
    """The model would lose all that it thought, and the provider its cache, with each change of tools or system
    text."""
    session = _opened()
    before = session.preview().body
    session.configure(tools=TOOLS[1:])
    session.system("Be long.", replace=True)
    request = session.request()
    body = session.preview().body
    assert [body[key] for key in ("tools", "system")] == [before[key] for key in ("tools", "system")]
    assert body["messages"][: len(before["messages"])] == before["messages"]
    assert [message["role"] for message in body["messages"][len(before["messages"]) :]] == ["system", "system"]
    assert tools_told(body) == {tool["name"]: tool for tool in TOOLS[1:]}
    assert system_told(body) == "Be long."
    assert _thoughts(body) == 3
    assert request.edits == ()
    assert request.cache is not None
    assert request.cache.shared == request.cache.previous


def test_another_setting_moves_no_change_to_the_beginning() -> None:
    """Without tools, every later configuration was taken for a change of tools that only the beginning can tell: the
    session sent other system text, and other cache marks, once it was opened again."""
    store, aim = MemoryStore(), _aim("claude-fable-5-1", betas=[*BETAS])
    with turnlog.open("s", store=store, target=aim) as session:
        session.system("Be brief. " * 300)
        session.user("Hello.")
        session.assistant("Hello.")
        session.system("Be long.", replace=True)
        session.system("Be exact.", replace=True)
        before = session.request().json()
        session.configure(budget=100_000)
        living = session.request().json()
    with turnlog.open("s", store=store) as session:
        assert session.request().json() == living == before
        assert system_told(session.request().body) == "Be exact."


@pytest.mark.parametrize(
    ("model", "betas", "thoughts"),
    [(MODEL, False, 0), ("claude-sonnet-5", True, 3), ("claude-sonnet-4-6", True, 3), ("claude-opus-4-8", False, 3)],
)
def test_else_they_are_told_at_the_beginning(model: str, betas: bool, thoughts: int) -> None:
    """A request with blocks that the model or the headers do not allow is refused."""
    session = _opened(model, betas=betas)
    session.configure(tools=TOOLS[1:])
    body = session.request().body
    assert [tool["name"] for tool in body["tools"]] == [tool["name"] for tool in TOOLS[1:]]
    assert all(message["role"] != "system" for message in body["messages"])
    assert _thoughts(body) == thoughts


def test_system_text_needs_no_header() -> None:
    """A session that asks for no beta feature would lose its thinking to another system text."""
    session = _opened(betas=False)
    session.system("Be long.", replace=True)
    assert (_thoughts(session.request().body), system_told(session.request().body)) == (3, "Be long.")


def test_the_header_may_be_given_by_name() -> None:
    """Whoever calls `client.messages.create` names the beta features in a header."""
    session = _opened(betas=False, extra_headers={"Anthropic-Beta": ", ".join(BETAS)})
    session.configure(tools=TOOLS[1:])
    assert _thoughts(session.request().body) == 3


def test_a_tool_that_comes_back_is_named_or_defined_anew() -> None:
    """A tool that the request declares must not be defined twice, and one with another description must be."""
    session = _opened()
    other = {**TOOLS[0], "description": "To read aloud."}
    for tools in (TOOLS[1:], TOOLS[:2], [other], TOOLS[:1], [], TOOLS):
        session.configure(tools=tools)
        assert tools_told(session.preview().body) == {tool["name"]: tool for tool in tools}
    blocks = [block for message in session.request().body["messages"][6:] for block in message["content"][:]]
    kinds = [block["tool"]["type"] for block in blocks if isinstance(block, dict) and block["type"] == "tool_addition"]
    assert kinds.count("tool_definition") == 3  # look, another read, look again


@pytest.mark.parametrize("special", [{"defer_loading": True}, {"type": "web_search_20250305", "name": "web_search"}])
def test_a_tool_that_cannot_be_added_is_told_at_the_beginning(special: dict[str, Any]) -> None:
    """With it go the changes before it: a tool must not be removed and declared."""
    session = _opened()
    session.configure(tools=TOOLS[1:2])
    tool = special if "name" in special else {"name": "late", "input_schema": {"type": "object"}, **special}
    session.configure(tools=[TOOLS[1], tool])
    body = session.request().body
    assert [tool["name"] for tool in body["tools"]] == ["write", tool["name"]]
    assert all(message["role"] != "system" for message in body["messages"])


def test_a_compaction_moves_changes_to_the_beginning_and_undo_back() -> None:
    """Old system text and removed tools would be sent for ever; and what is undone must be as it was, as thinking is
    bound to it."""
    session = _opened()
    session.configure(tools=TOOLS[1:])
    session.system("Be long.", replace=True)
    before = session.preview().body
    session.compact(keep=1)
    body = session.preview().body
    assert body["system"] == "Be long."
    assert [tool["name"] for tool in body["tools"]] == ["write", "look"]
    assert all(message["role"] != "system" for message in body["messages"])
    session.undo()
    assert session.preview().body == before


def test_the_provider_compacts_a_conversation_without_changes_of_tools() -> None:
    """Its compaction would have them, too: a tool that it removes must not leave the declarations, and one that it adds
    must not be declared."""
    session = _opened()
    session.configure(tools=TOOLS[1:])
    body = session.request(compact=True).body
    assert [tool["name"] for tool in body["tools"]] == ["write", "look"]
    assert all(message["role"] != "system" for message in body["messages"])
    assert _names(session.history()) == ["fold"]
    edits = {"edits": [{"type": "compact_20260112"}]}
    session.configure(context_management=edits, tools=TOOLS)
    assert [tool["name"] for tool in session.request().body["tools"]] == [tool["name"] for tool in TOOLS]


def test_a_full_window_moves_changes_to_the_beginning() -> None:
    """Replaced system texts can never leave, so a small budget would be used up by them: no request could be made."""
    session = _opened()
    session.configure(budget=6_000, strategy=turnlog.Strategy("mask", steps=("mask",), cache_marks=False))
    for n in range(8):
        session.system(f"Rule {n}. " + "word " * 1_000, replace=True)
        body = session.request().body
        assert system_told(body).startswith(f"Rule {n}.")
        assert session.window.tokens <= 6_000
    assert "fold" in _names(session.history())
    reopened = turnlog.Session(session._store, session._store.info("s"))
    assert reopened.request().json() == session.request().json()


def test_a_preview_of_a_full_window_shows_what_would_be_sent() -> None:
    """A preview that records nothing would show a request that never is made."""
    session = _opened()
    session.configure(budget=3_000, strategy=turnlog.Strategy("mask", steps=("mask",), cache_marks=False))
    for n in range(2):
        session.system(f"Rule {n}. " + "word " * 1_000, replace=True)
    previewed = session.preview().body
    assert "fold" not in _names(session.history())
    assert session.request().body == previewed


def test_the_parts_of_the_window_sum_up_to_it() -> None:
    """A user would look for tokens that nothing explains."""
    session = _opened()
    session.configure(tools=TOOLS[1:])
    session.system("Be long.", replace=True)
    assert session.window.breakdown().tokens == session.window.tokens


def test_changes_follow_the_target() -> None:
    """Another provider is told at the beginning, and back again the model still knows what it thought."""
    session = _opened()
    session.configure(tools=TOOLS[1:])
    session.system("Be long.", replace=True)
    before = session.preview().body
    session.switch(turnlog.target("openai-chat", "gpt-4o"))
    body = session.request().body
    assert [tool["function"]["name"] for tool in body["tools"]] == ["write", "look"]
    assert [message["content"] for message in body["messages"] if message["role"] == "system"] == ["Be long."]
    session.switch(_aim(MODEL, betas=[*BETAS]))
    assert session.preview().body == before


def test_before_the_first_answer_there_is_nothing_to_keep() -> None:
    """A session that is set up in steps would begin with a list of changes."""
    aim = turnlog.target("anthropic", MODEL, betas=[*BETAS])
    session = turnlog.open("s", store=":memory:", target=aim, tools=TOOLS[:1])
    session.system("Be brief.")
    session.user("One?")
    session.configure(tools=TOOLS)
    session.system("Be long.", replace=True)
    body = session.request().body
    assert [tool["name"] for tool in body["tools"]] == [tool["name"] for tool in TOOLS]
    assert (system_told(body), len(body["messages"])) == ("Be long.", 1)


def test_system_text_before_a_decision_is_placed_anew() -> None:
    """A session that kept what it built of a piece would send system text ahead of a user's message, which the API
    refuses; a session that is opened anew would send something else."""
    session = _opened()
    session.system("It is Monday.")
    session.request()
    content = [{"type": "text", "text": "Answer 3."}]
    n = session.receive({"type": "message", "role": "assistant", "content": content}).record.n
    session.preview()
    message = {"role": "user", "parts": [{"type": "text", "text": "Summary."}]}
    session._journal.append(Decision("compact", n, n, "tried", {"replacement": [message], "at": n}))
    session.user("And now?")
    body = session.preview().body
    assert turnlog.Session(session._store, session._store.info("s")).preview().body == body
    assert all(one["role"] != "system" for one in body["messages"])
