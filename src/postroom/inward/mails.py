"""What an email is on its way in: an Arrival at a door, a ReadMail, and an AcceptedMail before it is stored.

For each inbox it is an AddressedMail then, and a StoredCopy once it has its place there.
"""

from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from postroom.clock import to_mail_date
from postroom.inward.attribute import About
from postroom.inward.into_thread import ThreadMatch
from postroom.inward.review_answers import Reviewed
from postroom.inward.screening import Screening
from postroom.mailbox import raw_mails
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.documents import Appointment, Document, Verdicts
from postroom.mailbox.inboxes import Inbox
from postroom_mail.mime.parse import ParsedMail
from postroom_mail.reading.category import Kind
from postroom_mail.reading.links import LinkDetail
from postroom_mail.reports.report import Report
from postroom_mail.writing.return_path import BouncePath


class Destination(Struct, frozen=True):
    """An inbox; with the signed return path if the mail came to that instead of the inbox's address."""

    inbox_id: str
    bounce_path: BouncePath | None = None
    review: Reviewed | None = None  # the answer of a reviewer, which goes into no inbox
    is_dropped: bool = False  # nobody reads this address, and nobody is notified
    report_domain: str = ""  # the domain of a report by mail, which goes into no inbox
    is_check: bool = False  # the sender wants to know what was seen of the email
    delivered_to: str = ""  # the address that it came to, if it is not the inbox's own

    @property
    def needs_no_inbox(self) -> bool:
        return self.review is not None or self.is_dropped or bool(self.report_domain)


NOBODY = Destination("", is_dropped=True)
UNKNOWN_PEER = "unknown"  # as Origin.peer_ip; not "", which is mail that never left this server


class TakenFrom(Struct, frozen=True):
    """An external mailbox, and the mail's number there."""

    connection_id: str
    uid_validity: int
    uid: int


class Origin(Struct, frozen=True):
    """Where an email came from and to whom. `peer_ip` is "" for mail that never left this server."""

    destinations: tuple[Destination, ...]
    trace: bytes  # our own Received field, put before the mail
    peer_ip: str
    helo: str
    mail_from: str
    taken: TakenFrom | None = None

    @property
    def each_once(self) -> tuple[Destination, ...]:
        """Each inbox once if the mail came to several addresses of it: by the first of them."""
        if not any(each.delivered_to for each in self.destinations):
            return self.destinations
        found = {replace(each, delivered_to=""): each for each in reversed(self.destinations)}
        return tuple(found.values())[::-1]


class Arrival(Struct, frozen=True):
    """An email as a door hands it over."""

    origin: Origin
    raw: bytes
    counts_once: bool = False  # the same content is the same mail, also without a Message-ID


class Unwanted(Struct, frozen=True):
    """Why an email is refused, or put off. `domain` is the one whose DMARC policy asks for that."""

    DMARC: ClassVar = "dmarc"
    JUNK: ClassVar = "junk"
    GREYLIST: ClassVar = "greylist"

    reason: str
    domain: str = ""


def trace_inside(domain: str, words: str, now: int) -> bytes:
    """Return the trace field of mail delivered inside this server, with a date (RFC 5321, 4.4)."""
    return f"Received: by {domain} {words};\r\n\t{to_mail_date(now)}\r\n".encode()


class ReadMail(Struct, frozen=True):
    """Everything read from the mail itself.

    Its bytes are `kept`, and nowhere else: `mail` has no files, and the text as it is shown. Text and HTML
    that the bytes contain literally are cut out of them.
    """

    origin: Origin
    mail: ParsedMail
    reply: str | int  # what is new in the text, or how much of its beginning that is
    codes: list[str]
    link_details: list[LinkDetail]
    attachments: tuple[Attachment, ...]
    verdicts: Verdicts
    content_hash: str  # "" if a second handover counts as a new mail
    needs_examination: bool
    report: Report | None  # of a bounce or a complaint
    returned: Report | None  # its content as an answer to the return path it came to
    kind: Kind
    findings: Screening | None  # None: the examination will say
    calendar: Appointment | None
    kept: raw_mails.Cut
    size_bytes: int  # as it came, with our trace
    own_marks: tuple[str, ...] = ()  # it may be an email of this server: then it goes into no inbox
    junk_words: float = 0.0  # how much its words speak for junk, by what all accounts start with
    awaits_policy: bool = False  # it is examined for nothing but a DMARC policy of its author's domain
    failed: tuple[str, ...] = ()  # the readers of meaning that raised
    values: tuple[str, ...] = ()  # that a send could carry elsewhere

    @property
    def is_believed(self) -> bool:
        """Return whether its sender becomes known at once.

        Nothing is left to check, and From names one domain.
        """
        return not self.needs_examination and self.verdicts.dmarc != "permerror"

    @property
    def content(self) -> bytes:
        """The mail as it came, without our trace."""
        return raw_mails.restore(self.kept, self.mail.body_text, self.mail.body_html)[
            len(self.origin.trace) :
        ]

    @property
    def reply_text(self) -> str:
        return self.mail.body_text[: self.reply] if isinstance(self.reply, int) else self.reply


class AcceptedMail(Struct, frozen=True):
    """An email that was read and is about to be stored; the bytes of a large one are in a blob."""

    read: ReadMail
    base_url: str
    now: int  # when it was accepted
    blob: str | None = None
    about: About | None = None  # the sent mail that the report is proven to be about
    envelope: bytes | None = None  # as IMAP writes it, if the server has mail clients
    is_filed: bool = False  # by a mail client or an import: nobody becomes known by it
    junk_action: str = "mark"  # the server's
    # The message that was received with the same bytes: of filed mail, and of a copy that a rule makes.
    original: Document | None = None
    trace_id: str = ""  # of the trace that begins with it, if spans are recorded
    awaits_scan: bool = False  # nobody reads it before clamd has seen it, or POSTROOM_CLAMD_WAIT is over

    @property
    def is_imported(self) -> bool:
        return self.is_filed and self.original is None


class AddressedMail(Struct, frozen=True):
    """An accepted mail for one of its inboxes. `number` is its index among the emails stored together."""

    number: int
    mail: AcceptedMail
    destination: Destination

    @property
    def read(self) -> ReadMail:
        return self.mail.read

    @property
    def inbox_id(self) -> str:
        return self.destination.inbox_id

    @property
    def is_from_outside(self) -> bool:
        """Return whether it was received from another server, now."""
        return self.read.origin.peer_ip != "" and not self.mail.is_filed


class StoredCopy(AddressedMail, frozen=True):
    """It is in its inbox and its thread; in no thread while a policy has yet to judge it."""

    inbox: Inbox
    place: ThreadMatch | None
    document: Document
    is_taught: bool = False  # its account has taught the junk filter, which an examination asks

    @property
    def is_blocked(self) -> bool:
        return self.place is None

    @property
    def needs_examination(self) -> bool:
        return self.is_blocked or self.read.needs_examination or self.is_taught
