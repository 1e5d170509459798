"""`turnlog context`, `compact`, `why`, `undo` and `fit`: what fills a window, what gives way, and how it comes back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from turnlog.log.messages import Message, Text
from turnlog.log.records import Decision, MessageRecord, UsageRecord
from turnlog.log.store import Draft
from turnlog.log.usage import Usage
from turnlog.models.target import target
from turnlog.session.open import open as new_session
from turnlog.stores import open_store

HOSTILE = "rm\x1b[2J\u202egnp.exe\nforged line " + "x" * 200


def body(turns: int = 12, tool: str = "read") -> dict[str, Any]:
    """A request body of so many turns with a tool call each, about 450 tokens a turn."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
    for n in range(turns):
        call = {"id": f"c{n}", "type": "function", "function": {"name": tool, "arguments": json.dumps({"path": n})}}
        messages += [
            {"role": "user", "content": f"Please look into file {n}."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"line {n} of it " * 90},
            {"role": "assistant", "content": f"File {n} is in order."},
        ]
    tools = [{"type": "function", "function": {"name": tool, "parameters": {"type": "object", "properties": {}}}}]
    return {"model": "gpt-4o", "messages": messages, "tools": tools}


@pytest.fixture
def session(turnlog: Any, tmp_path: Path) -> str:
    """The id of a session of twelve turns in the store."""
    (tmp_path / "s.json").write_text(json.dumps({"session_id": "s", "request": body()}), "utf-8")
    assert turnlog("import", "s.json").code == 0
    (tmp_path / "s.json").unlink()
    return "s"


@pytest.mark.slow
def test_compacting_says_what_went_and_undoing_brings_it_back(turnlog: Any, session: str) -> None:
    """The figures are those of the decisions on record; after as many undos everything is shown again."""
    whole = turnlog("request", session, "--to", "openai-chat").out
    tried = turnlog("compact", session, "--keep", "3", "--dry-run")
    assert (tried.code, tried.err) == (0, "nothing recorded: a dry run\n")
    assert turnlog("request", session, "--to", "openai-chat").out == whole
    done = turnlog("compact", session, "--keep", "3")
    assert done.out == tried.out.replace("would become", "became")
    assert "kept" in done.out and "36 summarised" not in tried.err
    assert "`turnlog undo s`" in done.err
    rows = turnlog("why", session, "--json").rows
    decision = next(row for row in rows if "decision" in row)
    fates = [row["fate"] for row in rows if "record" in row]
    assert (decision["action"], decision["ended_by"]) == ("compact", 0)
    assert decision["before"] > decision["after"] > 0
    assert fates.count("summarised") == 8 * 4 + 3  # not the system text, the task, the newest three turns
    undone = turnlog("undo", session)
    assert undone.out.startswith(f"took back decision {decision['decision']}: compact, records ")
    assert "35 messages shown as before it" in undone.out
    assert turnlog("request", session, "--to", "openai-chat").out == whole
    again = turnlog("undo", session)
    assert (again.code, again.out) == (2, "")
    assert "no compaction that could be taken back" in again.err


def test_compacting_as_json(turnlog: Any, session: str) -> None:
    """One object with the decisions, each with its figures."""
    tried, done = (turnlog("compact", session, "--json", *more) for more in (["--dry-run"], []))
    assert [tried.rows[0].pop("recorded"), done.rows[0]["recorded"]] == [False, True]
    found = json.loads(done.out)
    assert {key: found[key] for key in ("before", "after", "decisions")} == {
        key: json.loads(tried.out)[key] for key in ("before", "after", "decisions")
    }
    assert found["after"] == found["decisions"][-1]["after"]
    undone = json.loads(turnlog("undo", session, "--json").out)
    assert undone["decision"] == found["decisions"][-1]["decision"]
    assert undone["tokens_back"] == found["before"] - found["after"]


def test_undoing_says_the_figures_that_others_say(turnlog: Any, session: str) -> None:
    """Three commands that give three sizes of the same view leave nobody knowing how large it is."""

    def size() -> str:
        return f"{turnlog('context', session, '--json').rows[0]['tokens']:,}"

    before = size()
    done = turnlog("compact", session, "--strategy", "mask")
    after = size()
    assert f"{session}: {before} tokens became {after}, " in done.out
    assert turnlog("undo", session).out.endswith(f" shown as before it: {after} -> {before} tokens\n")


def test_what_was_cleared_since_is_not_said_to_be_shown(turnlog: Any, tmp_path: Path) -> None:
    """A compaction that is taken back behind a clearing shows nothing again, but nineteen messages were told of."""
    with new_session("over", store=tmp_path / "log.db", target=target("openai-chat", "gpt-4o")) as made:
        for n in range(12):
            made.user(f"Question {n}? " * 30)
            made.assistant(f"Answer {n}. " * 30)
        made.compact(keep=2)
        made.clear()
        size = made.window.tokens
    undone = turnlog("undo", "over", "--store", "log.db")
    assert undone.out.endswith(f"\n0 messages shown as before it: {size} -> {size} tokens\n")


