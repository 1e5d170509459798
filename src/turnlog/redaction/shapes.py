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


class SecretShape(NamedTuple):
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
_START_BASE64 = rf"(?:(?<![A-Za-z0-9+/])|{_ESCAPED})"
"""The beginning of a secret that looks like base64: it is not inside other base64."""
_MIXED = r"(?=[A-Za-z_\-]{0,64}?(?:[0-9]|[A-Z][a-z][A-Z]|[a-z][A-Z]{2}[a-z]|[a-z][A-Z](?![A-Za-z])))"
"""Requires that a digit follows soon, or capitals as in no word: for short prefixes, which are also the beginnings of
names in programs."""
_UUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_BASE64 = r"[A-Za-z0-9+/]"


def _shape(
    kind: str, needles: str, body: str, *, before: int = 0, dashed: bool = False, spread: bool = False
) -> SecretShape:
    start = _START_DASHED if dashed else _START
    return SecretShape(kind, tuple(needles.split()), f"{start}(?:{body}){_END}", before, spread=spread)


def _in_base64(kind: str, needles: str, body: str, *, before: int = 0, spread: bool = False) -> SecretShape:
    """A shape of base64 characters, with no other base64 character directly before or after it."""
    pattern = f"{_START_BASE64}(?:{body})(?![A-Za-z0-9+/=])"
    return SecretShape(kind, tuple(needles.split()), pattern, before, spread=spread)


def _inside(kind: str, needles: tuple[str, ...], pattern: str, *, random: bool = True) -> SecretShape:
    """A shape that is recognised by the text around the secret."""
    return SecretShape(kind, needles, pattern, 0, random, spread=True)


