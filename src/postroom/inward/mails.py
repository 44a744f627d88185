"""What a mail is on its way in: handed over by a door, read, and put into one inbox."""

from msgspec import Struct

from postroom.inward.attribute import About
from postroom.inward.review_answers import Reviewed
from postroom.inward.suspicion import Suspicion
from postroom.mail.bounces.report import Report
from postroom.mail.kinds.category import Kind
from postroom.mail.meaning.links import LinkDetail
from postroom.mail.parse import ParsedMail
from postroom.mail.writing.return_path import BouncePath
from postroom.mailbox import raw_mails
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.documents import Appointment, Document, Verdicts
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.threads import Thread


class Destination(Struct, frozen=True):
    """An inbox; with the signed return path when the mail came to that instead of the inbox's address."""

    inbox_id: str
    bounce_path: BouncePath | None = None
    review: Reviewed | None = None  # the answer of a reviewer, which is put into no inbox
    is_notice: bool = False  # of the server itself, for which no policy is asked
    is_dropped: bool = False  # nobody reads what comes there, and nobody is told

    def is_kept_back(self, guarded: frozenset[str]) -> bool:
        """Until a policy has judged who sent it."""
        return self.inbox_id in guarded and not self.is_notice


NOBODY = Destination("", is_dropped=True)


class Arrival(Struct, frozen=True):
    """A mail as a door hands it over. `peer_ip` is "" for mail that never left this server."""

    destinations: tuple[Destination, ...]
    raw: bytes
    trace: bytes  # our own Received field, put before the mail
    peer_ip: str
    helo: str
    mail_from: str


class ReadMail(Struct, frozen=True):
    """All that is known of a mail before it is put into an inbox.

    Its bytes are `kept`, and nowhere else, until those of a large one are in a blob. Text and HTML are cut
    out of them where they stand there as they are.
    """

    arrival: Arrival
    mail: ParsedMail
    body_text: str
    reply: str | int  # what is new in the text, or how much of its beginning that is
    codes: list[str]
    link_details: list[LinkDetail]
    attachments: tuple[Attachment, ...]
    verdicts: Verdicts
    content_hash: str  # "" for a mail without a Message-ID
    needs_examination: bool
    report: Report | None  # of a bounce or a complaint
    returned: Report | None  # what it says as an answer to the return path it came to
    kind: Kind
    findings: Suspicion | None  # None: the examination will say
    calendar: Appointment | None
    kept: raw_mails.Cut
    size_bytes: int  # as it came, with our trace
    blob: str | None = None
    about: About | None = None  # which sent mail the report proves to be about
    base_url: str = ""
    now: int = 0  # when it was taken over

    @property
    def reply_text(self) -> str:
        return self.body_text[: self.reply] if isinstance(self.reply, int) else self.reply


class Copy(Struct, frozen=True):
    """A mail in its thread in one inbox. `number` is the place of the mail among those stored with it."""

    number: int
    read: ReadMail
    bounce_path: BouncePath | None
    inbox: Inbox
    thread: Thread
    starts_thread: bool
    document: Document
    is_kept_back: bool = False  # until its sender has been judged by a policy

    @property
    def needs_examination(self) -> bool:
        return self.is_kept_back or self.read.needs_examination


Handover = tuple[int, ReadMail, Destination]  # a mail for one inbox, with its number
