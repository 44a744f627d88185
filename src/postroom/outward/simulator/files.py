"""The files that `attachment@` sends: a table and a page, each with words that can be searched."""

from postroom_mail.writing.compose import DraftAttachment

TABLE = "item,pieces,price\nLamp,2,30.00\nBulb,6,4.50\n"
PAGE = "Invoice 2026-117: 87.00 EUR, due on 1 December 2026."


def both() -> tuple[DraftAttachment, ...]:
    return (
        DraftAttachment("figures.csv", "text/csv", TABLE.encode()),
        DraftAttachment("invoice.pdf", "application/pdf", pdf(PAGE)),
    )


def pdf(line: str) -> bytes:
    """Return one page with one line of ASCII (ISO 32000-1)."""
    drawn = f"BT /F1 14 Tf 72 720 Td ({line}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    made = b"%PDF-1.4\n"
    places = []
    for number, content in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    ending = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, len(made))
    return made + b"xref\n0 %d\n0000000000 65535 f \n%s%s" % (size, table, ending)
