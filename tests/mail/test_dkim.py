"""Every signature is verified by dkimpy, which shares no code with ours."""

import base64

import dkim as dkimpy
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed448, ed25519
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from postroom_mail.authentication import dkim
from postroom_mail.authentication.canonical import split_mail
from postroom_mail.authentication.dkim_verify import check_dkim_signatures
from postroom_mail.authentication.lookup import TimedLookup
from postroom_mail.writing.compose import Draft, DraftAttachment, compose
from tests.doubles_dns import ZoneLookup
from tests.mail.keys import private_key, signing_key
from tests.samples import samples

PEM = signing_key()
KEY = private_key()
RECORD = dkim.public_record(PEM).encode()
SIGNED_AT = 1_700_000_000_000
MAIL = b"From: a@b.example\r\nTo: c@d.example\r\nSubject: Hi\r\n\r\nHello\r\n"


def sign(raw: bytes) -> bytes:
    return dkim.sign(raw, domain="b.example", keys=[("s1", KEY)], signed_at=SIGNED_AT)


def is_valid(signed: bytes) -> bool:
    def published(name: bytes, timeout: int = 5) -> bytes | None:
        return RECORD if name == b"s1._domainkey.b.example." else None

    return bool(dkimpy.verify(signed, dnsfunc=published))


def on_the_wire(raw: bytes) -> bytes:
    """SMTP ends every line, also a last one that had no end."""
    return raw if raw.endswith(b"\r\n") else raw + b"\r\n"


def test_the_record_is_what_goes_into_dns() -> None:
    assert RECORD.startswith(b"v=DKIM1; k=rsa; p=MIIBIjANBgkq")
    assert KEY.key_size == 2048


def test_a_signature_is_one_folded_field_before_the_mail() -> None:
    field = sign(MAIL)
    assert field.startswith(
        b"DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;\r\n d=b.example;\r\n s=s1;"
    )
    assert field.endswith(b"\r\n")
    first, *rest = field.removesuffix(b"\r\n").split(b"\r\n")
    assert all(line.startswith(b" ") for line in rest)
    assert max(map(len, [first, *rest])) <= 78
    assert b" t=1700000000;" in field
    assert is_valid(field + MAIL)


@samples(
    "body",
    [
        b"",
        b"\r\n",
        b"\r\n\r\n\r\n",
        b" \t\r\n \r\n",
        b"no line end",
        b"a\r\n\r\n\r\n",
        b"a  b\t\tc \t\r\n",
        b" a\r\n",
        b"a\r\n \r\n\t\r\nb\r\n  ",
        b"a\t" + b" " * 5_000 + b"\r\nb",
        "Grüße\r\n".encode(),
        b"\xff\xfe\x00\r\n",
        b".\r\n..\r\n",
    ],
)
def test_every_shape_of_body_verifies(body: bytes) -> None:
    raw = b"From: a@b.example\r\nSubject: x\r\n\r\n" + body
    assert is_valid(sign(raw) + on_the_wire(raw))


@samples(
    "head",
    [
        b"From:a@b.example\r\n",
        b"FROM: \t a@b.example\r\n",
        b"From: a@b.example\r\nSubject:\r\n",
        b"From: a@b.example\r\nSubject: one\r\n\t two   three \r\n",
        "From: ü@b.example\r\nSubject: Grüße\r\n".encode(),
        b"From: a@b.example\r\nTo: c@d\r\nTo: e@f\r\n",
        b"X-Other: 1\r\nFrom: a@b.example\r\nX-Other: 2\r\n",
        b"From: a@b.example\r\nList-Unsubscribe: <https://b.example/u>\r\nAuto-Submitted: auto-replied\r\n",
    ],
)
def test_every_shape_of_header_verifies(head: bytes) -> None:
    raw = head + b"\r\nbody\r\n"
    assert is_valid(sign(raw) + raw)


@samples(
    "added",
    [
        "From: evil@x",
        "Subject: Other",
        "To: x@y",
        "Cc: x@y",
        "Reply-To: evil@x",
        "Date: now",
        "Message-ID: <x@y>",
        "In-Reply-To: <x@y>",
        "References: <x@y>",
        "MIME-Version: 1.0",
        "Content-Type: text/html",
        "Content-Transfer-Encoding: base64",
    ],
)
def test_a_header_added_on_the_way_breaks_the_signature(added: str) -> None:
    assert not is_valid(sign(MAIL) + added.encode() + b"\r\n" + MAIL)


def test_a_changed_body_or_subject_breaks_the_signature() -> None:
    assert not is_valid(sign(MAIL) + MAIL.replace(b"Hello", b"Hallo"))
    assert not is_valid(sign(MAIL) + MAIL.replace(b"Hi", b"Ho"))


def test_changes_that_servers_make_do_not_break_it() -> None:
    travelled = (
        b"Received: from x\r\n" + sign(MAIL) + MAIL.replace(b"Subject: Hi", b"subject:   Hi ") + b"\r\n"
    )
    assert is_valid(travelled)


DRAFT = Draft(
    from_name="Ada",
    from_address="ada@b.example",
    to=("charles@engine.example",),
    subject="Notes",
    text="Hello",
    message_id="<1@b.example>",
    date_at=SIGNED_AT,
)
line_text = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=100)
body_text = st.text(st.characters(codec="utf-8"), max_size=200) | st.text(" \t\r\nab", max_size=200)


