"""More than 208 kinds of secrets in use today, made up, each in the six settings in which an agent meets it.

No value is a real key: all are drawn from a hash. A kind is a form, in which `{a20}` stands for 20 drawn letters and
digits (the letters of the forms are in `_ALPHABETS`). Where a kind has check digits, they are right. There are three
groups: `FORMED` are recognised by their form alone and stand beside no telling name, `NAMED` only by the name of their
variable or header, `PLACED` only by the file or command that they are in.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import string
from collections.abc import Iterator
from typing import NamedTuple

from planted import letters

__all__ = ["FORMED", "KINDS", "NAMED", "PLACED", "Planted", "drawn", "planted"]

_ALNUM = string.ascii_letters + string.digits
_ALPHABETS = {
    "a": _ALNUM,
    "w": _ALNUM + "_-",
    "h": "0123456789abcdef",
    "H": "0123456789ABCDEF",
    "d": string.digits,
    "u": string.ascii_uppercase + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "b": _ALNUM + "+/",
    "t": "abcdefghijklmnopqrstuvwxyz234567",
    "T": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    "c": _ALNUM + "./",
    "x": "AQgw",
}
_DRAWN = re.compile(r"\{(?:([a-zA-Z])([0-9]+)|(uuid|crc|jwt|b64:[^}]*))\}")


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _jwt(seed: object) -> str:
    """A signed JSON web token: its signature is right."""
    head, claims = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": "HS256", "typ": "JWT"}, {"sub": letters(seed, 8), "iat": 1760000000})
    )
    sealed = hmac.digest(letters(seed, 16).encode(), f"{head}.{claims}".encode(), hashlib.sha256)
    return f"{head}.{claims}.{base64.urlsafe_b64encode(sealed).decode().rstrip('=')}"


def _check_digits(text: str) -> str:
    """The last six characters of tokens of GitHub and npm: CRC32 of what comes before, in base 62."""
    crc, digits = binascii.crc32(text.encode()), ""
    while crc:
        crc, place = divmod(crc, 62)
        digits = (string.digits + string.ascii_uppercase + string.ascii_lowercase)[place] + digits
    return digits.rjust(6, "0")


def drawn(form: str, seed: object) -> str:
    """A value of this form, the same for the same seed."""
    made, place = "", 0
    for number, part in enumerate(_DRAWN.finditer(form)):
        made += form[place : part.start()]
        place = part.end()
        inner = (seed, number)
        if part[1]:
            made += letters(inner, int(part[2]), _ALPHABETS[part[1]])
        elif part[3] == "uuid":
            made += "-".join(letters((inner, n), n, _ALPHABETS["h"]) for n in (8, 4, 4, 4, 12))
        elif part[3] == "crc":
            made += _check_digits(made.rpartition("_")[2])
        elif part[3] == "jwt":
            made += _jwt(inner)
        else:
            made += _base64(part[3].removeprefix("b64:") + letters(inner, 20))
    return made + form[place:]


FORMED: dict[str, str] = {
    # services of models
    "openai": "sk-{a20}T3BlbkFJ{a20}",
    "openai-project": "sk-proj-{w74}T3BlbkFJ{w74}",
    "openai-service-account": "sk-svcacct-{w60}",
    "openai-admin": "sk-admin-{w74}T3BlbkFJ{w60}",
    "anthropic": "sk-ant-api03-{w93}AA",
    "anthropic-admin": "sk-ant-admin01-{w93}AA",
    "anthropic-oauth": "sk-ant-oat01-{w93}AA",
    "google": "AIza{w35}",
    "google-bound": "AQ.Ab8RN6{w44}",
    "google-oauth": "ya29.a0{w160}",
    "google-refresh": "1//0{d1}{w60}",
    "google-client-secret": "GOCSPX-{w28}",
    "bedrock": "ABSKQmVkcm9ja0FQSUtleS1{a80}={a0}",
    "bedrock-short": "bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29tLz9BY3Rpb249{a200}",
    "azure-openai": "{a52}JQQJ99{a2}ACHYHv6XJ3w3AAABACOG{a4}",
    "openrouter": "sk-or-v1-{h64}",
    "groq": "gsk_{a52}",
    "xai": "xai-{a80}",
    "perplexity": "pplx-{a48}",
    "deepseek": "sk-{h32}",
    "litellm": "sk-{a22}",
    "litellm-url-safe": "sk-{a11}_{a10}",
    "replicate": "r8_{a37}",
    "cerebras": "csk-{l48}",
    "nvidia": "nvapi-{w64}",
    "hugging-face": "hf_{a34}",
    "langsmith": "lsv2_pt_{h32}_{h10}",
    "langfuse": "sk-lf-{uuid}",
    "fireworks": "fw_{a24}",
    "firecrawl": "fc-{h32}",
    "jina": "jina_{h32}{w28}",
    "e2b": "e2b_{h40}",
    "wandb": "wandb_v1_{a27}_{a49}",
    "cursor": "key_{h64}",
    "cursor-newer": "crsr_{h64}",
    "tavily": "tvly-dev-{a32}",
    "pinecone": "pcsk_{a6}_{a63}",
    "elevenlabs": "sk_{h48}",
    "together": "tgp_v1_{w43}",
    "voyage": "pa-{w43}",
    "anyscale": "esecret_{l32}",
    "runpod": "rpa_{u46}",
    "runpod-newer": "rpa_{u44}{l6}",
    "novita": "sk_{a20}_{a22}",
    "letta": "sk-let-{b80}",
    "lambda": "secret_my-laptop_{h32}.{a32}",
    "steel": "ste-{a64}",
    "promptlayer": "pl_{h32}",
    "zep": "z_1dWlkIjoi{a60}.{w43}",
    "composio": "ak_{a9}-{a10}",
    "bitwarden": "0.{uuid}.{a30}:{b22}==",
    "infisical": "st.{h24}.{h32}.{h32}",
    "zapier": "https://hooks.zapier.com/hooks/catch/{d8}/{l7}",
    "modal": "as-{a22}",
    "vercel-gateway": "vck_{a56}",
    "helicone": "sk-helicone-{l7}-{l7}-{l7}-{l7}",
    "browserbase": "bb_live_{w27}",
    "apify": "apify_api_{a36}",
    "llamaindex": "llx-{a48}",
    "sourcegraph": "sgp_{h16}_{h40}",
    "brave-search": "BSA{w28}",
    "mem0": "m0-{a40}",
    # code, packages, builds
    "github": "ghp_{a30}{crc}",
    "github-oauth": "gho_{a30}{crc}",
    "github-app": "ghs_{a30}{crc}",
    "github-refresh": "ghr_{a70}{crc}",
    "github-fine": "github_pat_{a22}_{a59}",
    "gitlab": "glpat-{w20}",
    "gitlab-routable": "glpat-{w27}.01.{l9}",
    "gitlab-runner": "glrt-{w20}",
    "gitlab-registration": "GR1348941{w20}",
    "gitlab-job": "glcbt-64_{w20}",
    "gitlab-flags": "glffct-{w20}",
    "atlassian": "ATATT3xFfGF0{w171}={H8}",
    "bitbucket": "ATBB{a32}",
    "npm": "npm_{a30}{crc}",
    "pypi": "pypi-AgEIcHlwaS5vcmc{w150}",
    "rubygems": "rubygems_{h48}",
    "crates": "cio{a32}",
    "nuget": "oy2{l43}",
    "docker": "dckr_pat_{w27}",
    "docker-org": "dckr_oat_{w32}",
    "jfrog": "AKCp8{a68}",
    "jfrog-reference": "cmVmdGtuOjAxOj{a50}",
    "circleci": "CCIPAT_{a22}_{h40}",
    "circleci-project": "CCIPRJ_{a22}_{h40}",
    "buildkite": "bkua_{h40}",
    "sonar": "squ_{h40}",
    "sonar-project": "sqp_{h40}",
    "pulumi": "pul-{h40}",
    "prefect": "pnu_{a36}",
    "infracost": "ico-{a32}",
    "octopus": "API-{u26}",
    "harness": "pat.{w22}.{h24}.{a20}",
    "postman": "PMAK-{h24}-{h34}",
    "figma": "figd_{w40}",
    "linear": "lin_api_{a40}",
    "sentry": "sntrys_eyJpYXQiOjE3{a80}_{a43}",
    "sentry-user": "sntryu_{h64}",
    "new-relic": "NRAK-{u27}",
    "new-relic-insert": "NRII-{w32}",
    "grafana": "glsa_{a32}_{h8}",
    "grafana-cloud": "glc_eyJvIjoi{a80}",
    "dynatrace": "dt0c01.{T24}.{T64}",
    "honeycomb": "hcaik_01{l58}",
    "posthog": "phx_{a43}",
    "launchdarkly": "api-{uuid}",
    "confluent-cloud": "cflt{b60}",
    # clouds
    "aws-access-key": "AKIA{T16}",
    "aws-temporary-key": "ASIA{T16}",
    "aws-session": "IQoJb3JpZ2luX2Vj{b300}",
    "alibaba": "LTAI5t{a18}",
    "tencent": "AKID{a32}",
    "yandex": "AQVN{w36}",
    "azure-devops": "{a52}JQQJ99{a18}AZDO{a4}",
    "azure-search": "{a42}AzSeA{a5}",
    "azure-function": "{w44}AzFu{w5}{x1}==",
    "azure-registry": "{b42}+ACRA{a5}",
    "azure-storage": "{b76}+ASt{a5}{x1}==",
    "azure-cosmos": "{b76}ACDb{a5}{x1}==",
    "azure-service-bus": "{b33}+ASbA{a5}=",
    "azure-iot": "{b33}AIoTA{a5}=",
    "azure-cache": "{a33}AzCaA{a5}=",
    "azure-client-secret": "{a3}8Q~{w34}",
    "digitalocean": "dop_v1_{h64}",
    "digitalocean-refresh": "dor_v1_{h64}",
    "heroku": "HRKU-AA{w58}",
    "databricks": "dapi{h32}",
    "terraform": "{a14}.atlasv1.{w67}",
    "vault": "hvs.{w90}",
    "vault-batch": "hvb.{w138}",
    "doppler": "dp.pt.{a43}",
    "netlify": "nfp_{a36}",
    "fly": "fm2_{b150}",
    "supabase-personal": "sbp_{h40}",
    "supabase-secret": "sb_secret_{w22}_{w8}",
    "planetscale": "pscale_tkn_{w43}",
    "neon": "napi_{l64}",
    "vercel": "vcp_{a56}",
    "vercel-integration": "vci_{a56}",
    "cloudflare": "cfut_{a40}{h8}",
    "cloudflare-account": "cfat_{a40}{h8}",
    "cloudflare-origin": "v1.0-{h24}-{h146}",
    "render": "rnd_{a28}",
    "tailscale": "tskey-auth-k{a11}CNTRL-{a32}",
    "tailscale-api": "tskey-api-k{a11}CNTRL-{a32}",
    "1password": "ops_eyJzaWduSW5BZGRyZXNzIjoi{a300}",
    "1password-secret-key": "A3-{u6}-{u6}-{u5}-{u5}-{u5}-{u5}",
    "openshift": "sha256~{w43}",
    "rancher": "token-{l5}:{l54}",
    "scalingo": "tk-us-{w48}",
    "age": "AGE-SECRET-KEY-1{T58}",
    # services
    "slack-bot": "xoxb-{d12}-{d13}-{a24}",
    "slack-user": "xoxp-{d12}-{d12}-{d13}-{h32}",
    "slack-app": "xapp-1-A{u10}-{d13}-{h64}",
    "slack-webhook": "https://hooks.slack.com/services/T{u10}/B{u10}/{a24}",
    "teams-webhook": "https://acme.webhook.office.com/webhookb2/{uuid}@{uuid}/IncomingWebhook/{h32}/{uuid}",
    "power-automate": "https://prod-01.logic.azure.com/workflows/{h32}/triggers/manual/paths/invoke?sv=1.0&sig={a43}",
    "discord": "MTA4NzY1NDMyMTA5ODc2NTQz.{a6}.{w38}",
    "discord-webhook": "https://discord.com/api/webhooks/1087654321098765432/{w68}",
    "telegram": "{d0}7123456789:AA{w33}",
    "stripe": "sk_live_{a99}",
    "stripe-restricted": "rk_live_{a99}",
    "stripe-webhook": "whsec_{a32}",
    "resend": "re_{a8}_{a24}",
    "sendgrid": "SG.{w22}.{w43}",
    "mailgun-older": "key-{h32}",
    "mailchimp": "{h32}-us21",
    "mandrill": "md-{w22}",
    "mailersend": "mlsn.{h64}",
    "brevo": "xkeysib-{h64}-{a16}",
    "twilio": "SK{h32}",
    "hubspot": "pat-na1-{uuid}",
    "facebook": "EAAG{a180}",
    "twitter": "AAAAAAAAAAAAAAAAAAAAAL{a10}%2B{a20}%3D{a50}",
    "salesforce": "00D5g000004{a4}!AQ4AQ{a40}.{a39}",
    "shopify": "shpat_{h32}",
    "square": "EAAAl{w59}",
    "braintree": "access_token$production${l16}${h32}",
    "adyen": "AQEyhmfxK4{b80}==-{b43}=-{a16}",
    "paddle": "pdl_live_apikey_01{l24}_{a22}_{a3}",
    "polar": "polar_oat_{a43}",
    "plaid": "access-production-{uuid}",
    "razorpay": "rzp_live_{a14}",
    "flutterwave": "FLWSECK-{h32}-X",
    "shippo": "shippo_live_{h40}",
    "easypost": "EZAK{h32}{a22}",
    "duffel": "duffel_live_{w43}",
    "okta": "SSWS 00{w40}",
    "stytch": "secret-live-{w35}=",
    "notion": "ntn_{d11}{a35}",
    "airtable": "pat{a14}.{h64}",
    "asana": "2/1{d15}/1{d15}:{h32}",
    "clickup": "pk_{d8}_{u32}",
    "trello": "ATTA{h64}{H8}",
    "contentful": "CFPAT-{w43}",
    "typeform": "tfp_{w44}_{w14}",
    "readme": "rdme_{l70}",
    "dropbox": "sl.u.{w130}",
    "mapbox": "sk.eyJ1Ijoi{a60}.{w22}",
    "jwt": "{jwt}",
    "postgres-url": "postgres://app:{a12}@db.internal:5432/prod",
    "redis-url": "redis://:{a24}@cache.internal:6379/0",
}  # fmt: skip
"""Kinds that are recognised by their form alone: the form of each."""

NAMED: dict[str, tuple[str, str]] = {
    "mistral": ("MISTRAL_API_KEY", "{a32}"),
    "zhipu": ("ZHIPUAI_API_KEY", "f{h31}.{a16}"),
    "ollama": ("OLLAMA_API_KEY", "c{h31}.{a24}"),
    "cohere": ("COHERE_API_KEY", "{a40}"),
    "mailgun": ("MAILGUN_API_KEY", "{h32}-{h8}-{h8}"),
    "datadog": ("DD_API_KEY", "{h32}"),
    "cloudflare-older": ("CLOUDFLARE_API_TOKEN", "{w40}"),
    "hetzner": ("HCLOUD_TOKEN", "{a64}"),
    "grafana-short": ("GRAFANA_TOKEN", "ab12cd"),
    "meilisearch": ("MEILI_ADMIN_KEY", "{a24}"),
    "typesense-short": ("TYPESENSE_ADMIN_KEY", "xyz4Q"),
    "twilio-auth": ("TWILIO_AUTH_TOKEN", "{h32}"),
    "algolia": ("ALGOLIA_WRITE_KEY", "{h32}"),
    "aws-secret": ("AWS_SECRET_ACCESS_KEY", "{b40}"),
}
"""Kinds that are recognised by a name beside them: the name, and the form of the value."""

PLACED: dict[str, tuple[str, str]] = {
    "docker-auth": ('{"auths": {"ghcr.io": {"auth": "§"}}}', "{b64:bob:}"),
    "kubeconfig-key": (
        "users:\n- name: admin\n  user:\n    client-key-data: §\n",
        "{b64:-----BEGIN RSA PRIVATE KEY-----\n}",
    ),
    "netrc": ("machine api.example.com login bob password §\n", "{a10}"),
    "netrc-lines": ("machine api.example.com\n  login bob\n  password §\n", "{a10}"),
    "pgpass": ("db.internal:5432:shop:app:§\n", "{a12}"),
    "htpasswd": ("bob:§\n", "$apr1${c8}${c22}"),
    "htpasswd-bcrypt": ("bob:§\n", "$2y$10${c53}"),
    "shadow": ("bob:§:19800:0:99999:7:::\n", "$6${c16}${c86}"),
    "shadow-yescrypt": ("bob:§:19800:0:99999:7:::\n", "$y$j9T${c22}${c43}"),
    "sshpass": ("sshpass -p § ssh root@10.0.0.7 uptime", "{a9}"),
    "mysql": ("mysql -h db.internal -u root -p§ shop", "{a9}"),
    "cookie": ("Cookie: theme=dark; sessionid=§", "{l32}"),
    "set-cookie": ("Set-Cookie: connect.sid=§; Path=/; HttpOnly", "s%3A{w32}.{a43}"),
    "npmrc-auth": ("//npm.example.com/:_auth=§\n", "{b64:bob:}"),
    "npmrc-token": ("//npm.example.com/:_authToken=§\n", "{uuid}"),
    "curl-user": ("curl -u bob:§ https://example.com/x", "{a10}"),
    "basic-header": ("Authorization: Basic §", "{b64:bob:}"),
    "splunk-header": ("Authorization: Splunk §", "{uuid}"),
    "redis-cli": ("redis-cli -h cache.internal -a § ping", "{a14}"),
    "docker-login": ("docker login -u bob -p § ghcr.io", "{a14}"),
    "wireguard": ("[Interface]\nPrivateKey = §\nAddress = 10.0.0.2/32\n", "{b43}="),
    "wordpress": ("define( 'DB_PASSWORD', '§' );\n", "{a12}"),
    "pem": ("-----BEGIN PRIVATE KEY-----\n§\n-----END PRIVATE KEY-----\n", "MIIEvQIBADANBgkqhkiG9w0B{b40}"),
}  # fmt: skip
"""Kinds that are recognised by the file, the command or the header that they are in: the text, with § for the secret,
and the form of the secret."""

KINDS = (*FORMED, *NAMED, *PLACED)
"""The names of all kinds."""

# Settings. A formed secret stands beside names that tell nothing. What is told by its name keeps the name; what is told
# by its place is quoted whole: alone, in Markdown, in a JSON string, in YAML, in a command, in a diff.
_FORMED_IN = {
    "prose": "It works with § since Monday.\n",
    "env": "export SERVICE=§\n",
    "json": '{"services": [{"value": "§", "on": true}]}',
    "config": "service:\n  value: §\n  on: true\n",
    "command": "curl -sS -H 'X-Service: §' https://api.example.com/v1/items",
    "log": '10.0.0.9 - - [28/Nov/2025] "GET /v1/items?value=§&page=2 HTTP/1.1" 200 17\n',
}
_NAMED_IN = {
    "prose": "It works with NAME: § since Monday.\n",
    "env": "export NAME=§\n",
    "json": '{"env": [{"NAME": "§", "on": true}]}',
    "config": "service:\n  NAME: §\n  on: true\n",
    "command": "NAME=§ python run.py --fast",
    "log": "10:20:31 INFO started with NAME=§ on port 8080\n",
}


class Planted(NamedTuple):
    """A secret of a kind in a setting: the whole text, and the part of it that must not be left."""

    kind: str
    setting: str
    text: str
    secret: str


def planted() -> Iterator[Planted]:
    """Every kind in every setting."""
    for kind, form in FORMED.items():
        secret = drawn(form, kind)
        for setting, text in _FORMED_IN.items():
            yield Planted(kind, setting, text.replace("§", secret), _longest_part(secret))
    for kind, (name, form) in NAMED.items():
        secret = drawn(form, kind)
        for setting, text in _NAMED_IN.items():
            yield Planted(kind, setting, text.replace("NAME", name).replace("§", secret), secret)
    for kind, (place, form) in PLACED.items():
        secret = drawn(form, kind)
        for setting, text in _quotations(place.replace("§", secret)).items():
            yield Planted(kind, setting, text, secret)


def _longest_part(secret: str) -> str:
    """What must not be left of a formed secret: of an address, its password or its last part that is drawn."""
    if "://" in secret and "@" in secret.partition("://")[2] and "webhook" not in secret:
        return secret.partition("://")[2].partition("@")[0].rpartition(":")[2]
    return secret.rpartition("/")[2].rpartition("sig=")[2] if secret.startswith("https://") else secret


def _quotations(text: str) -> dict[str, str]:
    return {
        "prose": text,
        "env": f"The file has:\n```\n{text}\n```\n",
        "json": json.dumps({"output": text}),
        "config": "content: |\n" + "".join(f"    {line}\n" for line in text.splitlines()),
        "command": f"cat > /tmp/file <<'EOF'\n{text}\nEOF\n" if "\n" in text else f"$ {text}\n",
        "log": "@@ -0,0 +1,9 @@\n" + "".join(f"+{line}\n" for line in text.splitlines()),
    }
