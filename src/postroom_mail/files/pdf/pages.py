"""Text of PDF files: the words of each page, its form values and notes, and signatures."""

import ctypes
import re
from collections.abc import Callable, Iterator
from typing import Any

from postroom_mail.files.extraction import MAX_TEXT_CHARS
from postroom_mail.files.outcome import Encrypted
from postroom_mail.files.pdf.pdfium import load_pdfium
from postroom_mail.files.pdf.reading_order import reordered
from postroom_mail.files.pdf.signatures import signature_lines

MAX_PAGES = 5_000
MAX_ANNOTATIONS = 2_000
MAX_VALUE_BYTES = 20_000
# For pages that are pictures: reading text in one takes some seconds.
MAX_PICTURED_PAGES = 3
PICTURE_SCALE = 2.0
MAX_PICTURE_SIDE = 2_400
PASSWORD_FIELD = 1 << 13

# Symbol fonts put their letters here, and some programs use such a font for words.
_SYMBOL_WORDS = re.compile(r"[\uf020-\uf0ff]{3,}")

# A reader that returns the size, given a buffer and how many bytes it holds.
Fetch = Callable[[Any, int], int]


def pdf_text(content: bytes) -> Iterator[str]:
    pypdfium2 = load_pdfium()
    document = _opened(pypdfium2, content)
    try:
        document.init_forms()
        left = MAX_ANNOTATIONS
        to_sign: list[str] = []
        has_words = False
        for number in range(min(len(document), MAX_PAGES)):
            page = document[number]
            words = _words(pypdfium2.raw, page)
            has_words = has_words or not words.isspace()
            yield words
            lines = list(_annotation_lines(pypdfium2.raw, document.formenv, page, left, to_sign))
            left -= len(lines)
            # The same field may stand in several places of a page.
            yield "".join(dict.fromkeys(lines)) + "\n"
            page.close()
        if has_words:
            yield "".join(dict.fromkeys([*to_sign, *signature_lines(pypdfium2.raw, document)]))
    finally:
        document.close()


def signatures(content: bytes) -> Iterator[str]:
    """Yield the signatures, for a file whose pages are pictures."""
    pypdfium2 = load_pdfium()
    document = _opened(pypdfium2, content)
    try:
        yield from signature_lines(pypdfium2.raw, document)
    finally:
        document.close()


def page_pictures(content: bytes) -> Iterator[bytes]:
    """Yield the first pages rendered as portable pixmaps."""
    pypdfium2 = load_pdfium()
    document = _opened(pypdfium2, content)
    try:
        for number in range(min(len(document), MAX_PICTURED_PAGES)):
            page = document[number]
            scale = min(PICTURE_SCALE, MAX_PICTURE_SIDE / max(page.get_size(), default=1))
            bitmap = page.render(scale=scale, rev_byteorder=True, prefer_bgrx=False)
            yield _pixmap(bitmap)
            bitmap.close()
            page.close()
    finally:
        document.close()


def _pixmap(bitmap: Any) -> bytes:
    """Return the rows without padding; three bytes per pixel, or one of grey."""
    width, height, channels = bitmap.width, bitmap.height, bitmap.n_channels
    kind = b"P6" if channels == 3 else b"P5"
    rows = memoryview(bitmap.buffer)
    lines = (rows[row * bitmap.stride : row * bitmap.stride + width * channels] for row in range(height))
    return b"%s %d %d 255\n" % (kind, width, height) + b"".join(lines)


def _opened(pypdfium2: Any, content: bytes) -> Any:
    try:
        return pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        if error.err_code == pypdfium2.raw.FPDF_ERR_PASSWORD:
            raise Encrypted from error
        raise


def _words(pdfium: Any, page: Any) -> str:
    words = page.get_textpage()
    count = min(words.count_chars(), MAX_TEXT_CHARS)
    text: str = reordered(pdfium, words, count) or words.get_text_range(0, count)
    words.close()
    return _SYMBOL_WORDS.sub(lambda run: "".join(chr(ord(c) - 0xF000) for c in run[0]), text) + "\n"


