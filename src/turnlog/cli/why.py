"""`why`: what requests show of each message, the decision that caused it, and the tokens saved."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from typing import Any

from ..display.request_words import fates, gist, newest_of, saving
from ..errors import InputError
from ..log.messages import Message
from ..log.records import Decision, Note, Record
from ..log.texts import leaf_parts
from ..session.answer import RESPONSE
from ..session.session import Session
from ..session.targets import chosen_target
from ..view.explain import Account, Explanation
from ..view.fold import select
from .arguments import add_command
from .decisions import decision_json, decision_lines
from .drawing import clipped
from .request import session_of
from .tables import Column, folded, laid_out
from .terminal import out_json, out_line, out_lines, paged


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, store, "why")
    help_text = "a session, or a file: a request body or any transcript; - is standard input"
    parser.add_argument("source", metavar="SOURCE", help=help_text)
    parser.add_argument(
        "record", metavar="RECORD", nargs="?", type=int, help="show only the record of this number, in more detail"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.set_defaults(run=_why)


def _why(arguments: Namespace) -> int:
    with session_of(arguments) as session:
        explanation = session.explain(target=chosen_target(session))
        records = session.history()
        if arguments.record is not None:
            _one(session, explanation, records, arguments)
            return 0
    messages = {record.n: record for record in records if record.n in explanation.accounts}
    remarks = [(record.n, text) for record in records if (text := _remark(record))]
    if arguments.json:
        for ruling in explanation.rulings:
            out_json(decision_json(ruling))
        for n, record in messages.items():
            out_json(_row(explanation.accounts[n], record))
        for n, text in remarks:
            out_json({"record": n, "remark": text})
        return 0
    with paged():
        out_lines(_all(session.id, explanation, remarks, messages))
    return 0


def _remark(record: Record) -> str:
    """What the provider left out of a request, according to a record."""
    return record.body.text if isinstance(record.body, Note) and record.body.topic == RESPONSE else ""


def _row(account: Account, record: Record) -> dict[str, Any]:
    return {
        "record": account.n,
        "role": record.message.role if record.message else "",
        "fate": account.fate,
        "by": list(account.by),
        "curator": account.curator,
        "tokens": account.tokens,
        "shown": account.shown,
        "saved": account.saved,
    }


def _all(
    name: str, explanation: Explanation, remarks: Sequence[tuple[int, str]], messages: dict[int, Record]
) -> Iterator[str]:
    yield from folded(f"{name}: {fates(explanation.accounts.values())}; {explanation.saved:,} tokens saved", 2)
    active = [ruling for ruling in explanation.rulings if not ruling.ended_by and ruling.decision.action != "undo"]
    gone = [ruling for ruling in explanation.rulings if ruling.ended_by]
    for title, rulings in (("decisions in force", active), ("taken back", gone)):
        if rulings:
            yield f"{title}:"
            yield from decision_lines(rulings, explanation)
    if remarks:
        yield "left out by the provider:"
        yield from (f"{n:>5}  {text}" for n, text in remarks)
    yield from _table(explanation, messages)


def _table(explanation: Explanation, messages: dict[int, Record]) -> Iterator[str]:
    accounts = [explanation.accounts[n] for n in messages]
    contents = [record.message for record in messages.values()]
    by = [newest_of(account.by) if account.by else account.curator for account in accounts]
    columns = (
        Column("record", [str(n) for n in messages], 6, ">"),
        Column("role", [message.role if message else "" for message in contents], 9, may_go=True),
        Column("became", [account.fate for account in accounts], 11),
        Column("by", by, max(12, *map(len, by)) if by else 12),
        Column("tokens", [f"{account.tokens:,}" for account in accounts], 7, ">", may_go=True),
        Column("saved", [f"{account.saved:,}" if account.saved else "" for account in accounts], 7, ">"),
    )
    yield from laid_out(columns, "", [clipped(gist(message), 60) if message else "" for message in contents])


def _one(session: Session, explanation: Explanation, records: Sequence[Record], arguments: Namespace) -> None:
    n: int = arguments.record
    if not 1 <= n <= len(records):
        raise InputError(f"session {session.id!r} has records 1 to {len(records):,}, not {n}")
    account = explanation.accounts.get(n)
    concerned = (n, *account.by) if account else (n,)
    about = [
        ruling for ruling in explanation.rulings if ruling.n in concerned or (account and n in _range(ruling.decision))
    ]
    if arguments.json:
        row = _row(account, records[n - 1]) if account else {"record": n, "fate": "never sent"}
        out_json({**row, "decisions": [decision_json(ruling) for ruling in about]})
        return
    if account is None:
        word = "a decision" if isinstance(records[n - 1].body, Decision) else "not a message"
        out_line(f"record {n} is {word}: kept in the log, never sent to a model")
    else:
        by = f" by decision {newest_of(account.by)}" if account.by else ""
        by = f"{by} as {account.curator}" if account.curator else by
        out_line(f"record {n}: {account.fate}{by}; {saving(account.tokens, account.shown)}")
    out_lines(decision_lines(about, explanation))
    if account is not None and account.fate not in ("kept", "left out", "rewound"):
        target = chosen_target(session)
        out_lines(_shown_as(account, records, target.provider if target else ""))


def _shown_as(account: Account, records: Sequence[Record], provider: str) -> Iterator[str]:
    """What requests to a provider show instead of a message that is changed or summarised."""
    for shown in select(records, provider)[0]:
        in_summary = account.fate == "summarised" and shown.treatment == "summarised"
        if shown.records == (account.n,) and not in_summary:
            yield f"shown as: {_one_line(shown.message)}"
        if in_summary and shown.records[0] == account.by[-1]:
            yield f"summarised in: {_one_line(shown.message)}"


def _one_line(message: Message) -> str:
    """The text of a message and its tool results on one line, up to 1,000 characters."""
    return gist(Message(message.role, tuple(leaf_parts(message.parts))), characters=1_000)


def _range(decision: Decision) -> range:
    return range(decision.first, decision.last + 1)
