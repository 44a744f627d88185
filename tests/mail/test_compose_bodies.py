"""The bodies and files of a mail that we write, and the subject of a reply."""

import re
from email.message import Message, MIMEPart

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from postroom_mail.writing.compose import DraftAttachment, compose, reply_subject
from tests.mail.composed import PDF, PLAIN, assert_fit_for_the_wire, line_text, old_read, read
from tests.samples import samples


def content(part: MIMEPart) -> str:
    text = part.get_content()
    assert isinstance(text, str)
    return text.replace("\r\n", "\n")


@samples(
    ("text", "encoding"),
    [
        ("short ascii\nlines\n", "7bit"),
        ("x" * 78, "7bit"),
        ("x" * 79, "quoted-printable"),
        ("Grüße aus der Küche, alles bestens hier", "quoted-printable"),
        ("日本語の本文", "base64"),
        ("nul \x00 and bell \x07", "quoted-printable"),
        ("From here on\n", "base64"),
        ("a\n.\n..\nb", "7bit"),
        ("--=_mixed_0", "quoted-printable"),
        ("", "7bit"),
    ],
)
def test_the_transfer_encoding_fits_the_text(text: str, encoding: str) -> None:
    raw = compose(replace(PLAIN, text=text))
    assert_fit_for_the_wire(raw)
    assert read(raw)["Content-Transfer-Encoding"] == encoding
    assert content(read(raw)) == text.removesuffix("\n") + "\n"


body_text = st.text(st.characters(codec="utf-8"), max_size=400) | st.text(
    "Fro m=_-.\r\n\tü\x00", max_size=400
)


def as_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n") + "\n"


@given(body_text, body_text)
def test_text_and_html_read_back_as_they_were(text: str, html: str) -> None:
    raw = compose(replace(PLAIN, text=text, html=html))
    assert_fit_for_the_wire(raw)
    assert max(map(len, raw.split(b"\r\n"))) <= 78
    for number, said in enumerate((text, html)):
        part = old_read(raw).get_payload(number)
        assert isinstance(part, Message)
        decoded = part.get_payload(decode=True)
        assert isinstance(decoded, bytes)
        assert decoded.decode() == as_lines(said).replace("\n", "\r\n")


def test_a_lone_surrogate_in_a_body_does_not_stop_the_mail() -> None:
    assert content(read(compose(replace(PLAIN, text="a\ud800b")))) == "a?b\n"


def test_text_html_and_files_nest_as_mixed_of_alternative() -> None:
    message = read(compose(replace(PLAIN, html="<p>Hi</p>", attachments=(PDF,))))
    alternative, pdf = message.iter_parts()
    assert message.get_content_type() == "multipart/mixed"
    assert alternative.get_content_type() == "multipart/alternative"
    assert [part.get_content_type() for part in alternative.iter_parts()] == ["text/plain", "text/html"]
    assert pdf.get_content_disposition() == "attachment"
    assert pdf.get_content() == PDF.content


def test_text_that_imitates_our_boundaries_stays_text() -> None:
    honest = compose(replace(PLAIN, html="x", attachments=(PDF,)))
    fake = "\n".join(f"--{name.decode()}--" for name in re.findall(rb'boundary="([^"]+)"', honest))
    alternative, pdf = read(compose(replace(PLAIN, text=fake, html="x", attachments=(PDF,)))).iter_parts()
    plain, _ = alternative.iter_parts()
    assert content(plain).rstrip("\n") == fake
    assert pdf.get_content() == PDF.content


# --- attachments


def only_file(attachment: DraftAttachment) -> Message:
    part = old_read(compose(replace(PLAIN, attachments=(attachment,)))).get_payload(1)
    assert isinstance(part, Message)
    return part


@given(st.binary(max_size=300))
def test_the_bytes_of_a_file_are_kept(data: bytes) -> None:
    assert only_file(replace(PDF, content=data)).get_payload(decode=True) == data


