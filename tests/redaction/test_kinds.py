"""Kinds of secrets in use today, in the settings in which agents meet them."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kinds import FORMED, KINDS, NAMED, PLACED, Planted, drawn, planted

from turnlog import Redactor

REDACTOR = Redactor()
ALL = list(planted())


def left(secret: str, text: str) -> bool:
    """Whether `text` has the secret, or half of it."""
    half = max(4, len(secret) // 2)
    return secret in text or (len(secret) > 8 and (secret[:half] in text or secret[-half:] in text))


def test_there_are_enough_kinds() -> None:
    """A collection that shrinks, or whose kinds are not in all six settings, would promise what nobody checks."""
    assert len(KINDS) == len(set(KINDS)) >= 208
    assert len(ALL) == 6 * len(KINDS) and len({(one.kind, one.setting) for one in ALL}) == len(ALL)
    assert all(one.secret in one.text for one in ALL)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_found_in_every_setting(kind: str) -> None:
    """A key of this service would stay on the disk, whole or half of it."""
    missed = [one.setting for one in ALL if one.kind == kind and left(one.secret, REDACTOR.text(one.text)[0])]
    assert missed == []


@given(kind=st.sampled_from(sorted(FORMED)), seed=st.integers(0, 499))
@example(kind="letta", seed=1)  # it is cut into short runs by slashes
@example(kind="composio", seed=366)  # no digit, and no capitals but at the end of a part
def test_other_values_of_a_form_are_found_too(kind: str, seed: int) -> None:
    """The expression fits the one value of the collection, but not most other keys of the service. All 500 seeds of
    each kind are found; of thousands, some have no digit and no capitals but as names in programs have them."""
    secret = drawn(FORMED[kind], seed)
    clean, counts = REDACTOR.text(f"with {secret} since Monday")
    assert counts and clean != f"with {secret} since Monday"


@given(st.sampled_from([one for one in ALL if one.setting == "prose"]))
def test_what_is_told_in_text_is_told_in_arguments(one: Planted) -> None:
    """Secrets would stay in the arguments of calls, which are looked through as values and not as text."""
    value = {"path": "/tmp/x", "content": one.text}
    clean = REDACTOR.value(value, {}, ids=False)
    assert not left(one.secret, json.dumps(clean)) and clean["path"] == "/tmp/x"


@pytest.mark.parametrize(
    "text",
    [
        "re_compiled_expression_of_names = re_other",
        "fw_interface_configuration_reader()",
        "class md-primary-background-colour",
        "key_of_the_innermost_dictionary_that_holds_it",
        "api-gateway-service-account-reader",
        "vca_interconnect_register_access_width",
        "secret-live-in-the-house-of-the-old-people",
        "docker run -p 3306:3306 mysql -p 3306",
        "mysql -h db -u root -p shop",
        "mysql -h db -u root -p$PASSWORD shop",
        "sshpass -p $PASSWORD ssh host",
        'sshpass -p "${PASSWORD}" ssh host',
        "Cookie: theme=dark; lang=en",
        "the cookie named theme=dark and others",
        '{"auth": "required"}',
        '{"auth": "oauth2-with-refresh"}',
        "the machine on which they login has a password field",
        "src/app.py:5432: the port of the server",
        "awk '{print $1$2$3}' file",
        "MAX_TOKEN=4096",
        "API_TOKEN=process.env.MY_TOKEN_2",
        "access_token = response.body.accessTokenV2Long",
        "password = form.password_confirmation_2",
        "private_key: ed25519.Ed25519PrivateKey, f_priv: _FragList",
        'headers = {"X-aws-ec2-metadata-token": imdsv2_session_token}',
        "token: tokenizer.PreTrainedTokenizerFast2x",
        "secret = sk-this-is-a-css-class-nm",
        "ak_key_of_the_accounts_",
        "https://hooks.zapier.com/hooks/catch/",
        "EOS_TOKEN=</s>",
        "EOS_TOKEN=eos_token1",
        "GITHUB_TOKEN=${{ secrets.GITHUB_TOKEN }}",
        "API_TOKEN=$1",
        "API_TOKEN=os.environ1",
        "define('WP_DEBUG', true); define('DB_NAME', 'wordpress1');",
        "define('DB_PASSWORD', getenv('DB_PASSWORD'));",
        "redis-cli -h cache ping",
        "client-key-data: <base64>",
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    ],
)
def test_what_only_resembles_a_secret_stays(text: str) -> None:
    """A hole in ordinary code, in a command or in a table of words."""
    assert REDACTOR.text(text) == (text, {})


@pytest.mark.parametrize("kind", sorted(NAMED))
def test_a_name_in_an_object_tells_a_secret(kind: str) -> None:
    """A key in the environment that a tool is given as an object."""
    name, form = NAMED[kind]
    secret = drawn(form, kind)
    for value in ({name: secret}, {"env": [{"name": name, "value": secret}]}):
        assert not left(secret, json.dumps(REDACTOR.value(value, {}, ids=False)))


@pytest.mark.parametrize("kind", sorted(PLACED))
def test_the_rest_of_the_file_stays(kind: str) -> None:
    """A password that takes half of its file with it: the host, the user, the options of the command."""
    place, form = PLACED[kind]
    secret = drawn(form, kind)
    clean, counts = REDACTOR.text(place.replace("§", secret))
    before, behind = map(str.strip, place.split("§"))
    assert sum(counts.values()) == 1
    assert clean.startswith(before.removesuffix("theme=dark; sessionid=").removesuffix("connect.sid="))
    assert clean.strip().endswith(behind)
