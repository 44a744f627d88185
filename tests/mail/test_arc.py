"""ARC: whole chains pass, as dkimpy says too; what is altered, missing or out of order breaks all of it."""

import base64
import re

import dkim as dkimpy
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.authentication import arc_seal, authenticity, dkim
from postroom_mail.authentication.arc import ArcVerdict, check_arc
from postroom_mail.authentication.arc_seal import SeenResults
from postroom_mail.authentication.canonical import split_mail
from postroom_mail.authentication.lookup import TimedLookup
from tests.doubles_dns import ZoneLookup
from tests.mail.keys import private_key, signing_key
from tests.samples import samples

RECORD = dkim.public_record(signing_key())
ZONE = {
    ("s1._domainkey.list.example", "TXT"): [RECORD],
    ("s1._domainkey.last.example", "TXT"): [RECORD],
    ("_dmarc.author.example", "TXT"): ["v=DMARC1; p=reject"],
}
FROM, TO, SUBJECT = b"From: ann@author.example\r\n", b"To: list@list.example\r\n", b"Subject: Hi\r\n"
MAIL = FROM + TO + SUBJECT + b"\r\nHello\r\n"
PASSED = b"dmarc=pass (p=reject) header.from=author.example"
NOW = 1_790_000_000


def sign(hashed: bytes) -> bytes:
    return base64.b64encode(private_key().sign(hashed, PKCS1v15(), SHA256()))


def relaxed(line: bytes) -> bytes:
    return dkim.relaxed_field(line.removesuffix(b"\r\n"))


def earlier_sets(raw: bytes) -> list[bytes]:
    """The fields of all sets that are there, in the order in which a seal covers them."""
    fields = re.findall(rb"^ARC-[^\r\n]*\r\n", raw.partition(b"\r\n\r\n")[0] + b"\r\n", re.M)
    newest_first = [fields[at : at + 3] for at in range(0, len(fields), 3)]
    return [field for seal, message, results in reversed(newest_first) for field in (results, message, seal)]


