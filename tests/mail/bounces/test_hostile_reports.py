"""No bytes make a reader of reports raise, and none make it slow."""

import random
import time

from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.reports import report as limits
from postroom_mail.reports.bounce import read_report, read_returned
from postroom_mail.reports.reasons import DIAGNOSTIC_LIMIT, Fault
from postroom_mail.reports.report import Report
from tests.mail.soundness import SAMPLES
from tests.mail.test_parse_fuzz import FUZZ_MAILS, HANG_SECONDS, mutated
from tests.samples import samples

SYSTEM = b"From: MAILER-DAEMON@x.example\r\nSubject: Undelivered Mail\r\n"
STATUS = (
    b"Content-Type: multipart/report; boundary=x\r\n\r\n--x\r\nContent-Type: message/delivery-status\r\n\r\n"
)


def assert_is_sound(report: Report | None) -> None:
    if report is None:
        return
    assert report.kind in {"bounce", "complaint", "delay", "other"}
    assert len(report.recipients) <= limits.RECIPIENTS_LIMIT
    for recipient in report.recipients:
        assert len(recipient.final_recipient) <= limits.ADDRESS_LIMIT
        assert len(recipient.diagnostic) <= DIAGNOSTIC_LIMIT
        recipient.diagnostic.encode()
        assert recipient.is_hard in {True, False}
        assert recipient.is_hard or recipient.fault is not Fault.RECIPIENT


pieces = st.lists(
    st.sampled_from(
        [
            b"Content-Type: multipart/report; boundary=x\r\n",
            b"\r\n",
            b"\n",
            b"--x\r\n",
            b"--x--",
            b":",
            b" ",
            b"<",
            b";",
            b"Content-Type: message/delivery-status\r\n",
            b"Content-Type: message/feedback-report\r\n",
            b"\xff\x00",
            b"Content-Transfer-Encoding: base64\r\n",
            b"Content-Transfer-Encoding: quoted-printable\r\n",
            b"=3",
            b"a@b",
            b"Final-Recipient: ",
            b"Feedback-Type: ",
            b"Message-ID: <",
            b"Content-Type: message/rfc822\r\n",
            b"X-Failed-Recipients: a@b,,\r\n",
            b"\r\n\r\nHi. This is the ",
            b"<a@b>:\n",
            b"Status: 5.1.",
        ]
    ),
    max_size=40,
).map(b"".join)


@given(
    st.binary(max_size=500)
    | pieces
    | pieces.map(b"Content-Type: multipart/report; boundary=x\r\n\r\n--x\r\n".__add__)
)
def test_any_bytes_give_a_report_or_nothing(raw: bytes) -> None:
    assert_is_sound(read_report(raw, ""))
    assert_is_sound(read_report(SYSTEM + raw))


def test_damaged_samples_give_sound_reports_without_a_hang() -> None:
    chance = random.Random(20261115)
    seeds = [path.read_bytes() for path in sorted((SAMPLES / "bounces").glob("*/*.eml"))]
    for number in range(FUZZ_MAILS):
        raw = mutated(chance, seeds)
        started = time.process_time()
        report = read_report(raw, "")
        assert time.process_time() - started < HANG_SECONDS, f"mail {number} hangs"
        assert_is_sound(report)
        assert_is_sound(read_returned(raw))


LARGE = {
    "recipients": SYSTEM + b"\r\n" + b"<a@b.example>:\r\n" * 40_000,
    "many recipients": SYSTEM + b"\r\n" + b"".join(b"<a%d@b.example>:\r\n" % n for n in range(15_000)),
    "one line": SYSTEM + b"\r\n" + b"a@" * 250_000,
    "dots": SYSTEM + b"\r\n" + b"x@a." * 125_000,
    "words": SYSTEM + b"\r\n" + (b"user " * 190 + b"\r\n") * 500,
    "labels": SYSTEM + b"\r\n" + b"reason:\r\n" * 50_000,
    "brackets": SYSTEM + b"\r\n" + (b"<a@b.example> (" + b"(" * 900 + b"\r\n") * 350,
    "links": SYSTEM + b"\r\n" + (b"name (a@b.example" + b"<mailto:" * 100 + b"\r\n") * 350,
    "spaces": SYSTEM + b"\r\n" + b" " * 500_000,
    "page": SYSTEM + b"Content-Type: text/html\r\n\r\n" + b"<p>a@b.example<td>" * 30_000,
    "Chinese": SYSTEM + b"Content-Type: text/plain; charset=utf-8\r\n\r\n" + "存用户不".encode() * 50_000,
    "failed recipients": SYSTEM
    + b"X-Failed-Recipients: "
    + b", ".join(b"a%d@b.example" % n for n in range(2_500))
    + b"\r\n\r\n"
    + b"nothing is to be found here\r\n" * 25_000,
    "ids": SYSTEM + b"\r\n" + b"Message-ID: <" * 50_000,
    "status": STATUS + b"Final-Recipient: rfc822; a@b.example\r\nAction: failed\r\n\r\n" * 15_000,
    "folds": STATUS + b"A:" + b"\r\n " * 170_000,
    "parts": SYSTEM
    + b"Content-Type: multipart/mixed; boundary=x\r\n\r\n"
    + (b"--x\r\nContent-Type: text/plain\r\n\r\n" + b"Final-Recipient\r\n" * 800) * 100,
    "feedback": STATUS.replace(b"delivery-status", b"feedback-report")
    + b"Feedback-Type: abuse\r\n"
    + b"Original-Rcpt-To: a@b.example\r\n" * 15_000,
}


@samples("raw", LARGE.values())
def test_a_large_hostile_mail_costs_no_more_than_its_size(raw: bytes) -> None:
    started = time.process_time()
    assert_is_sound(read_report(raw, ""))
    assert_is_sound(read_returned(raw))
    assert time.process_time() - started < HANG_SECONDS
