"""What is a secret, what is none, and what stands in its place."""

from __future__ import annotations

import json
import re
import string
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from planted import EXACT, SECRETS, bodies, letters

from draws import LONG, draws
from turnlog import Redactor
from turnlog.errors import InputError
from turnlog.log.codec import encode_record
from turnlog.log.messages import Message, Reasoning, Text, ToolCall, parse_arguments
from turnlog.log.records import MessageRecord, Record
from turnlog.redaction.drafts import redacted
from turnlog.redaction.named import entropy
from turnlog.redaction.shapes import SHAPES

REDACTOR = Redactor()
K = draws(80, 1_000)
"""How many times the units of hostile texts are repeated: 50 KB in a normal run, 600 KB in a long one."""
AROUND = ("%s", "Here it is: %s ok", '{"x": "%s"}', "a\n%s\n", "(%s)", "`%s`, and", "a\\n%s\\nb", "%s\r\n")
AROUND += ("\x1b[32m%s\x1b[0m", "\x1b[1;38;2;255;255;255m%s", "\\x1b[m\\x1b[K%s", "\\u0022%s\\u0022", "it\\x0a%s\\x0a")
_PIECES = st.sampled_from(
    [text for text, _ in SECRETS.values()]
    + [
        "password=",
        'token: "',
        "://u:",
        "@",
        "[redacted:jwt:12ab]",
        "[redacted:password]",
        "Bearer ",
        '"',
        "\n",
        " ",
        "-----BEGIN ",
    ]
)


def untagged(text: str) -> str:
    """`text` with marks that do not tell secrets apart."""
    return re.sub(r":[0-9a-f]{4}\]", "]", text)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", SECRETS)
def test_secrets_of_known_kinds_are_found(name: str, around: str) -> None:
    """A key that stands on disk as it was said."""
    text, secret = SECRETS[name]
    clean, counts = REDACTOR.text(around % text)
    assert secret not in clean and counts
    assert REDACTOR.text(clean) == (clean, {}), "redacting twice changed something"


@pytest.mark.parametrize("name", SECRETS)
def test_secrets_are_found_beside_encoded_data(name: str) -> None:
    """A key in a long text of few different characters: most needles are not looked for there."""
    text, secret = SECRETS[name]
    data = "0f" * 5_000
    clean, counts = REDACTOR.text(f"{data} {text}\n{data}")
    assert secret not in clean and data in clean and counts


def test_there_are_many_kinds() -> None:
    """Rows that are lost from the table, or that no needle leads to."""
    assert len({shape.kind for shape in SHAPES}) >= 60
    assert all(shape.needles and min(map(len, shape.needles)) >= 2 for shape in SHAPES)


