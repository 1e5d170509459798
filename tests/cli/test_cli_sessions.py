"""`turnlog ls`, `show`, `fork`, `rename`, `rm`, `verify`: sessions as a whole."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from turnlog import open as open_session
from turnlog.log.messages import (
    Media,
    Message,
    Opaque,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
    sha256_hex,
)
from turnlog.log.records import (
    Approval,
    Configuration,
    Decision,
    FileChange,
    MessageRecord,
    Note,
    PartialAnswer,
    StreamCheckpoint,
    SummaryRecord,
    ToolFinished,
    ToolStarted,
    TurnClosed,
    TurnOpened,
    UnknownRecord,
    UsageRecord,
)
from turnlog.log.store import Draft
from turnlog.log.usage import Usage
from turnlog.stores import open_store

PICTURE = bytes(1234)
LONG = "\n".join(f"line {n}" for n in range(1, 101))
IMAGE = Media("image", "image/png", sha256_hex(PICTURE), len(PICTURE))
CALL = ToolCall("c1", "read_file", {"path": "a.txt"})
HALF = ToolCall("c2", "ls", raw='{"p')
BODIES = [
    Configuration("anthropic", "claude-sonnet-4-5", {"max_tokens": 9}, (Tool("read_file"),), why="opened"),
    TurnOpened("t1"),
    MessageRecord(Message("system", (Text("Be brief."),))),
    MessageRecord(Message("user", (Text("Read a.txt,\nplease."), IMAGE))),
    MessageRecord(Message("assistant", (Reasoning("anthropic", signature="x"), Text("Reading."), CALL))),
    Approval("c1", "given", call_record=5, by="ann"),
    ToolStarted("c1", 5, "read_file"),
    ToolFinished("c1", 5, "failed", 1.25, "no such file"),
    MessageRecord(Message("user", (ToolResult("c1", "read_file", (Text(LONG),), "failed"),))),
    PartialAnswer(Message("assistant", (Text("There is"),)), "ConnectionError: reset", (HALF,)),
    UsageRecord("anthropic", "claude-sonnet-4-5", Usage(input=1200, cached=300, output=80)),
    FileChange("b.txt", "renamed", old_path="a.txt"),
    Decision("clear", first=1, last=9, why="enough"),
    Note("idea", "keep it", {"n": 1}),
    TurnClosed("t1", "failed", "gave up"),
    MessageRecord(Message("user", (Opaque("google", "thing", {"x": 1}), Unknown("smell", {})))),
    MessageRecord(Message("assistant")),
    UnknownRecord("dream"),
    SummaryRecord("k", "claimed", summarizer="small/1"),
    SummaryRecord("k", "failed", reason="timeout: no answer in 5 s", summarizer="small/1"),
]
PAGE = """\
s  A title
20 records, 7 messages, 2025-01-01T00:00:00.000Z to 2025-01-01T00:00:01.000Z
1,200 tokens in (300 cached), 80 out, $0.0040
    1  [settings]    anthropic claude-sonnet-4-5: opened; tools read_file; {"max_tokens":9}
    2  [turn]        t1 opened
    3  system        Be brief.
    4  user          Read a.txt,
                     please.
       image         image/png, 1,234 bytes, ad47fd9e8715
    5  reasoning     (hidden by its provider)
       assistant     Reading.
       call          read_file {"path":"a.txt"}  (c1)
    6  [approval]    given by ann (c1)
    7  [started]     read_file  (c1)
    8  [finished]    failed after 1.2 s  (c1): no such file
    9  result        failed  (read_file c1)
                     line 1
                     line 2
                     line 3
                     line 4
                     line 5
                     line 6 … [750 more characters]
   10  assistant     There is
       interrupted   ConnectionError: reset
       [fragment]    ls {"p  (c2)
   11  [usage]       anthropic claude-sonnet-4-5: 1,200 tokens in (300 cached), 80 out, $0.0040
   12  [file]        renamed b.txt from a.txt
   13  [decision]    clear, records 1 to 9: enough
   14  [note]        idea: keep it; {"n":1}
   15  [turn]        t1 closed: failed gave up
   16  opaque        thing of google {"x":1}
       unknown       smell, of a newer turnlog {}
   17  assistant     (empty)
   18  [unknown]     a dream record that a newer turnlog wrote
   19  [summary]     claimed by small/1
   20  [summary]     failed by small/1: timeout: no answer in 5 s
"""


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A store with one session `s` that holds every kind of record."""
    path = tmp_path / "log.db"
    with closing(open_store(path)) as store:
        store.put_blob(PICTURE)
        store.create("s", title="A title", created="2025-01-01T00:00:00.000Z")
        store.append("s", [_draft(body, n) for n, body in enumerate(BODIES, 1)])
    return path


def _draft(body: Any, n: int) -> Draft:
    if isinstance(body, UnknownRecord):
        newer = {"v": 9, "n": n, "t": "2025-01-01T00:00:01.000Z", "body": {"kind": body.name}}
        return Draft(body, raw=msgspec.json.encode(newer))
    return Draft(body, "2025-01-01T00:00:01.000Z")


def test_show(turnlog: Any, session: Path) -> None:
    """Every kind of record, as it reads; any change of the page is seen here."""
    ended = turnlog("show", "s", "--records")
    assert (ended.code, ended.out, ended.err) == (0, PAGE, "")


def test_show_the_last(turnlog: Any, session: Path) -> None:
    """`--last` counts records, and more than there are is all of them."""
    assert turnlog("show", "s", "--last", "2", "--records").out.splitlines()[3:] == PAGE.splitlines()[-2:]
    assert turnlog("show", "s", "--last", "99", "--records").out == PAGE
    assert turnlog("show", "s", "--last", "0", "--records").out.splitlines() == PAGE.splitlines()[:3]
    assert turnlog("show", "s", "--last", "-1", "--records").code == 2


def test_show_as_json(turnlog: Any, session: Path) -> None:
    """One stored record a line, nothing shortened."""
    rows = turnlog("show", "s", "--json").rows
    assert [row["n"] for row in rows] == list(range(1, 21))
    assert rows[8]["body"]["message"]["parts"][0]["parts"][0]["text"] == LONG
    assert [row["n"] for row in turnlog("show", "s", "--json", "--last", "3").rows] == [18, 19, 20]


def test_ls(turnlog: Any, session: Path) -> None:
    """The listing for people, the last updated first, and the one for programs."""
    turnlog("fork", "s", "a-longer-id", "--at", "4")
    ended = turnlog("ls")
    fork, first = turnlog("ls", "--json").rows
    assert first == {
        "id": "s",
        "title": "A title",
        "created": "2025-01-01T00:00:00.000Z",
        "updated": "2025-01-01T00:00:01.000Z",
        "records": 20,
        "messages": 7,
        "parent": "",
        "parent_records": 0,
        "source": "",
        "agent": "",
        "folder": "",
    }
    assert (fork["id"], fork["parent"], fork["records"]) == ("a-longer-id", "s", 4)
    assert (ended.out, ended.err) == (
        "ID           WHEN                      AGENT  FOLDER  MSG   +  TITLE\n"
        f"a-longer-id  {fork['updated']}  -      -         2  +1  A title\n",
        "1 of 1 session (1 more folded).  turnlog ls --all lists all\n",
    )


def test_ls_shows_first_words_for_a_title_that_nobody_gave(turnlog: Any, session: Path) -> None:
    """A column of blanks, in which the sessions of one program cannot be told from each other; and what a tool said,
    or a session without a user, must not end the listing."""
    call = ToolCall("c1", "read", {})
    said = [
        [Message("system", (Text("Be brief."),)), Message("user", (Text("<env>\n# Port it\nand more"),))],
        [Message("assistant", (call,)), Message("user", (ToolResult("c1", parts=(Text("of a tool"),)),))],
        [],
    ]
    with closing(open_store(session)) as store:
        store.delete("s")
        for n, messages in enumerate(said):
            store.create(f"s{n}", created=f"202{n}-01-01T00:00:00.000Z")
            store.append(f"s{n}", [Draft(MessageRecord(one), f"202{n}-01-01T00:00:00.000Z") for one in messages])
    assert turnlog("ls").out == (
        "ID  WHEN                      AGENT  FOLDER  MSG  TITLE\n"
        "s2  2022-01-01T00:00:00.000Z  -      -         0\n"
        "s1  2021-01-01T00:00:00.000Z  -      -         2\n"
        "s0  2020-01-01T00:00:00.000Z  -      -         2  Port it\n"
    )
    assert [row["title"] for row in turnlog("ls", "--json").rows] == ["", "", ""]


def test_ls_with_costs(turnlog: Any, session: Path) -> None:
    """Tokens and dollars beside each session, none where nothing was billed; a price that is not known
    is no 0."""
    with closing(open_store(session)) as store:
        store.create("free", created="2024-01-01T00:00:00.000Z")
        store.create("odd", created="2023-01-01T00:00:00.000Z")
        bill = UsageRecord("openai-chat", "nova-1", Usage(input=5, output=1))
        store.append("odd", [Draft(bill, "2023-01-01T00:00:00.000Z")])
    assert turnlog("ls", "--cost").out == (
        "ID    WHEN                      AGENT  TOKENS     COST  TITLE\n"
        "s     2025-01-01T00:00:01.000Z  -       1,280  $0.0040  A title\n"
        "free  2024-01-01T00:00:00.000Z  -           -        -\n"
        "odd   2023-01-01T00:00:00.000Z  -           6        ?\n"
        "3 sessions: 1.3k tokens, >$0.00  > a price or output is missing\n"
    )
    known, free, odd = turnlog("ls", "--cost", "--json").rows
    dollars = {"input": 0.0027, "cached": 0.00009, "cache_write": 0.0, "output": 0.0012}
    doubts = {"unpriced": [], "assumed": [], "longer": [], "incomplete": []}
    assert known["cost"] == {"total": 0.00399, **dollars, "at_least": 0.00399, **doubts}
    assert (known["usage"]["input"], free["usage"]["input"], free["cost"]["total"]) == (1200, 0, 0.0)
    assert (odd["cost"]["total"], odd["cost"]["input"], odd["cost"]["unpriced"]) == (None, None, ["nova-1"])


def test_show_the_bill(turnlog: Any, session: Path) -> None:
    """`show --cost` has a line for each model and one for all; what is not known or assumed is said."""
    with closing(open_store(session)) as store:
        store.append("s", [Draft(UsageRecord("openai-chat", "nova-1", Usage(input=5, output=1)))])
        store.append("s", [Draft(UsageRecord("openai-chat", "gpt-4o-2031-01-01", Usage(input=1_000_000)))])
    table, hint = turnlog("show", "s", "--cost").out.rsplit("\n", 2)[:2]
    assert table == (
        "MODEL                  INPUT  CACHED  WRITTEN  OUTPUT      COST\n"
        "claude-sonnet-4-5      1,200     300        0      80   $0.0040\n"
        "nova-1                     5       0        0       1         ?\n"
        "gpt-4o-2031-01-01  1,000,000       0        0       0  ~$2.5000\n"
        "all                1,001,205     300        0      81  >$2.5040"
    )
    assert hint.startswith("prices that are not known can be written to ")
    assert [row["cost"]["total"] for row in turnlog("show", "s", "--cost", "--json").rows] == [0.00399, None, 2.5]
    assert turnlog("show", "s", "--records").out.splitlines()[2] == (
        "1,001,205 tokens in (300 cached), 81 out, >$2.5040 "
        "(no full price for nova-1; gpt-4o-2031-01-01 priced as gpt-4o)"
    )


def test_a_bill_that_is_a_minimum_says_so(turnlog: Any, session: Path) -> None:
    """The figures from before the end of an answer would stand as what it cost."""
    begun = UsageRecord("anthropic", "claude-sonnet-4-5", Usage(output=1, incomplete=True), response_id="msg_1")
    with closing(open_store(session)) as store:
        for name in ("older", "resumed"):
            store.create(name, created=f"202{len(name)}-01-01T00:00:00.000Z")
            store.append(name, [Draft(begun, "2027-01-01T00:00:00.000Z")])
    assert [line.split()[:5] for line in turnlog("ls", "--cost").out.splitlines()[1:3]] == [
        ["resumed", "2027-01-01T00:00:00.000Z", "-", "-", "-"],
        ["older", "2027-01-01T00:00:00.000Z", "-", ">1", ">$0.0000"],
    ]
    table = turnlog("show", "resumed", "--cost").out.splitlines()
    assert [line.split() for line in table[1:3]] == [
        ["claude-sonnet-4-5", "0", "0", "0", ">1", ">$0.0000"],
        ["all", "0", "0", "0", ">1", ">$0.0000"],
    ]
    assert table[3:] == ["> more was billed: some figures are missing, or from before the end of an answer"]
    (row,) = turnlog("show", "resumed", "--cost", "--json").rows
    assert (row["usage"]["incomplete"], row["cost"]["total"]) == (True, None)
    assert row["cost"]["incomplete"] == ["claude-sonnet-4-5"]


def test_a_session_that_was_billed_nothing(turnlog: Any, session: Path) -> None:
    """Nothing on record is said in words, not as a bill of 0."""
    with closing(open_store(session)) as store:
        store.create("free")
    ended = turnlog("show", "free", "--cost")
    assert (ended.code, ended.out, ended.err) == (0, "", "free: no bill is on record\n")
    assert len(turnlog("show", "free", "--records").out.splitlines()) == 2


def test_damaged_bills(turnlog: Any, session: Path) -> None:
    """A damaged usage record is named; what can be shown without it is shown."""
    with closing(sqlite3.connect(session)) as db, db:
        db.execute("update records set record = replace(record, '1200', '12x0') where kind = 'usage'")
    ended = turnlog("show", "s", "--last", "3", "--records")
    assert (ended.code, len(ended.out.splitlines())) == (5, 5)
    assert ended.err.startswith("s, record 11: it does not match its checksum\ns is damaged: `turnlog salvage s NEW`")
    listed = turnlog("ls", "--cost")
    assert (listed.code, "A title" in listed.out) == (5, True)
    assert listed.err.startswith("s, record 11: it does not match its checksum")
    assert turnlog("ls").code == 0


def test_ls_of_nothing(turnlog: Any, tmp_path: Path) -> None:
    """No store yet is no error, and looking makes none."""
    ended = turnlog("ls")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == f"no sessions yet: there is no store at {tmp_path / 'log.db'}; `turnlog import FILE` makes it\n"
    assert list(tmp_path.iterdir()) == []


def test_ls_of_a_store_that_went_away(turnlog: Any, session: Path) -> None:
    """`no sessions yet`, while the file of a running agent was moved, and its newest records are beside it."""
    with open_session("s", store=session) as running:
        running.user("one more")
        session.rename(session.with_name("moved.db"))
        ended = turnlog("ls")
        assert ended.code == 3 and "log.db is not there, but" in ended.err
        session.with_name("moved.db").rename(session)


def test_places_of_stores(turnlog: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that takes `~` or `postgres:/x` for a name, and looks into, or makes, an empty store of that name."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    open_session("s", store="files:~/log").close()
    assert '"id":"s"' in turnlog("ls", "--store", "files:~/log", "--json").out.replace(" ", "")
    monkeypatch.setenv("TURNLOG_STORE", "files:~/log")
    assert turnlog("show", "s", "--records").code == 0
    chat = ("chat", "--model", "scripted/demo", "-p", "hi", "--session", "s")
    for place in ("postgres:/x", "file:x", "sqlite:x", "new/deeper/log.db"):
        for command in (chat, ("ls",), ("copy", place)) if "/d" not in place else (chat, ("copy", place)):
            ended = turnlog(*command, *([] if "copy" in command else ["--store", place]))
            assert ended.code == 2, (place, command, ended)
            assert "did you mean" in ended.err or "mkdir -p" in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    monkeypatch.setenv("TURNLOG_STORE", "new/deeper/log.db")
    assert turnlog(*chat).code == 0 and (tmp_path / "new" / "deeper" / "log.db").exists()


def test_looking_changes_nothing(turnlog: Any, session: Path) -> None:
    """A command that only reads must leave the store as it is, byte for byte."""
    before = session.read_bytes()
    for command in ("ls", "show s", "verify", "export s --format json", "request s --to google"):
        assert turnlog(*command.split()).code == 0
    assert session.read_bytes() == before


def test_store_option_wins(turnlog: Any, session: Path, tmp_path: Path) -> None:
    """`--store`, before or after the command, goes before the environment."""
    other = str(tmp_path / "other.db")
    open_store(other).close()
    assert turnlog("--store", other, "ls").err == "no sessions yet\n"
    assert turnlog("ls", "--store", other).err == "no sessions yet\n"
    assert turnlog("ls").out != ""


def test_fork(turnlog: Any, session: Path) -> None:
    """A fork begins with the records up to N; a number or an id that cannot be is refused."""
    ended = turnlog("fork", "s", "t", "--at", "5")
    assert (ended.code, ended.out, ended.err) == (0, "", "session t begins with 5 records of s\n")
    assert turnlog("show", "t", "--records").out.splitlines()[2:] == PAGE.splitlines()[3:12]
    codes = [turnlog("fork", "s", *rest).code for rest in (["u", "--at", "99"], ["t"], ["u" * 201])]
    assert codes == [2, 3, 2]
    assert turnlog("fork", "nobody", "u").code == 4
    for place in ("latest", "-1"):  # the fork would stand in the way of the session in that place for good
        assert turnlog("fork", "s", "--", place).code == 2


def test_rename(turnlog: Any, session: Path) -> None:
    """The title changes and nothing else; a secret in it does not reach the disk."""
    assert turnlog("rename", "s", "Another").code == 0
    assert turnlog("show", "s", "--records").out == PAGE.replace("A title", "Another")
    assert turnlog("rename", "nobody", "x").code == 4
    secret = "ghp_" + "x7Kq2mNv9LpR4tYw8ZcB1dFgH6jS3aEuT5oP"
    assert turnlog("rename", "s", f"deploy with {secret}").code == 0
    title = turnlog("ls", "--json").rows[0]["title"]
    assert re.fullmatch(r"deploy with \[redacted[^]]*\]", title), title
    assert not any(secret.encode() in path.read_bytes() for path in session.parent.iterdir())


def test_rm_removes_what_nothing_needs(turnlog: Any, session: Path) -> None:
    """Pictures that stay on the disk when the last session that shows them is deleted."""
    with closing(sqlite3.connect(session, isolation_level=None)) as db:
        db.execute("update blobs set put_at = 1")
    turnlog("fork", "s", "twig")
    assert turnlog("rm", "s", "--yes").err == "deleted s (20 records)\n"
    deleted = turnlog("rm", "twig", "--yes")
    assert re.fullmatch(r"deleted twig .*\nremoved 1 blob that no session needs \([\d,]+ bytes\)\n", deleted.err)
    with closing(sqlite3.connect(session)) as db:
        assert db.execute("select count(*) from blobs").fetchone() == (0,)


def test_rm_asks_or_is_told(turnlog: Any, session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is deleted unless somebody said yes: at the terminal, or with --yes."""
    refused = turnlog("rm", "s")
    assert (refused.code, refused.err) == (
        2,
        "turnlog: rm: standard input is not a terminal, so no confirmation can be asked for; add --yes to delete "
        "without asking\n",
    )
    assert turnlog("rm", "s", "nobody", "--yes").code == 4
    assert turnlog("show", "s", "--records").code == 0  # nothing half done
    deleted = turnlog("rm", "s", "s", "--yes")
    kept = "kept 1 blob put less than an hour ago; a later `rm` removes what nothing needs\n"
    assert (deleted.code, deleted.err) == (0, "deleted s (20 records)\n" + kept)
    assert turnlog("show", "s", "--records").code == 4


@pytest.mark.parametrize("command", [("rm", "s", "twig"), ("scrub", "s")])
def test_what_is_in_use_stays(turnlog: Any, session: Path, command: tuple[str, ...]) -> None:
    """A session deleted or rewritten under somebody's hands, or one of several gone before it is said."""
    turnlog("fork", "s", "twig")
    before = turnlog("show", "s", "--records").out
    with open_session("twig", store=session):
        refused = turnlog(*command, "--yes")
    assert refused.code == 3 and "session 'twig' is in use: this process has it open already" in refused.err
    assert turnlog("show", "s", "--records").out == before and turnlog("show", "twig", "--records").code == 0


def test_damage_in_the_middle(turnlog: Any, session: Path) -> None:
    """What comes before a damaged record and behind it is shown, and the damage is said."""
    with closing(sqlite3.connect(session)) as db, db:
        db.execute("update records set record = replace(record, 'keep it', 'KEEP IT')")
    ended = turnlog("show", "s", "--records")
    begin, end = (PAGE.count("\n", 0, PAGE.index(f"   {n}  ")) for n in (14, 15))
    assert (ended.code, ended.out.splitlines()) == (5, PAGE.splitlines()[:begin] + PAGE.splitlines()[end:])
    assert ended.err.startswith("s, record 14: it does not match its checksum\ns is damaged: `turnlog salvage s NEW`")


def test_verify(turnlog: Any, session: Path) -> None:
    """No problem is said and ends with 0; damage on disk is named with its record and ends with 1."""
    sound = turnlog("verify")
    assert (sound.code, sound.out, sound.err) == (0, "", "no problems\n")
    with closing(sqlite3.connect(session)) as db, db:
        db.execute("update records set record = replace(record, 'Be brief.', 'Be grief.')")
    damaged = turnlog("verify", "s")
    assert damaged.code == 1
    assert damaged.out.startswith("s, record 3: ")
    rows = turnlog("verify", "--json").rows
    assert (rows[0]["session"], rows[0]["record"]) == ("s", 3)
    assert turnlog("show", "s", "--records").code == 5
    assert turnlog("verify", "nobody").code == 4


def test_show_of_a_checkpoint(turnlog: Any, tmp_path: Path) -> None:
    """What had come of an answer stands in the answer; a page that shows it twice cannot be read."""
    with closing(open_store(tmp_path / "log.db")) as store:
        store.create("s")
        body = StreamCheckpoint(Message("assistant", (Text("There is "),)), (HALF,))
        store.append("s", [_draft(body, 1)])
    assert (
        turnlog("show", "s", "--records")
        .out.splitlines()[-1]
        .split("]")[1]
        .strip()
        .endswith("characters of an answer had arrived")
    )


def test_the_beginning_of_an_id_will_do_to_look(turnlog: Any) -> None:
    """Whole UUIDs to be typed; or a second `rm s1` that deletes `s10`."""
    for name in ("alpha-1", "alpha-2", "beta", "be"):
        body = {"messages": [{"role": "user", "content": f"hello {name}"}]}
        assert turnlog("import", "-", stdin=json.dumps({"id": name, "request": body}).encode()).code == 0
    for words in (("show", "alpha-2"), ("show", "bet"), ("show", "be"), ("request", "bet", "--to", "anthropic")):
        assert turnlog(*words).code == 0
    assert "hello beta" in turnlog("show", "bet", "--records").out
    assert "hello be\n" in turnlog("show", "be", "--records").out
    assert [hit["session"] for hit in turnlog("search", "hello", "--session", "bet", "--json").rows] == ["beta"]
    several = turnlog("show", "alp", "--records")
    assert (several.code, several.err) == (
        4,
        "turnlog: there is no session 'alp', and 2 ids begin with it: alpha-2, alpha-1; give more of one\n",
    )
    assert "'alp', and 2 ids begin with it" in turnlog("request", "alp", "--to", "anthropic").err
    for words in (("rename", "bet", "x"), ("keep", "bet")):
        assert turnlog(*words).code == 0, words
    assert [row["title"] for row in turnlog("ls", "--json").rows if row["id"] == "beta"] == ["x"]
    unasked = turnlog("rm", "bet", "--yes")
    assert (unasked.code, unasked.err) == (
        4,
        "turnlog: there is no session 'bet'; these ids begin with it: beta; with --yes, give the whole id\n",
    )
    assert len(turnlog("ls", "--json").rows) == 4


def test_a_session_that_is_not_found_any_more_costs_no_list(turnlog: Any) -> None:
    """A list that ends with "there is no session" because one of them went while it was made. A log that somebody gave
    another name by hand is listed by its card, and not found either."""
    with closing(open_store("files:kept")) as store:
        for name in ("a", "b"):
            store.create(name)
            store.append(name, [Draft(MessageRecord(Message("user", (Text(name),))))])
    for kind in ("json", "jsonl", "head"):
        Path("kept", "sessions", f"a.{kind}").rename(Path("kept", "sessions", f"moved.{kind}"))
    for words in ((), ("--cost",)):
        ended = turnlog("ls", "--json", "--store", "files:kept", *words)
        assert (ended.code, [row["id"] for row in ended.rows]) == (0, ["b"])
    assert turnlog("verify", "--store", "files:kept").code == 1
