"""What the model saw: the page of one request, the page of all requests of a session, and what fills its window now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import msgspec

from .._platform.times import clock, day
from .._platform.units import counted, lasted
from ..errors import TurnlogError
from ..log.origins import BEGINNING, origin_of
from ..log.store import Problem, SessionInfo, Store
from ..log.usage import Usage, summed
from ..models.pricing import Cost, cost
from ..redaction.store import as_kept
from ..requests.prompt_cache import cache_rules
from ..session.caches import outcome_of
from ..session.session import Session
from ..session.targets import chosen_target
from ..session.titles import shown_title
from ..stores.wrapper import ReadingStore
from ..view.breakdown import KINDS, Breakdown, Kind
from ..view.decisions import active_decisions
from ..view.turns import seconds_between
from .charts import Series, bar, columns, legend
from .escapes import Markup, join, tag, text
from .fates import Fates, PageLinks
from .frame import Ways, framed
from .parts import preformatted
from .past_request import AnsweredRequest, PastRequest, RequestList, requests_of, windows_of
from .pieces import badge, folded, line, link, panel, table, turning, wrong
from .request_words import cache_words, request_changes
from .wording import cents, tokens_of

_BODY = 20_000
"""How many characters of the body are on the page."""

_PAGE, _IN_FILE = 200, 2_000
"""Requests in one page of the table that a server sends, and in a file."""

_MOST = 10_000
"""The most records of a log that a page takes apart message by message: all of them are in memory meanwhile."""

_DRAWN = 100
"""At most so many requests are in the chart of what filled the window."""

_TOOLS = 8
"""So many tools have a line of their own in the table of what fills a window."""

# -- one request -----------------------------------------------------------------------------------


def request_page(store: Store, session_id: str, n: int, ways: Ways) -> Iterator[Markup]:
    """The page of the request that record `n` answered. Raises InputError if that record is no answer, SessionNotFound,
    and CorruptRecord if nothing of the session can be read, before anything is yielded."""
    listed = requests_of(store, session_id)  # which names what is damaged
    page = PageLinks(ReadingStore(as_kept(store), lambda problem: None), session_id, ways)
    answered, title = listed.of(n), shown_title(store, store.info(session_id)) or session_id
    earlier = listed.before(answered)
    # Made at once: of a long session, the list of its requests is not in memory while the page is made.
    heading = [*_heading(page, listed, answered, title), *_damage(listed.problems)]
    inside = chain(heading, _request(page, answered, earlier))
    return framed(f"Request {answered.number}: {title}", ways, inside, kind="asked")


def _heading(page: PageLinks, listed: RequestList, answered: AnsweredRequest, title: str) -> Iterator[Markup]:
    i = answered.number
    before, after = listed.requests[max(0, i - 2) : i - 1], listed.requests[i : i + 1]
    links = [link(title, page.ways.session(page.id)), link("All requests", page.ways.part(page.id, "requests"))]
    links += [page.request(each.n, f"← Request {each.number:,}", rel="prev") for each in before]
    links += [page.request(each.n, f"Request {each.number:,} →", rel="next") for each in after]
    yield tag("nav", *links, class_="steps", aria_label="Requests")
    yield tag("h1", text(f"Request {i:,} of {len(listed.requests):,}: what the model saw"))
    facts = [answered.model, _when(answered)]
    facts += [f"answered after {lasted(answered.seconds)}"] if answered.seconds and answered.seconds >= 0.1 else []
    facts += [] if answered.complete else ["the answer was interrupted"]
    if (bill := answered.usage_record) is not None:
        facts += [tokens_of(bill.usage), cents(cost(bill.usage, bill.sold_as))]
    yield line(" · ".join(filter(None, facts)) + " · answered by record ", page.record(answered.n))


def _when(request: AnsweredRequest) -> str:
    return f"{day(request.time)} {clock(request.time)}"


def _request(page: PageLinks, answered: AnsweredRequest, earlier: AnsweredRequest | None) -> Iterator[Markup]:
    try:
        past = PastRequest(page.store, page.id, answered)
        pieces = [*_doubts(past), *_made_again(page, past, earlier)]
    except TurnlogError as error:
        pieces = [wrong(f"This request cannot be made again: {error}")]
    yield from pieces


def _made_again(page: PageLinks, past: PastRequest, earlier: AnsweredRequest | None) -> Iterator[Markup]:
    """The sections of the page."""
    request = past.request
    breakdown = past.session.window.breakdown(past.target) if past.answered.made_of <= _MOST else None
    is_whole = breakdown is not None and breakdown.tokens == request.tokens  # else it was made smaller for itself alone
    yield panel("Window", *_window(past, breakdown))
    yield panel("Prompt cache", *_cache(page, past, earlier if is_whole else None))
    if breakdown is not None:
        yield panel("What became of each message", *Fates(page, past).pieces())
    words = f"{counted(len(request.view), 'message')}, {counted(len(request.edits), 'edit')}, "
    changes = [tag("li", text(each)) for each in request_changes(request, page.id)]
    yield panel(
        "Edits and losses",
        line(f"{words}{counted(len(request.losses), 'loss')}.", kind=None),
        *([tag("ul", *changes)] if changes else []),
    )
    data = request.json()
    where = page.ways.part(page.id, "requests", past.answered.n, "body")
    whole = [text(" "), link("The exact bytes", where)] if page.ways.is_served else []
    laid_out = msgspec.json.format(data, indent=2)
    begun = laid_out[: 4 * _BODY].decode("utf-8", "ignore")[:_BODY]
    words = "The body" if len(begun.encode()) >= len(laid_out) else f"The first {_BODY:,} characters"
    yield panel(
        "Body",
        line(f"{len(data):,} bytes of JSON for {request.target.provider}.", *whole, kind=None),
        folded(words, preformatted(begun), kind="data"),
    )


def _doubts(past: PastRequest) -> Iterator[Markup]:
    """What a reader has to know to trust the page: who made the request, and whether it still is that one."""
    bill, session = past.answered.usage_record, past.session
    before = bill.counted if bill is not None else None
    if session.configuration.environment is None and before is None:
        agent = origin_of(islice(session.log.records(), BEGINNING))[0] or "another program"
        yield line(
            f"recorded by {agent}, which does not tell what it sent: this is the request that turnlog makes of it"
        )
    if before is not None and before.tokens != past.request.tokens:
        words = f"{before.tokens:,} tokens were counted before it was sent, {past.request.tokens:,} are now"
        yield line(f"{words}: the log changed while the answer came, or another version made it", kind="badge warn")
    if past.target.doubt:
        yield line(past.target.doubt)


def _damage(problems: Iterable[Problem]) -> Iterator[Markup]:
    for problem in dict.fromkeys(problems):
        yield wrong(f"record {problem.record} is damaged and left out: {problem.what}")


def _cache(page: PageLinks, past: PastRequest, earlier: AnsweredRequest | None) -> Iterator[Markup]:
    """What was read from the cache, and what the request repeats of the one before it for the same model."""
    if (bill := past.answered.bill) is not None:
        told = outcome_of(bill)
        share = f" ({100 * told.read // told.input} %)" if told.input else ""
        words = f"{told.read:,} of {told.input:,} billed tokens were read from the cache{share}"
        expected = "not on record" if told.expected is None else f"{told.expected:,}"
        yield line(f"{words}, {told.written:,} written to it; expected: {expected}.", kind=None)
        if because := cache_words(told):
            yield line(f"When it was sent: {because}.")
    else:
        yield line("What it was billed is not on record.")
    if earlier is not None and (found := past.cache_use(earlier)) is not None:
        use, moved_from = found
        before = page.request(earlier.n, f"request {earlier.number:,}")
        if use.shared >= use.previous:
            yield line(f"It begins with all {use.previous:,} tokens of ", before, text("."), kind=None)
            fewer, reason = _fewer_read(past.answered, earlier)
            if fewer:
                is_sent = past.session.configuration.environment is not None
                reason += "" if is_sent else ", or the program sent something else than it recorded"
                yield line(f"Same beginning, but {fewer}: {reason}.", kind="badge warn")
            return
        said = [before]
        said += [text("; it differs from record "), page.record(moved_from), text(" on")] if moved_from else []
        said += [text(", by decision "), page.record(use.moved_by)] if use.moved_by else []
        why = f"{use.changed}: {use.why}" if use.changed else use.why
        said += [text(f" ({why})." if why else ".", one_line=True)]
        yield line(f"The first {use.shared:,} of {use.previous:,} tokens are as in ", *said, kind=None)
    elif past.answered.number == 1:
        yield line("It is the first request of the session.")


def _fewer_read(request: AnsweredRequest, before: AnsweredRequest | None) -> tuple[str, str]:
    """How much less a request read from the cache than it was expected to, or than the one before for the same model
    left in it, and the reason if both have the same beginning. Empty if it is less than a tenth."""
    if before is None or before.bill is None or request.bill is None:
        return "", ""
    told, earlier = outcome_of(request.bill), outcome_of(before.bill)
    left = min(earlier.read + earlier.written, told.input) if told.expected is None else told.expected
    if told.read >= 0.9 * left:
        return "", ""
    rules, age = cache_rules(request.model), seconds_between(before.time, request.time)
    longest, reason = rules.long_lifetime or rules.lifetime, "it expired, or the provider did not find it"
    if age is not None and longest is not None and age > longest:
        reason = "it expired"
    elif age is not None and rules.lifetime is not None and age <= rules.lifetime:
        reason = "the provider did not find it, though it was not too old"
    since = f"; request {before.number:,} was {lasted(age)} before" if age else ""
    return f"{left - told.read:,} tokens of the cache were not read{since}", reason


# -- what fills the window -------------------------------------------------------------------------


def _window(past: PastRequest, breakdown: Breakdown | None) -> Iterator[Markup]:
    target, tokens = past.target, f"{past.request.tokens:,} tokens"
    if breakdown is None:
        words = f"{target.provider} {target.model}: {tokens}, in a window of {target.input_limit:,}."
        yield line(words, kind=None)
        yield _too_long(past.answered.made_of, past.session.id)
        return
    yield from _filled(breakdown)
    if breakdown.tokens != past.request.tokens:
        yield line(f"The request itself has {tokens}: what did not fit was left out for it alone.")


def _too_long(records: int, session_id: str) -> Markup:
    """Why a page does not tell what became of each message."""
    return line(
        f"The log has {records:,} records, more than the {_MOST:,} that a page takes apart: `turnlog context "
        f"{session_id}` tells what fills the window now, `turnlog why {session_id}` what became of each message."
    )


def _filled(breakdown: Breakdown) -> Iterator[Markup]:
    """The bar of a window, its marks, and the table of its figures."""
    marks = breakdown.marks
    whole = max(marks.limit, breakdown.tokens, 1)
    kinds = Counter[str]()
    for share in breakdown.shares:
        kinds[share.kind] += share.tokens
    words = f"{breakdown.tokens:,} of {marks.limit:,} tokens, {breakdown.certainty} ({breakdown.counter})"
    model = tag("b", text(f"{breakdown.provider} {breakdown.model} ", one_line=True))
    yield tag("p", model, text(words))
    lines = {"goal": marks.goal, "trigger": marks.trigger, "limit": marks.limit}
    yield bar(kinds.items(), whole, lines.values(), f"What fills the window: {words}")
    keys = [(f"{kind} {tokens:,}", kind) for kind, tokens in kinds.items()]
    keys += [(f"{name} {tokens:,}", "mark") for name, tokens in lines.items()]
    yield tag("p", *legend(keys), class_="keys")
    tools = [(f"of {share.name}", share.tokens) for share in breakdown.shares if share.name]  # the largest first
    if rest := tools[_TOOLS:]:
        tools[_TOOLS:] = [(f"of {counted(len(rest), 'other tool')}", sum(tokens for _, tokens in rest))]
    rows: list[tuple[str, int]] = []
    for kind, tokens in kinds.items():
        rows += [(kind, tokens), *(tools if kind == "tool results" else ())]
    rows += [("free", breakdown.free), *lines.items(), ("budget", breakdown.budget.max_tokens)]
    rows += [(f"saved by curation of {kind}", tokens) for kind, tokens in breakdown.curated]
    cells = [(text(n, one_line=True), text(f"{t:,}"), text(f"{100 * t / whole:.1f} %")) for n, t in rows]
    yield folded("Figures", table("Tokens by kind", ("Kind", "Tokens", "Share"), cells))


def window_use(store: Store, session_id: str, ways: Ways) -> Iterator[Markup]:
    """What fills the window of a session now, the decisions in force, and the way to its requests. Raises
    SessionNotFound, and CorruptRecord if nothing of it can be read, before anything is yielded."""
    problems: list[Problem] = []
    store = ReadingStore(as_kept(store), problems.append)
    return _window_use(PageLinks(store, session_id, ways), store.info(session_id), problems)


def _window_use(page: PageLinks, info: SessionInfo, problems: list[Problem]) -> Iterator[Markup]:
    store = page.store
    yield tag("h2", text("Window now"))
    try:
        if info.records > _MOST:
            yield _too_long(info.records, info.id)
        elif (target := chosen_target(session := Session(store, info))) is None:
            yield line("Which model it is for is not on record.")
        else:
            yield from [*_filled(session.window.breakdown(target))]
    except TurnlogError as error:
        yield wrong(str(error))
    if decisions := [*active_decisions(store.of_kinds(info.id, ("decision",))).items()]:
        yield tag("h3", text(f"{counted(len(decisions), 'decision')} in force"))
        rows = [
            tag("li", page.record(n, f"{n} {decision.action}"), text(f" {decision.why}", one_line=True))
            for n, decision in reversed(decisions[-10:])
        ]
        rows += [tag("li", text(f"and {len(decisions) - 10:,} before them"))] if len(decisions) > 10 else []
        yield tag("ul", *rows, class_="decided")
    answers = store.of_kinds(info.id, ("message", "partial"), reverse=True)
    last = next((record.n for record in answers if record.message and record.message.role == "assistant"), 0)
    if last:
        to_all = link("All requests", page.ways.part(page.id, "requests"))
        yield tag("p", page.request(last, "What the model saw last"), text(" · "), to_all)
    yield from _damage(problems)


# -- all requests ----------------------------------------------------------------------------------


def requests_page(store: Store, session_id: str, ways: Ways, *, page: int = 1) -> Iterator[Markup]:
    """The page of all requests of a session: charts over time, and a table of `page` 1, 2, ... Raises SessionNotFound,
    CorruptRecord, before anything is yielded."""
    store = as_kept(store)
    listed, title = requests_of(store, session_id), shown_title(store, store.info(session_id)) or session_id
    inside = _requests(PageLinks(store, session_id, ways), listed, title, page)
    return framed(f"Requests: {title}", ways, inside, kind="asked")


def _requests(page: PageLinks, listed: RequestList, title: str, number: int) -> Iterator[Markup]:
    requests = listed.requests
    yield tag("nav", link(title, page.ways.session(page.id)), class_="steps", aria_label="Session")
    yield tag("h1", text(counted(len(requests), "request")))
    yield from _damage(listed.problems)
    if listed.other_bills:
        yield line(f"not in these figures: {counted(listed.other_bills, 'bill')} of none of these answers")
    if not requests:
        return
    yield from _windows(page, requests)
    yield from _charts(requests)
    size = _PAGE if page.ways.is_served else _IN_FILE
    first = min(max(1, number) - 1, (len(requests) - 1) // size) * size
    heads = ("Request", "Time", "Model", "In", "Cached", "Out", "Cost", "Answer", "What moved the cache, decisions")
    rows = (_cells(page, each, listed.before(each)) for each in requests[first : first + size])
    yield table("Requests", heads, rows, words={1, 2, 8})
    if len(requests) > size and page.ways.is_served:
        yield turning(first, size, len(requests), lambda n: page.ways.part(page.id, "requests", page=str(n)))
    elif len(requests) > size:
        yield line(f"{len(requests) - size:,} more are on the pages of `turnlog serve`.")


def _charts(requests: Sequence[AnsweredRequest]) -> Iterator[Markup]:
    names = [f"request {each.number:,}" for each in requests]
    bills = [each.usage_record for each in requests]
    if usages := [bill.usage for bill in bills if bill]:
        tokens = [
            (u.cached, u.cache_write, max(0, (u.window or u.input) - u.cached - u.cache_write), u.output)
            for u in (bill.usage if bill else Usage() for bill in bills)
        ]
        kinds = {
            "read from the cache": "cached",
            "written to it": "written",
            "other input": "input",
            "output": "output",
        }
        series = [Series(*kind, values) for kind, values in zip(kinds.items(), zip(*tokens, strict=True), strict=True)]
        total = cents(sum(map(_cost, requests), Cost()))
        yield line(f"{_when(requests[0])} to {_when(requests[-1])} · {tokens_of(summed(usages))} · {total}")
        marks = {i for i, each in enumerate(requests) if each.decided}
        yield columns("Tokens of each request", series, names, lambda tokens: f"{tokens:,.0f} tokens", marks=marks)
        costs = Series("cost", "cost", [float(_cost(each).at_least) for each in requests])
        yield columns("Cost of each request", [costs], names, lambda dollars: f"${dollars:,.4f}")
    seconds = Series("seconds", "output", [each.seconds or 0 for each in requests])
    yield columns("Time to the answer", [seconds], names, lambda span: lasted(span) or "0 s")


def _windows(page: PageLinks, requests: Sequence[AnsweredRequest]) -> Iterator[Markup]:
    """What filled the window over time, by kind; of many requests, every so many."""
    if requests[-1].made_of > _MOST:
        yield line(f"What filled each window is not drawn: the log has more than {_MOST:,} records.")
        return
    step = -(-len(requests) // _DRAWN)
    picked = requests[::-step][::-1]  # with the newest
    sums = Counter[tuple[Kind, int]]()
    try:
        filled = [*enumerate(windows_of(page.store, page.id, picked))]
    except TurnlogError as error:
        yield wrong(f"What filled each window cannot be told: {error}")
        return
    for i, shares in filled:
        for share in shares:
            sums[share.kind, i] += share.tokens
    kinds = [kind for kind in KINDS if any(sums[kind, i] for i, _ in filled)]
    if not kinds:
        return
    series = [Series(kind, kind, [sums[kind, i] for i, _ in filled]) for kind in kinds]
    title = f"What filled the window of every {step:,}th request" if step > 1 else "What filled the window"
    marks = {i for i, each in enumerate(picked) if each.decided} if step == 1 else ()
    names = [f"request {each.number:,}" for each in picked]
    yield columns(title, series, names, lambda tokens: f"{tokens:,.0f} tokens", marks=marks)
    if unknown := sum(not shares for _, shares in filled):
        words = "the model is not known, or the log was far beyond its budget"
        yield line(f"Not told of {counted(unknown, 'request')}: {words}.")


def _cost(request: AnsweredRequest) -> Cost:
    bill = request.usage_record
    return Cost() if bill is None else cost(bill.usage, bill.sold_as)


def _cells(page: PageLinks, request: AnsweredRequest, before: AnsweredRequest | None) -> list[Markup]:
    bill = request.usage_record
    told = outcome_of(request.bill) if request.bill is not None else None
    words = [
        _when(request),
        request.model,
        f"{told.input:,}" if told else "-",
        f"{100 * told.read // told.input} %" if told and told.input else "-",
        f"{bill.usage.output:,}" if bill else "-",
        cents(_cost(request)) if bill else "-",
        lasted(request.seconds) + ("" if request.complete else ", interrupted"),
    ]
    moved = [text(f"{cache_words(told) if told else ''} ", one_line=True)]
    if fewer := _fewer_read(request, before)[0]:
        moved += [badge(fewer, "warn"), text(" ")]
    for n, action in request.decided[-3:]:
        moved += [page.record(n, f"{action} {n}"), text(" ")]
    return [
        page.request(request.n, f"{request.number:,}"),
        *(text(each, one_line=True) for each in words),
        join(moved),
    ]
