"""Which addresses an email names: the role of its inbox, and all participants."""

from collections.abc import Set

from postroom_mail.mime.address import Address, mailbox_of, normalize
from postroom_mail.mime.parse import ParsedMail

PARTICIPANTS_PER_MAIL = 200
NOBODYS_NAME = "noreply"  # the sender of the server's own mail; a reserved name, which no tenant can take


REPORT_NAMES = ("dmarc", "tls-rpt")  # addresses for reports about a domain, unless an inbox has the name


CHECK_NAME = "check"  # emails to it are answered with what was seen of them


def is_check(mailbox: str) -> bool:
    return mailbox.rpartition("@")[0] == CHECK_NAME


def takes_reports(mailbox: str) -> bool:
    return mailbox.rpartition("@")[0] in REPORT_NAMES


def is_nobodys(mailbox: str) -> bool:
    """Return whether mail to this address, which is no inbox, is accepted and dropped, never bounced."""
    return mailbox.rpartition("@")[0] == NOBODYS_NAME


def delivery_role(own: Set[str], mail: ParsedMail) -> str:
    """Return `to`, or `cc` if the inbox is only in Cc. Mail by Bcc or from a list counts as `to`."""
    return "cc" if _is_among(own, mail.cc) and not _is_among(own, mail.to) else "to"


def _is_among(own: Set[str], listed: tuple[Address, ...]) -> bool:
    return any(mailbox_of(other.address) in own for other in listed)


def participants(mail: ParsedMail) -> list[str]:
    """Return the sender, and the people named in the email to whom a reply may go."""
    listed = [other.address for other in (*mail.reply_to, *mail.to, *mail.cc)][:PARTICIPANTS_PER_MAIL]
    return [mail.from_address, *(normalize(other) for other in listed if other)]