@pytest.mark.parametrize(
    "text",
    [
        'password = "<your password>"',
        "API_KEY=${API_KEY}",
        'token = os.environ["TOKEN"]',
        "api_key = os.getenv('K')",
        "password=password",
        'api_key="your-api-key-here"',
        "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "password: str",
        "password: string;",
        "token = self.next_token()",
        "max_tokens=4096",
        '"total_tokens": 123456789012',
        "token_count: 12",
        "def login(user, password): ...",
        "password = get_password(user1)",
        "password=${DB_PASSWORD}",
        'PASSWORD="changeme"',
        '"password": "********"',
        "key = lines[12]",
        'key: "abc123def456ghi7"',
        '{"key": "row17-column4"}',
        "primary key=a1b2c3d4e5f6g7h8",
        "tokens = text.split(' ')",
        "PASS: test_login2",
        "git commit 8f14e45fceea167a5a36dedd4bea2543",
        "postgres://user:${PASSWORD}@host/db",
        "https://user:password@host",
        "http://localhost:8080/@scope/pkg",
        "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "d41d8cd98f00b204e9800998ecf8427e",
        "123e4567-e89b-42d3-a456-426614174000",
        "task-list-of-all-the-things-we-have-to-do",
        "the secret: be kind",
        "f(password=pw1, user=u)",
        "compass = 'n0rth-w3st'",
        '<input type="password" name="pw2">',
        "Bearer of bad news everyone",
        f"docker://alpine:3.18@sha256:{EXACT['sha256']}",
        f"uses: docker://node:20-alpine@sha256:{EXACT['sha256']}",
        "token = next_token_id2",
        "tokenKey = nextTokenKey21",
        "client_secret := make_client_secret_v2",
        "Authorization: AWS4-HMAC-SHA256 Credential=x",
        'password="a\\"b c"',
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    """Ordinary code and prose that comes back with holes in it."""
    assert REDACTOR.text(text) == (text, {})


@given(st.lists(_PIECES | st.text(max_size=8), max_size=12).map("".join))
@example(f"api_key={letters(1, 20)}[redacted:jwt:12ab]api_key={letters(2, 20)}")
@example(f"{SECRETS['github classic'][0]}DB_PASSWORD=hunter2hunter2.")
def test_redacting_is_idempotent(text: str) -> None:
    """A log that changes again when it is imported a second time."""
    clean, _ = REDACTOR.text(text)
    assert REDACTOR.text(clean) == (clean, {})


@given(st.text(alphabet=string.printable + "äß\u0130\ud800\U0001f600"))
def test_any_text_can_be_looked_through(text: str) -> None:
    """A text of which letters get longer in lower case, or that no encoding holds, ends in a traceback."""
    assert re.sub(r"\[redacted:[^\]]*\]", "", REDACTOR.text(text)[0]) is not None


def test_tags_tell_secrets_apart() -> None:
    """A model that takes two keys for one, or one for two."""
    one, other = SECRETS["github classic"][0], "ghp_" + "Ab1" * 12
    clean, counts = REDACTOR.text(f"{one} {other} {one}")
    first, second, third = clean.split()
    assert first == third != second
    assert re.fullmatch(r"\[redacted:github-token:[0-9a-f]{4}\]", first)
    assert counts == {"github-token": 3}


def test_a_password_has_no_tag_that_guesses_could_be_checked_against() -> None:
    """Somebody who has the log tries a word list against the tag."""
    text = 'password = "hunter2!"'
    assert REDACTOR.text(text)[0] == 'password = "[redacted:password]"'
    keyed = {Redactor(key=key).text(text)[0] for key in (b"one", b"two")}
    assert len(keyed) == 2 and all(re.search(r"\[redacted:password:[0-9a-f]{4}\]", clean) for clean in keyed)


def test_patterns_of_ones_own() -> None:
    """Own patterns that are left out, or that replace more than the secret they name."""
    own = Redactor({"staff": r"EMP-\d{6}", "door": r"door code (?P<secret>\d{4})"})
    clean, counts = own.text(f"EMP-123456, door code 4711, {SECRETS['npm'][0]}")
    assert counts == {"staff": 1, "door": 1, "npm-token": 1}
    assert clean.startswith("[redacted:staff], door code [redacted:door], [redacted:npm-token:")
    assert Redactor({"staff": r"EMP-\d{6}"}, known=False).text(SECRETS["npm"][0])[1] == {}


@pytest.mark.parametrize("patterns", [{"Bad Kind": "x"}, {"kind": "("}, {"": "x"}, {"kind": 5}])
def test_wrong_patterns_are_refused(patterns: dict[str, Any]) -> None:
    """A pattern that can never match, or a mark that would not be known again."""
    with pytest.raises(InputError, match="redact"):
        Redactor(patterns)


@pytest.mark.slow
def test_every_text_of_every_record_is_redacted() -> None:
    """A place of a record that somebody forgot: every kind of secret in each of them in turn."""
    names = list(SECRETS)
    for shift in range(len(names)):
        turned = [SECRETS[name] for name in names[shift:] + names[:shift]]
        for body in bodies(text for text, _ in turned):
            clean, counts = redacted(body, REDACTOR)
            encoded = encode_record(Record(1, "", clean)).decode()
            left = [secret for _, secret in turned if secret in encoded or json.dumps(secret)[1:-1] in encoded]
            assert left == [] and counts
            assert redacted(clean, REDACTOR) == (clean, {})
            before = encode_record(Record(1, "", body)).decode()
            assert all(encoded.count(exact) == before.count(exact) for exact in EXACT.values())


def test_records_without_secrets_are_the_same_objects() -> None:
    """Copying what nothing was found in costs time on each append."""
    for body in bodies(["plain"]):
        assert redacted(body, REDACTOR)[0] is body


@pytest.mark.parametrize(
    "raw",
    [
        '{ "password" : "hunter2!" }',
        json.dumps({"a": SECRETS["github classic"][0]}).replace("_", "\\u005f"),
        '{"password": 12345678}',
        json.dumps({"a": SECRETS["npm"][0]})[:-1] + ', "a": 1}',
        '{"cmd": "export DB_PASSWORD=\\"hunter2!\\""}',
    ],
)
def test_arguments_stay_json(raw: str) -> None:
    """Arguments that no longer parse, or whose text says something else than their value."""
    arguments, spelled = parse_arguments(raw)
    body, counts = redacted(MessageRecord(Message("assistant", (ToolCall("c", "f", arguments, spelled),))), REDACTOR)
    assert isinstance(body, MessageRecord)
    call = body.message.parts[0]
    assert isinstance(call, ToolCall)
    assert json.loads(call.raw_arguments) == call.arguments
    kept = call.raw_arguments + json.dumps(call.arguments)
    assert not any(secret in kept for secret in ("hunter2!", SECRETS["npm"][0], SECRETS["github classic"][0]))
    assert counts or "12345678" in raw


def test_keys_that_become_alike_stay_two() -> None:
    """An entry of an object that is lost because its key reads like another now."""
    counts: dict[str, int] = {}
    value = {"https://u:hunter21@h.example": 1, "https://u:hunter22@h.example": 2}
    assert sorted(REDACTOR.value(value, counts).values()) == [1, 2]
    assert counts == {"url-password": 2}


def test_named_values_of_json_are_found() -> None:
    """A password that stands alone under its name, as JSON has it."""
    counts: dict[str, int] = {}
    value = {
        "password": "hunter2",
        "env": [{"name": "DB_PASSWORD", "value": "s3cr3tpw"}],
        "argv": ["mysql", "--password", "pa55word!"],
        "count": 3,
        "token": "next",
        "schema": {"password": {"type": "string"}},
    }
    mark = "[redacted:password]"
    assert REDACTOR.value(value, counts) == {
        **value,
        "password": mark,
        "env": [{"name": "DB_PASSWORD", "value": mark}],
        "argv": ["mysql", "--password", mark],
    }
    assert counts == {"password": 3}


def test_entropy() -> None:
    """A measure that does not tell random letters from words."""
    assert entropy("") == entropy("aaaa") == 0.0
    assert entropy("abcd") == 2.0


def test_signed_reasoning_keeps_its_signature() -> None:
    """A signature that was edited: no provider takes it again."""
    body = MessageRecord(Message("assistant", (Reasoning("p", SECRETS["npm"][0], signature="s" * 40),)))
    clean, _ = redacted(body, REDACTOR)
    assert isinstance(clean, MessageRecord) and isinstance(part := clean.message.parts[0], Reasoning)
    assert part.signature == "s" * 40 and "[redacted:npm-token:" in part.text


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "eyJ" * (200 * K),
        "-eyJ" * (150 * K),
        " sk-" * (150 * K),
        "password=xxxx" * (40 * K),
        "--token a" * (60 * K),
        "A" * (600 * K),
        "password=" * (60 * K),
        'password="' * (60 * K),
        "-----BEGIN PRIVATE KEY-----" * (20 * K),
        "://a:" * (100 * K),
        "AKIA" * (150 * K),
        "curl -u " * (60 * K),
        "key-" * (150 * K),
        "[redacted:jwt:12ab]" * (30 * K),
        "MT" * (250 * K),
        "://" + "a" * (600 * K),
        '\\"token\\": \\"' * (40 * K),
        "SG." * (200 * K),
        "Bearer " + "a" * (600 * K),
        "xoxb-" * (120 * K),
        "Authorization: token " * (30 * K),
        "pat" * (200 * K),
        "heroku " * (80 * K),
        'password="' + '\\"' * (200 * K),
        'password="\\"' * (60 * K),
        "\x1b[32msk-" * (60 * K),
        "password=" + "a1b" * (200 * K),
        "[;m" * (200 * K) + "mMT" * (100 * K),
        "authorization: " * (50 * K),
        "mysql " * (80 * K),
        "redis-cli -a " * (40 * K),
        "Cookie: a=" * (50 * K),
        "Cookie: " + "a=1;" * (120 * K),
        "machine a login " * (30 * K),
        "AZDO" * (120 * K),
        "+ASt" * (120 * K),
        "A" * (300 * K) + "%2B" * (60 * K),
        "a:5432:" * (70 * K),
        '"auth": "' + "aB1" * (150 * K),
        "define('AUTH_KEY','" * (25 * K),
        "A_TOKEN=" * (60 * K),
    ],
)
def test_hostile_text_ends(text: str) -> None:
    """An expression that runs away on a long text: pytest would hang here, and a session with it."""
    clean, _ = REDACTOR.text(text)
    assert REDACTOR.text(clean) == (clean, {})


