import base64
import re
import time
from collections.abc import Callable

import dkim
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.authentication.canonical import relaxed_body, simple_body, split_mail
from postroom_mail.authentication.dkim_verify import check_dkim_signatures, overall
from postroom_mail.authentication.lookup import TimedLookup
from tests.doubles_dns import ZoneLookup
from tests.mail.keys import private_key
from tests.samples import samples

NOW = time.time()
KEY_NAME = "s1._domainkey.sender.test"
MAIL = (
    b"From: Ann <ann@sender.test>\r\nTo: bob@here.test\r\nSubject:  two   spaces\r\n\tand a fold\r\n"
    b"Date: Sat, 14 Nov 2026 10:05:00 +0000\r\n\r\nHello  Bob, \t\r\n\r\n.dot\r\n\r\n\r\n"
)


def rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


KEY = private_key()


def pem(key: rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def record(key: rsa.RSAPrivateKey, form: PublicFormat = PublicFormat.SubjectPublicKeyInfo) -> str:
    der = key.public_key().public_bytes(Encoding.DER, form)
    return "v=DKIM1; k=rsa; p=" + base64.b64encode(der).decode()


RECORD = record(KEY)


def signed(
    mail: bytes = MAIL,
    *,
    key: rsa.RSAPrivateKey = KEY,
    domain: bytes = b"sender.test",
    selector: bytes = b"s1",
    forms: tuple[bytes, bytes] = (b"relaxed", b"relaxed"),
    algorithm: bytes = b"rsa-sha256",
    identity: bytes | None = None,
    length: bool = False,
) -> bytes:
    """The mail with a signature made by another implementation."""
    signer = dkim.DKIM(mail, signature_algorithm=algorithm)
    header: bytes = signer.sign(
        selector, domain, pem(key), identity=identity, canonicalize=forms, length=length
    )
    return header + mail


SIGNED = signed()


def verdicts(mail: bytes, *records: str | bytes, dead: bool = False, now: float = NOW) -> list[str]:
    zone = ZoneLookup({(KEY_NAME, "TXT"): records or [RECORD]}, dead={"*"} if dead else set())
    lookup = TimedLookup(zone, time.monotonic() + 60, time.monotonic)
    return [verdict.verdict for verdict in check_dkim_signatures(split_mail(mail), lookup, now)]


@pytest.mark.parametrize("head", [b"simple", b"relaxed"])
@pytest.mark.parametrize("body", [b"simple", b"relaxed"])
@pytest.mark.parametrize(
    "content",
    [b"", b"\r\n", b"\r\n\r\n", b"text", b"a \t b \r\n \r\n", b"\r\n \r\nx\r\n\r\n", b"a\r\r\n\r\r\n\r\n"],
)
def test_what_another_implementation_signed_passes(head: bytes, body: bytes, content: bytes) -> None:
    mail = MAIL.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" + content
    assert verdicts(signed(mail, forms=(head, body))) == ["pass"]


def test_a_mail_with_bare_line_feeds_passes_as_it_left_the_signer() -> None:
    assert verdicts(SIGNED.replace(b"\r\n", b"\n")) == ["pass"]


def test_a_mail_without_signature_has_no_verdicts() -> None:
    assert verdicts(MAIL) == []
    assert overall(()) == "none"


@samples(
    ("old", "new"),
    [
        (b"Hello", b"Hallo"),
        (b"bob@here.test", b"eve@here.test"),
        (b"Subject:  two", b"Subject:  ten"),
        (b"From: Ann", b"From: Eve"),
        (b"From: Ann", b"From: eve@sender.test\r\nFrom: Ann"),
        (b"\r\n\r\nHello", b"\r\nFrom: eve@sender.test\r\n\r\nHello"),
        (b"relaxed/relaxed", b"relaxed/simple"),
    ],
)
def test_an_altered_mail_fails(old: bytes, new: bytes) -> None:
    assert old in SIGNED
    assert verdicts(SIGNED.replace(old, new, 1)) == ["fail"]


def test_white_space_may_change_under_the_relaxed_form_only() -> None:
    assert verdicts(SIGNED.replace(b"Hello  Bob, \t", b"Hello \t Bob,")) == ["pass"]
    assert verdicts(signed(forms=(b"simple", b"simple")).replace(b"Hello  Bob", b"Hello Bob")) == ["fail"]


def test_fields_that_are_not_signed_may_be_added() -> None:
    assert verdicts(b"Received: from x by y\r\n" + signed()) == ["pass"]


def test_a_key_that_is_not_there_is_a_permanent_error() -> None:
    assert verdicts(signed(selector=b"s2")) == ["permerror"]


@samples(
    ("text", "verdict"),
    [
        ("v=DKIM1; p=", "fail"),
        (RECORD.replace("v=DKIM1; ", ""), "pass"),
        (RECORD.replace("k=rsa; ", ""), "pass"),
        (RECORD + "; h=sha1:sha256; s=email; t=y; n=note", "pass"),
        (RECORD + "; h=sha1", "permerror"),
        (RECORD + "; s=tlsrpt", "permerror"),
        (RECORD.replace("DKIM1", "DKIM2"), "permerror"),
        (RECORD.replace("k=rsa", "k=ed25519"), "permerror"),
        (RECORD.replace("k=rsa", "k=dsa"), "permerror"),
        ("v=DKIM1; p=!!!!", "permerror"),
        ("v=DKIM1; p=AAAA", "permerror"),
        ("v=spf1 -all", "permerror"),
        (b"\xff\x00", "permerror"),
    ],
)
def test_the_key_record_decides_whether_its_key_may_be_used(text: str | bytes, verdict: str) -> None:
    assert verdicts(SIGNED, text) == [verdict]


def test_a_key_in_the_older_encoding_passes() -> None:
    assert verdicts(SIGNED, record(KEY, PublicFormat.PKCS1)) == ["pass"]


def test_a_foreign_text_beside_the_key_does_no_harm() -> None:
    assert verdicts(SIGNED, "v=spf1 -all", RECORD) == ["pass"]


def test_another_key_fails() -> None:
    assert verdicts(SIGNED, record(rsa_key(1024))) == ["fail"]


def test_a_key_of_1024_bits_passes() -> None:
    key = rsa_key(1024)
    assert verdicts(signed(key=key), record(key)) == ["pass"]


# Of 768 bits: the library reads such a key but no longer makes one.
WEAK_RECORD = (
    "k=rsa; p="
    "MHwwDQYJKoZIhvcNAQEBBQADawAwaAJhAJ2/hMAdPCzTZwdvgi9Tfzh5vHyXUfru0FBTF8tluXkQ+JctXZfxLs0i9yH/OgvMlM8/"
    "B6HmdIsldvxoDTcFOlM9iDM5PFYQrtXhGuE1tkjW+OyZP0mhJZRfK5Rmi88zEQIDAQAB"
)


def test_a_weak_key_fails() -> None:
    assert verdicts(SIGNED, WEAK_RECORD) == ["fail"]


def test_an_oversized_key_fails_without_being_used() -> None:
    modulus = int.to_bytes((1 << 8191) | 1, 1024, "big")
    number = b"\x02\x82\x04\x01\x00" + modulus
    der = b"\x30\x82\x04\x0a" + number + b"\x02\x03\x01\x00\x01"
    assert verdicts(SIGNED, "p=" + base64.b64encode(der).decode()) == ["fail"]


def test_sha1_fails() -> None:
    assert verdicts(signed(algorithm=b"rsa-sha1")) == ["fail"]


def test_ed25519_passes() -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    text = "v=DKIM1; k=ed25519; p=" + base64.b64encode(public).decode()
    mail = ed25519_signed(key)
    assert verdicts(mail, text) == ["pass"]
    assert verdicts(mail.replace(b"Hello", b"Hallo"), text) == ["fail"]
    assert verdicts(mail.replace(b"bob", b"eve"), text) == ["fail"]
    assert verdicts(mail) == ["permerror"]


def ed25519_signed(key: ed25519.Ed25519PrivateKey) -> bytes:
    """dkimpy signs this kind only with one more library, so it computes the hashes and we sign them."""

    class SigningKey:
        def sign(self, digest: bytes) -> "SigningKey":
            self.signature = key.sign(digest)
            return self

    signer = dkim.DKIM(MAIL, signature_algorithm=b"ed25519-sha256")
    signer.hasher = dkim.HASH_ALGORITHMS[b"ed25519-sha256"]
    policy = dkim.CanonicalizationPolicy.from_c_value(b"relaxed/simple")
    digest = signer.hasher(policy.canonicalize_body(signer.body)).digest()
    tags = {
        b"v": b"1",
        b"a": b"ed25519-sha256",
        b"c": b"relaxed/simple",
        b"d": b"sender.test",
        b"s": b"s1",
        b"h": b"from:to",
        b"bh": base64.b64encode(digest),
        b"b": b"0" * 60,
    }
    value: bytes = signer.gen_header(
        list(tags.items()), [b"from", b"to"], policy, b"DKIM-Signature", SigningKey()
    )
    return b"DKIM-Signature: " + value + MAIL


def test_a_length_that_covers_the_whole_body_passes() -> None:
    assert verdicts(signed(length=True)) == ["pass"]


def test_text_behind_the_signed_length_fails() -> None:
    assert verdicts(signed(length=True) + b"Pay to another account.\r\n") == ["fail"]


def test_each_signature_has_its_own_verdict_and_one_pass_is_enough() -> None:
    mail = signed(signed(), selector=b"s2")
    assert verdicts(mail) == ["permerror", "pass"]
    lookup = TimedLookup(ZoneLookup({(KEY_NAME, "TXT"): [RECORD]}), time.monotonic() + 60, time.monotonic)
    assert overall(check_dkim_signatures(split_mail(mail), lookup, NOW)) == "pass"


def test_only_five_signatures_are_looked_at() -> None:
    broken = b"DKIM-Signature: v=1\r\n"
    assert verdicts(broken * 4 + signed()) == ["permerror"] * 4 + ["pass"]
    assert verdicts(broken * 5 + signed()) == ["permerror"] * 5


def test_a_dns_that_does_not_answer_is_a_temporary_error() -> None:
    assert verdicts(SIGNED, dead=True) == ["temperror"]


def resigned(change: Callable[[bytes], bytes]) -> bytes:
    """A signed mail whose signature field was changed afterwards."""
    field, _, rest = SIGNED.partition(b"\r\nFrom:")
    return change(field) + b"\r\nFrom:" + rest


def add_tag(tag: bytes) -> bytes:
    return resigned(lambda field: field.replace(b"v=1;", b"v=1; " + tag + b";", 1))


def test_an_expired_signature_fails() -> None:
    expires = int(NOW)
    mail = add_tag(b"x=%d" % expires)
    assert verdicts(mail, now=expires + 1) == ["fail"]


@samples(
    "tag",
    [b"x=soon", b"x=-1", b"x=" + b"9" * 5000, b"v=1", b"q=dns/other", b"nonsense", b"=", b"y z=1", b"x=\xb2"],
)
def test_a_malformed_tag_is_a_permanent_error(tag: bytes) -> None:
    assert verdicts(add_tag(tag)) == ["permerror"]


@samples(
    ("pattern", "replacement"),
    [
        (rb"v=1", b"v=2"),
        (rb"rsa-sha256", b"rsa-md5"),
        (rb"d=sender.test", b"d=test"),
        (rb"d=sender.test", b"d=other.test"),
        (rb"d=sender.test", b"d=sen der.test"),
        (rb"i=@sender.test", b"i=@other.test"),
        (rb"i=@sender.test", b"i=@evilsender.test"),
        (rb"s=s1", b"s=s1..x"),
        (rb"c=relaxed/relaxed", b"c=nowsp"),
        (rb" bh=[^;]*;", b""),
        (rb" b=.*", b" b=####"),
        (rb"h=[^;]*;", b"h=to : subject;"),
    ],
)
def test_a_malformed_signature_is_a_permanent_error(pattern: bytes, replacement: bytes) -> None:
    changed = resigned(lambda field: re.sub(pattern, replacement, field, count=1, flags=re.DOTALL))
    assert changed != SIGNED
    assert verdicts(changed) == ["permerror"]


def test_an_identity_below_the_domain_passes_unless_the_key_forbids_it() -> None:
    mail = signed(identity=b"ann@mail.sender.test")
    assert verdicts(mail) == ["pass"]
    assert verdicts(mail, RECORD + "; t=s") == ["permerror"]
    assert verdicts(SIGNED, RECORD + "; t=y:s") == ["pass"]


def test_an_enormous_signature_field_is_a_permanent_error() -> None:
    assert verdicts(add_tag(b"z=" + b"x" * 20_000)) == ["permerror"]


@samples("filler", [b" ", b"\t", b" \t", b"\r\n", b"\r", b"\r\r\n", b" \r\n", b"\n"])
def test_megabytes_of_white_space_are_reduced(filler: bytes) -> None:
    """With a quadratic form this test would not end."""
    body = split_mail(b"\r\n" + filler * (2_000_000 // len(filler)) + b"x").body
    assert relaxed_body(body).endswith(b"x\r\n")
    assert simple_body(body) == body + b"\r\n"


@given(st.binary(max_size=200), st.binary(max_size=200), st.binary(max_size=60))
def test_any_bytes_as_mail_and_key_give_verdicts(mail: bytes, tags: bytes, key: bytes) -> None:
    for raw in (mail, b"DKIM-Signature:" + tags + b"\r\n" + mail, add_tag(tags), SIGNED + mail):
        for text in (key, b"p=" + base64.b64encode(key), RECORD.encode() + b";" + key):
            assert set(verdicts(raw, text)) <= {"pass", "fail", "permerror"}


@given(st.integers(min_value=0), st.binary(min_size=1, max_size=3))
def test_a_signed_mail_with_any_bytes_replaced_gives_verdicts(position: int, replacement: bytes) -> None:
    at = position % len(SIGNED)
    changed = SIGNED[:at] + replacement + SIGNED[at + len(replacement) :]
    assert set(verdicts(changed)) <= {"pass", "fail", "permerror"}


@given(st.text(alphabet=" \tab\r\n", max_size=40).map(str.encode))
def test_the_relaxed_form_is_its_own_relaxed_form(text: bytes) -> None:
    body = split_mail(b"\r\n" + text).body
    assert relaxed_body(relaxed_body(body)) == relaxed_body(body)
    assert simple_body(simple_body(body)) == simple_body(body)
