"""Files as they come with mail, each with the words that its reader would see, in that order."""

import gzip
from dataclasses import dataclass
from pathlib import Path

from postroom_mail.files.extract import extract
from tests.extraction import test_pdf, test_reading_order
from tests.extraction.pdf_files import at, cid_font, document, to_unicode
from tests.mail import files

SAMPLES_FOLDER = Path(__file__).parent / "samples"


@dataclass(frozen=True)
class FileSample:
    name: str
    content: bytes
    method: str
    words: str

    def is_right(self) -> bool:
        found = extract("application/octet-stream", self.name, self.content)
        return found.method == self.method and self.words.split() == (found.text or "").split()


def kept(name: str) -> bytes:
    return gzip.decompress((SAMPLES_FOLDER / f"{name}.gz").read_bytes())


def vertical_page() -> bytes:
    order = test_reading_order
    lines = b"".join(at(500 - 20 * n, 700, order.japanese(line)) for n, line in enumerate(order.UPPER))
    font = cid_font("UniJIS-UCS2-V", "Japan1", "/ToUnicode 6 0 R")
    means = to_unicode({code: letter for letter, code in order.CODES.items()})
    return document(b"", font=font, more=(means,), drawing=lines)


def columns_page() -> bytes:
    order = test_reading_order
    return document(b"", drawing=order.across(order.LEFT, order.RIGHT))


def half_read_slides() -> bytes:
    content = bytearray(kept("talk.ppt"))
    content[content.rfind(b"\x0f\x00\xee\x03") + 2] ^= 1
    return bytes(content)


SLIDES = "First slide Plain point Grüße, Привет"
SAMPLES = [
    FileSample("a.pdf", files.pdf("Offer no. 7", "1,200 EUR"), "pdf", "Offer no. 7 1,200 EUR"),
    FileSample(
        "columns.pdf", columns_page(), "pdf", " ".join(test_reading_order.LEFT + test_reading_order.RIGHT)
    ),
    FileSample("vertical.pdf", vertical_page(), "pdf", " ".join(test_reading_order.UPPER)),
    FileSample(
        "form.pdf", test_pdf.form(test_pdf.field("/FT /Tx /T (name) /V (Ann)")), "pdf", "A form name: Ann"
    ),
    FileSample(
        "signed.pdf",
        test_pdf.signed_form(b"(A contract)", test_pdf.signature_of("Ann Example")),
        "pdf",
        "A contract The seller: signed buyer: not signed"
        " Signature (not verified): Ann Example, 2026-11-16 10:30, reason: I agree",
    ),
    FileSample("scanned.pdf", test_pdf.SCANNED, "image_only", ""),
    FileSample("locked.pdf", kept("locked.pdf"), "encrypted", ""),
    FileSample("talk.ppt", kept("talk.ppt"), "office", f"{SLIDES} Last slide Thank you"),
    FileSample("half.ppt", half_read_slides(), "office", f"{SLIDES} [1 of 3 slides could not be read whole]"),
    FileSample("sums.xls", kept("sums.xls"), "office", "Sums Größe, Привет 1.5 2026-11-15 42 1"),
    FileSample("a.csv", "Größe;7\nŠířka;9\n".encode(), "csv", "Größe 7 Šířka 9"),
    FileSample("a.html", b"<p>Seen<p hidden>Unseen", "html", "Seen"),
    FileSample("a.txt", "日本語".encode("utf-16"), "text", "日本語"),
    # Nothing in the file says in which letters it is written.
    FileSample("old.txt", "日本語".encode("shift_jis"), "text", "日本語"),
    FileSample(
        "a.zip", files.zipped({"in/a.txt": "Words inside"}), "archive", "in/a.txt in/a.txt: Words inside"
    ),
    FileSample("program.exe", b"MZ\x90\x00" + bytes(200), "unsupported", ""),
]