def test_surroundings_stay() -> None:
    """What stands around a secret is cut or moved."""
    secret = SECRETS["npm"][0]
    clean, _ = REDACTOR.text(f"a {secret} b\n")
    assert clean.startswith("a [") and clean.endswith("] b\n")
    assert Text(clean).text == clean


@pytest.mark.parametrize(
    "text, clean",
    [
        ("password: Tr0ub4dor&3xyz", "password: [redacted:password]"),
        ("DB_PASSWORD=a8Fk;9dLq", "DB_PASSWORD=[redacted:password]"),
        ("Server=x;Password=abc123def;User=me", "Server=x;Password=[redacted:password];User=me"),
        ("https://x/?password=hunter22&name=joe", "https://x/?password=[redacted:password]&name=joe"),
        ("password=hunter2x;echo done", "password=[redacted:password];echo done"),
    ],
)
def test_a_password_goes_on_behind_a_separator(text: str, clean: str) -> None:
    """Half a password on disk, or the next pair or command taken for the other half."""
    assert Redactor().text(text)[0] == clean


@pytest.mark.parametrize(
    "text, clean",
    [
        (r'{"password": "abcd\"ef1234"}', '{"password": "[redacted:password]"}'),
        (r'password = "correct7\"horse9"', 'password = "[redacted:password]"'),
        (r'password="ab\"cd1234ef"', 'password="[redacted:password]"'),
        (r"password='\'\'cd1234ef', user='me'", "password='[redacted:password]', user='me'"),
        (r'{"password": "abcd1234\\", "x": "y"}', '{"password": "[redacted:password]", "x": "y"}'),
        (r"{\"password\": \"ab\\\"cd1234\", \"x\": 1}", r"{\"password\": \"[redacted:password]\", \"x\": 1}"),
        (r"{\"password\": \"abcd1234\\\\\", \"x\": 1}", r"{\"password\": \"[redacted:password]\", \"x\": 1}"),
        (r"password='abc1def\', user='me'", "password='[redacted:password]', user='me'"),
    ],
)
def test_a_quoted_password_goes_to_the_quote_that_ends_it(text: str, clean: str) -> None:
    """Half a password on disk, and JSON that no longer is: the quote in it was taken for the end."""
    found, counts = REDACTOR.text(text)
    assert untagged(found) == clean and counts == {"password": 1}