_MODELS = (
    # platform.openai.com/docs: project, service account and admin keys; older ones are sk- and 48 characters,
    # which other services took over (DeepSeek: 32 hex digits).
    _shape("anthropic-key", "sk-ant-", r"sk-ant-[A-Za-z0-9_\-]{16,512}+", dashed=True),
    _shape("openrouter-key", "sk-or-", r"sk-or-[A-Za-z0-9_\-]{32,512}+", dashed=True),
    _shape(
        "openai-key",
        "sk-",
        r"sk-(?:(?:proj|svcacct|admin|None|service)-[A-Za-z0-9_\-]{16,512}+|[A-Za-z0-9]{32,512}+"
        rf"|{_MIXED}[A-Za-z0-9]{{20,31}}+|{_MIXED}[A-Za-z0-9_\-]{{22}}(?![_\-]))",  # 22: docs.litellm.ai
        dashed=True,
    ),
    _shape("google-key", "AIza", r"AIza[A-Za-z0-9_\-]{35,512}+", dashed=True),  # cloud.google.com/docs/authentication
    _shape("google-key", "AQ.", r"AQ\.[A-Za-z0-9_\-]{40,512}+", dashed=True),  # keys of the Gemini API since 2025
    _shape("google-oauth-token", "1//0", r"1//0[A-Za-z0-9_\-]{40,512}+", dashed=True, spread=True),
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
    # docs.aws.amazon.com/bedrock: API keys, for a long and for a short term
    _in_base64("bedrock-key", "ABSKQmVkcm9ja0FQSUtleS", rf"ABSKQmVkcm9ja0FQSUtleS{_BASE64}{{40,400}}+={{0,2}}"),
    _shape("bedrock-key", "bedrock-api-key-", rf"bedrock-api-key-{_BASE64}{{40,8192}}+={{0,2}}", dashed=True),
    _shape("langfuse-key", "sk-lf-", rf"sk-lf-{_UUID}", dashed=True),  # langfuse.com/docs
    _shape("helicone-key", "sk-helicone-", r"sk-helicone-[a-z0-9\-]{20,128}+", dashed=True),  # docs.helicone.ai
    _shape("fireworks-key", "fw_", rf"fw_{_MIXED}[A-Za-z0-9]{{20,64}}+", dashed=True),  # docs.fireworks.ai
    _shape("firecrawl-key", "fc-", r"fc-[0-9a-f]{32}", dashed=True),  # docs.firecrawl.dev
    _shape("jina-key", "jina_", r"jina_[0-9a-f]{32}[A-Za-z0-9_\-]{20,64}+", dashed=True),  # jina.ai/reader
    _shape("e2b-key", "e2b_ sk_e2b_", r"(?:sk_)?e2b_[0-9a-f]{40}"),  # e2b.dev/docs
    _shape("wandb-key", "wandb_v1_", r"wandb_v1_[A-Za-z0-9_]{40,128}+"),  # docs.wandb.ai
    _shape("cursor-key", "key_ crsr_", r"(?:key|crsr)_[0-9a-f]{64}"),  # cursor.com/docs
    _shape("together-key", "tgp_v1_", r"tgp_v1_[A-Za-z0-9_\-]{40,64}+", dashed=True),  # docs.together.ai
    _shape("voyage-key", "pa-", rf"pa-{_MIXED}[A-Za-z0-9_\-]{{43}}", dashed=True),  # docs.voyageai.com
    _shape("anyscale-key", "esecret_", r"esecret_[A-Za-z0-9]{20,64}+"),
    _shape("runpod-key", "rpa_", r"rpa_[A-Z0-9]{40,64}+[a-z0-9]{0,16}+"),  # docs.runpod.io
    _shape("novita-key", "sk_", rf"sk_{_MIXED}[A-Za-z0-9_\-]{{43}}(?![_\-])", dashed=True),  # novita.ai/docs
    _shape("letta-key", "sk-let-", r"sk-let-[A-Za-z0-9+/_\-]{40,256}+", dashed=True, spread=True),  # docs.letta.com
    _shape("lambda-key", "secret_", r"secret_[a-z0-9\-]{1,64}_[0-9a-f]{32}\.[A-Za-z0-9]{32}"),  # docs.lambda.ai
    _shape("steel-key", "ste-", r"ste-[A-Za-z0-9]{60,128}+", dashed=True),  # docs.steel.dev
    _shape("promptlayer-key", "pl_", r"pl_[0-9a-f]{32}", dashed=True),  # docs.promptlayer.com
    _shape("zep-key", "z_1dWlkIjoi", r"z_1dWlkIjoi[A-Za-z0-9_.\-]{40,512}+", dashed=True),  # help.getzep.com
    _shape("composio-key", "ak_", rf"ak_{_MIXED}[A-Za-z0-9_\-]{{20}}(?![_\-])", dashed=True),  # docs.composio.dev
    _shape("modal-token", "as-", rf"as-{_MIXED}[A-Za-z0-9]{{22}}", dashed=True),  # modal.com/docs: a token's secret
    _shape("browserbase-key", "bb_live_", r"bb_live_[A-Za-z0-9_\-]{20,64}+", dashed=True),  # docs.browserbase.com
    _shape("apify-token", "apify_api_", r"apify_api_[A-Za-z0-9]{30,64}+"),  # docs.apify.com
    _shape("llamaindex-key", "llx-", r"llx-[A-Za-z0-9]{40,64}+", dashed=True),  # docs.cloud.llamaindex.ai
    _shape("sourcegraph-token", "sgp_", r"sgp_(?:(?:[0-9a-f]{16}|local)_)?[0-9a-f]{40}"),  # sourcegraph.com/docs
    _shape("brave-key", "BSA", rf"BSA{_MIXED}[A-Za-z0-9_\-]{{24,28}}", dashed=True),
    _shape("mem0-key", "m0-", rf"m0-{_MIXED}[A-Za-z0-9]{{40}}", dashed=True),  # docs.mem0.ai
)