@given(line_text, line_text, body_text, st.none() | body_text, st.binary(max_size=100))
def test_every_composed_mail_verifies(
    name: str, subject: str, text: str, html: str | None, file: bytes
) -> None:
    attachments = (DraftAttachment(subject, "application/pdf", file),) if file else ()
    raw = compose(
        replace(
            DRAFT,
            from_name=name,
            subject=subject,
            text=text,
            html=html,
            attachments=attachments,
            automated=True,
        )
    )
    assert is_valid(sign(raw) + raw)


values = st.lists(st.text(" \tab:;=<>ü", min_size=1, max_size=30).map(lambda value: value + "x"), max_size=3)


@given(st.sampled_from(["To", "subject", "X-A", "CC"]), values, st.text(" \t\nabü", max_size=200))
def test_odd_white_space_verifies(name: str, lines: list[str], body: str) -> None:
    field = f"{name}: " + "\r\n ".join(["x", *lines]) + "\r\n"
    raw = f"{field}From: a@b.example\r\n{field}\r\n".encode() + body.replace("\n", "\r\n").encode()
    assert is_valid(sign(raw) + on_the_wire(raw))


@samples("raw", [b"From: a@b\n\nx", b"From: a@b\r\n\r\nx\ry", b"Subject: x\r\n\r\nFrom: a@b\r\n", b""])
def test_a_mail_that_would_be_altered_on_the_way_is_not_signed(raw: bytes) -> None:
    with pytest.raises(ValueError, match="raw: "):
        sign(raw)


@samples("bad", ["", "a;b", "a b", "a\r\nX: y", "ü.example", "a..b"])
def test_names_cannot_break_out_of_the_signature(bad: str) -> None:
    with pytest.raises(ValueError, match="domain: "):
        dkim.sign(MAIL, domain=bad, keys=[("s1", KEY)], signed_at=SIGNED_AT)
    with pytest.raises(ValueError, match="selector: "):
        dkim.sign(MAIL, domain="b.example", keys=[("s1", KEY), (bad, KEY)], signed_at=SIGNED_AT)


def test_a_key_of_another_kind_is_refused() -> None:
    pem = ed448.Ed448PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with pytest.raises(ValueError, match="RSA"):
        dkim.load_key(pem)


def test_rsa_and_ed25519_sign_side_by_side_and_each_verifies_alone() -> None:
    pem = dkim.generate_ed25519_key()
    signed = dkim.sign(
        MAIL, domain="b.example", keys=[("s1", KEY), ("s2", dkim.load_key(pem))], signed_at=SIGNED_AT
    )
    records = {"s1._domainkey.b.example": RECORD.decode(), "s2._domainkey.b.example": dkim.public_record(pem)}
    assert verdicts(signed + MAIL, records) == ["pass", "pass"]
    del records["s1._domainkey.b.example"]
    assert verdicts(signed + MAIL, records) == ["permerror", "pass"]
    assert verdicts(signed + MAIL.replace(b"Hello", b"Hallo"), records) == ["permerror", "fail"]


# RFC 8463, appendix A.
EXAMPLE_RECORDS = {
    "brisbane._domainkey.football.example.com": (
        "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
    ),
    "test._domainkey.football.example.com": (
        "v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkHlOQoBTzWR"
        "iGs5V6NpP3idY6Wk08a5qhdR6wy5bdOKb2jLQiY/J16JYi0Qvx/byYzCNb3W91y3FutAC"
        "DfzwQ/BC/e/8uBsCR+yz1Lxj+PL6lHvqMKrM3rG4hstT5QjvHO9PzoxZyVYLzBfO2EeC3"
        "Ip3G+2kryOTIKT+l/K4w3QIDAQAB"
    ),
}
EXAMPLE_PRIVATE_KEY = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="
EXAMPLE = b"""\
DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=brisbane; t=1528637909; h=from : to :
 subject : date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11Bus
 Fa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==
DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=test; t=1528637909; h=from : to : subject :
 date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=F45dVWDfMbQDGHJFlXUNB2HKfbCeLRyhDXgFpEL8GwpsRe0IeIixNTe3
 DhCVlUrSjV4BwcVcOF6+FF3Zo9Rpo1tFOeS9mPYQTnGdaSGsgeefOsk2Jz
 dA+L10TeYt9BgDfQNZtKdN1WO//KgIqXP7OdEFE4LjFYNcUxZQ4FADY+8=
From: Joe SixPack <joe@football.example.com>
To: Suzie Q <suzie@shopping.example.net>
Subject: Is dinner ready?
Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)
Message-ID: <20030712040037.46341.5F8J@football.example.com>

Hi.

We lost the game.  Are you hungry yet?

Joe.
""".replace(b"\n", b"\r\n")


def verdicts(raw: bytes, records: dict[str, str]) -> list[str]:
    lookup = TimedLookup(ZoneLookup({(name, "TXT"): [text] for name, text in records.items()}), 60, lambda: 0)
    return [each.verdict for each in check_dkim_signatures(split_mail(raw), lookup, 1_700_000_000)]


def test_the_example_of_rfc_8463_passes_with_both_keys_and_its_record_is_ours() -> None:
    assert verdicts(EXAMPLE, EXAMPLE_RECORDS) == ["pass", "pass"]
    assert verdicts(EXAMPLE.replace(b"hungry", b"angry"), EXAMPLE_RECORDS) == ["fail", "fail"]
    key = ed25519.Ed25519PrivateKey.from_private_bytes(base64.b64decode(EXAMPLE_PRIVATE_KEY))
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    assert dkim.public_record(pem) == EXAMPLE_RECORDS["brisbane._domainkey.football.example.com"]
