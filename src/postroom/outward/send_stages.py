"""The stages of an outgoing mail: the client's order, the email written from it, and what is stored."""

import re
from collections.abc import Iterable

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from postroom import limits, random_bytes
from postroom.accounts.keys import Caller
from postroom.accounts.rules.limits import SPECIFIED, AccountLimits
from postroom.clock import DAY, from_iso
from postroom.errors import BadRequest, PayloadTooLarge
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.documents import Appointment, Document
from postroom.mailbox.holds import ShownHold
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.threads import Thread
from postroom.outward.event_changes import EventChange
from postroom_mail.mime.address import Address
from postroom_mail.screening.values import Found
from postroom_mail.writing import compose
from postroom_mail.writing.compose import Draft, DraftAttachment
from postroom_mail.writing.invitation import Invitation
from postroom_mail.writing.invitation_answer import CalendarAnswer

SEND_AHEAD = limits.SEND_AHEAD_DAYS * DAY
MOMENT_BYTES, RANDOM_BYTES = 6, 10  # of a Message-ID
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)


# Header fields that make a relay write to more recipients, past every policy here.
STEERING_NAMES = frozenset({"x-smtpapi", "x-msys-api"})
STEERING_PREFIXES = ("x-mc-", "x-ses-", "x-pm-", "x-mailgun-", "x-mailin-", "x-mj-", "x-postmark-")


class DraftVersion(Struct, frozen=True):
    """The draft of an order, with the version that was read."""

    id: str
    version: int


class Expectation(Struct, frozen=True):
    """Until when an answer is expected: a moment, or so many days or working days after the email."""

    until: int | None = None
    days: int | None = None
    working_days: int | None = None


class Nudge(Struct, frozen=True):
    """A follow-up that is prepared with an email: its text or its template, and after how many days."""

    after_days: int
    body: str | None = None
    template_id: str | None = None


class Order(Struct, frozen=True):
    """What the client wants sent; each value is valid alone."""

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
    calendar: Invitation | CalendarAnswer | EventChange | None = None
    reply_to_message_id: str | None = None  # the message it answers, else the last one of its thread
    copies_sender: bool = True  # a reply also goes to the sender of what it answers
    labels: tuple[str, ...] = ()
    unsubscribe: bool = False  # each recipient gets an unsubscribe link
    redirect_of: str | None = None  # the message that is redirected unchanged
    uploads: tuple[str, ...] = ()  # that it uses up
    files_of: tuple[str, ...] = ()  # the messages whose files it attaches
    from_address: str | None = None  # an address of the inbox, instead of its own
    expects: Expectation | None = None
    nudges: tuple[Nudge, ...] = ()
    follow_up: str | None = None  # the prepared nudge that it is
    keeps_unread: bool = False  # the thread stays unread: no agent and no person has read it
    traceparent: str = ""  # of the request: the trace that the message belongs to
    address: str = ""  # of the client that asked, for the audit log
    user_agent: str = ""
    agent_text: str | None = None  # of a draft: the words that an agent gave it
    seen_hash: str | None = None  # the lasting hash of what a person was shown: nothing else may be sent


class Closing(Struct, frozen=True):
    """What an agent's email says of itself: a line at its end ("" for none), and header fields."""

    line: str
    headers: dict[str, str]


class Context(Struct, frozen=True):
    """What an email is composed from besides the order."""

    inbox: Inbox
    thread: Thread | None = None
    previous: Document | None = None
    last_inbound: Document | None = None
    rfc_ids: dict[str, bool] = {}  # of the thread's messages, and whether each was received
    forwarded: Document | None = None
    is_from_service: bool = False  # the last received mail is from an address here that is no inbox
    disclosure: str | None = None  # the setting that counts for its inbox, as it is stored
    closing: Closing | None = None
    quotes_imported: bool = False  # what it quotes or forwards was not received here


