"""A composed mail is valid for a strict receiver and reads back as what the draft said."""

import email
import re
from collections.abc import Callable
from email.header import decode_header, make_header
from email.message import EmailMessage, Message, MIMEPart
from email.policy import default
from email.utils import getaddresses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from postroom.mail.compose import (
    Draft,
    DraftAttachment,
    DraftError,
    compose,
    is_message_id,
    new_message_id,
    reply_subject,
)

PLAIN = Draft(
    from_name="Ada Lovelace",
    from_address="ada@postroom.example",
    to=("charles@engine.example",),
    subject="Notes on the engine",
    text="Hello Charles\n",
    message_id="<0123456789abcdef@postroom.example>",
    date_at=1_794_650_700_000,
)
PDF = DraftAttachment("report.pdf", "application/pdf", b"%PDF-1.7 \x00\xff")


def read(raw: bytes) -> EmailMessage:
    message = email.message_from_bytes(raw, policy=default)
    assert isinstance(message, EmailMessage)
    return message


def old_read(raw: bytes) -> Message:
    return email.message_from_bytes(raw)


def header_block(raw: bytes) -> bytes:
    return raw.partition(b"\r\n\r\n")[0]


def header_names(raw: bytes) -> list[str]:
    return [name for name, _ in old_read(raw).items()]


def assert_fit_for_the_wire(raw: bytes) -> None:
    assert raw.count(b"\r\n") == raw.count(b"\r") == raw.count(b"\n")
    assert raw.endswith(b"\r\n")
    assert b"\x00" not in raw
    lines = raw.split(b"\r\n")
    assert max(map(len, lines)) <= 998
    head = header_block(raw).split(b"\r\n")
    assert all(line.strip() for line in head), "a line of only white space inside a header"


def test_a_plain_mail_is_written_to_the_letter() -> None:
    assert compose(PLAIN) == (
        b"From: Ada Lovelace <ada@postroom.example>\r\n"
        b"To: charles@engine.example\r\n"
        b"Subject: Notes on the engine\r\n"
        b"Date: Sat, 14 Nov 2026 10:05:00 +0000\r\n"
        b"Message-ID: <0123456789abcdef@postroom.example>\r\n"
        b"MIME-Version: 1.0\r\n"
        b"Content-Type: text/plain; charset=utf-8\r\n"
        b"Content-Transfer-Encoding: 7bit\r\n"
        b"\r\n"
        b"Hello Charles\r\n"
    )


def test_every_header_of_a_full_draft_is_written_once() -> None:
    draft = replace(
        PLAIN,
        cc=("Grace <grace@navy.example>", "alan@park.example"),
        reply_to="Desk <desk@postroom.example>",
        in_reply_to="<2@engine.example>",
        references=("<1@engine.example>", "<2@engine.example>"),
        automated=True,
    )
    message = read(compose(draft))
    assert message["Cc"] == "Grace <grace@navy.example>, alan@park.example"
    assert message["Reply-To"] == "Desk <desk@postroom.example>"
    assert message["In-Reply-To"] == "<2@engine.example>"
    assert message["References"] == "<1@engine.example> <2@engine.example>"
    assert message["Auto-Submitted"] == "auto-replied"
    assert len(set(message.keys())) == len(message.keys())


def test_an_automated_first_mail_is_auto_generated() -> None:
    assert read(compose(replace(PLAIN, automated=True)))["Auto-Submitted"] == "auto-generated"


# --- injection


@pytest.mark.parametrize("control", ["\r\n", "\n", "\r", "\x00", "\t", "\x7f", "\x85", "\u2028", "\ud800"])
@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("from_name", lambda bad: {"from_name": bad}),
        ("from_address", lambda bad: {"from_address": f"a{bad}@b.example"}),
        ("to", lambda bad: {"to": ("ok@b.example", f"X{bad}Bcc: y <x@b.example>")}),
        ("to", lambda bad: {"to": (f"x@b.example{bad}",)}),
        ("cc", lambda bad: {"cc": (f"x@b.ex{bad}ample",)}),
        ("reply_to", lambda bad: {"reply_to": f'"{bad}" <x@b.example>'}),
        ("subject", lambda bad: {"subject": f"Hi{bad}Bcc: victim@b.example"}),
        ("message_id", lambda bad: {"message_id": f"<a{bad}@b>", "html": "x"}),
        ("in_reply_to", lambda bad: {"in_reply_to": f"<a@b>{bad}"}),
        ("references", lambda bad: {"references": ("<a@b>", f"<c{bad}@d>")}),
        ("attachments[1].filename", lambda bad: {"attachments": (PDF, replace(PDF, filename=f"a{bad}.pdf"))}),
        (
            "attachments[0].content_type",
            lambda bad: {"attachments": (replace(PDF, content_type=f"a/b{bad}"),)},
        ),
    ],
)
def test_a_control_character_in_any_header_value_names_its_field(
    control: str, field: str, make: Callable[[str], dict[str, Any]]
) -> None:
    with pytest.raises(DraftError) as caught:
        compose(replace(PLAIN, **make(control)))
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}: ")


