"""Waiting for mail: the server holds each request for up to two minutes, so a longer wait takes several."""

from enum import Enum

from postroom_client.calls import ANSWER_MARGIN_SECONDS, list_messages
from postroom_client.exchange import NOT_FOUND, Call, Reply, Steps, decoded, path, present
from postroom_client.results import Message, Page

LONGEST_WAIT_SECONDS = 120.0


class Outcome(Enum):
    """What a wait can end with beside a message."""

    NOTHING = "nothing"
    UNKNOWN_START = "unknown start"


def wait(
    inbox_id: str,
    *,
    timeout: float = LONGEST_WAIT_SECONDS,
    after: str | None = None,
    from_addr: str | None = None,
    subject: str | None = None,
    thread_id: str | None = None,
) -> Steps[Message | None]:
    """The first matching message that arrives within `timeout` seconds, or None.

    With `after`, the id of a message or an event, also one that arrived since then. Without it the newest
    message is noted first, so that a repeated request or a long wait misses nothing in between.
    """
    start, is_noted = after, False
    if start is None:
        newest: Page[Message] = yield list_messages(inbox_id, direction="inbound", limit=1)
        start, is_noted = (newest.data[0].id if newest.data else None), bool(newest.data)
    filters = {"from": from_addr, "subject": subject, "thread_id": thread_id}
    left = timeout
    while True:
        seconds = min(left, LONGEST_WAIT_SECONDS)
        found: Message | Outcome = yield wait_once(inbox_id, seconds, start, filters, is_noted=is_noted)
        if isinstance(found, Message):
            return found
        if found is Outcome.UNKNOWN_START:  # its attachments are still being read: it counts as new
            start, is_noted = None, False
            continue
        left -= seconds
        if left <= 0:
            return None


def wait_once(
    inbox_id: str, timeout: float, after: str | None, filters: dict[str, str | None], *, is_noted: bool
) -> Call[Message | Outcome]:
    return Call(
        "GET",
        path("v1", "inboxes", inbox_id, "wait"),
        _read,
        query=present(timeout=timeout, after=after, **filters),
        timeout_seconds=timeout + ANSWER_MARGIN_SECONDS,
        accepts=frozenset({NOT_FOUND}) if is_noted else frozenset(),
    )


def _read(reply: Reply) -> Message | Outcome:
    if reply.status == NOT_FOUND:
        return Outcome.UNKNOWN_START
    return decoded(Message)(reply) if reply.content else Outcome.NOTHING