class ComposedMail(Struct, frozen=True):
    """A composed mail, ready to be stored."""

    draft: Draft
    cc: tuple[Address, ...]
    own_text: str
    own_html: str | None
    raw: bytes
    files: tuple[Attachment, ...]
    appointment: Appointment | None = None
    seal: str = (
        ""  # signed or encrypted: its bytes are those of the mail client, and no person could judge them
    )
    is_submitted: bool = False  # by a mail client, which wrote the Message-ID too


class RuleFacts(Struct, frozen=True):
    """Facts from reading the whole email, for the rules and for approvers."""

    content_hash: str
    has_links: bool  # in what its sender wrote
    has_links_with_quote: bool
    has_canary: bool = False
    has_files: bool = False  # in a form that only some readers show as a file


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
    """A composed mail to be sent. `blob` holds it if it is large."""

    caller: Caller
    order: Order
    around: Context
    composed: ComposedMail
    blob: str | None
    base_url: str
    now: int
    is_remembered: bool = False  # caller and inbox are cached: the transaction must check them again
    allowed: AccountLimits = SPECIFIED
    values: Found = {}  # that it carries, by their keys
    judgement: RuleFacts | None = None  # made when a rule needs it, outside any transaction

    @property
    def decider(self) -> Caller:
        """The caller and where the request came from, for the audit log."""
        caller, order = self.caller, self.order
        address, user_agent = order.address or caller.address, order.user_agent or caller.user_agent
        return replace(caller, address=address, user_agent=user_agent)


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
    """Begins with the time, so that the newest of an inbox are together in the index. The rest is random."""
    moment = max(now, 0).to_bytes(MOMENT_BYTES, "big")
    return compose.new_message_id(sender.rpartition("@")[2], moment + random_bytes.SHARED.take(RANDOM_BYTES))


def sender_of(order: Order, inbox: Inbox) -> str:
    """Return the sender: the address asked for, which must be one of the inbox's, else its usual one."""
    return inbox.sender if order.from_address is None else own_sender(order.from_address, inbox)


def own_sender(address: str, inbox: Inbox) -> str:
    """Return the address as From shows it. Raise unless it is the inbox's own or one of its aliases."""
    asked = address.lower()
    if asked == inbox.sender.lower():
        return inbox.sender
    if asked not in inbox.own_addresses:
        raise BadRequest(
            f"fromAddress must be {inbox.sender} or an alias of the inbox, not {address!r}.",
            field="fromAddress",
        )
    return asked


def require_files_fit(sizes: Iterable[int]) -> None:
    if sum(sizes) > limits.ATTACHMENTS_BYTES:
        raise files_too_large()


def files_too_large() -> PayloadTooLarge:
    return PayloadTooLarge(f"Attachments can have {limits.ATTACHMENTS_TOGETHER}.")


def parse_moment(value: str) -> int:
    """Parse RFC 3339 with a zone. The time may be in the past."""
    try:
        if not _MOMENT.fullmatch(value):
            raise ValueError(value)
        return from_iso(value.upper())
    except (ValueError, OverflowError):
        raise BadRequest(
            "sendAt must be a time with its zone, such as 2026-11-15T09:00:00Z.", field="sendAt"
        ) from None


def is_steering(header: str, allowed: frozenset[str]) -> bool:
    name = header.lower()
    return (name in STEERING_NAMES or name.startswith(STEERING_PREFIXES)) and name not in allowed


def require_no_steering(headers: Iterable[str], allowed: frozenset[str]) -> None:
    """Refuse header fields that steer delivery. `allowed` are those that this server permits."""
    for header in headers:
        if is_steering(header, allowed):
            raise BadRequest(
                f"{header} controls a relay and is not sent. The operator can allow it with"
                " POSTROOM_ALLOWED_HEADERS.",
                field="headers",
            )


def require_ahead(send_at: int, now: int) -> None:
    """Require a time in the future: one in the past is refused, not taken as now."""
    if not now < send_at <= now + SEND_AHEAD:
        raise BadRequest(
            f"sendAt must be in the future, at most {limits.SEND_AHEAD_DAYS} days ahead.", field="sendAt"
        )