@pytest.mark.parametrize(
    "address",
    [
        *("", "@", "a@", "@b.example", "<a@b.example", "a@b..c", "a@b c", "a@b>c", "a@-\u2024.example"),
        *(
            "a b@c.example",
            "a,b@c.example",
            "a@b.example, c@d.example",
            "group:a@b.example;",
            "(x)a@b.example",
        ),
        *("é@" + "x" * 400, "a@" + "é" * 80),
    ],
)
def test_what_is_not_one_address_is_refused(address: str) -> None:
    with pytest.raises(DraftError):
        compose(replace(PLAIN, to=(address,)))


def test_text_in_a_name_cannot_become_a_second_recipient() -> None:
    raw = compose(replace(PLAIN, to=('x" <evil@b.example>, "y <a@b.example>',)))
    assert getaddresses([str(old_read(raw)["To"])]) == [('x" <evil@b.example>, "y', "a@b.example")]


any_text = st.text(max_size=120)
line_text = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=120)


@settings(deadline=None)
@given(any_text, any_text, any_text, any_text, any_text)
def test_any_field_is_refused_or_adds_nothing(
    name: str, address: str, subject: str, to: str, file: str
) -> None:
    draft = replace(
        PLAIN,
        from_name=name,
        reply_to=f"{name} <{address}>",
        subject=subject,
        to=(to, f"{to} <x@b.example>"),
        attachments=(DraftAttachment(file, file, b"x"),),
    )
    try:
        raw = compose(draft)
    except DraftError:
        return
    assert_fit_for_the_wire(raw)
    assert set(header_names(raw)) <= set(
        header_names(compose(replace(PLAIN, html="", reply_to="a@b.example")))
    )


# --- header words


@settings(deadline=None)
@given(line_text)
def test_a_subject_reads_back_as_it_was(subject: str) -> None:
    raw = compose(replace(PLAIN, subject=subject))
    assert_fit_for_the_wire(raw)
    assert str(make_header(decode_header(old_read(raw)["Subject"] or ""))) == subject
    assert max(map(len, header_block(raw).split(b"\r\n"))) <= 76


@settings(deadline=None)
@given(line_text.map(str.strip).filter(bool))
def test_a_display_name_reads_back_as_it_was(name: str) -> None:
    raw = compose(replace(PLAIN, from_name=name, to=("x@b.example",)))
    [(written, address)] = getaddresses([re.sub(r"\r\n", "", old_read(raw)["From"])])
    assert str(make_header(decode_header(written))) == name
    assert address == PLAIN.from_address
    assert max(map(len, header_block(raw).split(b"\r\n"))) <= 76


@pytest.mark.parametrize("subject", ["ü" * 200, "😀" * 100, "x" * 900, "日本語 " * 60, "é" + "a" * 500])
def test_encoded_words_are_short_and_each_decodes_alone(subject: str) -> None:
    raw = compose(replace(PLAIN, subject=subject))
    words = re.findall(rb"=\?utf-8\?[bq]\?[^?]*\?=", header_block(raw))
    assert len(words) > 1
    assert all(len(word) <= 75 for word in words)
    assert "".join(str(make_header(decode_header(word.decode()))) for word in words) == subject


def test_a_mostly_plain_subject_stays_readable_on_the_wire() -> None:
    assert b"Subject: =?utf-8?q?Caf=C3=A9_at_noon?=\r\n" in compose(replace(PLAIN, subject="Café at noon"))


def test_a_subject_that_looks_encoded_is_not_decoded() -> None:
    subject = "=?utf-8?q?Free_money?="
    assert read(compose(replace(PLAIN, subject=subject)))["Subject"] == subject


def test_an_empty_subject_writes_no_header() -> None:
    assert "Subject" not in header_names(compose(replace(PLAIN, subject="")))


