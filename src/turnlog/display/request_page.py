"""What the model saw: the page of one request, the page of all requests of a session, and what fills its window now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec
from msgspec import Struct

from .._platform.times import clock, day
from .._platform.units import counted, lasted
from ..errors import TurnlogError
from ..log.origins import BEGINNING, origin_of
from ..log.store import Problem, SessionInfo, Store
from ..log.usage import summed
from ..models.catalog import model_name
from ..models.pricing import Cost, cost
from ..redaction.store import as_kept
from ..requests.request import Request
from ..session.caches import outcome_of
from ..session.session import Session
from ..session.targets import usual_target
from ..stores.wrapper import ReadingStore
from ..view.breakdown import Breakdown
from ..view.decisions import active_decisions
from .charts import Series, bar, columns, legend, table
from .escapes import Markup, end, join, start, tag, text
from .fates import Fates, PageLinks
from .frame import Ways, foot, head, opening
from .parts import preformatted
from .past_request import AnsweredRequest, PastRequest, RequestList, requests_of
from .request_words import cache_words, request_changes
from .wording import cents, tokens_of

_BODY = 20_000
"""How many characters of the body are on the page."""

_PAGE, _IN_FILE = 200, 2_000
"""Requests in one page of the table that a server sends, and in a file."""

_MOST = 10_000
"""The most records of a log that a page takes apart message by message: all of them are in memory meanwhile."""

_TOOLS = 8
"""So many tools have a line of their own in the table of what fills a window."""

# -- one request -----------------------------------------------------------------------------------


def request_page(store: Store, session_id: str, n: int, ways: Ways) -> Iterator[Markup]:
    """The page of the request that record `n` answered. Raises InputError if that record is no answer, SessionNotFound,
    and CorruptRecord if nothing of the session can be read, before anything is yielded."""
    listed = requests_of(store, session_id)  # which names what is damaged
    store = ReadingStore(as_kept(store), lambda problem: None)
    around = _around(listed, listed.of(n))
    title = store.info(session_id).title or session_id
    return _request_page(PageLinks(store, session_id, ways), around, title)


class _Around(Struct, frozen=True):
    """A request and those around it: of a long session, the others need not be in memory. `earlier` is the one before
    it for the same model."""

    answered: AnsweredRequest
    total: int
    before: AnsweredRequest | None
    after: AnsweredRequest | None
    earlier: AnsweredRequest | None
    problems: tuple[Problem, ...]


def _around(listed: RequestList, answered: AnsweredRequest) -> _Around:
    i, requests = answered.number - 1, listed.requests
    name = model_name(answered.model)
    earlier = next((each for each in reversed(requests[:i]) if model_name(each.model) == name), None)
    after = requests[i + 1] if i + 1 < len(requests) else None
    return _Around(answered, len(requests), requests[i - 1] if i else None, after, earlier, listed.problems)


def _request_page(page: PageLinks, around: _Around, title: str) -> Iterator[Markup]:
    answered = around.answered
    yield head(f"Request {answered.number}: {title}", page.ways)
    yield from opening(page.ways)
    yield start("main", class_="asked")
    yield from _heading(page, around, title)
    try:
        past = PastRequest(page.store, page.id, answered)
        prepared, is_long = past.request, answered.made_of > _MOST
        breakdown = None if is_long else past.session.window.breakdown(past.target)
        explanation = None if is_long else past.session.explain(target=past.target)
        _ = prepared.json(), prepared.edits, prepared.losses
        # A request of another size was made smaller for itself alone, and cannot be compared.
        use = _cache_use(past, around.earlier) if breakdown and prepared.tokens == breakdown.tokens else None
    except TurnlogError as error:
        yield tag("p", text(f"This request cannot be made again: {error}"), class_="badge bad")
    else:
        yield from _doubts(past, around.problems)
        yield from _window(past, breakdown)
        yield from _cache(page, past, use)
        if explanation is not None:
            yield from Fates(page, past, explanation).section()
        yield from _changes(prepared, page.id)
        yield from _body(page, prepared, answered)
    yield end("main")
    yield foot()


def _heading(page: PageLinks, around: _Around, title: str) -> Iterator[Markup]:
    answered = around.answered
    ways = [tag("a", text(title, one_line=True), href=page.ways.session(page.id)), page.requests_link()]
    if around.before is not None:
        ways.append(page.request(around.before.n, f"← Request {around.before.number:,}", rel="prev"))
    if around.after is not None:
        ways.append(page.request(around.after.n, f"Request {around.after.number:,} →", rel="next"))
    yield tag("nav", *ways, class_="steps", aria_label="Requests")
    yield tag("h1", text(f"Request {answered.number:,} of {around.total:,}: what the model saw"))
    facts = [answered.model, f"{day(answered.time)} {clock(answered.time)}"]
    facts += [f"answered after {lasted(answered.seconds)}"] if answered.seconds and answered.seconds >= 0.1 else []
    facts += [] if answered.complete else ["the answer was interrupted"]
    if (bill := answered.usage_record) is not None:
        facts += [tokens_of(bill.usage), cents(cost(bill.usage, bill.sold_as))]
    words = text(" · ".join(filter(None, facts)) + " · answered by record ", one_line=True)
    yield tag("p", words, page.record(answered.n), class_="small")


def _doubts(past: PastRequest, problems: tuple[Problem, ...]) -> Iterator[Markup]:
    """What a reader has to know to trust the page: who made the request, and what was damaged."""
    bill, session = past.answered.usage_record, past.session
    own = session.configuration.environment is not None or (bill is not None and bill.counted is not None)
    agent = origin_of(islice(session.log.records(), BEGINNING))[0] or "another program"
    if not own:
        words = f"recorded by {agent}, which does not tell what it sent: this is the request that turnlog makes of it"
        yield tag("p", text(words, one_line=True), class_="small")
    if bill is not None and bill.counted is not None and bill.counted.tokens != past.request.tokens:
        words = f"{bill.counted.tokens:,} tokens were counted before it was sent, {past.request.tokens:,} are now"
        yield tag(
            "p",
            text(f"{words}: the log changed while the answer came, or another version made it"),
            class_="badge warn",
        )
    if past.target.doubt:
        yield tag("p", text(past.target.doubt), class_="small")
    yield from _damage((*problems, *past.problems))


# -- what fills the window -------------------------------------------------------------------------


def _window(past: PastRequest, breakdown: Breakdown | None) -> Iterator[Markup]:
    yield start("section", class_="panel")
    yield tag("h2", text("Window"))
    if breakdown is None:
        window = f"{past.request.tokens:,} tokens, in a window of {past.target.input_limit:,}"
        yield tag("p", text(f"{past.target.provider} {past.target.model}: {window}.", one_line=True))
        yield tag("p", text(_too_long(past.answered.made_of, past.session.id), one_line=True), class_="small")
    else:
        yield from _filled(breakdown)
    if breakdown is not None and breakdown.tokens != past.request.tokens:
        words = f"The request itself has {past.request.tokens:,} tokens: what did not fit was left out for it alone."
        yield tag("p", text(words), class_="small")
    yield end("section")


def _too_long(records: int, session_id: str) -> str:
    """Why a page does not tell what became of each message."""
    return (
        f"The log has {records:,} records, more than the {_MOST:,} that a page takes apart: `turnlog context "
        f"{session_id}` tells what fills the window now, `turnlog why {session_id}` what became of each message."
    )


def _filled(breakdown: Breakdown) -> Iterator[Markup]:
    """The bar of a window, its marks, and the table of its figures."""
    marks, budget = breakdown.marks, breakdown.budget
    whole = max(marks.limit, breakdown.tokens, 1)
    kinds: dict[str, int] = {}
    for share in breakdown.shares:
        kinds[share.kind] = kinds.get(share.kind, 0) + share.tokens
    words = f"{breakdown.tokens:,} of {marks.limit:,} tokens, {breakdown.certainty} ({breakdown.counter})"
    yield tag("p", tag("b", text(f"{breakdown.provider} {breakdown.model} ", one_line=True)), text(words))
    lines = [("goal", marks.goal), ("trigger", marks.trigger), ("limit", marks.limit)]
    lines = lines if marks.trigger != marks.limit else [lines[0], ("trigger, limit", marks.limit)]
    coloured = [(_colour(kind), tokens) for kind, tokens in kinds.items()]
    yield bar(f"What fills the window: {words}", coloured, whole, [("mark", tokens) for _, tokens in lines])
    names = [(f"{kind} {tokens:,}", _colour(kind)) for kind, tokens in kinds.items()]
    yield tag("p", *legend(names), *legend([(f"{name} {tokens:,}", "mark") for name, tokens in lines]), class_="keys")
    tools = [(share.name, share.tokens) for share in breakdown.shares if share.name]  # the largest first
    if len(tools) > _TOOLS:
        rest = tools[_TOOLS:]
        tools = [*tools[:_TOOLS], (counted(len(rest), "other tool"), sum(tokens for _, tokens in rest))]
    rows: list[tuple[str, int]] = []
    for kind, tokens in kinds.items():
        rows += [(kind, tokens), *((f"of {name}", of_it) for name, of_it in tools if kind == "tool results")]
    rows += [("free", breakdown.free), *lines, ("budget", budget.max_tokens)]
    rows += [(f"saved by curation of {kind}", tokens) for kind, tokens in breakdown.curated]
    cells = [(text(n, one_line=True), text(f"{t:,}"), text(f"{100 * t / whole:.1f} %")) for n, t in rows]
    inside = table("Tokens by kind", ("Kind", "Tokens", "Share"), cells)
    yield tag("details", tag("summary", text("Figures")), inside)


def _colour(kind: str) -> str:
    return kind.replace(" ", "-")


def window_use(store: Store, session_id: str, ways: Ways) -> Iterator[Markup]:
    """What fills the window of a session now, the decisions in force, and the way to its requests. Raises
    SessionNotFound, and CorruptRecord if nothing of it can be read, before anything is yielded."""
    problems: list[Problem] = []
    store = ReadingStore(as_kept(store), problems.append)
    return _window_use(PageLinks(store, session_id, ways), store.info(session_id), problems)


def _window_use(page: PageLinks, info: SessionInfo, problems: list[Problem]) -> Iterator[Markup]:
    store, session_id = page.store, page.id
    yield tag("h2", text("Window now"))
    try:
        if info.records > _MOST:
            yield tag("p", text(_too_long(info.records, session_id), one_line=True), class_="small")
        elif (target := usual_target(session := Session(store, info))) is None:
            yield tag("p", text("Which model it is for is not on record."), class_="small")
        else:
            yield join([*_filled(session.window.breakdown(target))])
    except TurnlogError as error:
        yield tag("p", text(str(error)), class_="badge bad")
    yield from _in_force(page)
    answers = store.of_kinds(session_id, ("message", "partial"), reverse=True)
    last = next((record.n for record in answers if record.message and record.message.role == "assistant"), 0)
    links = [page.request(last, "What the model saw last"), text(" · "), page.requests_link()] if last else []
    yield tag("p", *links)
    yield from _damage(problems)


def _in_force(page: PageLinks) -> Iterator[Markup]:
    """The decisions in force, the newest first."""
    decisions = active_decisions(page.store.of_kinds(page.id, ("decision",)))
    if not decisions:
        return
    yield tag("h3", text(f"{counted(len(decisions), 'decision')} in force"))
    newest = [*reversed(decisions.items())]
    rows = [
        tag("li", page.record(n, f"{n} {decision.action}"), text(f" {decision.why}", one_line=True))
        for n, decision in newest[:10]
    ]
    rows += [tag("li", text(f"and {len(newest) - 10:,} before them"))] if len(newest) > 10 else []
    yield tag("ul", *rows, class_="decided")


def _damage(problems: Iterable[Problem]) -> Iterator[Markup]:
    """A line for each damaged record that is left out."""
    for problem in dict.fromkeys(problems):
        words = f"record {problem.record} is damaged and left out: {problem.what}"
        yield tag("p", text(words, one_line=True), class_="badge bad")


# -- prompt cache ----------------------------------------------------------------------------------


class _Repeated(Struct, frozen=True):
    """What a request repeats of the request `before` it for the same model."""

    before: AnsweredRequest
    shared: int
    previous: int
    moved_by: int
    moved_from: int
    why: str


def _cache_use(past: PastRequest, before: AnsweredRequest | None) -> _Repeated | None:
    found = past.cache_use(before) if before is not None else None
    if found is None or before is None:
        return None
    use, moved_from = found
    why = f"{use.changed}: {use.why}" if use.changed else use.why
    return _Repeated(before, use.shared, use.previous, use.moved_by, moved_from, why)


def _cache(page: PageLinks, past: PastRequest, use: _Repeated | None) -> Iterator[Markup]:
    yield start("section", class_="panel")
    yield tag("h2", text("Prompt cache"))
    if (bill := past.answered.bill) is not None:
        told = outcome_of(bill)
        share = f" ({100 * told.read // told.input} %)" if told.input else ""
        words = f"{told.read:,} of {told.input:,} billed tokens were read from the cache{share}"
        expected = "not on record" if told.expected is None else f"{told.expected:,}"
        yield tag("p", text(f"{words}, {told.written:,} written to it; expected: {expected}."))
        if because := cache_words(told):
            yield tag("p", text(f"When it was sent: {because}."), class_="small")
    else:
        yield tag("p", text("What it was billed is not on record."), class_="small")
    if use is not None:
        yield tag("p", *_repeats(page, use))
    elif past.answered.number == 1:
        yield tag("p", text("It is the first request of the session."), class_="small")
    yield end("section")


def _repeats(page: PageLinks, use: _Repeated) -> Iterator[Markup]:
    """What a request repeats, in a sentence."""
    before = page.request(use.before.n, f"request {use.before.number:,}")
    if use.shared >= use.previous:
        yield from (text(f"It begins with all {use.previous:,} tokens of "), before, text("."))
        return
    yield from (text(f"The first {use.shared:,} of {use.previous:,} tokens are as in "), before)
    if use.moved_from:
        yield from (text("; it differs from record "), page.record(use.moved_from), text(" on"))
    if use.moved_by:
        yield from (text(", by decision "), page.record(use.moved_by))
    yield text(f" ({use.why})." if use.why else ".", one_line=True)


# -- changes, body ---------------------------------------------------------------------------------


def _changes(prepared: Request, session_id: str) -> Iterator[Markup]:
    yield start("section", class_="panel")
    yield tag("h2", text("Edits and losses"))
    done = f"{counted(len(prepared.view), 'message')}, {counted(len(prepared.edits), 'edit')}"
    yield tag("p", text(f"{done}, {counted(len(prepared.losses), 'loss')}."))
    if lines := [*request_changes(prepared, session_id)]:
        yield tag("ul", *(tag("li", text(line)) for line in lines))
    yield end("section")


def _body(page: PageLinks, prepared: Request, answered: AnsweredRequest) -> Iterator[Markup]:
    data = prepared.json()
    yield start("section", class_="panel")
    yield tag("h2", text("Body"))
    where = page.ways.part(page.id, "requests", answered.n, "body")
    whole = [text(" "), tag("a", text("The exact bytes"), href=where)] if page.ways.is_served else []
    yield tag("p", text(f"{len(data):,} bytes of JSON for {prepared.target.provider}."), *whole)
    laid_out = msgspec.json.format(data, indent=2)
    begun = laid_out[: 4 * _BODY].decode("utf-8", "ignore")[:_BODY]
    words = "The body" if len(begun.encode()) >= len(laid_out) else f"The first {_BODY:,} characters"
    yield tag("details", tag("summary", text(words)), preformatted(begun), class_="data")
    yield end("section")


# -- all requests ----------------------------------------------------------------------------------


def requests_page(store: Store, session_id: str, ways: Ways, *, page: int = 1) -> Iterator[Markup]:
    """The page of all requests of a session: charts over time, and a table of `page` 1, 2, ... Raises SessionNotFound,
    CorruptRecord, before anything is yielded."""
    store = as_kept(store)
    listed, title = requests_of(store, session_id), store.info(session_id).title or session_id
    return _requests_page(PageLinks(store, session_id, ways), listed, title, page)


def _requests_page(page: PageLinks, listed: RequestList, title: str, number: int) -> Iterator[Markup]:
    yield head(f"Requests: {title}", page.ways)
    yield from opening(page.ways)
    yield start("main", class_="asked")
    link = tag("a", text(title, one_line=True), href=page.ways.session(page.id))
    yield tag("nav", link, class_="steps", aria_label="Session")
    yield tag("h1", text(f"{counted(len(listed.requests), 'request')}"))
    yield from _damage(listed.problems)
    if listed.other_bills:
        words = f"not in these figures: {counted(listed.other_bills, 'bill')} of none of these answers"
        yield tag("p", text(words), class_="small")
    if listed.requests:
        yield from _charts(listed.requests)
        yield from _table(page, listed.requests, number)
    yield end("main")
    yield foot()


def _charts(requests: Sequence[AnsweredRequest]) -> Iterator[Markup]:
    usages = [bill.usage if (bill := each.usage_record) else None for each in requests]
    if any(usages):
        read = [usage.cached if usage else 0 for usage in usages]
        written = [usage.cache_write if usage else 0 for usage in usages]
        whole = [(usage.window or usage.input) if usage else 0 for usage in usages]
        new = [max(0, w - c - x) for w, c, x in zip(whole, read, written, strict=True)]
        series = [
            Series("read from the cache", "cached", read),
            Series("written to it", "written", written),
            Series("other input", "input", new),
            Series("output", "output", [usage.output if usage else 0 for usage in usages]),
        ]
        whole_bill = summed(usage for usage in usages if usage)
        times = (
            f"{day(requests[0].time)} {clock(requests[0].time)} to {day(requests[-1].time)} {clock(requests[-1].time)}"
        )
        total = sum(map(_cost, requests), Cost())
        yield tag("p", text(f"{times} · {tokens_of(whole_bill)} · {cents(total)}"), class_="small")
        marks = [i for i, each in enumerate(requests) if each.decided]
        yield columns("Tokens of each request", series, lambda tokens: f"{tokens:,.0f} tokens", marks=marks)
        costs = [Series("cost", "cost", [float(_cost(each).at_least) for each in requests])]
        yield columns("Cost of each request", costs, lambda dollars: f"${dollars:,.4f}", sums=True)
    seconds = [Series("seconds", "output", [each.seconds or 0 for each in requests])]
    yield columns("Time to the answer", seconds, lambda span: lasted(span) or "0 s")


def _cost(request: AnsweredRequest) -> Cost:
    bill = request.usage_record
    return Cost() if bill is None else cost(bill.usage, bill.sold_as)


def _table(page: PageLinks, requests: Sequence[AnsweredRequest], number: int) -> Iterator[Markup]:
    size = _PAGE if page.ways.is_served else _IN_FILE
    pages = -(-len(requests) // size)
    number = min(max(1, number), pages)
    shown = requests[(number - 1) * size : number * size]
    heads = ("Request", "Time", "Model", "In", "Cached", "Out", "Cost", "Answer", "What moved the cache, decisions")
    caption = f"Requests {shown[0].number:,} to {shown[-1].number:,}"
    yield table(caption, heads, ([*_cells(page, each)] for each in shown), words={1, 2, 8})
    if pages > 1 and not page.ways.is_served:
        yield tag("p", text(f"{len(requests) - size:,} more are on the pages of `turnlog serve`."), class_="small")
    elif pages > 1:
        links = [
            tag(
                "a",
                text(f"{i + 1}"),
                href=page.ways.part(page.id, "requests", page=str(i + 1)),
                aria_current="page" if i + 1 == number else None,
            )
            for i in range(pages)
        ]
        yield tag("nav", *links, class_="steps", aria_label="Pages of requests")


def _cells(page: PageLinks, request: AnsweredRequest) -> Iterator[Markup]:
    bill = request.usage_record
    told = outcome_of(request.bill) if request.bill is not None else None
    yield page.request(request.n, f"{request.number:,}")
    yield text(f"{day(request.time)} {clock(request.time)}")
    yield text(request.model, one_line=True)
    yield text(f"{told.input:,}" if told else "-")
    yield text(f"{100 * told.read // told.input} %" if told and told.input else "-")
    yield text(f"{bill.usage.output:,}" if bill else "-")
    yield text(cents(_cost(request)) if bill else "-")
    yield text(lasted(request.seconds) + ("" if request.complete else ", interrupted"))
    decided = [page.record(n, f"{action} {n}") for n, action in request.decided[-3:]]
    words = cache_words(told) if told else ""
    yield join([text(words + (" " if words else ""), one_line=True), *(join([link, text(" ")]) for link in decided)])