_CODE = (
    # docs.github.com: "About authentication to GitHub", GitHub's token formats
    _shape("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{36,255}+"),
    _shape("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,255}+"),
    # docs.gitlab.com/security/tokens: token prefixes
    _shape(
        "gitlab-token",
        "glpat- glrt- gldt- glptt- glcbt- glft- glffct- glsoat- glimt- glagent- gloas- glwt- GR1348941",
        r"(?:gl(?:pat|rt|dt|ptt|cbt|ft|ffct|soat|imt|agent|oas|wt)-|GR1348941)[A-Za-z0-9_\-.]{20,300}+",
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
    _shape("new-relic-key", "NRII- NRIQ-", r"NRI[IQ]-[A-Za-z0-9_\-]{32}", dashed=True),
    _shape("grafana-token", "glsa_ glc_", r"gl(?:sa|c)_[A-Za-z0-9_+/=]{32,512}+", spread=True),
    _shape("crates-token", "cio", rf"cio{_MIXED}[A-Za-z0-9]{{32}}", dashed=True),  # doc.rust-lang.org/cargo
    _shape("nuget-key", "oy2", rf"oy2{_MIXED}[a-z0-9]{{43}}", dashed=True),  # learn.microsoft.com/nuget
    # jfrog.com/help: API keys, and reference tokens (base64 of reftkn:01: or reftkn:02:)
    _shape("jfrog-key", "AKCp", r"AKCp[A-Za-z0-9]{60,80}+", dashed=True),
    _shape("jfrog-token", "cmVmdGtuOjA", r"cmVmdGtuOjA[A-Za-z0-9]{40,80}+"),
    _shape("circleci-token", "CCIPAT_ CCIPRJ_", r"CCIP(?:AT|RJ)_[A-Za-z0-9_]{30,128}+"),  # circleci.com/docs
    _shape("buildkite-token", "bkua_ bkct_ bkaj_ bkpt_ bkpi_", r"bk(?:ua|ct|aj|pt|pi)_[A-Za-z0-9]{30,64}+"),
    _shape("sonar-token", "squ_ sqp_ sqa_", r"sq[upa]_[0-9a-f]{40}"),  # docs.sonarsource.com
    _shape("pulumi-token", "pul-", r"pul-[0-9a-f]{40}", dashed=True),  # pulumi.com/docs
    _shape("prefect-key", "pnu_ pnb_", r"pn[ub]_[A-Za-z0-9]{36}"),  # docs.prefect.io
    _shape("infracost-key", "ico-", rf"ico-{_MIXED}[A-Za-z0-9]{{32}}", dashed=True),
    _shape("octopus-key", "API-", rf"API-{_MIXED}[A-Z0-9]{{26,32}}", dashed=True),  # octopus.com/docs
    _shape("harness-token", "pat. sat.", r"[ps]at\.[A-Za-z0-9_\-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}", dashed=True),
    _shape("dynatrace-token", "dt0", r"dt0[a-z][0-9]{2}\.[A-Z0-9]{8,24}\.[A-Z0-9]{64}"),  # docs.dynatrace.com
    _shape("honeycomb-key", "hca hcx", r"hc[ax][a-z]{2}_[a-z0-9]{40,64}+"),  # docs.honeycomb.io
    _shape("posthog-key", "phx_", r"phx_[A-Za-z0-9_]{40,64}+"),  # posthog.com/docs: personal keys; phc_ is public
    _shape("launchdarkly-key", "api- sdk-", rf"(?:api|sdk)-{_UUID}", dashed=True),  # launchdarkly.com/docs
    _in_base64("confluent-secret", "cflt", rf"cflt{_BASE64}{{60}}", spread=True),  # docs.confluent.io
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
    # a session token begins with its format and the text "origin" or "aws"
    _in_base64(
        "aws-session-token",
        "IQoJb3JpZ2luX2Vj FwoGZXIvYXdz",
        rf"(?:IQoJb3JpZ2luX2Vj|FwoGZXIvYXdz){_BASE64}{{80,4096}}+={{0,2}}",
        spread=True,
    ),
    _shape("alibaba-key", "LTAI", r"LTAI[A-Za-z0-9]{16,26}"),  # alibabacloud.com/help/ram
    _shape("tencent-key", "AKID", r"AKID[A-Za-z0-9]{32}", dashed=True),  # cloud.tencent.com/document
    _shape("yandex-key", "AQVN", r"AQVN[A-Za-z0-9_\-]{35,38}", dashed=True),
    # learn.microsoft.com: storage and service bus connection strings, shared access signatures, client secrets
    _inside(
        "azure-key",
        ("AccountKey=", "SharedAccessKey=", "SharedSecretValue="),
        r"[A-Za-z]{3,20}=(?P<secret>[A-Za-z0-9+/]{20,512}+={0,2})",
    ),
    _inside(
        "azure-signature",
        ("sig=",),
        r"sig=(?P<secret>[A-Za-z0-9+/]{0,80}%[A-Za-z0-9%+/=]{20,200}+|[A-Za-z0-9_\-]{43}(?![A-Za-z0-9_\-]))",
    ),
    # github.com/microsoft/security-utilities: keys with a word at a fixed place, by which scanners check them
    _shape("azure-devops-token", "AZDO", r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}", before=76),
    _shape("azure-ai-key", "JQQJ99", r"[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{18,26}", before=52),
    _shape("azure-search-key", "AzSe", r"[A-Za-z0-9]{42}AzSe[A-D][A-Za-z0-9]{5}", before=42),
    _shape("azure-function-key", "AzFu", r"[A-Za-z0-9_\-]{44}AzFu[A-Za-z0-9_\-]{5}[AQgw]==", before=44, dashed=True),
    _in_base64("azure-key", "+ACR", rf"{_BASE64}{{42}}\+ACR[A-D]{_BASE64}{{5}}", before=42, spread=True),
    _in_base64(
        "azure-key",
        "+ASt +ABa +AMC ACDb",
        rf"{_BASE64}{{76}}(?:\+ASt|\+ABa|\+AMC|ACDb){_BASE64}{{5}}[AQgw]==",
        before=76,
        spread=True,
    ),
    _in_base64(
        "azure-key",
        "+ASb +AEh +ARm AIoT AzCa",
        rf"{_BASE64}{{33}}(?:\+ASb|\+AEh|\+ARm|AIoT|AzCa)[A-P]{_BASE64}{{5}}=",
        before=33,
        spread=True,
    ),
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
    _shape(
        "fly-token", "fo1_ fm1_ fm1r_ fm2_", r"f(?:o1|m1r?|m2)_[A-Za-z0-9_+/=\-]{40,2048}+", dashed=True, spread=True
    ),
    _shape("supabase-token", "sbp_", r"sbp_(?:oauth_|v0_)?[0-9a-f]{40}"),
    _shape("supabase-key", "sb_secret_", r"sb_secret_[A-Za-z0-9_\-]{20,64}+", dashed=True),
    _shape("planetscale-token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.\-]{32,128}+", dashed=True),
    _shape("neon-key", "napi_", r"napi_[a-z0-9]{40,80}+"),  # neon.com/docs
    _shape("vercel-token", "vcp_ vci_ vca_ vcr_ vck_", rf"vc[piark]_{_MIXED}[A-Za-z0-9]{{24,80}}+"),  # vercel.com/docs
    _shape("cloudflare-token", "cfut_ cfat_ cfk_", r"cf(?:ut|at|k)_[A-Za-z0-9]{32,64}+"),  # developers.cloudflare.com
    _shape("cloudflare-key", "v1.0-", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}"),
    _shape("render-key", "rnd_", rf"rnd_{_MIXED}[A-Za-z0-9]{{24,64}}+"),  # render.com/docs
    _shape("tailscale-key", "tskey-", r"tskey-[a-z]{2,12}-[A-Za-z0-9\-]{16,128}+", dashed=True),  # tailscale.com/kb
    _shape("1password-token", "ops_ey", r"ops_ey[A-Za-z0-9+/_\-]{200,4096}+={0,3}"),  # developer.1password.com
    _shape("1password-key", "A3-", r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    _shape("openshift-token", "sha256~", r"sha256~[A-Za-z0-9_\-]{43}", dashed=True),  # docs.openshift.com
    _shape("rancher-token", "token-", r"token-[a-z0-9]{5,12}:[a-z0-9]{54}", spread=True),
    _shape("scalingo-token", "tk-us-", r"tk-us-[A-Za-z0-9_\-]{48}", dashed=True),
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
    _shape("stripe-webhook-secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,255}+", spread=True),
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
    # learn.microsoft.com/microsoftteams: the path of an incoming webhook
    _inside(
        "zapier-webhook",
        ("hooks.zapier.com/",),
        r"hooks\.zapier\.com/hooks/(?P<secret>catch/[0-9]{4,12}/[A-Za-z0-9]{5,32}+)",
    ),
    # bitwarden.com/help: access tokens of machines; infisical.com/docs: service tokens
    _shape("bitwarden-token", "0.", rf"0\.{_UUID}\.[A-Za-z0-9]{{30}}:{_BASE64}{{20,44}}={{0,2}}", spread=True),
    _shape("infisical-token", "st.", rf"st\.(?:{_UUID}|[0-9a-f]{{24}})\.[0-9a-f]{{32}}\.[0-9a-f]{{32}}"),
    _inside(
        "teams-webhook",
        (".webhook.office.com/webhookb2/",),
        r"\.webhook\.office\.com/webhookb2/(?P<secret>[0-9a-f\-]{36}@[0-9a-f\-]{36}/[A-Za-z]{1,40}/[A-Za-z0-9/_\-]{32,200}+)",
    ),
    _shape(
        "resend-key", "re_", rf"re_[A-Za-z0-9]{{6,12}}_{_MIXED}[A-Za-z0-9]{{20,40}}", dashed=True
    ),  # resend.com/docs
    _shape("mandrill-key", "md-", rf"md-{_MIXED}[A-Za-z0-9_\-]{{22}}", dashed=True),
    _shape("mailersend-token", "mlsn.", r"mlsn\.[0-9a-f]{64}"),
    _inside(
        "mailgun-key",
        ("ailgun", "AILGUN"),
        r"(?:ailgun|AILGUN)[^\r\n]{0,40}?(?<![0-9a-f])(?P<secret>[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8})(?![0-9a-f])",
    ),
    _shape("hubspot-token", "pat-na pat-eu pat-ap", rf"pat-(?:na|eu|ap)[0-9]-{_UUID}", dashed=True),
    _shape("facebook-token", "EAA", r"EAA[B-Z][A-Za-z0-9]{80,512}+", dashed=True),  # developers.facebook.com
    _shape(
        "twitter-token",
        "AAAAAAAAAAAAAAAAAAAA",
        r"A{20,24}[A-Za-z0-9]{4,24}+(?:%[0-9A-F]{2}[A-Za-z0-9]{1,100}+){1,6}+",
        dashed=True,
    ),
    # developer.salesforce.com: a session's id begins with that of the organisation
    _shape("salesforce-token", "!A", r"00D[A-Za-z0-9]{12,15}!A[A-Za-z0-9._]{60,200}+", before=18, spread=True),
    _shape(
        "braintree-token",
        "access_token$",
        r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[0-9a-f]{32}",
        spread=True,
    ),
    _inside(
        "adyen-key",
        ("AQE",),
        rf"(?<![A-Za-z0-9+/])(?P<secret>AQE[a-z0-9]hm{_BASE64}{{40,200}}+={{0,2}}(?:-{_BASE64}{{20,80}}+={{0,2}})?"
        r"(?:-[^\s\"'`<>\\&,]{8,40}+)?)",
    ),
    _shape("paddle-key", "pdl_", r"pdl_(?:live|sdbx|ntfset)_[A-Za-z0-9_]{40,100}+"),  # developer.paddle.com
    _shape("polar-token", "polar_", rf"polar_[a-z]{{2,4}}_{_MIXED}[A-Za-z0-9]{{32,64}}+"),  # polar.sh/docs
    _shape("plaid-token", "access-", rf"access-(?:production|development|sandbox)-{_UUID}", dashed=True),
    _shape("razorpay-key", "rzp_", r"rzp_(?:live|test)_[A-Za-z0-9]{14}"),
    _shape("flutterwave-key", "FLWSECK", r"FLWSECK(?:_TEST)?-[0-9a-zA-Z]{12,40}(?:-X)?"),
    _shape("shippo-token", "shippo_", r"shippo_(?:live|test)_[0-9a-f]{40}"),
    _shape("easypost-key", "EZAK EZTK", r"EZ[AT]K[A-Za-z0-9]{54}"),
    _shape("duffel-token", "duffel_", r"duffel_(?:live|test)_[A-Za-z0-9_\-=]{40,64}+", dashed=True),
    _inside("okta-token", ("SSWS 00",), r"SSWS (?P<secret>00[A-Za-z0-9_\-]{40})(?![A-Za-z0-9_\-])"),
    _shape("stytch-secret", "secret-", r"secret-(?:live|test)-[A-Za-z0-9_\-]{32,44}+=?", dashed=True),
    _shape("asana-token", "1/1 2/1", r"[12]/1[0-9]{11,16}(?:/1[0-9]{11,16})?:[0-9a-f]{32}", spread=True),
    _shape("clickup-token", "pk_", r"pk_[0-9]{6,10}_[A-Z0-9]{32}"),
    _shape("trello-token", "ATTA", r"ATTA[0-9a-fA-F]{64,80}"),
    _shape("contentful-token", "CFPAT-", r"CFPAT-[A-Za-z0-9_\-]{43}", dashed=True),
    _shape("typeform-token", "tfp_", r"tfp_[A-Za-z0-9_\-.=]{40,64}+", dashed=True),
    _shape("readme-key", "rdme_", r"rdme_[a-z0-9]{70}"),
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
    # the same in base64, as in a kubeconfig: after BEGIN comes RSA, EC, DSA, PRIVATE, OPENSSH or ENCRYPTED
    _in_base64(
        "private-key",
        "LS0tLS1CRUdJTi",
        rf"LS0tLS1CRUdJTi(?:BSU0Eg|BFQy|BEU0Eg|BQUkl|BPUEVO|BFTkNS){_BASE64}{{40,20000}}+={{0,2}}",
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
        r"(?i:basic|token|apikey|key|digest|splunk|geniekey|sso-key|bot)[ \t]{1,4}"
        r"(?P<secret>[A-Za-z0-9._~+/\-]{8,4096}+={0,2})",
        random=False,
    ),
    _inside(
        "authorization",
        ("curl ",),
        r"curl [^\n\"';|]{0,200}?(?:-u|--user)[ =]?['\"]?[^\s:'\"]{1,64}+:(?P<secret>[^\s'\"]{3,128})",
        random=False,
    ),
)

# Secrets that are told by their place alone: a file, a command, a header. The file may be quoted in JSON, so that a
# line end is written `\\n`, or in a diff, so that a line begins with `+`.
_GAP = r"(?:\s|\\[nrt]|(?<=\n)[+\-|>]){1,40}+"
_QUOTE = r"\\{0,3}[\"']"
_ARGUMENT = (
    r"(?:\\{0,3}(?P<quote>[\"']))?"
    r"(?P<secret>(?(quote)(?:(?!(?P=quote))[^\r\n\\]){3,256}+|[^\s\"'`\\<>|;&()]{3,256}+))"
)
_COOKIES = (
    r"(?=[^\r\n\"'\\]{0,400}?=(?=[A-Za-z%_\-.+/]{0,64}[0-9])[A-Za-z0-9%_\-.+/]{16})"
    r"(?P<secret>[A-Za-z0-9_.\-]{1,64}+=[^\s;\"'\\]{1,4096}+"
    r"(?:;[ ]?(?!(?i:path|domain|expires|max-age|samesite|version|priority)=)"
    r"[A-Za-z0-9_.\-]{1,64}+=[^\s;\"'\\]{0,4096}+){0,40}+)"
)
"""The cookies of a request, one of them with a long value; or the cookie that a response sets, without its
attributes."""


def _command(commands: str, option: str) -> SecretShape:
    """The password that an option of these commands gives."""
    expression = rf"[^\r\n|;]{{2,240}}?(?<=\s)(?:{option}){_ARGUMENT}"
    return _inside("password", tuple(f"{command} " for command in commands.split(",")), expression, random=False)


_PLACES = (
    # docs.docker.com: config.json holds base64 of user:password; so does npm's .npmrc
    _inside(
        "docker-auth",
        ('auth"', "auth\\", "auth'"),
        rf"auth{_QUOTE}\s{{0,4}}:\s{{0,4}}{_QUOTE}{_MIXED}"
        rf"(?P<secret>(?:{_BASE64}{{4}}){{3,1000}}+(?:{_BASE64}{{2}}==|{_BASE64}{{3}}=)?){_QUOTE}",
        random=False,
    ),
    _inside(
        "npm-auth",
        ("_auth=", "_auth ="),
        rf"_auth ?= ?(?:{_QUOTE})?(?P<secret>{_BASE64}{{8,1024}}+={{0,2}})(?![\w.(\[{{])",
        random=False,
    ),
    # man 5 netrc; postgresql.org/docs: the password file
    _inside(
        "password",
        ("machine ", "machine\t"),
        rf"machine{_GAP}[^\s\\]{{1,128}}+{_GAP}login{_GAP}[^\s\\]{{1,128}}+{_GAP}password{_GAP}"
        r"(?P<secret>[^\s\\\"']{3,256}+)",
        random=False,
    ),
    _inside(
        "password",
        (":5432:", ":5433:", ":6432:", ":*:"),
        r"(?<=[A-Za-z0-9*\]]):[0-9*]{1,4}:[^\s:/\"'\\]{1,63}+:[^\s:/\"'\\]{1,63}+:"
        r"(?P<secret>[^\s:\"'\\<>]{3,256}+)(?=[\s\"'\\]|\Z)",
        random=False,
    ),
    # man 5 crypt: the hashes of passwords in /etc/shadow and htpasswd, which can be guessed at leisure
    _inside(
        "password-hash",
        ("$2a$", "$2b$", "$2y$", "$apr1$", "$1$", "$5$", "$6$", "$y$", "$argon2"),
        r"(?P<secret>\$(?:2[aby]\$[0-9]{2}\$[./A-Za-z0-9]{53}|(?:apr1|1)\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}"
        r"|5\$(?:rounds=[0-9]{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43}"
        r"|6\$(?:rounds=[0-9]{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{86}"
        r"|y\$[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{43}"
        r"|argon2(?:id?|d)\$v=[0-9]{2}\$m=[0-9,pt=]{5,32}\$[A-Za-z0-9+/]{8,86}\$[A-Za-z0-9+/]{16,172}))"
        r"(?![./A-Za-z0-9])",
    ),
    # RFC 6265: Cookie and Set-Cookie
    _inside(
        "cookie",
        ("ookie:", "OOKIE:", "ookie ", 'ookie"', "ookie'", "ookie\\"),
        rf"(?:ookie|OOKIE)(?:{_QUOTE})?\s{{0,4}}[:=]?\s{{0,4}}(?:{_QUOTE})?{_COOKIES}",
        random=False,
    ),
    _inside("cookie", ("curl ",), rf"[^\r\n|;]{{2,240}}?(?<=\s)-b ?(?:{_QUOTE})?{_COOKIES}", random=False),
    # passwords that commands take as an argument, from the manual pages of each
    _command("sshpass", "-p ?"),
    _command("mysql,mysqldump,mysqladmin,mariadb,mariadb-dump", r"-p(?![0-9]{1,5}(?:[:\s]|\Z)|\s)"),
    _command("redis-cli", "(?:-a|--pass) "),
    _command("docker login,podman login,registry login,skopeo login,az login,oc login", "(?:-p|--password)[ =]"),
    _command("mongo,mongosh,mongodump,mongorestore", "-p ?"),
    _command("ldapsearch,ldapmodify,ldapadd,ldapdelete", "-w ?"),
    _command("openssl", "-pass(?:in|out)? pass:"),
    _command("smbclient", r"-U ?[^\s%\"']{1,64}+%"),
    # wp-config.php
    _inside(
        "password",
        ("define(",),
        rf"define\(\s{{0,4}}{_QUOTE}(?:DB_PASSWORD|(?:SECURE_AUTH|AUTH|LOGGED_IN|NONCE)_(?:KEY|SALT)){_QUOTE}\s{{0,4}},"
        rf"\s{{0,4}}{_ARGUMENT}",
        random=False,
    ),
    # wpa_supplicant.conf
    _inside("password", ("psk=",), rf"psk={_QUOTE}(?P<secret>[^\s\"'\\]{{8,64}}+){_QUOTE}", random=False),
)

SHAPES: tuple[SecretShape, ...] = _MODELS + _CODE + _CLOUD + _SERVICES + _STANDARDS + _PLACES
"""Every known shape. If two match the same characters, the earlier start wins, then the earlier row."""