def seal(raw: bytes, domain: bytes, seen: bytes) -> bytes:
    earlier = earlier_sets(raw)
    number = b"%d" % (len(earlier) // 3 + 1)
    body = raw.partition(b"\r\n\r\n")[2]
    results = b"ARC-Authentication-Results: i=%s; %s; %s\r\n" % (number, domain, seen)
    message = (
        b"ARC-Message-Signature: i=%s; a=rsa-sha256; c=relaxed/relaxed; d=%s; s=s1; t=%d; h=%s; bh=%s; b="
        % (
            number,
            domain,
            NOW,
            b"from:to:subject",
            base64.b64encode(dkim.body_hash(body)),
        )
    )
    signed = [relaxed(line) for line in (FROM, TO, SUBJECT, message)]
    message += sign(b"\r\n".join(signed)) + b"\r\n"
    state = b"pass" if earlier else b"none"
    own = b"ARC-Seal: i=%s; a=rsa-sha256; cv=%s; d=%s; s=s1; t=%d; b=" % (number, state, domain, NOW)
    own += sign(b"\r\n".join(relaxed(line) for line in (*earlier, results, message, own))) + b"\r\n"
    return own + message + results + raw


ONCE = seal(MAIL, b"list.example", PASSED)
TWICE = seal(ONCE, b"last.example", b"arc=pass; dmarc=fail header.from=author.example")


def test_another_implementation_agrees_with_these_chains() -> None:
    def published(name: bytes, timeout: int = 5) -> bytes:
        return RECORD.encode()

    for raw in (ONCE, TWICE):
        assert dkimpy.arc_verify(raw, dnsfunc=published)[0] == dkimpy.CV_Pass
    assert dkimpy.arc_verify(TWICE.replace(b"Hello", b"Hallo"), dnsfunc=published)[0] == dkimpy.CV_Fail


def check(raw: bytes, zone: ZoneLookup | None = None) -> ArcVerdict:
    lookup = TimedLookup(zone or ZoneLookup(ZONE), 60, lambda: 0)
    return check_arc(split_mail(raw), lookup, NOW)


def test_a_chain_passes_and_says_who_sealed_it() -> None:
    assert check(MAIL) == ArcVerdict("none")
    assert check(ONCE).sealers == ("list.example",)
    found = check(TWICE)
    assert (found.verdict, found.sealers) == ("pass", ("list.example", "last.example"))
    assert "dmarc=pass" in found.first_results
    assert check(TWICE.replace(b"Subject: Hi", b"subject:   Hi ")).verdict == "pass"


@samples(
    ("old", "new"),
    [
        (b"Hello", b"Hallo"),
        (b"Subject: Hi", b"Subject: Ho"),
        (b"dmarc=pass", b"dmarc=fail"),
        (b"cv=none", b"cv=pass"),
        (b"cv=pass", b"cv=fail"),
        (b"i=2", b"i=3"),
        (b"i=1", b"i=01x"),
        (b"ARC-Message-Signature", b"X-Message-Signature"),
        (b"a=rsa-sha256", b"a=rsa-sha1"),
        (b"d=list.example", b"d=evil.example"),
    ],
)
def test_what_is_altered_breaks_the_chain(old: bytes, new: bytes) -> None:
    assert old in TWICE
    assert check(TWICE.replace(old, new)).verdict == "fail"


def test_what_is_missing_or_twice_breaks_the_chain() -> None:
    for name in (b"ARC-Seal", b"ARC-Message-Signature", b"ARC-Authentication-Results"):
        (field, *_) = re.findall(rb"%s:(?:[^\r\n]|\r\n[ \t])*\r\n" % name, TWICE)
        assert check(TWICE.replace(field, b"", 1)).verdict == "fail"
        assert check(field + TWICE).verdict == "fail"
    assert check(b"ARC-Seal: i=1\r\n" * 51 + MAIL).verdict == "fail"
    assert check(TWICE, ZoneLookup(ZONE, dead={"*"})).verdict == "temperror"


def sealed_here(raw: bytes, arc: str = "none") -> bytes:
    seen = SeenResults("pass", "pass", "pass", arc, "author.example")
    key, at = private_key(), NOW * 1000
    return arc_seal.seal(raw, seen, domain="last.example", selector="s1", key=key, sealed_at=at) + raw


def test_what_is_passed_on_is_sealed_as_another_implementation_expects() -> None:
    def published(name: bytes, timeout: int = 5) -> bytes:
        return RECORD.encode()

    signed = dkim.sign(MAIL, domain="last.example", keys=[("s1", private_key())], signed_at=NOW * 1000) + MAIL
    for raw, arc, sealers in (
        (MAIL, "none", ("last.example",)),
        (signed, "none", ("last.example",)),
        (TWICE, "pass", ("list.example", "last.example", "last.example")),
    ):
        sealed = sealed_here(raw, arc)
        assert (check(sealed).verdict, check(sealed).sealers) == ("pass", sealers)
        assert dkimpy.arc_verify(sealed, dnsfunc=published)[0] == dkimpy.CV_Pass
        assert check(sealed.replace(b"Hello", b"Hallo")).verdict == "fail"
    assert judge(sealed_here(MAIL), "last.example").dmarc == "pass", "who trusts us believes what we saw"


def test_a_broken_chain_gets_no_further_seal() -> None:
    for raw, arc in ((TWICE, "fail"), (TWICE, "temperror"), (TWICE.replace(b"i=2", b"i=3"), "pass")):
        assert sealed_here(raw, arc) == raw


def judge(raw: bytes, *trusted: str) -> authenticity.Judgement:
    return authenticity.check(
        raw,
        peer_ip="203.0.114.9",
        helo="mx.last.example",
        mail_from="bounces@last.example",
        from_address="ann@author.example",
        lookup=ZoneLookup(ZONE),
        trusted_sealers=trusted,
    )


def test_a_trusted_seal_rescues_dmarc_and_no_other_does() -> None:
    assert (judge(TWICE).dmarc, judge(TWICE).arc) == ("fail", "pass")
    assert judge(TWICE, "list.example").dmarc == "fail", "the last one may have made all of it up"
    assert judge(TWICE, "list.example", "last.example").dmarc == "pass"
    broken = TWICE.replace(b"Hello", b"Hallo")
    assert (judge(broken, "list.example", "last.example").dmarc, judge(broken).arc) == ("fail", "fail")
    denied = seal(MAIL, b"list.example", b"dmarc=none header.from=author.example")
    assert (judge(denied, "list.example").dmarc, judge(denied).arc) == ("fail", "pass")
    other = seal(MAIL, b"list.example", b"dmarc=pass header.from=other.example")
    assert judge(other, "list.example").dmarc == "fail"


@given(st.integers(0, len(TWICE)), st.binary(max_size=6))
def test_any_bytes_in_a_chain_give_a_verdict(position: int, damage: bytes) -> None:
    damaged = TWICE[:position] + damage + TWICE[position + len(damage) :]
    assert check(damaged).verdict in ("pass", "fail", "none")
