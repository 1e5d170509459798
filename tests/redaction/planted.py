"""Made-up secrets of well-known kinds, and a session that has one in every place a record has text."""

from __future__ import annotations

import base64
import hashlib
import json
import string
from collections.abc import Iterable

from turnlog.log.messages import Form, Media, Message, Opaque, Reasoning, Text, Tool, ToolCall, ToolResult, Unknown
from turnlog.log.records import (
    Approval,
    Body,
    Configuration,
    Decision,
    FileChange,
    MessageRecord,
    Note,
    PartialAnswer,
    StreamCheckpoint,
    SummaryRecord,
    ToolFinished,
    TurnClosed,
    TurnOpened,
    UsageRecord,
)
from turnlog.log.usage import Usage

__all__ = ["EXACT", "SECRETS", "bodies", "letters"]

_ALNUM = string.ascii_letters + string.digits
_WORD = _ALNUM + "_-"
_CAPITALS = string.ascii_uppercase + string.digits
_HEX = "0123456789abcdef"


def letters(seed: object, size: int, alphabet: str = _ALNUM) -> str:
    """`size` characters that look random and are the same each time."""
    drawn = b"".join(hashlib.sha256(f"{seed} {part}".encode()).digest() for part in range(size // 32 + 1))
    return "".join(alphabet[byte % len(alphabet)] for byte in drawn[:size])


def _base64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


_JWT_HEAD = f"{_base64(json.dumps({'alg': 'HS256'}))}.{_base64(json.dumps({'sub': '1234567890'}))}"


def _pem(kind: str) -> str:
    body = "\n".join(letters((kind, line), 64, _ALNUM + "+/") for line in range(8))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{body}\n-----END {kind}PRIVATE KEY-----"


SECRETS: dict[str, tuple[str, str]] = {
    # what it is: the text that it stands in, and the part that must not be left; built from pieces, so that
    # no scanner takes this file for a leak
    name: (text, secret or text)
    for name, text, secret in [
        ("openai project", f"sk-proj-{letters(1, 74, _WORD)}T3BlbkFJ{letters(2, 74, _WORD)}", ""),
        ("openai service", f"sk-svcacct-{letters(3, 60, _WORD)}", ""),
        ("openai old", f"sk-{letters(4, 20)}T3BlbkFJ{letters(5, 20)}", ""),
        ("anthropic", f"sk-ant-api03-{letters(6, 93, _WORD)}AA", ""),
        ("openrouter", f"sk-or-v1-{letters(7, 64, _HEX)}", ""),
        ("google", f"AIza{letters(8, 35, _WORD)}", ""),
        ("google oauth", f"GOCSPX-{letters(9, 28, _WORD)}", ""),
        ("aws id", f"AKIA{letters(10, 16, _CAPITALS)}", ""),
        ("aws secret", f"aws_secret_access_key = {letters(11, 40, _ALNUM + '/+')}", letters(11, 40, _ALNUM + "/+")),
        ("github classic", f"ghp_{letters(12, 36)}", ""),
        ("github oauth", f"gho_{letters(13, 36)}", ""),
        ("github app", f"ghs_{letters(14, 36)}", ""),
        ("github fine", f"github_pat_{letters(15, 22)}_{letters(16, 59)}", ""),
        ("gitlab", f"glpat-{letters(17, 20, _WORD)}", ""),
        ("slack bot", f"xoxb-{letters(18, 12, string.digits)}-{letters(19, 24)}", ""),
        ("slack app", f"xapp-1-A{letters(20, 10, _CAPITALS)}-{letters(21, 64, _HEX)}", ""),
        (
            "slack hook",
            f"https://hooks.slack.com/services/T{letters(22, 8)}/B{letters(23, 8)}/{letters(24, 24)}",
            letters(24, 24),
        ),
        ("stripe", f"sk_live_{letters(25, 24)}", ""),
        ("stripe restricted", f"rk_live_{letters(26, 24)}", ""),
        ("npm", f"npm_{letters(27, 36)}", ""),
        ("pypi", f"pypi-AgEIcHlwaS5vcmc{letters(28, 70, _WORD)}", ""),
        ("hugging face", f"hf_{letters(29, 34, string.ascii_letters)}", ""),
        ("sendgrid", f"SG.{letters(30, 22, _WORD)}.{letters(31, 43, _WORD)}", ""),
        ("twilio", f"SK{letters(32, 32, _HEX)}", ""),
        ("mailgun", f"key-{letters(33, 32, _HEX)}", ""),
        ("digitalocean", f"dop_v1_{letters(34, 64, _HEX)}", ""),
        ("telegram", f"{letters(35, 10, '123456789')}:AA{letters(36, 33, _WORD)}", ""),
        ("discord", f"{_base64('108765432109876543')}.{letters(37, 6)}.{letters(38, 38, _WORD)}", ""),
        ("jwt", f"{_JWT_HEAD}.{letters(39, 43, _WORD)}", ""),
        ("rsa key", _pem("RSA "), letters(("RSA ", 3), 64, _ALNUM + "+/")),
        ("ssh key", _pem("OPENSSH "), letters(("OPENSSH ", 3), 64, _ALNUM + "+/")),
        ("age key", f"AGE-SECRET-KEY-1{letters(40, 58, 'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L')}", ""),
        ("azure", f"AccountName=a;AccountKey={letters(41, 86)}==;EndpointSuffix=core.windows.net", letters(41, 86)),
        ("postgres", "postgres://app:S3cr3tPw41@db.internal:5432/prod", "S3cr3tPw41"),
        ("mongodb", "mongodb+srv://root:hunter2hunter@cluster0.mongodb.net/x", "hunter2hunter"),
        ("basic url", "https://bob:wordpass9@example.com/x", "wordpass9"),
        ("bearer", f"Authorization: Bearer {letters(42, 40)}", letters(42, 40)),
        ("basic header", f"Authorization: Basic {_base64('bob:hunter22hunter')}", _base64("bob:hunter22hunter")),
        ("heroku", "HEROKU_API_KEY=01234567-89ab-4def-8123-456789abcdef", "01234567-89ab-4def-8123-456789abcdef"),
        ("shopify", f"shpat_{letters(43, 32, _HEX)}", ""),
        ("square", f"sq0atp-{letters(44, 22, _WORD)}", ""),
        ("databricks", f"dapi{letters(45, 32, _HEX)}", ""),
        ("groq", f"gsk_{letters(46, 52)}", ""),
        ("xai", f"xai-{letters(47, 80)}", ""),
        ("perplexity", f"pplx-{letters(48, 48)}", ""),
        ("replicate", f"r8_{letters(49, 37)}", ""),
        ("vault", f"hvs.{letters(50, 90, _WORD)}", ""),
        ("python password", 'password = "Tr0ub4dor&3"', "Tr0ub4dor&3"),
        ("env password", "DB_PASSWORD=hunter2hunter2", "hunter2hunter2"),
        ("yaml password", "db:\n  password: s3cr3tpw\n", "s3cr3tpw"),
        ("query", f"https://a.example/c?access_token={letters(51, 30)}&x=1", letters(51, 30)),
        ("escaped json", r"{\"password\": \"hunter2xy\"}", "hunter2xy"),
        ("api key", f'{{"api_key": "{letters(52, 32)}"}}', letters(52, 32)),
        ("header", f"X-Api-Key: {letters(53, 32)}", letters(53, 32)),
        ("option", "mysql --user root --password hunter22x", "hunter22x"),
        ("curl", "curl -u bob:hunter22y https://example.com", "hunter22y"),
    ]
}

EXACT: dict[str, str] = {
    "id": "call_sk-live-7Jq",
    "item": "fc_0a1b2c3d",
    "signature": f"Erc{letters(60, 300)}AKIA{letters(61, 40)}",
    "encrypted": f"gAAAAAB{letters(62, 400, _WORD)}",
    "sha256": letters(63, 64, _HEX),
}
"""What has to stay byte for byte: ids, signatures, ciphers, hashes."""


def bodies(texts: Iterable[str]) -> list[Body]:
    """A record of every kind with the next of `texts` in every place that takes one."""
    given = list(texts)
    place = -1

    def said() -> str:
        nonlocal place
        place += 1
        return f"it is {given[place % len(given)]} and so on"

    def parts() -> tuple[Text | Media | Opaque | Unknown, ...]:
        form = Form("p", "list", {"+": {"x_extra": [said()]}})
        return (
            Text(said(), form),
            Opaque("p", "thing", {"id": EXACT["id"], "signature": EXACT["signature"], "deep": [{"er": said()}]}),
            Unknown("smell", {"of": said(), "encrypted_content": EXACT["encrypted"]}),
            Media("image", sha256=EXACT["sha256"], name=said()),
            Media("image", url=f"https://example.com/?q={said()}"),
        )

    call = ToolCall(
        EXACT["id"],
        "run",
        {"command": said(), "list": [said(), 5], said(): 1},
        signature=EXACT["signature"],
        provider="p",
    )
    spelled = ToolCall(
        EXACT["id"],
        "run",
        {"a": (text := said())},
        raw=json.dumps({"a": text}, separators=(" ,  ", " : ")),
        item_id=EXACT["item"],
    )
    free = ToolCall(EXACT["id"], "patch", raw=said(), kind="custom")
    thought = Reasoning("p", said(), (said(), said()), EXACT["signature"], EXACT["encrypted"], EXACT["id"])
    result = ToolResult(EXACT["id"], "run", parts())
    return [
        Configuration("p", "m", {"extra": said()}, (Tool("t", said(), {"d": said()}, data=[said()]),), why=said()),
        MessageRecord(Message("user", parts(), name=said()), source=said()),
        MessageRecord(Message("assistant", (thought, Text(said()), call, spelled, free)), response_id=EXACT["id"]),
        MessageRecord(Message("user", (result,))),
        PartialAnswer(Message("assistant", (Text(said()),)), said(), (Text(said()), ToolCall("c", "run", raw=said()))),
        StreamCheckpoint(Message("assistant", (Text(said()),)), (Text(said()), ToolCall("c", "run", raw=said()))),
        TurnOpened("t1", said()),
        ToolFinished(EXACT["id"], 3, "failed", reason=said()),
        UsageRecord("p", "m", Usage(1, 2), {"note": said()}),
        Decision("note", why=said(), detail={"x": [said()]}),
        TurnClosed("t1", "failed", said()),
        FileChange(said(), "renamed", old_path=said()),
        Approval(EXACT["id"], "denied", by=said(), reason=said()),
        SummaryRecord("key", "failed", text=said(), reason=said()),
        Note(said(), said(), {"k": said(), said(): 2}),
    ]