def test_a_large_file_is_wrapped_at_76_columns() -> None:
    data = bytes(range(256)) * 1_000
    raw = compose(replace(PLAIN, attachments=(replace(PDF, content=data),)))
    assert only_file(replace(PDF, content=data)).get_payload(decode=True) == data
    assert max(map(len, raw.split(b"\r\n"))) <= 76


@given(line_text.map(str.strip).filter(bool))
def test_a_file_name_reads_back_as_it_was(name: str) -> None:
    raw = compose(replace(PLAIN, attachments=(replace(PDF, filename=name),)))
    assert max(map(len, raw.split(b"\r\n"))) <= 78
    assert only_file(replace(PDF, filename=name)).get_filename() == name


def test_a_foreign_file_name_has_a_plain_fallback() -> None:
    part = only_file(replace(PDF, filename="Prüfbericht №1.pdf"))
    assert part.get_param("name") == "Prufbericht No1.pdf"
    assert "filename*=utf-8''Pr%C3%BCfbericht%20%E2%84%961.pdf" in str(part["Content-Disposition"])


def test_a_usual_file_name_is_written_plainly() -> None:
    assert only_file(PDF)["Content-Disposition"] == 'attachment;\r\n filename="report.pdf"'


def test_a_file_without_a_name_gets_one() -> None:
    assert only_file(replace(PDF, filename="")).get_filename() == "attachment"


@samples(
    ("declared", "written"),
    [
        ("application/pdf", "application/pdf"),
        ("text/csv; charset=utf-8", "text/csv; charset=utf-8"),
        ('text/calendar; method=REQUEST; charset="UTF-8"', "text/calendar; method=REQUEST; charset=UTF-8"),
        ("text/plain; boundary=x; name=y", "text/plain"),
        ("application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text"),
        ("multipart/mixed; boundary=x", "application/octet-stream"),
        ("MESSAGE/RFC822", "application/octet-stream"),
        ("pdf", "application/octet-stream"),
        ("a/b/c", "application/octet-stream"),
        ("text/plain x", "application/octet-stream"),
        ("té/xt", "application/octet-stream"),
        ("", "application/octet-stream"),
    ],
)
def test_only_a_flat_media_type_is_declared(declared: str, written: str) -> None:
    value = str(only_file(replace(PDF, content_type=declared))["Content-Type"])
    assert value == f'{written};\r\n name="report.pdf"'


# --- reply subjects


@samples(
    ("subject", "reply"),
    [
        ("Lunch", "Re: Lunch"),
        ("Re: Lunch", "Re: Lunch"),
        ("RE : Lunch", "RE : Lunch"),
        ("re[2]: Lunch", "re[2]: Lunch"),
        ("Re(3): Lunch", "Re(3): Lunch"),
        ("AW: Mittag", "AW: Mittag"),
        ("Antw: lunch", "Antw: lunch"),
        ("SV: lunch", "SV: lunch"),
        ("\u56de\u590d\uff1a\u5348\u9910", "\u56de\u590d\uff1a\u5348\u9910"),
        ("Fwd: Re: Lunch", "Re: Fwd: Re: Lunch"),
        ("Reply: Lunch", "Re: Reply: Lunch"),
        ("Regarding lunch", "Re: Regarding lunch"),
        ("  Re:   Lunch ", "Re: Lunch"),
        ("", "Re:"),
        ("a\r\nBcc: b\x00c", "Re: a Bcc: b c"),
    ],
)
def test_a_reply_carries_one_reply_prefix(subject: str, reply: str) -> None:
    assert reply_subject(subject) == reply


@given(st.text(max_size=2_000))
def test_the_reply_to_any_subject_can_be_sent(subject: str) -> None:
    reply = reply_subject(subject)
    assert len(reply) <= 998
    assert reply_subject(reply) == reply
    assert_fit_for_the_wire(compose(replace(PLAIN, subject=reply)))
