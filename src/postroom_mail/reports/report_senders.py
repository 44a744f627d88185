# ruff: noqa: RUF001 (words of other languages use letters that look Latin)
"""Whether an email comes from a mail system, or is an automatic answer, a list mail or a person's reply."""

import re

from postroom_mail.languages.read import word_lists
from postroom_mail.reports import wording
from postroom_mail.reports.notice import Notice

_LISTS = word_lists("postroom_mail.reports", "words.txt")

_SYSTEM_LOCAL_PART = re.compile(
    r"(?:mail(?:er)?[-_. ]?daemon|mdaemon|daemon|post-?master|mail[-_. ]?(?:system|server|router"
    r"|delivery(?:[-_. ]?\w{1,20})?"
    r"|admin(?:istrator)?|er|gateway|robot)|(?:system[-_. ]?)?admin(?:istrator)?|bounces?"
    r"|bounced?[-_.]?(?:mail|notification|handler)"
    r"|smtp(?:[-_.]?\w{1,20})?|undeliver\w{1,10}|non-?delivery|ndr|dsn|microsoftexchange[0-9a-f]{16,40}"
    r"|internet-?mail"
    r"|exim|qmaild?|mmdf|root|mta|mailfilter|quarantine|delivery[-_.]?\w{0,20})(?:[+=-][\w.=+-]{0,64})?",
)

_ANSWER_FIELDS = (
    "x-autoreply", "x-autorespond", "x-autoresponder", "x-vacation", "x-auto-reply", "x-autoreply-from",
    "x-mail-autoreply", "x-autoreply-id", "x-tmda-confirm", "x-boxbe-request",
)  # fmt: skip
_OPERATOR_SUBJECTS = (
    "postfix smtp server: errors",
    "postmaster copy:",
    "mail queue",
    "logwatch",
    "quarantine",
)
_LIST_FIELDS = ("list-id", "list-unsubscribe", "list-post", "list-help")
_ANSWER_TYPES = {"message/disposition-notification", "message/global-disposition-notification"}
_REPLY = re.compile(
    r"\s{0,9}(?:re|aw|antw|sv|vs|odp|ynt|fw|fwd|wg|tr|rv|enc|i|转发|回复|答复)\s?(?:\[\d+\])?\s?[:：]", re.I
)


def is_mail_system(notice: Notice, mail_from: str | None) -> bool:
    """Return whether a mail system sent it, by the empty envelope sender, or by its name."""
    return has_null_sender(notice, mail_from) or is_named_as_system(notice)


def is_named_as_system(notice: Notice) -> bool:
    return is_system_name(notice.from_name, notice.from_address)


def is_system_name(name: str, address: str) -> bool:
    if _SYSTEM_LOCAL_PART.fullmatch(address.lower().partition("@")[0][:200]):
        return True
    lower = name.lower()[:200]
    return any(map(lower.__contains__, _LISTS["system names"]))


def has_null_sender(notice: Notice, mail_from: str | None) -> bool:
    """Reports and answers must not be answered, so they name no sender (RFC 5321 section 4.5.5)."""
    return mail_from == "" or (mail_from is None and notice.fields.text("return-path").strip() == "<>")


def is_automatic_answer(notice: Notice) -> bool:
    """Return whether it is an automatic answer on behalf of its owner: the email has arrived."""
    if notice.first_of(_ANSWER_TYPES) or any(notice.fields.count(name) for name in _ANSWER_FIELDS):
        return True
    if "auto_reply" in notice.fields.text("precedence").lower():
        return True
    subject = notice.subject.lower().lstrip()
    words = notice.words[:3_000].lower()
    if any(each in words for each in _LISTS["answer words"]):
        return True
    # A bounce repeats the subject of the email it returns, which may itself be an answer.
    if wording.says_failure(subject):
        return False
    return subject.startswith(_LISTS["answer starts"]) or any(
        each in subject for each in _LISTS["answer subjects"]
    )


def is_dmarc_report(notice: Notice) -> bool:
    """Tells the owner of a domain about mail in its name, which may be anyone's."""
    subject = notice.subject.lower()
    return "dmarc" in subject and "report" in subject and not wording.says_failure(subject)


def is_list_mail(notice: Notice) -> bool:
    return any(notice.fields.count(name) for name in _LIST_FIELDS)


def is_reply(notice: Notice) -> bool:
    """Return whether it is a reply or a forward, as people write them."""
    return _REPLY.match(notice.subject) is not None


def is_personal_answer(notice: Notice) -> bool:
    """Return whether a person or a person's mail client wrote it, so the email has arrived there."""
    is_answered = notice.fields.text("auto-submitted").lower().startswith("auto-replied")
    return not is_named_as_system(notice) and (is_answered or is_reply(notice))


def is_for_operators(notice: Notice) -> bool:
    """Return what a mail system tells its operators about the email of others."""
    subject = notice.subject.lower()
    return any(each in subject for each in _OPERATOR_SUBJECTS)