@given(st.text(alphabet="ab1\\\"'", min_size=6, max_size=12), st.integers(0, 2))
def test_a_password_in_json_goes_as_a_whole(password: str, deep: int) -> None:
    """Quotes and backslashes of every number, in JSON that stands in JSON: half of it is left, or no JSON."""
    value: Any = {"password": f"{password}Tr0ub{password[::-1]}", "x": "y"}
    clean: Any = {"password": "[redacted:password]", "x": "y"}
    for _ in range(deep + 1):
        value, clean = json.dumps(value), json.dumps(clean)
    found, counts = REDACTOR.text(value)
    assert untagged(found) == clean and counts == {"password": 1}


def test_a_password_at_an_image_with_a_digest_is_found() -> None:
    """The password of a registry, kept for the digest behind it."""
    clean, counts = REDACTOR.text(f"docker://bob:passw0rd@reg.example/alpine@sha256:{EXACT['sha256']}")
    assert clean.startswith("docker://bob:[redacted:url-password]@reg") and counts == {"url-password": 1}


def test_a_long_token_goes_to_its_end() -> None:
    """The half of a token that is longer than what is looked at; or what comes behind it."""
    clean, counts = REDACTOR.text(f"ACCESS_TOKEN={letters('long', 900)} x [redacted:jwt:12ab]")
    assert untagged(clean) == "ACCESS_TOKEN=[redacted:token] x [redacted:jwt]" and counts == {"token": 1}


def test_a_variable_in_a_shell_is_a_value() -> None:
    """What looks like the name of a variable, where there is none: the environment and options."""
    assert REDACTOR.text("TOKEN=next_token_id2x3")[1] == REDACTOR.text("run --token next_token_id2")[1] == {"token": 1}


@pytest.mark.slow
def test_secrets_in_long_texts() -> None:
    """A secret that is missed where a long text is searched in pieces, or found only with blanks around it."""
    key = "ghp_" + "x7Kq2mNv9LpR4tYw8ZcB1dFgH6jS3aEuT5oP"
    for at in (0, 1 << 20, (1 << 20) + 200, (1 << 20) - len(key), (1 << 20) - 10, (1 << 21) - 3, 2_200_000):
        for filler in ("word ", "abc+", "\n") if LONG else (("word ", "abc+", "\n")[at % 3],):
            text = (filler * (2_300_000 // len(filler)))[:at] + f" {key} " + "word " * 30_000
            text += filler * max(0, (2_300_000 - len(text)) // len(filler))
            clean, counts = Redactor().text(text)
            assert key not in clean and counts == {"github-token": 1}, (at, filler)
