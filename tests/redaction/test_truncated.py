"""Secrets that a text was cut off in: half a key has no shape to be found by, and most of it can be read."""

from __future__ import annotations

import json
import random
from contextlib import closing
from pathlib import Path

import pytest
from planted import letters

import turnlog
from turnlog.cli import main
from turnlog.log.messages import text_of
from turnlog.log.records import Decision, SummaryRecord
from turnlog.log.store import Draft, Store
from turnlog.redaction import RedactingStore, Redactor
from turnlog.redaction.redactor import Attentive
from turnlog.redaction.scrub import scrub
from turnlog.redaction.store import redacted_title
from turnlog.session.session import Session
from turnlog.stores import open_store
from turnlog.summarize import Material
from turnlog.summarize.verdict import fault_of

WAYS = ({"keep": 2}, {"budget": 4000}, {"strategy": "mask", "budget": 3000})
PIECE = 12


def talk(session: Session, seed: str) -> list[str]:
    """A conversation with keys at any place of what users, models, calls and tools say; these keys."""
    chance, secrets = random.Random(seed), list[str]()

    def words(most: int) -> str:
        return " ".join(letters((seed, chance.random()), chance.randrange(2, 9)) for _ in range(chance.randrange(most)))

    def key() -> str:
        secrets.append("ghp_" + letters((seed, len(secrets)), 36))
        return secrets[-1]

    for turn in range(10):
        session.user(f"{words(120)} {key()} please do not change {words(60)}")
        for step in range(3):
            name, command = f"c{turn}_{step}", f"{words(40)} {key()}; {words(5)}"
            call = {"id": name, "type": "function", "function": {"name": "sh", "arguments": json.dumps({"x": command})}}
            told = f"{words(30)} decided to use {key()} because {words(9)}"
            message = {"role": "assistant", "content": told, "tool_calls": [call]}
            answer = session.receive({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]})
            session.tool_result(
                answer.tool_calls[0], f"{words(400)}\nerror: failed with {words(30)} {key()} {words(20)}"
            )
    return secrets


