"""PDF files: pages in any encoding, what was filled in, what was noted, and passwords."""

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs7
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.files.extract import extract
from postroom_mail.files.extraction import MAX_WHOLE_CHARS, METHODS, REASONS, Extraction
from postroom_mail.files.ocr import read_picture
from postroom_mail.files.pdf.pages import page_pictures
from tests.extraction.pdf_files import cid_font, document, to_unicode
from tests.samples import samples

LOCKED = Path(__file__).parent / "samples" / "locked.pdf.gz"
FORM = "/AcroForm << /Fields [6 0 R 7 0 R 8 0 R 9 0 R 10 0 R 11 0 R] >>"
PLACE = "/Subtype /Widget /Rect [10 10 90 30]"
# A hand-drawn look for a box, without which it is neither on nor off.
LOOK = "/AP << /N << /Paid << >> /Off << >> >> >>"


def read(content: bytes) -> Extraction:
    return extract("application/pdf", "a.pdf", content)


def field(entries: str) -> bytes:
    return f"<< /Type /Annot {PLACE} {entries} >>".encode()


def form(*fields: bytes) -> bytes:
    places = " ".join(f"{number} 0 R" for number in range(6, 6 + len(fields)))
    return document(b"(A form)", more=fields, annotations=places, catalog=FORM)


def named_by_glyphs(names: str) -> bytes:
    return (
        "<< /Type /Font /Subtype /Type1 /BaseFont /Odd "
        f"/Encoding << /Type /Encoding /Differences [1 {names}] >> >>"
    ).encode()


def hexed(text: str, codec: str) -> bytes:
    return b"<%s>" % text.encode(codec).hex().encode()


@samples(
    ("content", "text"),
    [
        (document(rb"(\001\002\003)", named_by_glyphs("/H /eacute /uni20AC")), "Hé€"),
        (
            document(
                rb"(caf\216)",
                b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /MacRomanEncoding >>",
            ),
            "café",
        ),
        (document(hexed("日本語", "cp932"), cid_font("90ms-RKSJ-H", "Japan1")), "日本語"),
        (document(hexed("日本", "utf-16-be"), cid_font("UniJIS-UCS2-H", "Japan1")), "日本"),
        (document(hexed("中文", "gbk"), cid_font("GBK-EUC-H", "GB1")), "中文"),
        (document(hexed("中文", "big5"), cid_font("ETen-B5-H", "CNS1")), "中文"),
        (document(hexed("한국", "cp949"), cid_font("KSCms-UHC-H", "Korea1")), "한국"),
        (
            document(
                b"<000100020003>",
                cid_font("Identity-H", "Identity", "/ToUnicode 6 0 R"),
                (to_unicode({1: "fi", 2: "😀", 3: "я"}),),
            ),
            "fi😀я",
        ),
        (
            document(
                b"<000100020003>",
                cid_font("Identity-H", "Identity", "/ToUnicode 6 0 R"),
                (to_unicode({1: "\uf041", 2: "\uf042", 3: "\uf0e9"}),),
            ),
            "ABé",
        ),
        (b"some bytes of a broken sender\n" + document(b"(words)"), "words"),
    ],
)
def test_words_in_odd_encodings_are_read(content: bytes, text: str) -> None:
    assert read(content) == Extraction("pdf", text)


def test_what_was_filled_in_is_told_with_the_name_of_its_field() -> None:
    content = form(
        field("/FT /Tx /T (name) /TU (Your name) /V <FEFF004A00FC0072>"),
        field("/FT /Tx /T (notes) /V (two\rlines)"),
        field("/FT /Ch /Ff 131072 /T (size) /Opt [(S) (M)] /V (M)"),
        field(f"/FT /Btn /T (state) /V /Paid /AS /Paid {LOOK}"),
        field("/FT /Tx /T (empty)"),
        field("/FT /Tx /Ff 8192 /T (pin) /V (1234)"),
    )
    assert read(content) == Extraction(
        "pdf", "A form\nYour name: Jür\nnotes: two\nlines\nsize: M\nstate: Paid"
    )


def test_boxes_left_empty_and_hidden_fields_are_not_told() -> None:
    content = form(
        field(f"/FT /Btn /T (state) /V /Off /AS /Off {LOOK}"),
        field("/FT /Tx /F 2 /T (hidden) /V (secret)"),
        field("/FT /Tx /F 32 /T (unseen) /V (secret)"),
    )
    assert read(content) == Extraction("pdf", "A form")


