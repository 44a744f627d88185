"""What a mail is on its way out: the order of a client, the letter written from it, what is stored of it."""

import re
import secrets
from collections.abc import Iterable

from msgspec import UNSET, Struct, UnsetType

from postroom.accounts.keys import Caller
from postroom.accounts.rules.limits import SPECIFIED, AccountLimits
from postroom.clock import DAY, from_iso
from postroom.errors import BadRequest, PayloadTooLarge
from postroom.mail.address import Address
from postroom.mail.writing import compose
from postroom.mail.writing.compose import Draft, DraftAttachment
from postroom.mail.writing.invitation import Invitation
from postroom.mail.writing.invitation_answer import CalendarAnswer
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.documents import Appointment, Document
from postroom.mailbox.holds import ShownHold
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.threads import Thread

RECIPIENTS_LIMIT = 50
SEND_AHEAD = 30 * DAY
FILES_LIMIT_BYTES = 25 * 1024 * 1024
MOMENT_BYTES, RANDOM_BYTES = 6, 10  # of a Message-ID
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)


# Header fields by which a relay is told whom else to write to, past every policy here.
STEERING_NAMES = frozenset({"x-smtpapi", "x-msys-api"})
STEERING_PREFIXES = ("x-mc-", "x-ses-", "x-pm-", "x-mailgun-", "x-mailin-", "x-mj-", "x-postmark-")


class DraftVersion(Struct, frozen=True):
    """The draft that an order was made from, as it was read."""

    id: str
    version: int


class Order(Struct, frozen=True):
    """What the client wants sent; every value has been read and found valid by itself."""

    inbox_id: str
    idempotency_key: str
    request_hash: str
    to: tuple[Address, ...]
    subject: str
    body: str
    cc: tuple[Address, ...] = ()
    bcc: tuple[Address, ...] = ()
    body_html: str | None = None
    thread_id: str | None = None
    include_quote: bool = False
    reply_to: str | None = None
    is_automated: bool = False
    files: tuple[DraftAttachment, ...] = ()
    send_at: int | None = None
    undo_seconds: int = 0
    reply_all: bool = False
    forward_of: str | None = None
    headers: dict[str, str] = {}
    metadata: dict[str, str] = {}
    draft: DraftVersion | None = None
    calendar: Invitation | CalendarAnswer | None = None
    reply_to_message_id: str | None = None  # what it answers, else the last message of its thread
    copies_sender: bool = True  # a reply also goes to whom it answers
    labels: tuple[str, ...] = ()
    unsubscribe: bool = False  # each recipient gets a link by which he wants no more
    redirect_of: str | None = None  # the message that goes on as it came
    seen_hash: str | None = None  # the lasting one of what a person was shown: nothing else may be sent


class Context(Struct, frozen=True):
    """What a mail is composed from beside the order."""

    inbox: Inbox
    thread: Thread | None = None
    previous: Document | None = None
    last_inbound: Document | None = None
    rfc_ids: tuple[str, ...] = ()
    forwarded: Document | None = None
    is_from_service: bool = False  # what came in last: nobody here reads an answer to its sender


class Letter(Struct, frozen=True):
    """A composed mail, ready to be stored."""

    draft: Draft
    cc: tuple[Address, ...]
    own_text: str
    own_html: str | None
    raw: bytes
    files: tuple[Attachment, ...]
    appointment: Appointment | None = None


class RuleFacts(Struct, frozen=True):
    """What a reading of the whole letter tells, for the rules and for whoever approves it."""

    content_hash: str
    has_links: bool  # in what its sender wrote
    has_links_with_quote: bool
    has_canary: bool = False


class SendReceipt(Struct, rename="camel", frozen=True):
    id: str
    thread_id: str
    inbox_id: str
    direction: str
    created_at: str
    message_id: str
    provider_message_id: str
    status: str
    hold: ShownHold | UnsetType = UNSET


class SendAnswer(Struct, frozen=True):
    content: bytes
    is_replay: bool
    bells: tuple[str, ...] = ()


class Submission(Struct, frozen=True):
    """A composed mail that its sender wants sent. `blob` holds it where it is large."""

    caller: Caller
    order: Order
    around: Context
    letter: Letter
    blob: str | None
    base_url: str
    now: int
    is_remembered: bool = (
        False  # who sends, and from where: its transaction has to ask whether it is still so
    )
    allowed: AccountLimits = SPECIFIED
    judgement: RuleFacts | None = None  # made once a rule asks for it, outside of any transaction


class Ready(Struct, frozen=True):
    """A submission with all that will be stored of it."""

    submission: Submission
    thread: Thread
    document: Document
    answer: bytes
    addresses: list[str]

    @property
    def inbox_id(self) -> str:
        return self.document.inbox_id

    @property
    def account_id(self) -> str:
        return self.submission.caller.account_id

    @property
    def starts_thread(self) -> bool:
        return self.submission.around.thread is None


def new_message_id(sender: str, now: int) -> str:
    """Begins with the moment: the newest of an inbox stand together in its index. Nobody guesses the rest."""
    moment = max(now, 0).to_bytes(MOMENT_BYTES, "big")
    return compose.new_message_id(sender.rpartition("@")[2], moment + secrets.token_bytes(RANDOM_BYTES))


def require_files_fit(sizes: Iterable[int]) -> None:
    if sum(sizes) > FILES_LIMIT_BYTES:
        raise PayloadTooLarge("Attachments can have 25 MB in total.")


def parse_moment(value: str) -> int:
    """RFC 3339 with a zone; whether it lies ahead is another question."""
    try:
        if not _MOMENT.fullmatch(value):
            raise ValueError(value)
        return from_iso(value.upper())
    except (ValueError, OverflowError):
        raise BadRequest(
            "sendAt must be a moment with its zone, such as 2026-11-15T09:00:00Z.", field="sendAt"
        ) from None


def is_steering(header: str, allowed: frozenset[str]) -> bool:
    name = header.lower()
    return (name in STEERING_NAMES or name.startswith(STEERING_PREFIXES)) and name not in allowed


def require_no_steering(headers: Iterable[str], allowed: frozenset[str]) -> None:
    """`allowed` are those that this server lets out all the same."""
    for header in headers:
        if is_steering(header, allowed):
            raise BadRequest(
                f"{header} steers a relay, and is not sent. Who runs the server can allow it by"
                " POSTROOM_ALLOWED_HEADERS.",
                field="headers",
            )


def require_ahead(send_at: int, now: int) -> None:
    """Never taken for "now"."""
    if not now < send_at <= now + SEND_AHEAD:
        raise BadRequest("sendAt must lie in the future, at most 30 days ahead.", field="sendAt")