def test_many_decisions_take_a_line_for_each_kind(turnlog: Any, tmp_path: Path) -> None:
    """Hundreds of lines about decisions of long ago hide what was done to this request."""
    with new_session("long", store=tmp_path / "log.db", target=target("openai-chat", "gpt-4o")) as made:
        made.configure(budget=600, strategy="sliding")
        for n in range(40):
            made.user(f"Step {n}. " * 20)
            made.assistant("Done. " * 20)
            made.request()
        edits = made.request().edits
    assert {edit.kind for edit in edits} == {"slide"} and len(edits) > 5
    told = turnlog("request", "long", "--to", "openai-chat").err.splitlines()
    assert told[0] == f"edit slide: by {len(edits) - 1} earlier decisions, see `turnlog why long`"
    assert told[1].startswith(f"edit slide: {edits[-1].detail} (records ") and len(told) == 3
    assert turnlog("request", "long", "--to", "openai-chat", "--explain").out.splitlines()[-2:] == told[:2]
    assert len(turnlog("request", "long", "--to", "openai-chat", "--explain", "--json").rows) == len(edits)


def test_why_names_the_newest_decision_and_the_first(turnlog: Any, tmp_path: Path) -> None:
    """Each summary takes in the one before: a row that lists all is wider than any screen."""
    with new_session("long", store=tmp_path / "log.db", target=target("openai-chat", "gpt-4o")) as made:
        made.configure(budget=1_200, strategy="spec")
        for n in range(60):
            made.user(f"Step {n}. " * 20)
            made.assistant("Done. " * 20)
            made.request()
    by = {row["record"]: row["by"] for row in turnlog("why", "long", "--json").rows if "record" in row}
    n, (first, newest) = min((n, numbers) for n, numbers in by.items() if len(numbers) > 1)
    shown = turnlog("why", "long").out.partition("record  role")[2].splitlines()
    row = next(line for line in shown if line.split()[0] == str(n))
    assert f"  summarised   {newest}, first {first}  " in row
    assert {line.index("Done.") for line in shown if "Done." in line} == {row.index("Done.")}
    one = turnlog("why", "long", str(n)).out
    assert one.startswith(f"record {n}: summarised by decision {newest}, first {first}; ")


def test_a_summary_that_leaves_is_told_by_what_it_stood_for(turnlog: Any, session: str) -> None:
    """A summary that leaves as the number of the first of the messages that were gone before it did."""
    turnlog("compact", session, "--keep", "1")
    store = open_store("log.db")
    made = next(store.of_kinds(session, ("decision",), reverse=True))
    assert isinstance(made.body, Decision)
    first, last, at = made.body.first, made.body.last, made.n + 1
    store.append(session, [Draft(Decision("slide", first, first, "no room"))])
    told = [line.strip() for line in turnlog("why", session).out.splitlines() if "slide" in line]
    assert told == [f"{at}  slide     summary of records {first} to {last}  no room"]
    assert f"slide     summary of records {first} to {last}  no room" in turnlog("why", session, str(first)).out
    undone = turnlog("undo", session).out
    assert undone.startswith(f"took back decision {at}: slide, summary of records {first} to {last}, no room\n")
    turnlog("undo", session)
    store.append(session, [Draft(Decision("slide", first, first, "too large"))])  # no summary stands there any more
    assert f"slide     record {first}  too large" in turnlog("why", session).out
    store.close()


def test_why_one_record(turnlog: Any, session: str) -> None:
    """A record's own story: what became of it, by which decisions, and what is shown in its place."""
    turnlog("compact", session, "--budget", "4000", "--strategy", "mask")
    rows = [row for row in turnlog("why", session, "--json").rows if row.get("fate") == "masked"]
    masked = turnlog("why", session, str(rows[0]["record"]))
    assert masked.out.startswith(f"record {rows[0]['record']}: masked by decision {rows[0]['by'][0]}; ")
    assert masked.out.splitlines()[-1].startswith("shown as: [Result of read(")
    kept = turnlog("why", session, "3")
    assert kept.out.splitlines()[0].startswith("record 3: kept")
    one = json.loads(turnlog("why", session, str(rows[0]["record"]), "--json").out)
    assert (one["fate"], [row["decision"] for row in one["decisions"]]) == ("masked", rows[0]["by"])
    assert turnlog("why", session, "1").out == "record 1 is not a message: kept in the log, never sent to a model\n"
    missing = turnlog("why", session, "999")
    assert missing.code == 2 and "not 999" in missing.err