def _annotation_lines(pdfium: Any, forms: Any, page: Any, most: int, to_sign: list[str]) -> Iterator[str]:
    """Yield lines of annotations; signature fields go into `to_sign`, for the end."""
    for number in range(min(pdfium.FPDFPage_GetAnnotCount(page), most)):
        annotation = pdfium.FPDFPage_GetAnnot(page, number)
        if annotation:
            yield _annotation_line(pdfium, forms, annotation)
            if forms and _is_to_sign(pdfium, forms, annotation):
                to_sign.append(_signature_field_line(pdfium, forms, annotation))
            pdfium.FPDFPage_CloseAnnot(annotation)


def _annotation_line(pdfium: Any, forms: Any, annotation: Any) -> str:
    unseen = pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW
    if pdfium.FPDFAnnot_GetFlags(annotation) & unseen:
        return ""
    kind = pdfium.FPDFAnnot_GetSubtype(annotation)
    if kind == pdfium.FPDF_ANNOT_WIDGET:
        return _field_line(pdfium, forms, annotation) if forms else ""
    if kind in (pdfium.FPDF_ANNOT_POPUP, pdfium.FPDF_ANNOT_LINK):
        return ""
    return _labelled(_entry(pdfium, annotation, b"T"), _entry(pdfium, annotation, b"Contents"))


def _entry(pdfium: Any, annotation: Any, key: bytes) -> str:
    return _text(lambda buffer, size: pdfium.FPDFAnnot_GetStringValue(annotation, key, buffer, size))


def _field_line(pdfium: Any, forms: Any, annotation: Any) -> str:
    kind = pdfium.FPDFAnnot_GetFormFieldType(forms, annotation)
    if kind in (pdfium.FPDF_FORMFIELD_PUSHBUTTON, pdfium.FPDF_FORMFIELD_SIGNATURE):
        return ""
    if kind == pdfium.FPDF_FORMFIELD_TEXTFIELD and (
        pdfium.FPDFAnnot_GetFormFieldFlags(forms, annotation) & PASSWORD_FIELD
    ):
        return ""
    is_box = kind in (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON)
    if is_box and not pdfium.FPDFAnnot_IsChecked(forms, annotation):
        return ""
    ask = pdfium.FPDFAnnot_GetFormFieldExportValue if is_box else pdfium.FPDFAnnot_GetFormFieldValue
    value = _text(lambda buffer, size: ask(forms, annotation, buffer, size))
    return _labelled(_field_name(pdfium, forms, annotation), value)


def _is_to_sign(pdfium: Any, forms: Any, annotation: Any) -> bool:
    return bool(pdfium.FPDFAnnot_GetFormFieldType(forms, annotation) == pdfium.FPDF_FORMFIELD_SIGNATURE)


def _signature_field_line(pdfium: Any, forms: Any, annotation: Any) -> str:
    state = "signed" if pdfium.FPDFAnnot_HasKey(annotation, b"V") else "not signed"
    return _labelled(_field_name(pdfium, forms, annotation), state)


def _field_name(pdfium: Any, forms: Any, annotation: Any) -> str:
    """Return the label shown next to the field, if any, else its internal name."""
    shown = _text(lambda b, n: pdfium.FPDFAnnot_GetFormFieldAlternateName(forms, annotation, b, n))
    return shown or _text(lambda b, n: pdfium.FPDFAnnot_GetFormFieldName(forms, annotation, b, n))


def _labelled(name: str, value: str) -> str:
    name, value = " ".join(name.split()), value.strip()
    return (f"{name}: {value}\n" if name else f"{value}\n") if value else ""


def _text(fetch: Fetch) -> str:
    size = min(fetch(None, 0), MAX_VALUE_BYTES)
    if size < 4:
        return ""
    buffer = (ctypes.c_ushort * (size // 2 + 1))()
    # Nothing is written if there is less room than needed.
    if fetch(buffer, size) > size:
        return ""
    return bytes(buffer)[: size - 2].decode("utf-16-le", "replace")
