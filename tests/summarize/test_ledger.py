"""The log as arbiter: of all who want the same summary, in threads or processes, one pays."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from scripted import PATIENCE, Blocked, Scripted, material, states, words
from turnlog.errors import InputError
from turnlog.log.messages import Message, Text
from turnlog.log.records import MessageRecord, SummaryRecord
from turnlog.log.store import Draft, Store
from turnlog.session.session import Session
from turnlog.stores import MemoryStore, SqliteStore, open_store
from turnlog.summarize import Background, LogLedger, Material, MemoryLedger, attempt
from turnlog.summarize.attempts import Attempt
from turnlog.summarize.ledger import claim, key_of, outcome_of
from turnlog.summarize.verdict import SummaryFailure
from turnlog.view.types import Shown

OFFLINE = Scripted("Task: make the tests pass (#1).", "digest/1")
TEXT = "Task: tests (#1)."


class Overtaken(MemoryLedger):
    """A ledger in which somebody else claims in the moment before we do, and writes what came of it."""

    def __init__(self, *rival: SummaryRecord) -> None:
        super().__init__()
        self._rival = rival

    def append(self, body: SummaryRecord) -> int:
        """The rival's records first."""
        rival, self._rival = self._rival, ()
        for record in rival:
            super().append(record)
        return super().append(body)


def test_who_was_overtaken_does_not_pay() -> None:
    """Two who look, see nothing, and both pay."""
    given = material()
    key = key_of("model/1", given)
    theirs = SummaryRecord(key, "claimed", summarizer="model/1")
    cases: list[tuple[tuple[SummaryRecord, ...], Attempt]] = [
        (
            (theirs,),
            Attempt(
                "Task: make the tests pass (#1).",
                "digest/1",
                (SummaryFailure("model/1", "claimed", "by record 1, which has no text yet"),),
            ),
        ),
        ((theirs, SummaryRecord(key, "made", TEXT, summarizer="model/1")), Attempt(TEXT, "model/1", remembered=True)),
    ]
    for rival, wanted in cases:
        mine = Scripted("mine")
        assert attempt(given, [mine], offline=OFFLINE, ledger=Overtaken(*rival), timeout=PATIENCE) == wanted
        assert mine.asked == []


def test_a_text_counts_whatever_stands_beside_it() -> None:
    """A text that came late, or before somebody else's failure, and is not found."""
    claimed, failed, made = (SummaryRecord("k", state) for state in ("claimed", "failed", "made"))  # type: ignore[arg-type]
    assert outcome_of([]) is None
    assert outcome_of([(1, claimed), (2, claimed)]) == (1, claimed)
    assert outcome_of([(1, claimed), (2, failed)]) == (2, failed)
    for order in ([(1, claimed), (2, failed), (3, made)], [(1, claimed), (2, made), (3, failed)]):
        found = outcome_of(order)
        assert found is not None and found[1] is made


