"""Text that is safe to show: characters that control a terminal or deceive a reader are escaped.

A transcript is foreign text. Control characters in it can clear a screen, or set a window's title or the clipboard;
bidirectional marks and invisible characters make a text look like a different one.
"""

from __future__ import annotations

import unicodedata

# Format characters (Unicode category Cf) that scripts and emoji need: the two joiners, the Arabic and Syriac number and
# abbreviation signs, the soft hyphen.
_NEEDED = frozenset("\u200c\u200d\u00ad\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f")
_HARMFUL = frozenset({"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"})


class _Escapes(dict[int, str]):
    """The shown form of each character; filled on first use."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if unicodedata.category(char) not in _HARMFUL or char in _NEEDED:
            shown = char
        elif code > 0xFFFF:
            shown = f"\\u{0xD7C0 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
        else:
            shown = f"\\u{code:04x}"
        self[code] = shown
        return shown


_LINE = _Escapes()
_LINES = _Escapes({ord("\n"): "\n", ord("\t"): "\t"})


def visible(text: str, *, one_line: bool = False) -> str:
    r"""`text` with invisible characters, except spaces and line ends, as `\uXXXX`.

    Lone surrogates and unassigned characters count as invisible. The escapes are those of JSON, so JSON text stays JSON
    with the same value. Line ends become `\n`; with `one_line`, line ends and tabs are escaped too.
    """
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_LINE) if one_line else text.replace("\r\n", "\n").translate(_LINES)
