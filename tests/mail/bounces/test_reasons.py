"""A reason is judged narrowly: only an address that does not exist is its own fault."""

from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.reports.reasons import Fault, fault_of, found_status, is_hard, reply_code
from tests.mail.bounces.refusals import OF_ANOTHER_KIND, OF_THE_ADDRESS, OF_THE_SENDER, REPLIES, UNCLEAR
from tests.samples import samples


@samples(("code", "status", "text"), OF_THE_ADDRESS)
def test_a_reason_that_is_the_address(code: int | None, status: str | None, text: str) -> None:
    assert fault_of(code, status, text) is Fault.RECIPIENT


@samples(("code", "status", "text"), OF_ANOTHER_KIND)
def test_a_reason_that_is_not_the_address(code: int | None, status: str | None, text: str) -> None:
    assert fault_of(code, status, text) is Fault.OTHER


@samples(("code", "status", "text"), OF_THE_SENDER)
def test_a_fault_of_the_sender_is_never_the_address(code: int | None, status: str | None, text: str) -> None:
    assert fault_of(code, status, text) is Fault.OTHER


@samples(("code", "status", "text"), UNCLEAR)
def test_a_reason_that_leaves_open_who_is_at_fault(code: int | None, status: str | None, text: str) -> None:
    assert fault_of(code, status, text) is Fault.UNCLEAR


@samples(
    ("status", "diagnostic", "hard"),
    [
        ("5.1.1", "", True),
        ("5.7.1", "550 5.7.1 refused", True),
        ("", "550 no", True),
        ("", "421 later", False),
        ("", "", False),
        ("4.4.7", "expired", False),
        ("5.2.2", "552 full", False),
        ("5.0.0", "554 user over quota", False),
        ("5.4.7", "delivery expired, timed out", False),
        ("", "user unknown", True),
        ("", "Benutzer unbekannt", True),
        ("", "your mail was blocked", True),
        ("", "Postfach ist voll", False),
        ("", "zeitweise und vorübergehend nicht erreichbar", False),
        ("", "no reason that is known", False),
    ],
)
def test_a_full_mailbox_and_a_passing_fault_are_soft(status: str, diagnostic: str, hard: bool) -> None:
    assert is_hard(status, diagnostic) is hard


@given(st.none() | st.integers(), st.none() | st.text(max_size=20), st.text(max_size=3_000))
def test_any_reply_gets_a_verdict(code: int | None, status: str | None, text: str) -> None:
    assert fault_of(code, status, text) in Fault
    assert is_hard(status or "", text) in {True, False}


@samples(("reply", "judgement"), REPLIES)
def test_a_reply_as_servers_write_it_is_judged(reply: str, judgement: str) -> None:
    status = found_status(reply)
    fault = fault_of(reply_code(reply), status or None, reply)
    assert (fault is Fault.RECIPIENT) is (judgement == "address")
    assert is_hard(status, reply) is (judgement != "soft")
