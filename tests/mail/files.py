"""Small real files of every kind whose text is extracted, written byte by byte."""

import io
import struct
import zipfile
import zlib

WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
SHEET = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
RELATION = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
DRAWING = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
OPEN = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
)
# Letters of five by seven dots, each row as bits.
LETTERS = {
    "H": (17, 17, 17, 31, 17, 17, 17),
    "E": (31, 16, 16, 30, 16, 16, 31),
    "L": (16, 16, 16, 16, 16, 16, 31),
    "P": (30, 17, 17, 30, 16, 16, 16),
}


def pdf(*lines: str) -> bytes:
    shown = "".join(f"({line}) Tj 0 -20 Td " for line in lines)
    stream = f"BT /F1 12 Tf 50 700 Td {shown}ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    content, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(content))
        content += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return content + (
        b"xref\n0 6\n0000000000 65535 f \n%strailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF"
        % (table, len(content))
    )


def zipped(members: dict[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return buffer.getvalue()


def docx(body: str, head: str = "") -> bytes:
    return zipped({"word/document.xml": f"{head}<w:document {WORD}><w:body>{body}</w:body></w:document>"})


def pptx(*slides: str) -> bytes:
    members: dict[str, str | bytes] = {"ppt/presentation.xml": "<p/>"}
    for number, text in enumerate(slides, 1):
        slide = f"<sld {DRAWING}><a:p><a:r><a:t>{text}</a:t></a:r></a:p></sld>"
        members[f"ppt/slides/slide{number}.xml"] = slide
    return zipped(members)


def xlsx(rows: str, strings: tuple[str, ...] = ()) -> bytes:
    """A workbook of a shown and a hidden sheet; styles 1 and 2 are dates, 3 is a red number."""
    shared = "".join(f"<si><t>{text}</t></si>" for text in strings)
    return zipped(
        {
            "xl/workbook.xml": f"<workbook {SHEET} {RELATION}><sheets>"
            '<sheet name="Data" sheetId="1" r:id="a"/>'
            '<sheet name="Secret" sheetId="2" state="hidden" r:id="b"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": "<Relationships>"
            '<Relationship Id="a" Target="worksheets/sheet1.xml"/>'
            '<Relationship Id="b" Target="/xl/worksheets/sheet2.xml"/></Relationships>',
            "xl/sharedStrings.xml": f"<sst {SHEET}>{shared}</sst>",
            "xl/styles.xml": f"<styleSheet {SHEET}><numFmts>"
            '<numFmt numFmtId="170" formatCode="dd\\.mm\\.yyyy"/>'
            '<numFmt numFmtId="171" formatCode="[Red]0.00"/></numFmts><cellXfs><xf numFmtId="0"/>'
            '<xf numFmtId="14"/><xf numFmtId="170"/><xf numFmtId="171"/></cellXfs></styleSheet>',
            "xl/worksheets/sheet1.xml": _worksheet(rows),
            "xl/worksheets/sheet2.xml": _worksheet("<row><c><v>666</v></c></row>"),
        }
    )


def _worksheet(rows: str) -> str:
    return f"<worksheet {SHEET}><sheetData>{rows}</sheetData></worksheet>"


def open_document(kind: str, body: str) -> bytes:
    content = f"<office:document-content {OPEN}><office:body>{body}</office:body></office:document-content>"
    return zipped({"mimetype": f"application/vnd.oasis.opendocument.{kind}", "content.xml": content})


def xls(text: str, number: float, row: int = 0, column: int = 1) -> bytes:
    """A BIFF8 workbook of one sheet with a text and a number, in a compound file of ten sectors."""
    start = _record(0x0809, struct.pack("<HHHHII", 0x0600, 0x0005, 0, 0, 0, 0))
    name = b"\x04\x00Data"
    sheet_place = len(start) + 4 + 6 + len(name) + 4
    globals_part = start + _record(0x0085, struct.pack("<IH", sheet_place, 0) + name) + _record(0x000A, b"")
    letters = text.encode("utf-16-le")
    sheet = (
        _record(0x0809, struct.pack("<HHHHII", 0x0600, 0x0010, 0, 0, 0, 0))
        + _record(0x0204, struct.pack("<HHHHB", 0, 0, 0, len(text), 1) + letters)
        + _record(0x0203, struct.pack("<HHHd", row, column, 0, number))
        + _record(0x000A, b"")
    )
    return _compound_file("Workbook", globals_part + sheet)


def _record(kind: int, body: bytes) -> bytes:
    return struct.pack("<HH", kind, len(body)) + body


def _compound_file(name: str, stream: bytes) -> bytes:
    end, free = 0xFFFFFFFE, 0xFFFFFFFF
    stream = stream.ljust(4096, b"\0")
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6)
    header += bytes(6) + struct.pack("<IIIIIIIII", 0, 1, 1, 0, 4096, end, 0, end, 0)
    header += struct.pack("<I", 0) + struct.pack("<I", free) * 108
    chain = [0xFFFFFFFD, end, *range(3, 10), end]
    table = struct.pack("<128I", *chain, *[free] * (128 - len(chain)))
    entries = (
        _entry("Root Entry", 5, 1, end, 0)
        + _entry(name, 2, free, 2, len(stream))
        + _entry("", 0, free, 0, 0) * 2
    )
    return header + table + entries + stream


def _entry(name: str, kind: int, child: int, start: int, size: int) -> bytes:
    free = 0xFFFFFFFF
    letters = (name + "\0").encode("utf-16-le") if name else b""
    links = struct.pack("<HBBIII", len(letters), kind, 1, free, free, child)
    return letters.ljust(64, b"\0") + links + bytes(36) + struct.pack("<IQ", start, size)


def png(word: str, dot: int = 8) -> bytes:
    """A word in large dotted letters, black on white."""
    rows = [bytes([255]) * (len(word) * 6 * dot + 8 * dot)] * (4 * dot)
    picture = list(rows)
    for line in range(7):
        bits = "".join(f"{LETTERS[letter][line]:05b}0" for letter in word)
        dots = b"".join((b"\x00" if bit == "1" else b"\xff") * dot for bit in bits)
        picture += [b"\xff" * 4 * dot + dots + b"\xff" * 4 * dot] * dot
    picture += rows
    return _png_file(len(picture[0]), len(picture), b"".join(b"\0" + row for row in picture))


def _png_file(width: int, height: int, rows: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_png_chunk(name, body) for name, body in chunks)


def _png_chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def blank_png(width: int, height: int) -> bytes:
    return _png_file(width, height, b"")
