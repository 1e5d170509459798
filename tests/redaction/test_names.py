"""What is stored as it is (ids, labels, names of sections) has no secrets, and what is shown has none either."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kinds import FORMED, drawn

import turnlog
from turnlog import InputError, Redactor
from turnlog.importers import Imported
from turnlog.importers.sync.session import without_secrets
from turnlog.log.records import Configuration
from turnlog.prompt.sections import Section
from turnlog.providers.error_bodies import error_text
from turnlog.redaction.drafts import redacted_bytes
from turnlog.runners.refusals import refusal
from turnlog.stores import open_store

KEY = "ghp_" + "x7Kq2mNv9LpR4tYw8ZcB1dFgH6jS3aEuT5oP"


def files_of(folder: Path) -> str:
    """The names and contents of all files in a folder."""
    return "".join(f"{file}{file.read_bytes()!r}" for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("store", ["s.db", "files:s"])
def test_a_name_with_a_secret_is_refused_where_it_is_made(tmp_path: Path, store: str) -> None:
    """A key in the name of a file, of a lock, in the table of sessions, in labels, by which nothing is redacted."""
    place = store.replace("s", str(tmp_path / "s"), 1) if store == "s.db" else f"files:{tmp_path / 's'}"
    with pytest.raises(InputError, match="session_id contains a secret") as refused:
        turnlog.open(f"a-{KEY}", store=place)
    assert KEY not in str(refused.value)
    with pytest.raises(InputError, match="labels contains a secret"):
        turnlog.open("b", store=place, labels={"user": KEY})
    with turnlog.open("c", store=place) as session:
        with pytest.raises(InputError, match="new_id contains a secret"):
            session.fork(f"d-{KEY}")
        with pytest.raises(InputError, match="labels contains a secret"):
            session.label({"user": KEY})
        with pytest.raises(InputError, match="labels contains a secret"):
            session.label({"api_token": "x7Kq2mNv9LpR4tYw"})
        with pytest.raises(InputError, match="the name of a section contains a secret"):
            session.prompt.add(Section(f"with {KEY}", "text"))
        with pytest.raises(InputError, match="a label of the prompt contains a secret"):
            session.prompt.label(KEY)
        assert session.label({"user": "ann"}) == {"user": "ann"}
    with closing(open_store(place)) as opened:
        assert [info.id for info in opened.sessions()] == ["c"]
    assert KEY not in files_of(tmp_path)


def test_what_is_on_record_opens_as_before(tmp_path: Path) -> None:
    """A session of an older version, whose id has a key, could never be opened again."""
    place = str(tmp_path / "s.db")
    plain = turnlog.load_settings(redact=False)
    with turnlog.open(f"a-{KEY}", store=place, settings=plain, labels={"user": KEY}) as session:
        session.user("Hello.")
    with turnlog.open(f"a-{KEY}", store=place, labels={"user": KEY}) as session:
        assert session.id == f"a-{KEY}" and session.log.labels == {"user": KEY}
        assert session.label({"team": "x"}) == {"user": KEY, "team": "x"}


def test_an_imported_id_with_a_secret_becomes_a_hash() -> None:
    """A transcript that is named after a key would bring it into the store."""
    named = Imported(session_id=f"a-{KEY}", parent=KEY, format="test", created=KEY, drafts=())
    clean = without_secrets(named, Redactor())
    assert KEY not in repr(clean) and clean.session_id and clean.parent
    assert clean == without_secrets(named, Redactor())
    plain = Imported(session_id="a", parent="b", format="test", drafts=())
    assert without_secrets(plain, Redactor()) == plain


@pytest.mark.parametrize(
    "url",
    [
        "https://bob:hunter22x@h.example/v1",
        "https://:hunter22x@h.example",
        "https://h.example/v1?api_key=hunter22x&a=1",
    ],
)
def test_a_password_in_an_address_is_not_shown(url: str) -> None:
    """A traceback, a log line or a notebook that shows the target shows the password of its server."""
    target = turnlog.target("openai-chat", "gpt-4o", base_url=url)
    for shown in (repr(target), str(target), repr(Configuration("openai-chat", "gpt-4o", base_url=url))):
        assert "hunter22x" not in shown and "h.example" in shown
    assert target.base_url == url


@given(st.sampled_from(sorted(FORMED)), st.sampled_from([None, 400, 401, 429, 500]))
def test_an_error_never_repeats_a_key(kind: str, status: int | None) -> None:
    """Providers quote the key that they refuse; an error goes into logs and issues."""
    secret = drawn(FORMED[kind], kind)
    said = f"Incorrect API key provided: {secret}. Find yours at https://example.com/keys"
    told = refusal("test", "set a key", said, status=status)
    assert secret not in f"{told} {told!r} {told.args}"
    assert secret not in error_text({"type": "invalid_request_error", "message": said})
    assert secret not in error_text(said) and error_text({"message": "Slow down"}) == "Slow down"


@given(st.sampled_from(["utf-8", "utf-16", "utf-16-be", "latin-1", "cp1252"]), st.text("abc äöü\n", max_size=40))
def test_text_files_in_other_encodings_are_redacted(encoding: str, around: str) -> None:
    """A key in a file that Windows wrote: it would be in the store and in every export of it."""
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    data = mark + f"ä{around} {KEY} {around}".encode(encoding)
    clean, counts = redacted_bytes(data, Redactor())
    assert counts == {"github-token": 1} and KEY not in clean[len(mark) :].decode(encoding)
    assert clean.startswith(mark + f"ä{around} [redacted:github-token:".encode(encoding))


@given(st.binary(max_size=200))
def test_files_without_secrets_stay(data: bytes) -> None:
    """A picture or an archive that is read as text and written again as something else."""
    assert redacted_bytes(data, Redactor()) == (data, {})
