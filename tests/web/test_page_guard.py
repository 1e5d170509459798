"""Who gets pages, and that no address leads out of them."""

from __future__ import annotations

import gc
import stat
from pathlib import Path
from urllib.parse import quote

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed: no page is served")

from serving import COOKIE, OURS, PORT, ROOT, TOKEN, Answered, ask
from turnlog.errors import BudgetError
from turnlog.log.messages import Message, Text
from turnlog.log.records import MessageRecord
from turnlog.log.store import Draft
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.testing.hostile import HOSTILE
from turnlog.web.app import ServedPages
from turnlog.web.guard import Guard, kept_token

HOST = {"host": f"127.0.0.1:{PORT}"}
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
ODD = (
    "../../etc/passwd",
    "a/b",
    "https://example.com/x?y=1#z",
    "a%2fb",
    "<script>alert(1)</script>",
    "é ü",
    "con",
    "~",
)


@pytest.fixture(name="store")
def a_store() -> MemoryStore:
    """A store with a session of one secret word, and sessions whose ids are no names."""
    store = MemoryStore()
    for name in ("s1", *ODD):
        store.create(name, title=f"title of {name}")
        store.append(name, [Draft(MessageRecord(Message("user", (Text("the secret word"),))))])
    return store


@pytest.fixture(name="app")
def an_app(store: MemoryStore) -> Guard:
    """Its pages behind their guard."""
    return Guard(ServedPages(store, ROOT), TOKEN, PORT)


def refused(answer: Answered) -> bool:
    """Whether an answer gives nothing away."""
    assert "title of" not in answer.text and "secret word" not in answer.text and TOKEN not in str(answer)
    return answer.status in (403, 405, 421)


def test_the_token_becomes_a_cookie(app: Guard) -> None:
    """The token stays in the address, where it is copied and shown, or the cookie can be read by scripts."""
    answer = ask(app, f"/s/s1?at=1&token={TOKEN}", HOST)
    assert (answer.status, answer.headers["location"]) == (303, f"{ROOT}/s/s1?at=1")
    value, *rest = answer.headers["set-cookie"].split("; ")
    assert value == COOKIE and {"HttpOnly", "SameSite=Strict", f"Path={ROOT}/"} <= set(rest)
    assert ask(app, "/s/s1?at=1", {**HOST, "cookie": value}).status == 200


