"""PDF files written object by object: pages, fonts of odd encodings, forms and annotations."""

import zlib

HELVETICA = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
TO_UNICODE = b"""/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def
1 begincodespacerange <0000> <FFFF> endcodespacerange
%d beginbfchar
%s
endbfchar endcmap end end"""


def stream(content: bytes, *, is_packed: bool = False) -> bytes:
    packed = zlib.compress(content, 1) if is_packed else content
    kind = b" /Filter /FlateDecode" if is_packed else b""
    return b"<< /Length %d%s >>\nstream\n%s\nendstream" % (len(packed), kind, packed)


def document(
    shown: bytes,
    font: bytes = HELVETICA,
    more: tuple[bytes, ...] = (),
    annotations: str = "",
    catalog: str = "",
    *,
    is_packed: bool = False,
    drawing: bytes = b"",
) -> bytes:
    """A page that shows a string in a font, or what is drawn. Objects of `more` are numbered from 6 on."""
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Annots [%s]"
        b" /Resources << /Font << /F1 5 0 R >> >> >>" % annotations.encode()
    )
    text = drawing or b"BT /F1 12 Tf 50 700 Td %s Tj ET" % shown
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R %s >>" % catalog.encode(),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        page,
        stream(text, is_packed=is_packed),
        font,
        *more,
    ]
    content, offsets = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(content))
        content += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return content + (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF"
        % (len(objects) + 1, table, len(objects) + 1, len(content))
    )


def at(left: float, bottom: float, shown: bytes) -> bytes:
    """A string in its place, for `drawing`."""
    return b"BT /F1 10 Tf 1 0 0 1 %.2f %.2f Tm %s Tj ET\n" % (left, bottom, shown)


def to_unicode(codes: dict[int, str]) -> bytes:
    lines = (f"<{code:04X}> <{text.encode('utf-16-be').hex()}>" for code, text in codes.items())
    return stream(TO_UNICODE % (len(codes), "\n".join(lines).encode()))


def cid_font(encoding: str, ordering: str, extra: str = "") -> bytes:
    """A font of glyph numbers, as those of East Asian text are."""
    return (
        f"<< /Type /Font /Subtype /Type0 /BaseFont /Some /Encoding /{encoding} {extra} /DescendantFonts "
        "[<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Some /CIDSystemInfo << /Registry (Adobe) "
        f"/Ordering ({ordering}) /Supplement 2 >> /FontDescriptor << /Type /FontDescriptor "
        "/FontName /Some /Flags 4 /FontBBox [0 0 1000 1000] /ItalicAngle 0 /Ascent 800 /Descent -200 "
        "/CapHeight 700 /StemV 80 >> >>] >>"
    ).encode()