def certificate(name: str, issuer: str, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    builder = x509.CertificateBuilder().public_key(key.public_key()).serial_number(7)
    builder = builder.subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
    builder = builder.issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    signed = builder.not_valid_before(begin).not_valid_after(begin + timedelta(days=365))
    return signed.sign(key, hashes.SHA256())


def signature_of(name: str) -> bytes:
    """As it stands in a file: in room that was reserved for it."""
    key = ec.generate_private_key(ec.SECP256R1())
    office = certificate("Some Office", "Some Office", key)
    builder = pkcs7.PKCS7SignatureBuilder().set_data(b"the file").add_certificate(office)
    builder = builder.add_signer(certificate(name, "Some Office", key), key, hashes.SHA256())
    return builder.sign(serialization.Encoding.DER, [pkcs7.PKCS7Options.DetachedSignature]) + bytes(500)


def signed_form(shown: bytes, contents: bytes) -> bytes:
    signature = (
        b"<< /Type /Sig /Filter /Adobe.PPKLite /SubFilter /adbe.pkcs7.detached /ByteRange [0 9 9 9]"
        b" /Reason (I agree) /M (D:20261116103000+01'00') /Contents <%s> >>" % contents.hex().encode()
    )
    fields = (
        field("/FT /Sig /T (seller) /TU (The seller) /V 8 0 R"),
        field("/FT /Sig /T (buyer)"),
        signature,
    )
    form = "/AcroForm << /SigFlags 3 /Fields [6 0 R 7 0 R] >>"
    return document(shown, more=fields, annotations="6 0 R 7 0 R", catalog=form)


def test_who_signed_is_told_and_where_nobody_did() -> None:
    found = read(signed_form(b"(A contract)", signature_of("Ann Example")))
    signed = "Signature (not verified): Ann Example, 2026-11-16 10:30, reason: I agree"
    assert found == Extraction("pdf", f"A contract\n\nThe seller: signed\nbuyer: not signed\n{signed}")


def test_a_signature_of_nonsense_names_nobody() -> None:
    found = read(signed_form(b"(A contract)", b"\x30\x84\xff\xff\xff\xff nonsense"))
    assert (found.text or "").endswith("Signature (not verified): 2026-11-16 10:30, reason: I agree")


def test_a_signed_page_that_is_a_picture_is_still_read_as_one() -> None:
    scanned = signed_form(b"()", signature_of("Ann Example"))
    assert read(scanned) == Extraction("image_only", None)
    found = extract("application/pdf", "a.pdf", scanned, lambda _: "Scanned words")
    assert found.method == "ocr"
    assert (found.text or "").startswith("Scanned words\nSignature (not verified): Ann Example")


def test_notes_on_a_page_are_told_with_their_writer() -> None:
    notes = (
        "<< /Type /Annot /Subtype /Text /Rect [0 0 9 9] /T (Ann) /Contents (Please check) >>"
        "<< /Type /Annot /Subtype /FreeText /Rect [0 0 9 9] /Contents <FEFF0416> >>"
        "<< /Type /Annot /Subtype /Popup /Rect [0 0 9 9] /Contents (no) >>"
        "<< /Type /Annot /Subtype /Text /F 2 /Rect [0 0 9 9] /Contents (hidden) >>"
    )
    assert read(document(b"(A page)", annotations=notes)) == Extraction("pdf", "A page\nAnn: Please check\nЖ")


def test_a_password_is_its_own_reason() -> None:
    assert read(gzip.decompress(LOCKED.read_bytes())) == Extraction("encrypted", None)


def test_very_many_notes_stop_at_the_limit() -> None:
    note = "<< /Type /Annot /Subtype /Text /Rect [0 0 9 9] /Contents (%d %s) >>"
    notes = "".join(note % (number, "word " * 100) for number in range(3_000))
    assert len(read(document(b"(A page)", annotations=notes)).text or "") <= MAX_WHOLE_CHARS


@given(st.data())
def test_any_flipped_bytes_end_in_a_text_or_a_reason(data: st.DataObject) -> None:
    content = bytearray(form(field("/FT /Tx /T (a) /V (b)"), field(f"/FT /Btn /T (c) /AS /Paid {LOOK}")))
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    found = read(bytes(content))
    assert found.method in (REASONS if found.text is None else METHODS)


SCANNED = document(b"()", more=(b"<< >>",))


def test_a_page_that_is_a_picture_says_so_where_nothing_reads_pictures() -> None:
    assert read(SCANNED) == Extraction("image_only", None)


def test_a_page_that_is_a_picture_is_read_where_something_reads_pictures() -> None:
    seen: list[bytes] = []

    def reader(picture: bytes) -> str:
        seen.append(picture)
        return "Scanned words"

    assert extract("application/pdf", "a.pdf", SCANNED, reader) == Extraction("ocr", "Scanned words")
    (page,) = seen
    head, _, pixels = page.partition(b" 255\n")
    kind, width, height = head.split()
    assert len(pixels) == int(width) * int(height) * (3 if kind == b"P6" else 1)
    assert (int(width), int(height)) == (1200, 1600)


def test_a_page_without_a_letter_is_a_picture_alone() -> None:
    assert extract("application/pdf", "a.pdf", SCANNED, lambda _: " \n") == Extraction("image_only", None)


@pytest.mark.needs("tesseract")
def test_the_letters_of_a_scanned_page_are_read() -> None:
    """The page is drawn by one program and read by another."""
    drawn = next(page_pictures(document(b"(Postroom reads this)")))
    found = extract("application/pdf", "a.pdf", SCANNED, lambda _: read_picture(drawn))
    assert "reads" in (found.text or "")