def test_a_request_within_a_budget_changes_no_log(turnlog: Any, session: str, tmp_path: Path) -> None:
    """A look at what a budget would leave must not become a decision, whatever the session's own target is."""
    before = (tmp_path / "log.db").read_bytes()
    for strategy in ("auto", "sliding", "codex"):
        ended = turnlog("request", session, "--to", "openai-chat", "--budget", "2,000", "--strategy", strategy)
        assert ended.code == 0
        assert len(json.loads(ended.out)["messages"]) < len(body()["messages"]) or strategy == "auto"
    assert (tmp_path / "log.db").read_bytes() == before
    assert turnlog("request", session, "--to", "openai-chat", "--budget", "20").code == 7
    wrong = turnlog("request", session, "--to", "openai-chat", "--strategy", "slidng")
    assert (wrong.code, "did you mean 'sliding'?" in wrong.err) == (2, True)


def test_the_picture(turnlog: Any, session: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kind with its tokens and share, in as many columns as there are; the sum is the conversation's."""
    for columns in (20, 28, 40, 80, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        ended = turnlog("context", session, "--budget", "3000")
        assert ended.code == 0
        assert "\x1b" not in ended.out
        drawn = ended.out.splitlines()[3:]
        assert max(map(len, drawn)) <= max(28, columns)
        assert {"system", "tools", "user", "assistant", "framing", "free"} <= {line.split(" ")[0] for line in drawn}
    found = json.loads(turnlog("context", session, "--budget", "8000", "--json").out)
    assert sum(part["tokens"] for part in found["parts"]) == found["tokens"]
    assert found["limit"] - found["tokens"] == found["free"]
    assert [part["name"] for part in found["parts"] if part["kind"] == "tool results"] == ["read"]
    assert found["tokens"] == json.loads(turnlog("count", session, "--json").out)["tokens"]


def test_hostile_names_stay_words(turnlog: Any, tmp_path: Path) -> None:
    """A tool's name that moves the cursor, turns text round or forges a line would draw what it likes."""
    (tmp_path / "h.json").write_text(json.dumps(body(3, HOSTILE)), "utf-8")
    for words in (["context", "h.json", "--budget", "5000"], ["why", "h.json"], ["why", "h.json", "5"]):
        ended = turnlog(*words)
        assert ended.code == 0
        assert not {"\x1b", "\u202e"} & set(ended.out + ended.err)
        assert "\nforged" not in ended.out


def test_what_has_no_target(turnlog: Any, transcript: Path) -> None:
    """A transcript that names no provider is measured for the model that spoke last in it; options say otherwise."""
    turnlog("import", transcript.name)
    name = "demo-invoice-rounding"
    assert json.loads(turnlog("context", name, "--json").out)["provider"] == "anthropic"
    other = json.loads(turnlog("context", name, "--to", "google", "--json").out)
    assert (other["provider"], other["model"]) == ("google", "gemini-2.5-pro")
    assert turnlog("compact", name, "--to", "nobody").code == 2
    assert turnlog("compact", "absent").code == 4
    assert turnlog("compact", name, "--keep", "0").code == 2


def test_fitting_a_body(turnlog: Any, tmp_path: Path) -> None:
    """The fitted request alone on stdout, what was done on stderr; from a file or standard input the same."""
    (tmp_path / "b.json").write_text(json.dumps(body()), "utf-8")
    ended = turnlog("fit", "b.json", "--max-tokens", "2000", "--strategy", "sliding")
    fitted = json.loads(ended.out)
    assert (ended.code, fitted["model"]) == (0, "gpt-4o")
    assert fitted["messages"][0] == body()["messages"][0]
    assert fitted["messages"][-1] == body()["messages"][-1]
    assert ended.err.splitlines()[0].startswith("edit slide: ")
    assert "tokens" in ended.err.splitlines()[-1]
    piped = turnlog("fit", "-", "--max-tokens", "2000", "--strategy", "sliding", stdin=json.dumps(body()).encode())
    assert piped.out == ended.out
    assert json.loads(turnlog("fit", "b.json").out) == body()
    assert turnlog("fit", "b.json", "--max-tokens", "30").code == 7
    assert turnlog("fit", "b.json", "--max-tokens", "many").code == 2
    assert turnlog("fit", "absent.json").code == 2


def test_a_model_that_no_table_has_is_asked_for_by_who_billed_it(turnlog: Any) -> None:
    """`context` says that nothing tells the model, though each bill names it."""
    store = open_store("log.db")
    store.create("s")
    said = MessageRecord(Message("assistant", (Text("Hello."),)), model="gemini-99-new")
    bill = UsageRecord("google", "gemini-99-new", Usage(input=9, output=3))
    store.append("s", [Draft(said), Draft(bill)])
    store.close()
    ended = turnlog("context", "s")
    assert (ended.code, ended.out.splitlines()[0]) == (0, "google gemini-99-new, strategy auto")
