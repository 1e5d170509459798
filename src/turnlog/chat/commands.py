"""The slash commands of a chat. Each takes the rest of its line and returns Markdown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import NamedTuple

from .._platform.alike import grouped
from .._platform.times import ago
from .._platform.units import counted
from ..display.wording import in_short
from ..errors import InputError
from ..export import FORMATS, save
from ..log.messages import Message, Text, ToolCall, ToolResult, text_of
from ..log.records import Note
from ..models.makers import maker_of
from ..models.target import Target
from ..session.titles import shown_title
from ..stores.ids import session_named, short_ids
from ..view.breakdown import Breakdown
from ..view.decisions import Rewinds, active_decisions
from ..workspace.diff import net_changes, patch_lines
from ..workspace.diff.folding import differences
from .choice import chosen, suggested
from .conversation import Chat
from .plain import folded, gist

_SAVED = "chat save"
"""The topic of notes that mark a place in the conversation."""

_LISTED, _SHOWN, _WIDEST = 20, 60, 100


class Command(NamedTuple):
    """A command: what it takes, what it does, and the function that does it. `offers` are words that may follow it.
    `waits`: it cannot run while an answer streams."""

    takes: str
    does: str
    run: Callable[[Chat, str], str]
    offers: Callable[[Chat, str], Iterable[str]] | None = None
    waits: bool = False


def is_command(line: str) -> bool:
    """Whether a line is a command; a path such as `/usr/bin` is not."""
    return line.startswith("/") and "/" not in line.split()[0][1:]


async def run_command(talk: Chat, line: str, *, answering: bool = False) -> str:
    """Run a line that begins with `/`. Raises InputError for an unknown command, and for one that must wait
    while the model is `answering`. Errors of the command itself pass through."""
    word, _, rest = line[1:].strip().partition(" ")
    if word not in COMMANDS:
        near = [name for name in COMMANDS if name.startswith(word)]
        if len(near) != 1:
            which = f"it may be {', '.join(f'/{name}' for name in near)}" if near and word else "/help lists them"
            raise InputError(f"there is no command /{word}; {which}")
        word = near[0]
    if answering and COMMANDS[word].waits:
        raise InputError(f"/{word} cannot run while an answer streams; Ctrl-C stops the answer")
    return await asyncio.to_thread(COMMANDS[word].run, talk, rest.strip())


def completions(talk: Chat, line: str) -> list[tuple[str, str]]:
    """The completions of the last word of a typed line, with their meanings: commands, or what a command takes."""
    word, space, rest = line[1:].partition(" ")
    if not line.startswith("/") or "\n" in line:
        return []
    if not space:
        return [(name, command.does) for name, command in COMMANDS.items() if name.startswith(word)]
    offers = COMMANDS[word].offers if word in COMMANDS else None
    return [(offer, "") for offer in offers(talk, rest) if offer.startswith(rest)] if offers is not None else []


def _model(talk: Chat, rest: str) -> str:
    if not rest:
        return f"{_named(talk)}. `/model PROVIDER/MODEL` changes it, `/model PROVIDER/MODEL URL` the server, too."
    name, _, url = rest.partition(" ")
    current = talk.session.target
    same = current is not None and maker_of(current.provider) is maker_of(name.partition("/")[0])
    choice = chosen(name, base_url=url.strip() or (current.base_url if current is not None and same else ""))
    losses = talk.session.switch(choice.target)
    talk.choose(choice)
    lost = "".join(f"\n- lost: {what}" for _, what, _ in grouped(("", loss.detail, ()) for loss in losses))
    return f"The next answer is from {_named(talk)}.{lost}"


def _named(talk: Chat) -> str:
    target = talk.session.target
    if target is None:
        return "no model"
    return f"`{target.provider}/{target.model}`" + (f" at {target.base_url}" if target.base_url else "")


def _context(talk: Chat, _: str) -> str:
    breakdown = talk.session.window.breakdown()
    rows = [f"| {share.kind}{share.name and f' of {share.name}'} | {share.tokens:,} |" for share in breakdown.shares]
    room = f"{breakdown.tokens:,} of {breakdown.marks.trigger:,} tokens. {_rest(breakdown, talk.session.target)}"
    return "\n".join([room, "", "| what | tokens |", "| --- | ---: |", *rows])


def _rest(breakdown: Breakdown, target: Target | None) -> str:
    """Why a request may not fill the whole window, or the whole budget."""
    whole = breakdown.budget.max_tokens
    is_budget = whole > 0 and (target is None or whole <= target.input_limit)
    if not is_budget:
        whole = target.input_limit if target is not None else breakdown.marks.limit
    reasons = [] if is_budget else ["room for the answer"]
    reasons += [f"a margin, as counts are {breakdown.certainty}"] if breakdown.marks.limit < whole else []
    reasons += ["room to grow before the limit"] if breakdown.marks.trigger < breakdown.marks.limit else []
    rest = f"; the rest is {', and '.join(reasons)}" if reasons else ""
    return f"The {'budget' if is_budget else 'window'} has {whole:,}{rest}."


def _compact(talk: Chat, rest: str) -> str:
    return f"{talk.session.compact(keep=_number(rest, 0) or None)}"


def _clear(talk: Chat, _: str) -> str:
    talk.session.clear()
    return "The model sees nothing of what was said. `/rewind` takes that back; the log keeps all."


def _rewind(talk: Chat, rest: str) -> str:
    log = talk.session.log
    cleared = [n for n, decision in active_decisions(log.of_kinds("decision")).items() if decision.action == "clear"]
    if not rest and cleared and not [turn for turn in log.turns() if not turn.rewound and turn.first > max(cleared)]:
        return f"{talk.session.rewind(to=max(cleared) - 1)}"
    return f"{talk.session.rewind(turns=_number(rest, 1))}"


def _fork(talk: Chat, rest: str) -> str:
    name = rest or f"{talk.session.id}-fork"
    before = talk.session.id
    talk.session.fork(name).close()
    talk.move_to(talk.open(name))
    return f"This goes on in session `{name}`; `/resume {before}` goes back."


def _diff(talk: Chat, _: str) -> str:
    records = [*talk.session.log.of_kinds("file_change")]
    gone = Rewinds.of(talk.session.log.of_kinds("decision"))
    changes = net_changes([record for record in records if not gone.by(record.n)])
    patch = [
        f"{change.path}: {difference}\n"
        if isinstance(difference, str)
        else b"".join(patch_lines(difference)).decode("utf-8", "replace")
        for change, difference in differences(changes, talk.session.log.blob)
    ]
    return f"````diff\n{''.join(patch)}````" if patch else "No file changed in this session."


def _sessions(talk: Chat, _: str) -> str:
    rows = []
    infos = talk.store.sessions()
    short = short_ids([info.id for info in infos[:_LISTED]], infos)
    for info in infos[:_LISTED]:
        here = " (this one)" if info.id == talk.session.id else ""
        title = _cell(shown_title(talk.store, info))
        rows.append(f"| {_cell(short[info.id])}{here} | {ago(info.updated)} | {info.messages} | {title} |")
    return "\n".join(["| session | changed | messages | title |", "| --- | --- | ---: | --- |", *rows])


def _recent(talk: Chat, _: str) -> list[str]:
    """The ids of the sessions that were changed last, the newest first."""
    return [info.id for info in talk.store.sessions()[:_LISTED]]


def _cell(text: str) -> str:
    """A text in a cell of a table."""
    return text[:_SHOWN].replace("|", "\\|")


def _save(talk: Chat, rest: str) -> str:
    name = rest or "here"
    talk.session.note(_SAVED, name)
    return f"Saved as `{name}`; `/restore {name}` comes back here."


def _restore(talk: Chat, rest: str) -> str:
    named = _marks(talk)
    if (rest or "here") not in named:
        raise InputError(f"nothing was saved as {rest or 'here'!r}; saved are: {', '.join(named) or 'none'}")
    return f"{talk.session.rewind(to=named[rest or 'here'])}"


def _marks(talk: Chat) -> dict[str, int]:
    """The record numbers of the places that were saved, by name."""
    notes = ((record.body, record.n) for record in talk.session.log.of_kinds("note"))
    return {body.text: n for body, n in notes if isinstance(body, Note) and body.topic == _SAVED}


def _resume(talk: Chat, rest: str) -> str:
    if not rest:
        raise InputError("/resume SESSION: name a session; /sessions lists them")
    rest = session_named(talk.store, rest)
    if rest == talk.session.id:
        return "This is that session."
    talk.move_to(talk.open(rest))
    asked, answered = talk.last_words
    quote = "".join(f"> {line}\n" for line in folded(asked).splitlines())
    exchange = "\n\n".join(filter(None, (quote, folded(answered)))) or "Nothing was said in it yet."
    return f"This goes on in session `{rest}`, with {_named(talk)}. `/history` lists what was said.\n\n{exchange}"


def _export(talk: Chat, rest: str) -> str:
    form, _, name = rest.partition(" ")
    if form not in FORMATS or not name.strip():
        raise InputError(f"/export FORMAT FILE: formats are {', '.join(FORMATS)}")
    try:
        problems = save(talk.store, talk.session.id, form, talk.folder / name.strip())
    except OSError as error:
        raise InputError(f"{name.strip()}: {error.strerror or error}") from error
    return f"Written to {name.strip()}" + "".join(f"\n- {problem.what}" for problem in problems)


def _why(talk: Chat, rest: str) -> str:
    explanation = talk.session.explain()
    if rest:
        n = _number(rest, 0)
        if n not in explanation.accounts:
            raise InputError(f"record {n} is not a message of this session")
        account = explanation.accounts[n]
        by = f", by decision {', '.join(map(str, account.by))}" if account.by else ""
        return f"Record {n} is {account.fate}{by}: {account.shown:,} of {account.tokens:,} tokens are sent."
    rows = [f"| {r.n} | {r.decision.action} | {r.decision.why} |" for r in explanation.rulings if not r.ended_by]
    if not rows:
        return "Everything is sent as it was said."
    return "\n".join(
        [f"{explanation.saved:,} tokens saved.", "", "| record | decision | why |", "| ---: | --- | --- |", *rows]
    )


def _history(talk: Chat, rest: str) -> str:
    lines = []
    for shown in [entry for entry in talk.session.view() if entry.records][-_number(rest, 20) :]:
        words = " ".join(_words(shown.message).split())
        cut = f"{words[:_WIDEST]}…" if len(words) > _WIDEST else words
        lines.append(f"- [{shown.records[0]}] {shown.message.role}: {cut}")
    return "\n".join(lines) or "Nothing was said yet."


def _words(message: Message) -> str:
    """The text, calls and results of a message as one text."""
    calls = [f"calls {gist(part)}" for part in message.parts if isinstance(part, ToolCall)]
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    told = [
        f"result of {result.name}: {''.join(p.text for p in result.parts if isinstance(p, Text))}" for result in results
    ]
    return " ".join([text_of(message), *calls, *told])


def _cost(talk: Chat, _: str) -> str:
    return in_short(talk.store.usage(talk.session.id))


def _continue(talk: Chat, _: str) -> str:
    raise InputError("/continue: there is no unfinished turn")


def _help(_: Chat, __: str) -> str:
    rows = [f"| /{name} {command.takes} | {command.does} |" for name, command in COMMANDS.items()]
    keys = "Alt-Enter, or `\\` before Enter, makes a new line. Ctrl-C stops an answer, Ctrl-D ends. `@a.png` is sent."
    return "\n".join(["| command | what it does |", "| --- | --- |", *rows, "", keys])


def _quit(_: Chat, __: str) -> str:
    raise EOFError


def _number(text: str, otherwise: int) -> int:
    if not text:
        return otherwise
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"{text!r} is not a whole number of at least 1")
    return int(text)


COMMANDS: dict[str, Command] = {
    "model": Command(
        "PROVIDER/MODEL URL",
        "say which model answers, or switch to another",
        _model,
        lambda _, rest: suggested(rest),
        True,
    ),
    "context": Command("", "show what fills the model's window", _context),
    "compact": Command(
        "TURNS", "make requests smaller; with a number, summarise all but the last turns", _compact, waits=True
    ),
    "clear": Command("", "begin anew; the log keeps what was said", _clear, waits=True),
    "rewind": Command("TURNS", "take back the last turn, or several", _rewind, waits=True),
    "fork": Command("NAME", "go on in a copy of this session", _fork, waits=True),
    "diff": Command("", "show how files were changed", _diff),
    "sessions": Command("", f"list the last {counted(_LISTED, 'session')}", _sessions),
    "save": Command("NAME", "mark this place", _save),
    "restore": Command("NAME", "go back to a marked place", _restore, lambda talk, _: _marks(talk), True),
    "resume": Command("SESSION", "go on in another session", _resume, _recent, True),
    "continue": Command("", "go on with a turn that was interrupted", _continue, waits=True),
    "history": Command("N", "list the last messages that the model sees", _history),
    "cost": Command("", "tokens and dollars of this session", _cost),
    "export": Command("FORMAT FILE", "write the session to a file", _export, lambda *_: FORMATS),
    "why": Command("RECORD", "say what was left out, and why", _why),
    "help": Command("", "list the commands", _help),
    "quit": Command("", "end; the session stays", _quit),
}
"""The commands by name, in the order of the help."""
