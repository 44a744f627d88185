"""Reports in the styles of many servers are understood, and no bytes can do harm. All samples are made up."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.mail.bounce import (
    RecipientReport,
    Report,
    is_about_address,
    is_hard,
    read_report,
    reply_code,
)


def wire(text: str) -> bytes:
    return text.replace("\n", "\r\n").encode()


def status_report(blocks: str, returned: str = "", kind: str = "message/delivery-status") -> bytes:
    return wire(
        "From: Mail Delivery <mailer-daemon@mx.example>\nSubject: Undelivered\nMIME-Version: 1.0\n"
        'Content-Type: multipart/report; report-type=delivery-status;\n\tboundary="edge/1=x"\n\n'
        "Preamble for old readers\n--edge/1=x\nContent-Type: text/plain\n\nSorry about your mail.\n"
        f"--edge/1=x\nContent-Type: {kind}\n\nReporting-MTA: dns; mx.example\n\n{blocks}\n"
        f"{returned}--edge/1=x--\n"
    )


RETURNED = (
    "--edge/1=x\nContent-Type: message/rfc822\n\nFrom: a@b.example\nMessage-ID:\n"
    " <one@b.example>\nSubject: Hi\n\n"
    "Message-ID: <fake@evil.example>\n"
)
POSTFIX = status_report(
    "Final-Recipient: rfc822; nobody@there.example\nOriginal-Recipient: rfc822;Nobody@there.example\n"
    "Action: failed\nStatus: 5.1.1\nRemote-MTA: dns; mx.there.example\n"
    "Diagnostic-Code: smtp; 550 5.1.1 <nobody@there.example>: Recipient address\n"
    "    rejected: User unknown\n",
    RETURNED,
)


def test_a_postfix_bounce_is_read_in_full() -> None:
    assert read_report(POSTFIX) == Report(
        kind="bounce",
        recipients=(
            RecipientReport(
                final_recipient="nobody@there.example",
                action="failed",
                status="5.1.1",
                diagnostic="550 5.1.1 <nobody@there.example>: Recipient address rejected: User unknown",
                original_recipient="Nobody@there.example",
            ),
        ),
        original_message_id="<one@b.example>",
    )


def test_line_ends_of_any_kind_are_the_same() -> None:
    assert read_report(POSTFIX.replace(b"\r\n", b"\n")) == read_report(POSTFIX)


def only(report: Report | None) -> RecipientReport:
    assert report is not None
    [recipient] = report.recipients
    return recipient


def test_an_exchange_bounce_without_a_diagnostic_code_keeps_its_status() -> None:
    recipient = only(
        read_report(
            status_report("Final-recipient: RFC822;gone@corp.example\nAction: failed\nStatus: 5.1.10\n")
        )
    )
    assert (recipient.final_recipient, recipient.status, recipient.diagnostic) == (
        "gone@corp.example",
        "5.1.10",
        "",
    )


def test_a_gmail_bounce_with_a_folded_diagnostic_is_read() -> None:
    recipient = only(
        read_report(
            status_report(
                "Final-Recipient: rfc822; typo@mail.example\nAction: failed\nStatus: 5.1.1\n"
                "Diagnostic-Code: smtp; 550-5.1.1 The account you wrote to does not exist. Look for\n"
                " 550-5.1.1 typing errors. 550 5.1.1 See https://help.example/?p=NoSuchUser\n"
                "Last-Attempt-Date: Sat, 14 Nov 2026 02:05:00 -0800 (PST)\n"
            )
        )
    )
    assert recipient.diagnostic.startswith("550-5.1.1 The account")
    assert is_about_address(reply_code(recipient.diagnostic), recipient.status, recipient.diagnostic)


def test_a_general_status_gives_way_to_the_diagnosed_one() -> None:
    block = (
        "Final-Recipient: rfc822;x@y.example\nAction: failed\nStatus: 5.0.0\nDiagnostic-Code: 550 5.7.1 no\n"
    )
    assert only(read_report(status_report(block))).status == "5.7.1"


def test_several_recipients_have_their_own_outcome() -> None:
    report = read_report(
        status_report(
            "Final-Recipient: rfc822; a@x.example\nAction: delayed\nStatus: 4.4.1\n\n"
            "Final-Recipient: rfc822; b@x.example\nAction: Failed\nStatus: 5.2.2 (full)\n",
        )
    )
    assert report is not None
    assert report.kind == "bounce"
    assert [(one.action, one.status) for one in report.recipients] == [
        ("delayed", "4.4.1"),
        ("failed", "5.2.2"),
    ]


@pytest.mark.parametrize("action", ["delayed", "relayed", "delivered", "expanded"])
def test_other_actions_are_no_bounce(action: str) -> None:
    report = read_report(
        status_report(f"Final-Recipient: rfc822; a@x.example\nAction: {action}\nStatus: 4.0.0\n")
    )
    assert report is not None
    assert report.kind == "delayed"


def test_the_headers_alone_also_name_the_original() -> None:
    returned = "--edge/1=x\nContent-Type: text/rfc822-headers; charset=utf-8\n\nmessage-id: <two@b.example>\n"
    report = read_report(status_report("Final-Recipient: rfc822; a@x.example\nAction: failed\n", returned))
    assert report is not None
    assert report.original_message_id == "<two@b.example>"


def test_internationalised_and_encoded_status_parts_are_read() -> None:
    block = "Final-Recipient: utf-8; jürgen@x.example\nAction: failed\nStatus: 5.1.1\n"
    assert only(read_report(status_report(block, kind="message/global-delivery-status"))).final_recipient == (
        "jürgen@x.example"
    )
    encoded = status_report(
        "Final-Recipient: rfc822; j=C3=BC@x.example\nAction: fai=\nled\n",
        kind="message/delivery-status\nContent-Transfer-Encoding: quoted-printable",
    )
    assert only(read_report(encoded)) == RecipientReport("jü@x.example", "failed")


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
    )


@pytest.mark.parametrize("kind", [b"not-spam", b"auth-failure", b""])
def test_feedback_that_blames_nobody_is_no_complaint(kind: bytes) -> None:
    assert read_report(COMPLAINT.replace(b"Feedback-Type: abuse", b"Feedback-Type: " + kind)) is None


EXIM = wire(
    "X-Failed-Recipients: nobody@there.example, full@there.example\nAuto-Submitted: auto-replied\n"
    "From: Mail Delivery System <Mailer-Daemon@mx.example>\nSubject: Mail delivery failed\n\n"
    "A mail that you sent could not be delivered to all of its recipients.\n\n"
    "  nobody@there.example\n    host mx.there.example [192.0.2.7]\n"
    "    SMTP error from remote mail server after RCPT TO:<nobody@there.example>:\n"
    "    550 5.1.1 no such user\n\n"
    "  full@there.example\n    552 5.2.2 mailbox full\n\n"
    "------ This is a copy of your mail, with its headers. ------\n\n"
    "From: a@b.example\nMessage-ID: <three@b.example>\n\nHi\n"
)


def test_an_exim_text_bounce_is_read() -> None:
    report = read_report(EXIM)
    assert report is not None
    assert report.kind == "bounce"
    assert report.original_message_id == "<three@b.example>"
    assert [(one.final_recipient, one.status) for one in report.recipients] == [
        ("nobody@there.example", "5.1.1"),
        ("full@there.example", "5.2.2"),
    ]


def test_a_qmail_text_bounce_is_read() -> None:
    report = read_report(
        wire(
            "From: MAILER-DAEMON@mx.example\nSubject: failure notice\n\n"
            "Hi. This is the qmail-send program at mx.example.\n"
            "Your mail did not get through.\n\n<nobody@there.example>:\n"
            "192.0.2.7 does not like the recipient.\n"
            "Remote host said: 550 5.1.1 unknown user\n\n--- Below this line is a copy of the message.\n\n"
            "Return-Path: <a@b.example>\nMessage-Id: <four@b.example>\n\n<x@y>:\nnot a recipient\n"
        )
    )
    assert report is not None
    assert report.original_message_id == "<four@b.example>"
    assert only(report).final_recipient == "nobody@there.example"
    assert only(report).status == "5.1.1"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"Subject: Delivery failed\r\n\r\nThe user <x@y.example> is unknown, 550 5.1.1\r\n",
        b"Content-Type: multipart/report; report-type=delivery-status\r\n\r\nno boundary",
        b"Content-Type: multipart/report; boundary=x\r\n\r\n--y\r\n\r\n",
        POSTFIX.replace(b"multipart/report", b"multipart/mixed"),
        POSTFIX.replace(b"-Recipient:", b"-Nobody:"),
        POSTFIX.replace(b"message/delivery-status", b"text/plain"),
    ],
)
def test_other_mail_is_no_report(raw: bytes) -> None:
    assert read_report(raw) is None


def test_a_huge_report_is_read_only_in_part() -> None:
    block = "Final-Recipient: rfc822; a@x.example\nAction: failed\nDiagnostic-Code: smtp; 550 {}\n\n".format(
        "x" * 5_000
    )
    report = read_report(status_report(block * 1_000))
    assert report is not None
    assert len(report.recipients) <= 101
    assert all(len(one.diagnostic) <= 1_000 for one in report.recipients)


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


@settings(deadline=None)
@given(
    st.binary(max_size=500)
    | pieces
    | pieces.map(b"Content-Type: multipart/report; boundary=x\r\n\r\n--x\r\n".__add__)
)
def test_any_bytes_give_a_report_or_nothing(raw: bytes) -> None:
    report = read_report(raw)
    assert report is None or report.kind in {"bounce", "complaint", "delayed"}


@pytest.mark.parametrize(
    ("code", "status", "text"),
    [
        (550, "5.1.1", "no such user"),
        (550, "5.1.0", "Address rejected."),
        (553, "5.1.2", "bad destination system"),
        (556, "5.1.10", "Domain accepts no mail"),
        (None, "5.1.1", ""),
        (550, None, "User unknown in virtual alias table"),
        (550, None, "<spam@policy.example>: Recipient address rejected: unknown user"),
        (550, "5.5.0", "Requested action not taken: mailbox unavailable"),
        (550, "5.2.1", "The account is disabled"),
        (550, "5.0.0", "sorry, no mailbox here by that name"),
        (554, None, "delivery error: dd This user doesn't have a mail.example account"),
        (None, "5.4.4", "Host or domain name not found. Name service error for name=nowhere.example"),
        (None, None, "Unrouteable address"),
        (None, None, "all MX records point to non-existent hosts"),
        (550, None, "The address does not exist"),
    ],
)
def test_a_reason_that_is_the_address(code: int | None, status: str | None, text: str) -> None:
    assert is_about_address(code, status, text)


@pytest.mark.parametrize(
    ("code", "status", "text"),
    [
        (450, "4.1.1", "User unknown, try later"),
        (450, None, "unknown user"),
        (550, "4.1.1", "unknown user"),
        (552, "5.2.2", "mailbox full"),
        (550, "5.1.1", "The mailbox is full, user over quota"),
        (550, "5.7.1", "Message refused as spam"),
        (550, "5.7.26", "no such user may send unauthenticated mail"),
        (550, "5.1.8", "Sender address rejected: Domain not found"),
        (550, "5.1.7", "bad sender"),
        (550, "5.1.0", "Blocked by policy"),
        (554, None, "Your host is on a blacklist"),
        (550, "5.6.0", "bad content"),
        (552, "5.3.4", "message too big"),
        (550, None, "Relaying denied"),
        (None, None, ""),
        (None, "5.4.7", "delivery time expired"),
    ],
)
def test_a_reason_that_is_not_the_address(code: int | None, status: str | None, text: str) -> None:
    assert not is_about_address(code, status, text)


@pytest.mark.parametrize(
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
    ],
)
def test_a_full_mailbox_and_a_passing_fault_are_soft(status: str, diagnostic: str, hard: bool) -> None:
    assert is_hard(status, diagnostic) is hard


@settings(deadline=None)
@given(st.none() | st.integers(), st.none() | st.text(max_size=20), st.text(max_size=3_000))
def test_any_reply_gets_a_verdict(code: int | None, status: str | None, text: str) -> None:
    assert is_about_address(code, status, text) in {True, False}
    assert is_hard(status or "", text) in {True, False}
