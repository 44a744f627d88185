"""Every type of event. A new one is a constant and a line of `KINDS`."""

from collections.abc import Iterable

from postroom.errors import BadRequest

MESSAGE_RECEIVED = "message.received"
MESSAGE_BLOCKED = "message.blocked"
MESSAGE_JUNK = "message.junk"
MESSAGE_SENT = "message.sent"
MESSAGE_FAILED = "message.failed"
MESSAGE_BOUNCED = "message.bounced"
MESSAGE_COMPLAINED = "message.complained"
MESSAGE_UNSUBSCRIBED = "message.unsubscribed"
MESSAGE_HELD = "message.held"
MESSAGE_APPROVED = "message.approved"
MESSAGE_REJECTED = "message.rejected"
MESSAGE_EXPIRED = "message.expired"
MESSAGE_SCHEDULED = "message.scheduled"
MESSAGE_CANCELLED = "message.cancelled"
MESSAGE_RELEASED = "message.released"
MESSAGE_JUDGED = "message.judged"
DOMAIN_BROKEN = "domain.broken"
DOMAIN_MENDED = "domain.mended"
CERTIFICATE_ISSUED = "certificate.issued"
CERTIFICATE_FAILED = "certificate.failed"
SERVICE_FAILED = "service.failed"
SERVICE_MENDED = "service.mended"
THREAD_ASSIGNED = "thread.assigned"
THREAD_NOTED = "thread.noted"
THREAD_SNOOZED = "thread.snoozed"
THREAD_WOKEN = "thread.woken"
THREAD_DONE = "thread.done"
THREAD_OVERDUE = "thread.overdue"
THREAD_ANSWERED = "thread.answered"
RULE_DISABLED = "rule.disabled"
CALENDAR_INVITED = "calendar.invited"
CALENDAR_CREATED = "calendar.created"
CALENDAR_CHANGED = "calendar.changed"
CALENDAR_CANCELLED = "calendar.cancelled"
CALENDAR_ANSWERED = "calendar.answered"
CALENDAR_STARTING = "calendar.starting"
CALENDAR_ENDED = "calendar.ended"
CONTACT_ERASED = "contact.erased"
LEGAL_HOLD_SET = "legal_hold.set"
LEGAL_HOLD_LIFTED = "legal_hold.lifted"
INBOX_SUSPENDED = "inbox.suspended"
INBOX_REACTIVATED = "inbox.reactivated"

# Each with its meaning, as docs/events.md shows it.
KINDS: dict[str, str] = {
    MESSAGE_RECEIVED: "An email arrived in an inbox and was examined",
    MESSAGE_SENT: "A recipient's server accepted the email",
    MESSAGE_FAILED: "The email could not be delivered to a recipient",
    MESSAGE_BOUNCED: "A bounce says that an accepted email was not delivered",
    MESSAGE_COMPLAINED: "A recipient reported the email as spam",
    MESSAGE_UNSUBSCRIBED: "A recipient clicked the unsubscribe link",
    MESSAGE_BLOCKED: "A policy blocked an email that arrived",
    MESSAGE_JUNK: "An email arrived in Junk, or someone moved it there",
    MESSAGE_HELD: "A send waits for approval",
    MESSAGE_APPROVED: "A held send has all its approvals",
    MESSAGE_REJECTED: "A person rejected a held send",
    MESSAGE_EXPIRED: "Nobody decided about a held send in time",
    MESSAGE_SCHEDULED: "A send waits for its time",
    MESSAGE_CANCELLED: "A send was cancelled before delivery",
    MESSAGE_RELEASED: "A pause ended, and a send that it held continues",
    MESSAGE_JUDGED: "The operator's judge objects to an email that arrived",
    DOMAIN_BROKEN: "The daily check misses a DNS record of a verified domain",
    DOMAIN_MENDED: "The records of a broken domain are complete again",
    CERTIFICATE_ISSUED: "A certificate was issued or renewed (only for the server's first account)",
    CERTIFICATE_FAILED: "No certificate was issued; the old one stays in use",
    SERVICE_FAILED: "clamd, a spam filter or a DNS list gave no answer for a minute (first account only)",
    SERVICE_MENDED: "It answers again",
    INBOX_SUSPENDED: "Sending from an inbox stopped after too many bounces or complaints",
    INBOX_REACTIVATED: "An operator lifted the suspension",
    THREAD_ASSIGNED: "A thread was assigned to a person, or the assignment was removed",
    THREAD_NOTED: "Someone wrote an internal note",
    THREAD_SNOOZED: "A thread was snoozed",
    THREAD_WOKEN: "A snoozed or done thread is open again",
    THREAD_DONE: "A thread was marked as done",
    THREAD_OVERDUE: "The expected answer did not arrive in time",
    THREAD_ANSWERED: "The expected answer arrived",
    RULE_DISABLED: "A rule was disabled because it failed or would loop",
    CALENDAR_INVITED: "An invitation arrived",
    CALENDAR_CREATED: "An event was created",
    CALENDAR_CHANGED: "An event changed",
    CALENDAR_CANCELLED: "An event was cancelled",
    CALENDAR_ANSWERED: "An attendee or the inbox answered an invitation",
    CALENDAR_STARTING: "An event begins soon; the calendar sets how long before",
    CALENDAR_ENDED: "An event ended",
    CONTACT_ERASED: "A contact was erased with all email exchanged with it",
    LEGAL_HOLD_SET: "An inbox or a thread got a legal hold",
    LEGAL_HOLD_LIFTED: "A legal hold was lifted",
}
INBOUND = frozenset({MESSAGE_RECEIVED, MESSAGE_BLOCKED, MESSAGE_JUNK, MESSAGE_JUDGED})


def require_known(asked: Iterable[str], field: str) -> None:
    """Refuses unknown kinds: waiting for one would never end."""
    for kind in asked:
        if kind not in KINDS:
            raise BadRequest(
                f"'{kind[:50]}' is not an event type. The types are {', '.join(KINDS)}.", field=field
            )
