"""Every kind of event. A new one is a line here."""

from collections.abc import Iterable

from postroom.errors import BadRequest

MESSAGE_RECEIVED = "message.received"
MESSAGE_BLOCKED = "message.blocked"
MESSAGE_JUNK = "message.junk"  # it came into the Junk folder, or somebody moved it there
MESSAGE_SENT = "message.sent"
MESSAGE_FAILED = "message.failed"
MESSAGE_BOUNCED = "message.bounced"
MESSAGE_COMPLAINED = "message.complained"
MESSAGE_UNSUBSCRIBED = "message.unsubscribed"  # a recipient clicked the link in it
MESSAGE_HELD = "message.held"
MESSAGE_APPROVED = "message.approved"
MESSAGE_REJECTED = "message.rejected"
MESSAGE_EXPIRED = "message.expired"
MESSAGE_SCHEDULED = "message.scheduled"
MESSAGE_CANCELLED = "message.cancelled"
MESSAGE_RELEASED = "message.released"
MESSAGE_JUDGED = "message.judged"  # the operator's judge objects to it
DOMAIN_BROKEN = "domain.broken"  # a record that a verified domain needs is missing, by the daily check
DOMAIN_MENDED = "domain.mended"
CERTIFICATE_ISSUED = "certificate.issued"  # also a renewed one; only for the server's first account
CERTIFICATE_FAILED = "certificate.failed"  # no certificate was issued; the old one stays in use
THREAD_ASSIGNED = "thread.assigned"
THREAD_NOTED = "thread.noted"
THREAD_SNOOZED = "thread.snoozed"
THREAD_WOKEN = "thread.woken"  # a snoozed or done thread is open again
THREAD_DONE = "thread.done"
THREAD_OVERDUE = "thread.overdue"  # the expected answer did not come in time
THREAD_ANSWERED = "thread.answered"  # it came
RULE_DISABLED = "rule.disabled"  # it failed or would have looped
CALENDAR_INVITED = "calendar.invited"  # an invitation came
CALENDAR_CREATED = "calendar.created"
CALENDAR_CHANGED = "calendar.changed"
CALENDAR_CANCELLED = "calendar.cancelled"
CALENDAR_ANSWERED = "calendar.answered"  # by an attendee, or by the inbox itself
CALENDAR_STARTING = "calendar.starting"  # an event begins soon; the calendar says how long before
CALENDAR_ENDED = "calendar.ended"
INBOX_SUSPENDED = "inbox.suspended"  # too much of its mail bounced or had complaints
INBOX_REACTIVATED = "inbox.reactivated"

KINDS = (
    MESSAGE_RECEIVED,
    MESSAGE_SENT,
    MESSAGE_FAILED,
    MESSAGE_BOUNCED,
    MESSAGE_COMPLAINED,
    MESSAGE_UNSUBSCRIBED,
    MESSAGE_BLOCKED,
    MESSAGE_JUNK,
    MESSAGE_HELD,
    MESSAGE_APPROVED,
    MESSAGE_REJECTED,
    MESSAGE_EXPIRED,
    MESSAGE_SCHEDULED,
    MESSAGE_CANCELLED,
    MESSAGE_RELEASED,
    MESSAGE_JUDGED,
    DOMAIN_BROKEN,
    DOMAIN_MENDED,
    CERTIFICATE_ISSUED,
    CERTIFICATE_FAILED,
    INBOX_SUSPENDED,
    INBOX_REACTIVATED,
    THREAD_ASSIGNED,
    THREAD_NOTED,
    THREAD_SNOOZED,
    THREAD_WOKEN,
    THREAD_DONE,
    THREAD_OVERDUE,
    THREAD_ANSWERED,
    RULE_DISABLED,
    CALENDAR_INVITED,
    CALENDAR_CREATED,
    CALENDAR_CHANGED,
    CALENDAR_CANCELLED,
    CALENDAR_ANSWERED,
    CALENDAR_STARTING,
    CALENDAR_ENDED,
)
INBOUND = frozenset({MESSAGE_RECEIVED, MESSAGE_BLOCKED, MESSAGE_JUNK, MESSAGE_JUDGED})


def require_known(asked: Iterable[str], field: str) -> None:
    """Refuses unknown kinds: waiting for one would never end."""
    for kind in asked:
        if kind not in KINDS:
            raise BadRequest(
                f"'{kind[:50]}' is not an event type. The types are {', '.join(KINDS)}.", field=field
            )
