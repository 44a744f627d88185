"""A composed mail is valid for a strict receiver and reads back as what the draft said."""

import re
from collections.abc import Callable
from email.header import decode_header, make_header
from email.utils import getaddresses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from postroom_mail.writing.compose import DraftAttachment, compose, is_message_id, new_message_id
from postroom_mail.writing.header_words import DraftError
from tests.mail.composed import (
    PDF,
    PLAIN,
    assert_fit_for_the_wire,
    header_block,
    header_names,
    line_text,
    old_read,
    read,
)
from tests.samples import samples


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


CONTROLS = ("\r\n", "\n", "\r", "\x00", "\t", "\x7f", "\x85", "\u2028", "\ud800")
HEADER_VALUES: list[tuple[str, Callable[[str], dict[str, Any]]]] = [
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
]


@samples(("control", "field", "make"), [(control, *value) for control in CONTROLS for value in HEADER_VALUES])
def test_a_control_character_in_any_header_value_names_its_field(
    control: str, field: str, make: Callable[[str], dict[str, Any]]
) -> None:
    with pytest.raises(DraftError) as caught:
        compose(replace(PLAIN, **make(control)))
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}: ")


@samples(
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


@given(line_text)
def test_a_subject_reads_back_as_it_was(subject: str) -> None:
    raw = compose(replace(PLAIN, subject=subject))
    assert_fit_for_the_wire(raw)
    assert str(make_header(decode_header(old_read(raw)["Subject"] or ""))) == subject
    assert max(map(len, header_block(raw).split(b"\r\n"))) <= 76


@given(line_text.map(str.strip).filter(bool))
def test_a_display_name_reads_back_as_it_was(name: str) -> None:
    raw = compose(replace(PLAIN, from_name=name, to=("x@b.example",)))
    [(written, address)] = getaddresses([re.sub(r"\r\n", "", old_read(raw)["From"])])
    assert str(make_header(decode_header(written))) == name
    assert address == PLAIN.from_address
    assert max(map(len, header_block(raw).split(b"\r\n"))) <= 76


@samples("subject", ["ü" * 200, "😀" * 100, "x" * 900, "日本語 " * 60, "é" + "a" * 500])
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


@samples(
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
    with pytest.raises(ValueError, match="16 bytes"):
        new_message_id("postroom.example", b"short")
