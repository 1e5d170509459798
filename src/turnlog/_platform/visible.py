"""Text that is safe to show: characters that control a terminal or deceive a reader are escaped.

A transcript is foreign text. Control characters in it can clear a screen, or set a window's title or the clipboard;
bidirectional marks and invisible characters make a text look like a different one.
"""

from __future__ import annotations

import unicodedata
from importlib import import_module

from .lazy import lazy_pattern

# Format characters (Unicode category Cf) that scripts and emoji need: the two joiners, the Arabic and Syriac number and
# abbreviation signs, the soft hyphen.
_NEEDED = frozenset("\u200c\u200d\u00ad\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f")
_HARMFUL = frozenset({"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"})

# Characters that show nothing although their category is that of letters, marks or symbols (Unicode's
# Default_Ignorable_Code_Point, and the blanks of Braille and musical notation).
_BLANK = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2800, 0x3164),
            *(*range(0xFE00, 0xFE10), 0xFFA0, 0x16FE4, 0x1D159, *range(0xE0100, 0xE01F0)),
        ),
    )
)
_UNSEEN = _HARMFUL | {"Co", "Zs"}
"""For `exposed`: also characters that a font may have no sign for, and spaces that are not the common one."""


class _Escapes(dict[int, str]):
    """The shown form of each character; filled on first use. With `exact`, all that cannot be seen is escaped."""

    def __init__(self, shown: dict[int, str], *, exact: bool = False) -> None:
        super().__init__(shown)
        self._exact = exact

    def _is_shown(self, char: str) -> bool:
        category = unicodedata.category(char)
        return category not in _UNSEEN and char not in _BLANK if self._exact else category not in _HARMFUL

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if self._is_shown(char) or (char in _NEEDED and not self._exact):
            shown = char
        elif code > 0xFFFF:
            shown = f"\\u{0xD7C0 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
        else:
            shown = f"\\u{code:04x}"
        self[code] = shown
        return shown


_LINE = _Escapes({})
_LINES = _Escapes({ord("\n"): "\n", ord("\t"): "\t"})
_EXPOSED = _Escapes({ord("\n"): "\n", ord("\t"): "\t", ord(" "): " "}, exact=True)


def visible(text: str, *, one_line: bool = False) -> str:
    r"""`text` with invisible characters, except spaces and line ends, as `\uXXXX`.

    Lone surrogates and unassigned characters count as invisible. The escapes are those of JSON, so JSON text stays JSON
    with the same value. Line ends become `\n`; with `one_line`, line ends and tabs are escaped too.
    """
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_LINE) if one_line else text.replace("\r\n", "\n").translate(_LINES)


def exposed(text: str) -> str:
    r"""`text` for somebody who has to agree to it: as `visible`, but everything that cannot be seen or told apart is
    escaped: also joiners, variation selectors, fillers, spaces other than the common one, the `\r` of a line end."""
    return text.translate(_EXPOSED)


_NARROW = lazy_pattern("[ -~\xa0-\u02ff\u2010-\u2027\u2030-\u203a\u2190-\u21ff\u2500-\u259f]*")
"""Characters that take one column everywhere."""


def columns_of(text: str) -> int:
    """The number of columns that a text without control characters takes on a terminal, by the tables of wcwidth: two
    for a wide East Asian character or an emoji, none for a combining character."""
    if _NARROW.fullmatch(text):
        return len(text)  # most texts, without loading the tables
    return max(0, int(import_module("wcwidth").wcswidth(text)))
