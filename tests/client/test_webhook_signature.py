"""A webhook's signature proves who sent it and when."""

import hashlib
import hmac

from hypothesis import given
from hypothesis import strategies as st

from postroom_client import verify_signature
from postroom_client.webhook_signature import sign
from tests.samples import samples

SECRET, BODY, SENT_AT = "whsec", b'{"event":"message.received"}', "1794650400"
NOW = 1794650400.0


def signed(body: bytes = BODY) -> str:
    return hmac.new(SECRET.encode(), SENT_AT.encode() + b"." + body, hashlib.sha256).hexdigest()


def test_the_signature_of_the_specification_is_accepted() -> None:
    assert verify_signature(BODY, SENT_AT, signed(), SECRET, now=NOW)
    assert verify_signature(BODY.decode(), SENT_AT, signed(), SECRET, now=NOW)


@samples("seconds", [-300, 0, 300])
def test_a_timestamp_within_the_tolerance_is_accepted(seconds: int) -> None:
    assert verify_signature(BODY, SENT_AT, signed(), SECRET, now=NOW + seconds)


@samples("seconds", [-301, 301, 86400])
def test_an_old_or_future_timestamp_is_refused(seconds: int) -> None:
    assert not verify_signature(BODY, SENT_AT, signed(), SECRET, now=NOW + seconds)


def test_another_body_secret_or_signature_is_refused() -> None:
    assert not verify_signature(BODY + b" ", SENT_AT, signed(), SECRET, now=NOW)
    assert not verify_signature(BODY, SENT_AT, signed(), "other", now=NOW)
    assert not verify_signature(BODY, SENT_AT, signed().upper(), SECRET, now=NOW)
    assert not verify_signature(BODY, SENT_AT, "", SECRET, now=NOW)


def test_the_clock_is_the_machine_s_own_unless_given() -> None:
    assert not verify_signature(BODY, "1000", sign(BODY, "1000", SECRET), SECRET)


@given(st.binary(), st.text(), st.text())
def test_whatever_a_stranger_sends_is_refused_without_an_error(body: bytes, sent_at: str, proof: str) -> None:
    assert not verify_signature(body, sent_at, proof, SECRET, now=NOW)
