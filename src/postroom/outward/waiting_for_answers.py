"""What a send prepares for the case that nobody answers: until when an answer is expected, and its nudges."""

from postroom.clock import DAY
from postroom.errors import BadRequest
from postroom.limits import EXPECT_DAYS
from postroom.mailbox import follow_ups, templates, working_time
from postroom.mailbox.follow_ups import Expected, FollowUp
from postroom.mailbox.threads import Thread
from postroom.outward.send_stages import Expectation, Ready
from postroom.storage.database import Tx


def take(tx: Tx, ready: Ready) -> None:
    """Raises FollowUpEnded if this is a nudge that must not be sent any more. The inbox is locked."""
    follow_up = ready.submission.order.follow_up
    if follow_up is not None:
        follow_ups.take(tx, follow_up, ready.document.id, ready.submission.now)


def leave_to_the_sender(tx: Tx, thread: Thread, ready: Ready) -> None:
    """Cancel prepared nudges: a person who writes in a thread has taken it in hand."""
    order = ready.submission.order
    if thread.awaiting_until is not None and order.follow_up is None and not order.keeps_unread:
        follow_ups.cancel_all(tx, thread.id, follow_ups.BY_HAND)


def begin(tx: Tx, ready: Ready) -> None:
    """Expects an answer. Nudges without a time for it expect it until the first of them."""
    order = ready.submission.order
    if order.expects is None and not order.nudges:
        return
    since = order.send_at or ready.submission.now
    nudges = to_follow_ups(ready, since)
    require_templates(tx, ready)
    expects = order.expects or Expectation(until=nudges[0].due_at)
    until = to_moment(tx, expects, ready.inbox_id, since)
    sender = ", ".join(ready.addresses)
    follow_ups.expect(tx, ready.thread, Expected(until, since, sender, ready.document.id))
    follow_ups.add_all(tx, nudges)


def require_templates(tx: Tx, ready: Ready) -> None:
    """Raise unless the inbox has the template of each follow-up: when it is due, nobody reads an error."""
    for number, nudge in enumerate(ready.submission.order.nudges):
        if (
            nudge.template_id is not None
            and templates.find_of_inbox(tx, ready.inbox_id, nudge.template_id) is None
        ):
            raise BadRequest(
                f"The inbox has no template {nudge.template_id[:100]!r}. GET /v1/templates lists them.",
                field=f"followUps[{number}].templateId",
            )


def to_moment(tx: Tx, expects: Expectation, inbox_id: str, since: int) -> int:
    if expects.working_days is not None:
        hours = working_time.of_inbox(tx, inbox_id)
        return working_time.after_working_days(since, expects.working_days, hours)
    until = expects.until if expects.until is not None else since + (expects.days or 1) * DAY
    if not since < until <= since + EXPECT_DAYS * DAY:
        raise BadRequest(
            "expectReplyBy must be after the email leaves, and within a year.", field="expectReplyBy"
        )
    return until


def to_follow_ups(ready: Ready, since: int) -> list[FollowUp]:
    now = ready.submission.now
    return [
        FollowUp(
            id=follow_ups.new_id(now),
            account_id=ready.account_id,
            inbox_id=ready.inbox_id,
            thread_id=ready.thread.id,
            message_id=ready.document.id,
            key_id=ready.submission.caller.key_id,
            body=nudge.body,
            template_id=nudge.template_id,
            due_at=since + nudge.after_days * DAY,
            state=follow_ups.SCHEDULED,
            reason=None,
            sent_id=None,
            sent_at=None,
            created_at=now,
        )
        for nudge in ready.submission.order.nudges
    ]