@pytest.fixture(params=["memory", "sqlite", "files"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """Opens one and the same place as often as it is called."""
    if request.param == "memory":
        store = MemoryStore()
        return lambda: store
    place = f"files:{tmp_path}/logs" if request.param == "files" else f"{tmp_path}/log.db"
    return lambda: open_store(place)


def test_of_many_threads_one_claims(opener: Callable[[], Store]) -> None:
    """A store in which two claims can both be the first, or none."""
    first = opener()
    first.create("s")
    count = 6
    stores = [first, *(opener() for _ in range(count - 1))]
    together = threading.Barrier(count)
    won: list[bool] = []

    def work(store: Store) -> None:
        ledger = LogLedger(store, "s")
        for turn in range(5):
            together.wait(PATIENCE)
            won.append(claim(ledger, f"key {turn}", "m") is None)

    threads = [threading.Thread(target=work, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won.count(True) == 5
    for store in {id(store): store for store in stores}.values():
        store.close()


def _asks(path: str, calls: str, together: Any, answers: Any, number: int) -> None:
    """In a process of its own: ask for the same summary as everybody else."""

    def paid(given: Material) -> str:
        with open(calls, "a", encoding="utf-8") as file:
            file.write("paid\n")
        return TEXT

    with closing(SqliteStore(path)) as store:
        together.wait(PATIENCE)
        made = attempt(material(), [Scripted(paid)], offline=OFFLINE, ledger=LogLedger(store, "s"), timeout=PATIENCE)
        answers.put((number, made.text, [failure.fault for failure in made.failures]))


@pytest.mark.slow
def test_two_processes_at_once_pay_once(tmp_path: Path) -> None:
    """Two agents on one session that both pay for the same summary, or one of which is left without any."""
    path, calls = tmp_path / "log.db", tmp_path / "calls"
    with closing(SqliteStore(path)) as store:
        store.create("s")
    processes = multiprocessing.get_context("spawn")
    together, answers = processes.Barrier(2), processes.Queue()
    workers = [processes.Process(target=_asks, args=(str(path), str(calls), together, answers, n)) for n in range(2)]
    for worker in workers:
        worker.start()
    found = sorted(answers.get(timeout=PATIENCE) for _ in workers)
    for worker in workers:
        worker.join(PATIENCE)
    assert calls.read_text("utf-8") == "paid\n"
    texts = [text for _, text, _ in found]
    assert TEXT in texts
    for _, text, faults in found:
        assert (text, faults) in [(TEXT, []), ("Task: make the tests pass (#1).", ["claimed"])]
    with closing(SqliteStore(path)) as store:
        assert ("made", TEXT) in states(LogLedger(store, "s"), key_of("model/1", material()))
        third = attempt(material(), [Scripted("x")], offline=OFFLINE, ledger=LogLedger(store, "s"))
        assert third == Attempt(TEXT, "model/1", remembered=True)


def test_a_session_is_sent_none_of_it(tmp_path: Path) -> None:
    """A record of a summary that gets into a request, or that a fork does not know."""
    with closing(SqliteStore(tmp_path / "log.db")) as store:
        store.create("s")
        store.append("s", [Draft(MessageRecord(Message("user", (Text("Hello"),))))])
        session = Session(store, store.info("s"))
        ledger = LogLedger(store, "s")
        attempt(material(), [Scripted(TEXT)], offline=OFFLINE, ledger=ledger, timeout=PATIENCE)
        assert [shown.records for shown in session.view()] == [(1,)]
        assert [type(record.body).__name__ for record in session.history()][1:] == ["SummaryRecord", "SummaryRecord"]
        session.fork("t")
        forked = attempt(material(), [Scripted("x")], offline=OFFLINE, ledger=LogLedger(store, "t"))
        assert forked == Attempt(TEXT, "model/1", remembered=True)


def test_the_log_moves_on_while_a_summary_is_made(tmp_path: Path) -> None:
    """Records of a conversation that goes on, in between claim and text, for which the summary is lost or wrong;
    or a request that changes because of it."""
    with closing(SqliteStore(tmp_path / "log.db")) as store:
        store.create("s")
        session = Session(store, store.info("s"))
        for n in range(4):
            session.user(f"Request {n}, in more words than any summary of it needs.")
        covered = Material(messages=tuple(session.view()), target=20, count=words)
        ledger, ahead, slow = LogLedger(store, "s"), Background(), Blocked(TEXT)
        ahead.start(covered, slow, ledger)
        for n in range(4, 8):
            session.user(f"Request {n}, said while the model was at work.")
        before = session.view()
        slow.let.set()
        made = attempt(covered, [slow], offline=OFFLINE, ledger=ledger, ahead=ahead, timeout=PATIENCE)
        assert made == Attempt(TEXT, "model/1")
        assert session.view() == before
        kinds = [type(record.body).__name__ for record in store.read("s")]
        assert kinds == ["MessageRecord"] * 4 + ["SummaryRecord"] + ["MessageRecord"] * 4 + ["SummaryRecord"]
        with closing(SqliteStore(tmp_path / "log.db")) as other:
            again = attempt(covered, [Scripted("x")], offline=OFFLINE, ledger=LogLedger(other, "s"))
        assert again == Attempt(TEXT, "model/1", remembered=True)
        assert store.verify() == []


def test_content_that_no_log_can_hold_is_a_failure() -> None:
    """A plain body with an object in it, which would raise out of a request."""
    given = material([Shown(Message("user", (Text(object()),)), (1,))])  # type: ignore[arg-type]
    with pytest.raises(InputError):
        key_of("m", given)
    made = attempt(given, [Scripted(TEXT)], offline=OFFLINE, timeout=PATIENCE)
    assert made.failures[0].fault == "ledger"