def test_a_link_of_another_site_with_the_token_opens_the_page(app: Guard) -> None:
    """The link of a terminal in a browser leads to a refusal: the redirect would still be the other site's."""
    answer = ask(app, f"/?token={TOKEN}", {**HOST, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"})
    assert (answer.status, answer.headers["refresh"]) == (200, f"0;url={ROOT}/")


@pytest.mark.parametrize(
    "path", ["//example.com/x", "/\\example.com", "///example.com", "/%2f%2fexample.com", "/%0d%0aX:y"]
)
def test_a_redirect_stays_here(app: Guard, path: str) -> None:
    """An address with the token leads to another server, or writes a header."""
    for root in (ROOT, ""):
        assert ask(app, f"{path}?token={TOKEN}", HOST, root=root).headers["location"] == ROOT + path


@pytest.mark.parametrize("root", ["", "/", ROOT[:-1], ROOT + "0", "/x" + ROOT, "/" + ROOT, ROOT.replace("/", "/%2e/")])
def test_only_who_knows_the_path_is_answered(app: Guard, root: str) -> None:
    """The cookie is for a path that another server of this machine can find out, and have browsers send it."""
    for more in ({}, {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}):
        answer = ask(app, "/s/s1", {**OURS, **more}, root=root)
        assert refused(answer) and ROOT not in answer.text.replace(root, "") and ROOT not in str(answer.headers)


def test_a_whole_address_in_place_of_a_path_is_refused(app: Guard) -> None:
    """A proxy's form of a request is answered with a page that does not say what is wrong."""
    assert ask(app, f"{ROOT}/s/s1", root=f"http://127.0.0.1:{PORT}").status == 400


@pytest.mark.parametrize(
    "headers",
    [
        {},
        HOST,
        {**HOST, "cookie": f"turnlog-{PORT}="},
        {**HOST, "cookie": f"turnlog-{PORT}={TOKEN}x"},
        {**HOST, "cookie": f"turnlog-{PORT}={TOKEN[:-1]}"},
        {**HOST, "cookie": f"turnlog-{PORT}=é"},
        {**HOST, "cookie": f"turnlog-1={TOKEN}"},
        {**OURS, "host": f"evil.example:{PORT}"},
        {**OURS, "host": "127.0.0.1"},
        {**OURS, "host": f"127.0.0.1:{PORT + 1}"},
        {**OURS, "host": f"127.0.0.1.evil.example:{PORT}"},
        {**OURS, "host": f"localhost:{PORT}@evil.example"},
        {**OURS, "origin": "http://evil.example"},
        {**OURS, "origin": "null"},
        {**OURS, "origin": f"http://127.0.0.1:{PORT + 1}"},
        {**OURS, "origin": f"https://127.0.0.1:{PORT}"},
        {**OURS, "sec-fetch-site": "cross-site"},
        {**OURS, "sec-fetch-site": "same-site"},
        {**OURS, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/s/s1", "/s/s1/live", "/live", "/assets/page.js", "/nothing"])
def test_others_get_nothing(app: Guard, headers: dict[str, str], path: str) -> None:
    """A page of the web, a name that points here (rebinding) or another program reads sessions."""
    assert refused(ask(app, path, headers))


def test_a_wrong_token_is_refused(app: Guard) -> None:
    """Any token, or a second one beside the right one, is taken."""
    for query in ("token=", "token=x", f"token={TOKEN}&token=x", f"token={TOKEN}x", "token=%ff"):
        assert refused(ask(app, f"/?{query}", HOST))
    assert refused(ask(app, f"/?token={TOKEN}", {**HOST, "origin": "http://evil.example"}))


@pytest.mark.parametrize("host", [f"localhost:{PORT}", f"[::1]:{PORT}", f"127.0.0.1:{PORT}"])
def test_every_name_of_this_machine_is_answered(app: Guard, host: str) -> None:
    """A browser that writes localhost is refused."""
    headers = {"host": host, "cookie": f"a=b; {COOKIE}", "origin": f"http://{host}", "sec-fetch-site": "same-origin"}
    assert ask(app, "/", headers).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get", "X"])
def test_only_reading_is_answered(app: Guard, method: str) -> None:
    """Something changes through a page, or another method has its own way through."""
    answer = ask(app, "/", method=method)
    assert refused(answer) and (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "path", ["/", "/assets/page.css", "/s/s1", "/s/none", "/x", "/s/s1/markdown", "/media/0", "/?token=x"]
)
def test_every_answer_has_the_headers(app: Guard, path: str) -> None:
    """A page without its policy runs what a transcript says."""
    for headers in (OURS, HOST):
        answer = ask(app, path, headers)
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        cached = "no-cache" if path.startswith("/assets") and answer.status == 200 else "no-store"
        assert answer.headers["cache-control"] == cached


@pytest.mark.parametrize("session_id", ODD)
def test_an_id_is_a_name_and_no_path(app: Guard, session_id: str) -> None:
    """A session whose id has slashes or dots cannot be opened, or its address is another's."""
    answer = ask(app, f"/s/{quote(session_id, safe='')}")
    assert answer.status == 200 and "secret word" in answer.text and "<script>alert" not in answer.text
    assert ask(app, f"/s/{quote(session_id, safe='')}/markdown").headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    "path",
    [
        "/../etc/passwd", "/..%2f..%2fetc/passwd", "/s/..", "/s/%2e%2e", "/s/..%2f..%2fetc%2fshadow", "/%00", "//",
        "/assets/../page.py", "/assets/..%2fframe.py", "/assets/%2e%2e%2fframe.py", "/assets/frame.py", "/s//",
        "/assets/page.css%00", "/media/..%2fx", "/media/" + "A" * 64, "/media/" + "0" * 64, "/s/s1/r/0", "/s/s1/r/2",
        "/s/s1/r/-1", "/s/s1/r/1e3", "/s/s1/r/٣", "/s/s1/r/" + "9" * 40, "/s/s1/x", "/s/s1/", "/s/%ff%fe",
        "/s/s1/r/1/2", "/s/" + "x" * 4000,
    ],
)  # fmt: skip
def test_no_address_leads_out(app: Guard, path: str) -> None:
    """A file of the machine is shown, or an odd address is an error in the program."""
    answer = ask(app, quote(path, safe="/%"))
    assert answer.status in (400, 404) and "root:" not in answer.text and "Traceback" not in answer.text


def test_hostile_texts_in_addresses_are_answered(app: Guard) -> None:
    """A query makes the program fail, or comes back as markup."""
    for words in HOSTILE:
        value = quote(words[:500].encode("utf-8", "surrogatepass"))
        for target in (f"/?q={value}&page={value}", f"/hits?q={value}", f"/s/s1?at={value}", f"/figures?since={value}"):
            answer = ask(app, target)
            assert answer.status in (200, 400) and "<script>" not in answer.text, (target, answer.text)


def test_only_pictures_are_media(app: Guard, store: MemoryStore) -> None:
    """A page or a script that a transcript holds as an image is run as one."""
    picture = store.put_blob(PNG)
    answer = ask(app, f"/media/{picture}")
    assert (answer.status, answer.headers["content-type"], answer.body) == (200, "image/png", PNG)
    for data in (b"<html><script>1</script>", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"%PDF-1.7", b""):
        assert ask(app, f"/media/{store.put_blob(data)}").status == 404


def test_an_error_shows_nothing_of_the_program(
    app: Guard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A traceback on a page shows paths and texts."""

    def fails(*given: object, **named: object) -> None:
        raise ZeroDivisionError("a text of /home/ann \x1b[31m")

    monkeypatch.setattr("turnlog.web.app.page.session_page", fails)
    answer = ask(app, "/s/s1")
    assert answer.status == 500 and "ann" not in answer.text and "Zero" not in answer.text
    assert "ZeroDivisionError" in caplog.text and "\x1b" not in caplog.text


def test_a_request_that_cannot_fit_is_told(app: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks for such a request learns that turnlog failed, not what does not fit."""

    def fails(*given: object) -> None:
        raise BudgetError(1_000, {"tools": 2_000})

    monkeypatch.setattr("turnlog.web.app.past_request.past_request", fails)
    answer = ask(app, "/s/s1/requests/1/body")
    assert answer.status == 400 and "tools 2,000" in answer.text


def test_what_fails_later_is_said_on_the_page(app: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a page looks like a whole one."""

    def fails(*given: object, **named: object) -> object:
        yield "x" * 100_000
        raise ZeroDivisionError

    monkeypatch.setattr("turnlog.web.app.page.session_page", fails)
    answer = ask(app, "/s/s1")
    assert answer.status == 200 and "The rest cannot be shown" in answer.text


@pytest.mark.slow
def test_pages_of_requests_leave_no_session(app: Guard, store: MemoryStore) -> None:
    """A session refers to itself and holds all its texts: ten pages of a session of 10 MB would fill 400 MB."""
    store.append("s1", [Draft(MessageRecord(Message("assistant", (Text("yes"),)), model="gpt-4o"))])
    gc.collect()
    before = sum(isinstance(each, Session) for each in gc.get_objects())
    gc.disable()
    try:
        for path in ("window", "requests/2", "requests/2/body"):
            assert ask(app, f"/s/s1/{path}", OURS).status == 200
            assert sum(isinstance(each, Session) for each in gc.get_objects()) == before
    finally:
        gc.enable()


def test_a_head_has_no_body_and_no_stream(app: Guard) -> None:
    """A HEAD of events never ends."""
    assert ask(app, "/s/s1/live", method="HEAD") == ask(app, "/s/s1/live", method="HEAD")
    assert ask(app, "/s/s1/live", method="HEAD").body == b""


def test_the_token_is_kept_for_its_user_alone(tmp_path: Path) -> None:
    """Another user reads the token, open pages end with the server, or a token that others may know is used."""
    place = tmp_path / "a" / "serve-token"
    token = kept_token(place=place)
    assert len(token) >= 40 and stat.S_IMODE(place.stat().st_mode) == 0o600
    assert kept_token(place=place) == token
    renewed = kept_token(new=True, place=place)
    assert renewed != token and kept_token(place=place) == renewed
    place.chmod(0o644)
    assert kept_token(place=place) != renewed
    for content in (b"", b"short", b"\xff" * 60):
        place.write_bytes(content)
        assert len(kept_token(place=place)) >= 40
