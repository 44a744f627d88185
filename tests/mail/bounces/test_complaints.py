"""A complaint tells what is needed to find out whether the mail it is about is ours."""

import time

from postroom_mail.authentication import dkim
from postroom_mail.authentication.canonical import split_mail
from postroom_mail.authentication.dkim_verify import check_dkim_signatures, overall
from postroom_mail.authentication.lookup import TimedLookup
from postroom_mail.reports.bounce import read_report
from postroom_mail.reports.report import RecipientReport, Report
from tests.doubles_dns import ZoneLookup
from tests.mail.bounces.test_delivery_status import wire
from tests.mail.keys import signing_key
from tests.samples import samples

COMPLAINT = wire(
    "From: <fbl@provider.example>\n"
    "Content-Type: multipart/report; boundary=B; report-type=feedback-report\n\n"
    "--B\nContent-Type: text/plain\n\nSomebody pressed the button.\n"
    "--B\nContent-Type: message/feedback-report\n\nFeedback-Type: abuse\nVersion: 1\n"
    "Original-Mail-From: <bounces+abc@b.example>\nOriginal-Rcpt-To: <angry@provider.example>\n\n"
    "--B\nContent-Type: message/rfc822\n\nMessage-ID: <one@b.example>\n\nHi\n--B--\n"
)


def test_a_complaint_names_who_and_what() -> None:
    assert read_report(COMPLAINT) == Report(
        kind="complaint",
        recipients=(RecipientReport("angry@provider.example"),),
        original_message_id="<one@b.example>",
        feedback_type="abuse",
        original_mail_from="bounces+abc@b.example",
        original=b"Message-ID: <one@b.example>\r\n\r\nHi",
        original_has_body=True,
        return_paths=("bounces+abc@b.example",),
    )


@samples("kind", [b"not-spam", b"auth-failure", b""])
def test_feedback_that_blames_nobody_is_no_complaint(kind: bytes) -> None:
    assert read_report(COMPLAINT.replace(b"Feedback-Type: abuse", b"Feedback-Type: " + kind)) is None


ORIGINAL = b"From: Desk <desk@b.example>\r\nMessage-ID: <one@b.example>\r\nSubject: Hi\r\n\r\nHello\r\n"
PEM = signing_key()


def complaint_about(original: bytes) -> bytes:
    return COMPLAINT.replace(b"Message-ID: <one@b.example>\r\n\r\nHi", original.rstrip(b"\r\n"))


def verdict_on(original: bytes) -> str:
    lookup = ZoneLookup({("s1._domainkey.b.example", "TXT"): [dkim.public_record(PEM)]})
    now = time.time()
    return overall(
        check_dkim_signatures(
            split_mail(original), TimedLookup(lookup, time.monotonic() + 60, time.monotonic), now
        )
    )


def test_the_mail_inside_can_be_checked_for_our_signature() -> None:
    key = dkim.load_key(PEM)
    field = dkim.sign(ORIGINAL, domain="b.example", keys=[("s1", key)], signed_at=int(time.time() * 1000))
    report = read_report(complaint_about(field + ORIGINAL))
    assert report is not None
    assert report.original_message_id == "<one@b.example>"
    assert verdict_on(report.original) == "pass"
    forged = read_report(complaint_about(ORIGINAL))
    assert forged is not None
    assert verdict_on(forged.original) == "none"


def test_the_return_path_in_the_mail_inside_is_told() -> None:
    raw = complaint_about(b"Return-Path: <bounces+xyz@b.example>\r\n" + ORIGINAL)
    report = read_report(raw.replace(b"Original-Mail-From: <bounces+abc@b.example>\r\n", b""))
    assert report is not None
    assert report.return_paths == ("bounces+xyz@b.example",)


def test_a_complaint_that_names_nobody_has_no_recipient() -> None:
    report = read_report(COMPLAINT.replace(b"Original-Rcpt-To: <angry@provider.example>\r\n", b""))
    assert report is not None
    assert report.kind == "complaint"
    assert report.recipients == ()
