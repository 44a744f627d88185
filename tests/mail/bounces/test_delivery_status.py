"""Delivery status (RFC 3464) and the oldest plain forms are read in full, whatever is around them."""

from postroom_mail.reports.bounce import read_report
from postroom_mail.reports.reasons import Fault
from postroom_mail.reports.report import RecipientReport, Report
from tests.samples import samples


def wire(text: str) -> bytes:
    return text.replace("\n", "\r\n").encode()


def status_report(blocks: str, returned: str = "", kind: str = "message/delivery-status") -> bytes:
    return wire(
        "From: mailer-daemon@mx.example\nSubject: Undelivered\nMIME-Version: 1.0\n"
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


@samples(
    ("was", "instead"),
    [
        (b"multipart/report", b"multipart/mixed"),
        (b"message/delivery-status", b"text/plain"),
        (b"message/delivery-status", b"application/octet-stream"),
        (b"Action: failed", b"Action: Failure"),
        (b"Status: 5.1.1\r\n", b"\r\nStatus: 5.1.1\r\n\r\n"),
    ],
)
def test_a_mail_system_may_choose_another_shape(was: bytes, instead: bytes) -> None:
    assert read_report(POSTFIX.replace(was, instead)) == read_report(POSTFIX)


@samples("status", ["4.4.7", "5.2.2", "4.0.0", "", "nonsense"])
def test_action_failed_is_a_bounce_whatever_its_status(status: str) -> None:
    block = f"Final-Recipient: rfc822; a@x.example\nAction: failed\nStatus: {status}\n"
    report = read_report(status_report(block))
    assert report is not None
    assert report.kind == "bounce"
    assert not only(report).is_hard
    assert only(report).fault is not Fault.RECIPIENT


def test_a_status_without_a_diagnostic_gets_the_words_for_people() -> None:
    raw = status_report("Final-Recipient: rfc822; a@x.example\nAction: failed\nStatus: 5.1.1\n")
    words = b"<a@x.example>: nobody of that name has ever lived here"
    assert only(read_report(raw.replace(b"Sorry about your mail.", words))).diagnostic == (
        "nobody of that name has ever lived here"
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
    assert recipient.is_hard
    assert recipient.fault is Fault.RECIPIENT


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


@samples(
    ("action", "kind"),
    [("delayed", "delay"), ("relayed", "other"), ("delivered", "other"), ("expanded", "other")],
)
def test_other_actions_are_no_bounce(action: str, kind: str) -> None:
    report = read_report(
        status_report(f"Final-Recipient: rfc822; a@x.example\nAction: {action}\nStatus: 4.0.0\n")
    )
    assert report is not None
    assert report.kind == kind


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


@samples(
    "raw",
    [
        b"",
        b"Subject: Delivery failed\r\n\r\nThe user <x@y.example> is unknown, 550 5.1.1\r\n",
        b"Content-Type: multipart/report; report-type=delivery-status\r\n\r\nno boundary",
        b"Content-Type: multipart/report; boundary=x\r\n\r\n--y\r\n\r\n",
        POSTFIX.replace(b"multipart/report", b"multipart/mixed").replace(b"mailer-daemon", b"eve"),
        POSTFIX.replace(b"-Recipient:", b"-Nobody:").replace(b"mailer-daemon", b"eve"),
        POSTFIX.replace(b"message/delivery-status", b"text/plain").replace(b"mailer-daemon", b"eve"),
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
    assert len(report.recipients) <= 100
    assert all(len(one.diagnostic) <= 1_000 for one in report.recipients)
