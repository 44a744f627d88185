"""Waiting for mail: the server holds each request for up to two minutes, so a longer wait takes several."""

import time
from dataclasses import dataclass
from enum import Enum

from postroom_client.calls import calls
from postroom_client.calls.arguments import ANSWER_MARGIN_SECONDS
from postroom_client.limits import DECISION_WAIT_SECONDS, LONGEST_PAGE, MESSAGE_WAIT_SECONDS
from postroom_client.results import EventPage, Message, Page, Thread, ThreadMessages
from postroom_client.transport.exchange import NOT_FOUND, Call, Reply, Steps, decoded, path, present

LONGEST_WAIT_SECONDS = float(MESSAGE_WAIT_SECONDS)
WHOLE_LOG = "0"  # where the log was empty before, all that is in it is new


class Outcome(Enum):
    """What a request can end with next to a message."""

    NOTHING = "nothing"
    UNKNOWN_START = "unknown start"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Parts of sender and subject, whatever their case, and the thread."""

    from_addr: str | None
    subject: str | None
    thread_id: str | None
    q: str | None = None

    def query(self) -> dict[str, str]:
        asked = {"from": self.from_addr, "subject": self.subject, "thread_id": self.thread_id, "q": self.q}
        return present(asked)

    def matches(self, message: Message) -> bool:
        return (
            (self.from_addr or "").lower() in message.from_addr.lower()
            and (self.subject or "").lower() in message.subject.lower()
            and self.thread_id in (None, message.thread_id)
        )


def wait(
    inbox_id: str,
    *,
    timeout: float = 120.0,
    after: str | None = None,
    from_addr: str | None = None,
    subject: str | None = None,
    thread_id: str | None = None,
    unread: bool = False,
    q: str | None = None,
) -> Steps[Message | None]:
    """Return the first matching message that arrives within `timeout` seconds, or None.

    With `after`, the id of a message or an event, also one that arrived since then; with
    `unread`, also the last of a thread that is not read yet; with `q`, only what answers this
    search, and no look at what is unread. Without `after` the newest event is noted first, so
    that nothing is missed between two requests, nor an email whose files are just being read.
    """
    wanted = Wanted(from_addr, subject, thread_id, q)
    is_noted = after is None
    start = (yield from _find_newest_event()) if after is None else after
    left = timeout
    while True:
        waiting = (yield from _find_unread(inbox_id, wanted)) if unread and q is None else None
        if waiting is not None:
            return waiting
        seconds = min(left, LONGEST_WAIT_SECONDS)
        found: Message | Outcome = yield _wait_once(inbox_id, seconds, start, wanted, is_noted=is_noted)
        if isinstance(found, Message):
            return found
        if found is Outcome.UNKNOWN_START:  # it is 30 days old by now, and gone
            start, is_noted = WHOLE_LOG, False
            continue
        left -= seconds
        if left <= 0:
            return None


def wait_for_decision(message_id: str, timeout: float = 3600.0) -> Steps[Message]:
    """Return the message as soon as it is decided: approved, rejected, cancelled, expired or sent.

    If nobody decides within `timeout` seconds, it is returned as it is then, with `hold.state` "held".
    """
    ends = time.monotonic() + timeout
    message: Message = yield calls.get_message(message_id)
    while (left := ends - time.monotonic()) > 0 and _awaits_decision(message):
        message = yield calls.get_message(message_id, wait=min(left, float(DECISION_WAIT_SECONDS)))
    return message


def _awaits_decision(message: Message) -> bool:
    is_open = message.hold is None or message.hold.state in ("held", "scheduled")
    return message.status == "pending" and is_open


def _find_newest_event() -> Steps[str]:
    """Return the id of the newest event: that of a message may come later, and would then be missed."""
    newest: EventPage = yield calls.list_events(order="desc", limit=1)
    return newest.data[0].event_id if newest.data else WHOLE_LOG


def _find_unread(inbox_id: str, wanted: Wanted) -> Steps[Message | None]:
    """Find the last message of unread threads, beginning with the one that waits longest.

    One that is still examined is not handed over: its files may have no text yet, and it no verdict.
    """
    threads: Page[Thread] = yield calls.list_threads(inbox_id, is_read=False, limit=LONGEST_PAGE)
    for thread in reversed(threads.data):
        behind = max(thread.message_count - LONGEST_PAGE, 0)
        page: ThreadMessages = yield calls.list_thread_messages(thread.id, limit=LONGEST_PAGE, offset=behind)
        inbound = [message for message in page.data if message.direction == "inbound"]
        if inbound and inbound[-1].is_examined and wanted.matches(inbound[-1]):
            found: Message = yield calls.get_message(inbound[-1].id)
            return found
    return None


def _wait_once(
    inbox_id: str, timeout: float, after: str, wanted: Wanted, *, is_noted: bool
) -> Call[Message | Outcome]:
    return Call(
        "GET",
        path("v1", "inboxes", inbox_id, "wait"),
        _read,
        query=present({"timeout": timeout, "after": after}) | wanted.query(),
        timeout_seconds=timeout + ANSWER_MARGIN_SECONDS,
        accepts=frozenset({NOT_FOUND}) if is_noted else frozenset(),
    )


def _read(reply: Reply) -> Message | Outcome:
    if reply.status == NOT_FOUND:
        return Outcome.UNKNOWN_START
    return decoded(Message)(reply) if reply.content else Outcome.NOTHING
