"""Loads PDFium without the fonts of the machine, so that a file reads the same everywhere.

For a font that a file names but does not contain, PDFium takes an installed font of that name or script. The
sizes of its glyphs decide where words and lines end, and without any glyphs vertical text is dropped.
"""

import ctypes
from functools import cache
from typing import Any

from postroom_mail.files.pdf.box_font import box_font

# Shift-JIS, Hangul, GB 2312, Big5: scripts that are not in the 14 fonts that PDFium contains.
EAST_ASIAN_CHARSETS = frozenset((128, 129, 134, 136))
BOX_FONT_HANDLE = 1


@cache
def load_pdfium() -> Any:
    """Return `pypdfium2`, whose PDFium has its own 14 fonts, and boxes for East Asian characters."""
    import pypdfium2  # only the extraction child pays for it

    pypdfium2.raw.FPDF_SetSystemFontInfo(_fonts(pypdfium2))
    return pypdfium2


@cache  # PDFium keeps a pointer to it
def _fonts(pypdfium2: Any) -> Any:
    """Return a font source in place of the one that lists and opens the font files of the machine."""
    kind = pypdfium2.raw.FPDF_SYSFONTINFO
    functions = dict(kind._fields_)
    font = box_font()

    def find(_fonts: Any, _weight: int, _italic: int, charset: int, *_face: Any) -> int | None:
        return BOX_FONT_HANDLE if charset in EAST_ASIAN_CHARSETS else None

    def read(_fonts: Any, _handle: Any, table: int, buffer: Any, size: int) -> int:
        """Return the size of a table, and copy it if there is room. Table 0 is the whole font."""
        if table:
            return 0
        if size >= len(font):
            ctypes.memmove(buffer, font, len(font))
        return len(font)

    return kind(version=1, MapFont=functions["MapFont"](find), GetFontData=functions["GetFontData"](read))
