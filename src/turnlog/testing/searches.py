"""Checks of search. Part of `check_store`."""

from __future__ import annotations

from ..errors import InputError, SessionNotFound
from ..log.messages import Message, Text, ToolCall, ToolResult
from ..log.records import MessageRecord, Note
from ..log.store import Draft, Store
from .probing import raises, said

_TIME = "2026-01-02T03:04:05.678Z"


def check_search(store: Store) -> None:
    """A search finds records by word, role, tool and time, and no deleted records."""
    search = store.search
    result = ToolResult("c1", "", (Text("out: 7 apples"),))  # only the call has the tool's name
    store.create("a")
    store.append("a", [said("Grüße, two red APPLES"), said("two and red", time=_TIME), said('"quotes" AND (NEAR')])
    store.append("a", [Draft(MessageRecord(Message("assistant", (ToolCall("c1", "count", {"what": "apples"}),))))])
    store.append("a", [Draft(MessageRecord(Message("user", (result,)))), Draft(Note("fruit", "apples"))])
    for options, wanted in (
        ({"query": "apples"}, [6, 5, 4, 1]),
        ({"query": "apples", "limit": 2}, [6, 5]),
        ({"query": "app* two"}, [1]),
        ({"query": '"two red"'}, [1]),
        ({"query": '"two re"*'}, [1]),
        ({"query": "grusse"}, []),
        ({"query": "grüße"}, [1]),
        ({"query": "GRU*"}, [1]),
        ({"query": "apple"}, []),
        ({"query": 'and "'}, [3, 2]),
        ({"query": "near(", "session": "a"}, [3]),
        ({"query": "apples", "role": "tool"}, [5]),
        ({"query": "apples", "role": "note"}, [6]),
        ({"query": "apples", "tool": "count"}, [5, 4]),
        ({"query": "apples", "tool": "coun"}, []),
        ({"query": "two", "until": _TIME[:7]}, [2]),
        ({"query": "two", "since": _TIME[:10], "until": _TIME[:10]}, [2]),
    ):
        found = [hit.record for hit in search(**options)]
        assert found == wanted, f"search {options} found {found}, not {wanted}"
    hit = search("red apples")[0]
    assert hit.snippet[hit.start : hit.end].lower() in ("red", "apples"), f"the hit is not where {hit} says"
    store.fork("a", "b", at=5)
    store.append("b", [said("green apples")])
    both = [(hit.session, hit.record) for hit in search("apples")]
    assert both == [("b", 6), ("a", 6), ("a", 5), ("a", 4), ("a", 1)], f"with a fork, search found {both}"
    store.delete("a")
    left = [(hit.session, hit.record) for hit in search("apples")]
    assert left == [("b", 6), ("b", 5), ("b", 4), ("b", 1)], f"after deleting, search found {left}"
    raises(InputError, "search for no word", search, ' *"-" ')
    raises(InputError, "search since no date", search, "apples", since="yesterday")
    raises(SessionNotFound, "search in no session", search, "apples", session="a")
    assert store.verify() == [], "verify found damage after searching"


def check_labels(store: Store) -> None:
    """Sessions are listed and searched by their labels: the newest note of each counts, also in a fork."""

    def asked(**where: str) -> tuple[list[str], list[tuple[str, int]]]:
        listed = sorted(info.id for info in store.sessions(where=where))
        return listed, [(hit.session, hit.record) for hit in store.search("apples", where=where)]

    def label(session: str, **labels: str) -> None:
        store.append(session, [Draft(Note("labels", "", labels))])

    for name in ("a", "b", "c"):
        store.create(name)
        store.append(name, [said("apples")])
    label("a", user="ann", team="x")
    label("b", user="bob", team="x")
    found = [asked(user="ann"), asked(team="x"), asked(user=""), asked(user="ann", team=""), asked(user="cy")]
    both = (["a", "b"], [("b", 1), ("a", 1)])
    wanted = [(["a"], [("a", 1)]), both, (["c"], [("c", 1)]), ([], []), ([], [])]
    assert found == wanted, f"by labels, the store found {found}, not {wanted}"
    store.fork("a", "d")
    label("d", user="dan")
    label("a", user="née ☂\x00")
    found = [asked(user="ann"), asked(user="dan"), asked(user="née ☂\x00")]
    wanted = [([], []), (["d"], [("d", 1)]), (["a"], [("a", 1)])]
    assert found == wanted, f"after labels changed, the store found {found}, not {wanted}"
    assert store.search("apples", session="a", where={"user": "dan"}) == [], "search in a session without the label"
    assert [info.id for info in store.sessions(where={"user": "dan"}, limit=1)] == ["d"], "labels with a limit"
    assert len(store.search("apples", where={})) == 3, "no labels asked for are not all sessions"
    store.delete("d")
    assert asked(user="dan") == ([], []), "a deleted session is found by its label"
    raises(InputError, "search for a label that is no text", store.search, "apples", where={"user": 5})
    assert store.verify() == [], "verify found damage after searching by labels"
