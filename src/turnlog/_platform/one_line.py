"""Texts on one line."""

from __future__ import annotations


def clip(text: str, room: int) -> str:
    """`text` on one line of at most `room` characters. A mark in the middle shows where text is left out."""
    if len(text) > room * 4:
        text = f"{text[: room * 2]} … {text[-room:]}"
    text = " ".join(text.split())
    if len(text) <= room:
        return text
    tail = max(0, room // 3 - 3)
    return f"{text[: room - tail - 3]} … {text[len(text) - tail :]}" if tail else text[:room]
