"""The head of a page: its policy, its style and its script."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from .markup import Markup, join, start, tag, text

DATA = Path(__file__).parent / "data"

STYLE = DATA / "page.css"
"""The style of every page."""


def head(title: str, style: str, script: str = "") -> Markup:
    """The beginning of a page, up to its body. `style` and `script` are texts of ours; the script goes to the end of
    the body. The Content-Security-Policy allows only them, by their hashes, and pictures inside the page; nothing can
    be fetched."""
    policy = f"default-src 'none'; img-src data:; style-src {_hash(style)}; "
    policy += f"script-src {_hash(script)}; " if script else ""
    policy += "base-uri 'none'; form-action 'none'"
    metas = [
        start("meta", charset="utf-8"),
        # Not made by `start`, which would escape the quotes of the policy.
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        start("meta", name="referrer", content="no-referrer"),
        start("meta", name="viewport", content="width=device-width, initial-scale=1"),
        start("meta", name="color-scheme", content="light dark"),
        tag("title", text(title, one_line=True)),
        tag("style", Markup(style)),
    ]
    inside = Markup("\n".join(metas))
    return join([Markup('<!DOCTYPE html>\n<html lang="en"><head>'), inside, Markup("</head>\n<body>\n")])


def _hash(words: str) -> str:
    digest = base64.b64encode(hashlib.sha256(words.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"
