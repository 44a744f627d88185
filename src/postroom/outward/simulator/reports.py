"""What mail systems send back: a bounce (RFC 3464) and a complaint (RFC 5965)."""

from postroom.outward.simulator.sent import Answer, Sent, message_id
from postroom_mail.writing.dates import to_date


def bounce(sent: Sent, status: str, diagnostic: str) -> Answer:
    facts = (
        f"Reporting-MTA: dns; {sent.domain}\r\n\r\nFinal-Recipient: rfc822; {sent.recipient}\r\n"
        f"Action: failed\r\nStatus: {status}\r\nDiagnostic-Code: smtp; {diagnostic}\r\n"
    )
    words = f"Your mail to {sent.recipient} could not be delivered:\r\n{diagnostic}\r\n"
    subject = "Undelivered mail returned to sender"
    return _report(sent, "delivery-status", subject, words, ("message/delivery-status", facts))


def complaint(sent: Sent) -> Answer:
    facts = (
        "Feedback-Type: abuse\r\nUser-Agent: Simulator/1.0\r\nVersion: 1\r\n"
        f"Original-Rcpt-To: {sent.recipient}\r\n"
    )
    words = "The recipient of this email has marked it as spam.\r\n"
    subject = "Abuse report"
    return _report(sent, "feedback-report", subject, words, ("message/feedback-report", facts))


def _report(sent: Sent, kind: str, subject: str, words: str, facts: tuple[str, str]) -> Answer:
    boundary = f"=_{sent.reference}"
    parts = [
        ("text/plain; charset=utf-8", words),
        facts,
        ("text/rfc822-headers", f"Message-ID: {sent.mail.message_id}\r\nFrom: {sent.sender}\r\n"),
    ]
    body = "".join(f"--{boundary}\r\nContent-Type: {media}\r\n\r\n{text}\r\n" for media, text in parts)
    head = (
        f"From: MAILER-DAEMON@{sent.domain}\r\nTo: {sent.sender}\r\nSubject: {subject}\r\n"
        f"Date: {to_date(sent.at)}\r\nMessage-ID: {message_id(sent, 1)}\r\nMIME-Version: 1.0\r\n"
        f'Content-Type: multipart/report; report-type={kind}; boundary="{boundary}"\r\n'
        "Auto-Submitted: auto-replied\r\n\r\n"
    )
    return Answer(f"{head}{body}--{boundary}--\r\n".encode(), "", is_to_return_path=True)