def pieces(store: Store, name: str, secrets: list[str]) -> list[tuple[int, str]]:
    """Records that hold some of a key, and what."""
    return [
        (record.n, part)
        for record in store.read(name)
        for secret in secrets
        for part in (secret[:PIECE], secret[-PIECE:])
        if part.encode() in (record.raw or b"")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_scrub_takes_halves_of_keys_out_of_summaries(way: dict[str, object], tmp_path: Path) -> None:
    """33 of the 36 characters of a key that was scrubbed, quoted by a summary that was cut off in it: in the session,
    and in forks that made theirs of the same records, which have marks by the time that anybody scrubs the fork."""
    aim = turnlog.target("openai-chat", "gpt-4o")
    with closing(open_store(str(tmp_path / "s.db"))) as store:
        with turnlog.open("s", store=store, target=aim, settings=turnlog.Settings(redact=False)) as session:
            secrets = talk(session, str(way))
            with session.fork("fork") as fork:
                fork.compact(**way)
            session.compact(**way)
        assert any(pieces(store, "s", secrets)[1:]), "nothing to take out"
        before = turnlog.open("s", store=store, read_only=True).request().body["messages"]
        scrub(store, "s")
        assert pieces(store, "s", secrets) == pieces(store, "fork", secrets) == []
        after = turnlog.open("s", store=store, read_only=True).request().body["messages"]
        assert [message["role"] for message in after] == [message["role"] for message in before]
        scrub(store, "fork")
        assert store.verify() == []


@pytest.mark.slow
def test_a_live_session_leaves_no_half_of_a_key_on_the_disk(tmp_path: Path) -> None:
    """Marks in every message of the log, and in its summary half of the keys: that is made of what was said."""
    aim = turnlog.target("openai-chat", "gpt-4o")
    for number, way in enumerate(WAYS):
        with closing(open_store(str(tmp_path / "s.db"))) as store:
            with turnlog.open(
                f"s{number}", store=store, target=aim, settings=turnlog.Settings(redact=Redactor(live=True))
            ) as session:
                secrets = talk(session, str(number))
                session.compact(**way)  # type: ignore[arg-type]
                assert secrets[-1] in json.dumps(session.request().body)
            assert pieces(store, f"s{number}", secrets) == []


@pytest.mark.slow
def test_an_export_of_before_a_scrub_is_the_same_session(tmp_path: Path) -> None:
    """A second session, `ID.2`, for an export whose summaries have other marks than the scrubbed ones."""
    place, aim = str(tmp_path / "s.db"), turnlog.target("openai-chat", "gpt-4o")
    with turnlog.open("s", store=place, target=aim, settings=turnlog.Settings(redact=False)) as session:
        secrets = talk(session, "export")
        session.compact(keep=2)
    assert main(["export", "s", "--format", "jsonl", "--output", str(tmp_path / "e.jsonl"), "--store", place]) == 0
    assert main(["scrub", "s", "--yes", "--store", place]) == 0
    for store in (place, str(tmp_path / "other.db")):
        assert main(["import", str(tmp_path / "e.jsonl"), "--store", store]) == 0
        with closing(open_store(store)) as opened:
            assert [info.id for info in opened.sessions()] == ["s"]
            assert pieces(opened, "s", secrets) == []


HUB, MARK = "token ghp_x7Kq2mNv9LpR4tYw8ZcB1dFgH6jS3aEuT5oP", "[redacted:github-token:6a5a]"
WORDS = "password: Hunter2hunter"


@pytest.mark.parametrize(
    ("secret", "text", "left"),
    [
        (HUB, "uses ghp_x7Kq2mNv9LpR …", f"uses {MARK} …"),
        (HUB, "… H6jS3aEuT5oP, and", f"… {MARK}, and"),
        (HUB, "ghp_x7K is short", "ghp_x7K is short"),
        (WORDS, "is Hunter2hu... by", "is [redacted:password]... by"),
        (WORDS, "is … r2hunter by", "is … [redacted:password] by"),
        (WORDS, "is Hunter2hu by", "is Hunter2hu by"),
        (WORDS, "is … bob:Hunter2hunter, by", "is … bob:[redacted:password], by"),
        (WORDS, "is Hunter2hunters by", "is Hunter2hunters by"),
        (WORDS, "is r2hunter by", "is r2hunter by"),
    ],
)
def test_what_counts_as_a_piece(secret: str, text: str, left: str) -> None:
    """Words of a summary that are lost since a password begins as they do, or pieces that are left: all of a password
    too, where the name that told it was cut off."""
    attentive = Attentive(Redactor())
    assert attentive.text(secret)[1] and not Redactor().text(text)[1]
    assert attentive.pieces.text(text)[0] == left


def test_a_summary_that_is_cut_off_in_what_its_model_made_up() -> None:
    """A key that stands in no message, and whole in what a model wrote: cut to fit, half of it in a decision."""
    store = RedactingStore(open_store(":memory:"), Redactor(live=False))
    store.create("s")
    store.append("s", [Draft(SummaryRecord("key", "made", text=f"The {HUB} is in use.", summarizer="m"))])
    shown = [{"role": "user", "parts": [{"type": "text", "text": f"The {HUB[:30]}"}]}]
    (record,) = store.append("s", [Draft(Decision("compact", 1, 1, detail={"replacement": shown, "at": 1}))])
    assert isinstance(record.body, Decision)
    assert text_of(record.body.replacement[0]) == f"The token {MARK}"


def test_a_refusal_is_quoted_in_whole_words() -> None:
    """A model that declines to summarise a key, quoted with half of it."""
    declined = f"I'm sorry, but I cannot repeat {'x' * 70}, {HUB}, here."
    fault = fault_of(declined, Material(messages=(), target=500, count=len))
    assert fault == ("refusal", f"it declined: {declined[: declined.index('ghp_') - 1]}")


@pytest.mark.parametrize("title", ["Use the key and then…", "Use the [redacted:aws-key:1234]…"])
def test_a_title_of_another_line_stays(title: str) -> None:
    """A session called by some other line that begins alike and has a secret where the title has words, or another."""
    assert redacted_title(title, ["Use the [redacted:github-token:6a5a] now"], Redactor()) == (title, {})