@pytest.mark.parametrize(
    ("given_form", "on_the_wire"),
    [
        ("Lovelace, Ada <a@b.example>", b'"Lovelace, Ada" <a@b.example>'),
        ('"Lovelace, \\"Ada\\"" <a@b.example>', b'"Lovelace, \\"Ada\\"" <a@b.example>'),
        ("<a@b.example>", b"a@b.example"),
        ("a..b.@b.example", b'"a..b."@b.example'),
        ('"a b"@b.example', b'"a b"@b.example'),
        ("a@[192.0.2.1]", b"a@[192.0.2.1]"),
        ("Jürgen <j@bücher.example>", b"=?utf-8?q?J=C3=BCrgen?= <j@xn--bcher-kva.example>"),
        ("a@faß.example", b"a@xn--fa-hia.example"),
    ],
)
def test_a_recipient_is_written_in_its_strict_form(given_form: str, on_the_wire: bytes) -> None:
    assert b"To: " + on_the_wire + b"\r\n" in compose(replace(PLAIN, to=(given_form,)))


def test_fifty_recipients_are_folded() -> None:
    to = tuple(f"Person Number {n} <person.{n}@some-company.example>" for n in range(50))
    raw = compose(replace(PLAIN, to=to))
    assert max(map(len, header_block(raw).split(b"\r\n"))) <= 76
    assert len(getaddresses([read(raw)["To"]])) == 50


def test_a_local_part_beyond_ascii_stays_as_it_is() -> None:
    draft = replace(PLAIN, cc=("Jürgen <jürgen@bücher.example>",))
    assert "Cc: =?utf-8?q?J=C3=BCrgen?= <jürgen@xn--bcher-kva.example>\r\n".encode() in compose(draft)


# --- ids


def test_a_long_thread_keeps_its_root_and_its_latest_ids() -> None:
    ids = tuple(f"<{n:060d}@engine.example>" for n in range(1_000))
    raw = compose(replace(PLAIN, references=ids))
    kept = str(old_read(raw)["References"]).split()
    assert kept[0] == ids[0]
    assert 100 < len(kept) < 300
    assert kept[1:] == list(ids[-(len(kept) - 1) :])
    assert len(header_block(raw)) < 18_000


def test_two_hundred_usual_ids_are_all_kept() -> None:
    ids = tuple(f"<{n:032x}@postroom.example>" for n in range(200))
    assert str(old_read(compose(replace(PLAIN, references=ids)))["References"]).split() == list(ids)


def test_an_id_that_cannot_be_written_is_left_out() -> None:
    odd = ("no-brackets@x", "<a b@x>", "<é@x>", f"<{'x' * 2_000}@x>", "", "<>")
    raw = compose(replace(PLAIN, references=(*odd, "<ok@x>", "<ok@x>"), in_reply_to="<a b@x>"))
    assert old_read(raw)["References"] == "<ok@x>"
    assert "In-Reply-To" not in header_names(raw)
    assert not any(map(is_message_id, odd))


def test_our_own_message_id_must_be_valid() -> None:
    with pytest.raises(DraftError, match="message_id"):
        compose(replace(PLAIN, message_id="plain"))


def test_a_new_message_id_is_on_our_domain() -> None:
    assert new_message_id("bücher.example", bytes(16)) == f"<{'00' * 16}@xn--bcher-kva.example>"
    with pytest.raises(ValueError, match="16 random bytes"):
        new_message_id("postroom.example", b"short")


# --- bodies


def content(part: MIMEPart) -> str:
    text = part.get_content()
    assert isinstance(text, str)
    return text.replace("\r\n", "\n")


@pytest.mark.parametrize(
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


@settings(deadline=None)
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


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_the_bytes_of_a_file_are_kept(data: bytes) -> None:
    assert only_file(replace(PDF, content=data)).get_payload(decode=True) == data


def test_a_large_file_is_wrapped_at_76_columns() -> None:
    data = bytes(range(256)) * 1_000
    raw = compose(replace(PLAIN, attachments=(replace(PDF, content=data),)))
    assert only_file(replace(PDF, content=data)).get_payload(decode=True) == data
    assert max(map(len, raw.split(b"\r\n"))) <= 76


@settings(deadline=None)
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@settings(deadline=None)
@given(st.text(max_size=2_000))
def test_the_reply_to_any_subject_can_be_sent(subject: str) -> None:
    reply = reply_subject(subject)
    assert len(reply) <= 998
    assert reply_subject(reply) == reply
    assert_fit_for_the_wire(compose(replace(PLAIN, subject=reply)))
