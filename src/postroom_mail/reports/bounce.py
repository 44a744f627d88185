"""The report in an email, whichever server wrote it."""

from postroom_mail.mime.parse import ParsedMail
from postroom_mail.reports import plain_reports, report_senders
from postroom_mail.reports.complaints import has_feedback, is_feedback_address, read_complaint
from postroom_mail.reports.delivery_status import read_status_part, read_status_text
from postroom_mail.reports.json_notices import is_json_notice, read_mailed
from postroom_mail.reports.notice import Notice, message_id_in, read_notice, return_paths_in, returned_head
from postroom_mail.reports.report import RecipientReport, Report, kind_of

LAST_WORD_LIMIT = 300


def read_report(raw: bytes, mail_from: str | None = None) -> Report | None:
    """Return the bounce, delay or complaint in an email, whichever server wrote it; None for ordinary email.

    `mail_from` is the sender of the SMTP envelope ("" for bounces), if known.

    >>> header = b"From: MAILER-DAEMON@example.com\\nSubject: Undelivered Mail Returned to Sender\\n\\n"
    >>> report = read_report(header + b"<bob@example.org>: 550 5.1.1 User unknown\\n", mail_from="")
    >>> report.kind, report.recipients[0].final_recipient, report.recipients[0].is_hard
    ('bounce', 'bob@example.org', True)
    """
    notice = read_notice(raw)
    if is_json_notice(notice.subject):
        return read_mailed(notice)
    return read_complaint(notice) or _delivery_report(notice, _recipients(notice, mail_from))


def may_be_report(mail: ParsedMail, mail_from: str) -> bool:
    """Return whether to look for a report, by the header alone."""
    return (
        mail_from == ""
        or mail.report_type != ""
        or report_senders.is_system_name(mail.from_addr, mail.from_address)
        or is_feedback_address(mail.from_address)
        or is_json_notice(mail.subject)
    )


def read_returned(raw: bytes) -> Report:
    """Return what an email to the signed return path is: a report, an answer, or an unreadable bounce."""
    notice = read_notice(raw)
    report = (
        read_mailed(notice)
        or read_complaint(notice)
        or _delivery_report(notice, _returned_recipients(notice))
    )
    if report is not None:
        return report
    action = "" if is_answer(notice) else "failed"
    words = RecipientReport("", action, "", last_word(notice))
    return Report("bounce" if action else "other", (words,), None)


def last_word(notice: Notice) -> str:
    """Return, for a user, the subject and the first words of an email that no format matches."""
    words = " ".join(notice.words.split())[:LAST_WORD_LIMIT]
    said = ": ".join(text for text in (notice.subject[:LAST_WORD_LIMIT], words) if text)
    return said or "The email came back without a reason."


def is_answer(notice: Notice) -> bool:
    """Return whether it is no report, not even a damaged one: the email may well have arrived."""
    return is_given_answer(notice) or report_senders.is_list_mail(notice)


def is_given_answer(notice: Notice) -> bool:
    """Return whether it is an answer by a person, a person's mail client, or a feedback loop."""
    return (
        report_senders.is_automatic_answer(notice)
        or report_senders.is_personal_answer(notice)
        or report_senders.is_dmarc_report(notice)
        or has_feedback(notice)
    )


def _delivery_report(notice: Notice, recipients: tuple[RecipientReport, ...]) -> Report | None:
    if not recipients:
        return None
    head = returned_head(notice) or notice.text[len(notice.words) :]
    return Report(
        kind=kind_of(recipients),
        recipients=plain_reports.with_command(notice, plain_reports.with_words(notice, recipients)),
        original_message_id=message_id_in(head) or message_id_in(notice.text),
        return_paths=return_paths_in(head),
    )


def _recipients(notice: Notice, mail_from: str | None) -> tuple[RecipientReport, ...]:
    is_system = report_senders.is_mail_system(notice, mail_from)
    if is_system or notice.content_type == "multipart/report":
        recipients = read_status_part(notice)
        if recipients:
            return recipients
    if (
        report_senders.is_automatic_answer(notice)
        or report_senders.is_list_mail(notice)
        or report_senders.is_for_operators(notice)
    ):
        return ()
    if recipients := plain_reports.read_failed_recipients(notice):
        return recipients
    if not is_system or (
        report_senders.is_reply(notice) and not report_senders.has_null_sender(notice, mail_from)
    ):
        return ()
    return read_status_text(notice) or plain_reports.read_plain_report(notice, is_returned=False)


def _returned_recipients(notice: Notice) -> tuple[RecipientReport, ...]:
    """Return the recipients of an email to the signed path: its writer need not look like a mail system.

    Fields of a list do not speak against a report: a list that refuses an email writes them too.
    """
    recipients = read_status_part(notice)
    if recipients or is_given_answer(notice):
        return recipients
    return (
        plain_reports.read_failed_recipients(notice)
        or read_status_text(notice)
        or plain_reports.read_plain_report(notice, is_returned=True)
    )
