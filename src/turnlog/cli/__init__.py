"""The command `turnlog`. One file per noun; `entry` puts them together."""

from .entry import build_parser, main

__all__ = ["build_parser", "main"]
