"""The forms of keys and tokens of known services: a table with one row for each shape.

A row has *needles*, plain texts of which every secret of the shape contains one; the regular expression is tried only
where a needle occurs. So ordinary text costs only a few substring searches. The expressions take linear time: no
quantifier can match text that the one before it could have matched, lengths have upper bounds, and no secret begins
inside a word, so runs do not overlap.

Sources: each service's documentation, as named in the rows; where that says nothing, the public rule sets of secret
scanners (GitHub's supported secret scanning patterns, gitleaks, detect-secrets).
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple


@cache
def _compiled(expression: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(expression, flags)


class Expression(NamedTuple):
    """A regular expression that is compiled when it is first used, so that importing turnlog compiles none."""

    expression: str
    flags: int = 0

    @property
    def pattern(self) -> re.Pattern[str]:
        """The compiled expression."""
        return _compiled(self.expression, self.flags)


class Shape(NamedTuple):
    """A shape of secret. If `pattern` has a group `secret`, only this group is the secret.

    `before` is how many characters before its needle a secret may begin. `random`: nobody can guess such a secret, so a
    tag made from it reveals nothing. `spread`: a needle is not always wholly inside a run of at least `LONG` characters
    of `RUN`.
    """

    kind: str
    needles: tuple[str, ...]
    expression: str
    before: int = 0
    random: bool = True
    spread: bool = False

    @property
    def pattern(self) -> re.Pattern[str]:
        """The regular expression, compiled when its needle first occurs; most needles never do."""
        return _compiled(self.expression)


LONG = 16
RUN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.+=~"
"""The characters of secrets. A secret whose shape is not `spread` has at least `LONG` consecutive ones. Most texts have
no such run, which is checked quickly."""


# A secret begins at the start of a word. Escapes written as text (`\n`, `\x0a`, `\u0022`), `%3D` in a URL, and a
# terminal's `ESC[1;32m` (with its ESC escaped, missing, or present) are not part of the word. If the body of a secret
# may contain `-` and `_`, a word does not begin after these either.
_COLOURED = "|".join(rf"(?<=\[[0-9;:]{{{size}}}[mKJHG])" for size in range(19))
_ESCAPED = (
    r"(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})"
    rf"|(?<=[mKJHG])(?:{_COLOURED})"
)
_START = rf"(?:(?<![A-Za-z0-9])|{_ESCAPED})"
_START_DASHED = rf"(?:(?<![A-Za-z0-9_\-])|{_ESCAPED})"
_END = r"(?![A-Za-z0-9])"


def _shape(kind: str, needles: str, body: str, *, before: int = 0, dashed: bool = False, spread: bool = False) -> Shape:
    start = _START_DASHED if dashed else _START
    return Shape(kind, tuple(needles.split()), f"{start}(?:{body}){_END}", before, spread=spread)


def _inside(kind: str, needles: tuple[str, ...], pattern: str, *, random: bool = True) -> Shape:
    """A shape that is recognised by the text around the secret."""
    return Shape(kind, needles, pattern, 0, random, spread=True)


_MODELS = (
    # platform.openai.com/docs: project, service account and admin keys; older ones are sk- and 48 characters,
    # which other services took over (DeepSeek: 32 hex digits).
    _shape("anthropic-key", "sk-ant-", r"sk-ant-[A-Za-z0-9_\-]{16,512}+", dashed=True),
    _shape("openrouter-key", "sk-or-", r"sk-or-[A-Za-z0-9_\-]{32,512}+", dashed=True),
    _shape(
        "openai-key",
        "sk-",
        r"sk-(?:(?:proj|svcacct|admin|None|service)-[A-Za-z0-9_\-]{16,512}+|[A-Za-z0-9]{32,512}+)",
        dashed=True,
    ),
    _shape("google-key", "AIza", r"AIza[A-Za-z0-9_\-]{35,512}+", dashed=True),  # cloud.google.com/docs/authentication
    _shape("google-oauth-token", "ya29.", r"ya29\.[A-Za-z0-9_\-.]{20,2048}+", dashed=True),
    _shape("google-oauth-secret", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_\-]{20,512}+", dashed=True),
    _shape("huggingface-token", "hf_ api_org_", r"(?:hf_|api_org_)[A-Za-z0-9]{30,512}+"),  # huggingface.co/docs/hub
    _shape("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{32,512}+"),  # console.groq.com/docs
    _shape("xai-key", "xai-", r"xai-[A-Za-z0-9]{32,512}+"),  # docs.x.ai
    _shape("perplexity-key", "pplx-", r"pplx-[A-Za-z0-9]{32,512}+"),  # docs.perplexity.ai
    _shape("replicate-token", "r8_", r"r8_[A-Za-z0-9]{30,512}+"),  # replicate.com/docs
    _shape("cerebras-key", "csk-", r"csk-[A-Za-z0-9]{32,512}+"),  # inference-docs.cerebras.ai
    _shape("nvidia-key", "nvapi-", r"nvapi-[A-Za-z0-9_\-]{32,512}+", dashed=True),  # docs.nvidia.com/nim
    _shape("langsmith-key", "lsv2_", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),  # docs.smith.langchain.com
    _shape("tavily-key", "tvly-", r"tvly-[A-Za-z0-9_\-]{20,512}+", dashed=True),  # docs.tavily.com
    _shape("pinecone-key", "pcsk_", r"pcsk_[A-Za-z0-9_]{40,512}+"),  # docs.pinecone.io
    _shape("elevenlabs-key", "sk_", r"sk_[0-9a-f]{48}"),  # elevenlabs.io/docs
)

_CODE = (
    # docs.github.com: "About authentication to GitHub", GitHub's token formats
    _shape("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{36,255}+"),
    _shape("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,255}+"),
    # docs.gitlab.com/security/tokens: token prefixes
    _shape(
        "gitlab-token",
        "glpat- glrt- gldt- glptt- glcbt- glft- glsoat- glimt- glagent- gloas-",
        r"gl(?:pat|rt|dt|ptt|cbt|ft|soat|imt|agent|oas)-[A-Za-z0-9_\-.]{20,300}+",
        dashed=True,
    ),
    _shape("atlassian-token", "ATATT3 ATCTT3", r"AT[AC]TT3[A-Za-z0-9_\-=]{60,512}+", dashed=True),
    _shape("bitbucket-token", "ATBB", r"ATBB[A-Za-z0-9]{28,64}+"),
    _shape("npm-token", "npm_", r"npm_[A-Za-z0-9]{36,64}+"),  # npm's documentation, about access tokens
    _shape("pypi-token", "pypi-AgE", r"pypi-AgE[A-Za-z0-9_\-]{32,1024}+", dashed=True),  # PyPI's help, about API tokens
    _shape("rubygems-key", "rubygems_", r"rubygems_[0-9a-f]{48}"),  # RubyGems' guides
    _shape("docker-token", "dckr_", r"dckr_(?:pat|oat)_[A-Za-z0-9_\-]{20,128}+", dashed=True),  # docs.docker.com
    _shape("sentry-token", "sntrys_ sntryu_", r"sntry[su]_[A-Za-z0-9_\-+/=]{40,1024}+", dashed=True),
    _shape("postman-key", "PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _shape("linear-key", "lin_api_ lin_oauth_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,64}+"),
    _shape("figma-token", "figd_", r"figd_[A-Za-z0-9_\-]{32,128}+", dashed=True),
    _shape("notion-token", "ntn_", r"ntn_[A-Za-z0-9]{40,64}+"),
    _shape("notion-token", "secret_", r"secret_[A-Za-z0-9]{43}"),
    _shape("airtable-token", "pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    _shape("new-relic-key", "NRAK-", r"NRAK-[A-Z0-9]{27}"),
    _shape("grafana-token", "glsa_ glc_", r"gl(?:sa|c)_[A-Za-z0-9_+/=]{32,512}+"),
)

_CLOUD = (
    # docs.aws.amazon.com/IAM: unique identifiers; the secret that follows its key in CSV, env files and the like
    _shape("aws-access-key", "AKIA ASIA ABIA ACCA", r"A(?:KI|SI|BI|CC)A[A-Z0-9]{16}"),
    _inside(
        "aws-secret-key",
        ("AKIA", "ASIA"),
        r"A(?:KI|SI)A[A-Z0-9]{16}[^A-Za-z0-9+/]{1,6}+(?:[A-Za-z_]{1,40}[^A-Za-z0-9+/]{1,8}+)?"
        r"(?P<secret>(?=[A-Za-z0-9+/]{0,39}[0-9])[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/])",
    ),
    # learn.microsoft.com: storage and service bus connection strings, shared access signatures, client secrets
    _inside(
        "azure-key",
        ("AccountKey=", "SharedAccessKey=", "SharedSecretValue="),
        r"[A-Za-z]{3,20}=(?P<secret>[A-Za-z0-9+/]{20,512}+={0,2})",
    ),
    _inside("azure-signature", ("sig=",), r"sig=(?P<secret>[A-Za-z0-9+/]{0,80}%[A-Za-z0-9%+/=]{20,200}+)"),
    _shape("azure-secret", "8Q~", r"[A-Za-z0-9_~.\-]{3}8Q~[A-Za-z0-9_~.\-]{31,34}", before=3, dashed=True),
    _shape("digitalocean-token", "_v1_", r"do[oprt]_v1_[0-9a-f]{64}", before=3),  # docs.digitalocean.com/reference/api
    _shape("heroku-key", "HRKU-", r"HRKU-[A-Za-z0-9_\-]{32,128}+", dashed=True),  # devcenter.heroku.com
    _inside(
        "heroku-key",
        ("HEROKU", "heroku", "Heroku"),
        r"(?i:heroku)[A-Za-z_\-]{0,24}+[\s'\":=\\]{1,8}+"
        r"(?P<secret>[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})(?![0-9A-Za-z\-])",
    ),
    _shape("databricks-token", "dapi", r"dapi[0-9a-f]{32}(?:-[0-9])?"),  # docs.databricks.com
    _shape("terraform-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_\-]{50,128}+", before=14),
    _shape(
        "vault-token", "hvs. hvb. hvr.", r"hv[sbr]\.[A-Za-z0-9_\-]{24,512}+", dashed=True
    ),  # developer.hashicorp.com
    _shape("doppler-token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.\-]{36,128}+", dashed=True),
    _shape("netlify-token", "nfp_", r"nfp_[A-Za-z0-9]{36,64}+"),
    _shape("fly-token", "fo1_ fm1_ fm2_", r"f(?:o1|m1|m2)_[A-Za-z0-9_+/=\-]{40,2048}+", dashed=True),
    _shape("supabase-token", "sbp_", r"sbp_[0-9a-f]{40}"),
    _shape("planetscale-token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.\-]{32,128}+", dashed=True),
    _shape("age-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}", dashed=True),  # age-encryption.org/v1
)

_SERVICES = (
    _shape("slack-token", "xox", r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9\-]{12,512}+", dashed=True),  # docs.slack.dev
    _shape("slack-token", "xapp-", r"xapp-[0-9]-[A-Za-z0-9\-]{20,512}+", dashed=True),
    _inside(
        "slack-webhook",
        ("hooks.slack.com/",),
        r"hooks\.slack\.com/(?P<secret>(?:services|workflows|triggers)/[A-Za-z0-9/_\-]{20,200}+)",
    ),
    _shape("stripe-key", "sk_ rk_", r"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{10,255}+"),  # docs.stripe.com/keys
    _shape("stripe-webhook-secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,255}+"),
    _shape("sendgrid-key", "SG.", r"SG\.[A-Za-z0-9_\-]{16,64}+\.[A-Za-z0-9_\-]{16,128}+", dashed=True),
    _shape("twilio-key", "SK", r"SK[0-9a-f]{32}"),  # twilio.com/docs/iam/api-keys
    _shape("mailgun-key", "key-", r"key-[0-9a-f]{32}"),
    _shape("mailchimp-key", "-us", r"[0-9a-f]{32}-us[0-9]{1,2}", before=32),
    _shape("brevo-key", "xkeysib- xsmtpsib-", r"x(?:key|smtp)sib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    # core.telegram.org/bots: the bot's number and 35 characters
    _shape("telegram-token", ":AA", r"[0-9]{8,10}:AA[A-Za-z0-9_\-]{32,33}", before=10, spread=True),
    # discord.com/developers: base64 of the bot's number (digits give M, N or O), a time, a signature
    _shape(
        "discord-token",
        "MT Mj Mz ND NT Nj Nz OD OT",
        r"(?:MT|Mj|Mz|ND|NT|Nj|Nz|OD|OT)[A-Za-z0-9_\-]{21,26}+\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,45}+",
        dashed=True,
    ),
    _inside(
        "discord-webhook",
        ("/api/webhooks/",),
        r"/api/webhooks/[0-9]{15,22}/(?P<secret>[A-Za-z0-9_\-]{40,128}+)",
    ),
    _shape("shopify-token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),  # shopify.dev
    _shape("square-token", "sq0", r"sq0(?:atp|csp|idp)-[A-Za-z0-9_\-]{22,64}+", dashed=True),  # developer.squareup.com
    _shape("square-token", "EAAA", r"EAAA[A-Za-z0-9_\-]{56,128}+", dashed=True),
    _shape("dropbox-token", "sl.", r"sl\.(?:u\.)?[A-Za-z0-9_\-]{100,2048}+", dashed=True),
    _shape("mapbox-token", "sk.eyJ", r"sk\.eyJ[A-Za-z0-9_\-]{20,512}+\.[A-Za-z0-9_\-]{16,128}+", dashed=True),
)

_STANDARDS = (
    # RFC 7519
    _shape(
        "jwt",
        "eyJ",
        r"eyJ[A-Za-z0-9_\-]{8,8192}+\.eyJ[A-Za-z0-9_\-]{4,16384}+\.[A-Za-z0-9_\-]{8,2048}+",
        dashed=True,
    ),
    # RFC 7468, and OpenPGP's armour (RFC 9580). A key whose end is missing ends where its characters do.
    _inside(
        "private-key",
        ("-----BEGIN",),
        r"-----BEGIN[ A-Z0-9]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?P<secret>(?=(?:[^-]|-(?!----)){40})(?:[A-Za-z0-9+/=\s\\:,.()]++|-(?!----))*+)"
        r"(?:-----END[ A-Z0-9]{0,60}-----)?",
    ),
    _inside(
        "private-key",
        ("Private-Lines: ",),
        r"Private-Lines: [0-9]{1,4}(?P<secret>(?:[\r\n]{1,2}[A-Za-z0-9+/=]{16,64}){1,400}+)",
    ),
    # RFC 3986, 3.2.1: user information in a URL, databases' included; not the digest of an image, name:tag@sha256:...
    _inside(
        "url-password",
        ("://",),
        r"://[^\s/?#:@'\"<>\\]{0,128}+:(?P<secret>[^\s/?#'\"<>\\]{1,256})@(?!sha[0-9]{3}:)",
        random=False,
    ),
    # RFC 6750 and 7617, as header, in a curl command, in a JSON object
    _inside(
        "authorization",
        ("earer", "BEARER"),
        r"(?:earer|EARER|BEARER)[ \t]{1,4}(?P<secret>(?=[A-Za-z._~+/\-]{0,60}[0-9])[A-Za-z0-9._~+/\-]{16,4096}+={0,2})",
    ),
    _inside(
        "authorization",
        ("uthorization", "UTHORIZATION"),
        r"(?i:uthorization)\\{0,3}['\"]?[ \t]{0,4}[:=,][ \t]{0,4}\\{0,3}['\"]?"
        r"(?i:basic|token|apikey|key|digest)[ \t]{1,4}(?P<secret>[A-Za-z0-9._~+/\-]{8,4096}+={0,2})",
        random=False,
    ),
    _inside(
        "authorization",
        ("curl ",),
        r"curl [^\n\"';|]{0,200}?(?:-u|--user)[ =]?['\"]?[^\s:'\"]{1,64}+:(?P<secret>[^\s'\"]{3,128})",
        random=False,
    ),
)

SHAPES: tuple[Shape, ...] = _MODELS + _CODE + _CLOUD + _SERVICES + _STANDARDS
"""Every known shape. If two match the same characters, the earlier start wins, then the earlier row."""
