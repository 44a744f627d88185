"""Waiting for mail: the server holds each request for up to two minutes, so a longer wait takes several."""

from postroom_client.calls import ANSWER_MARGIN_SECONDS
from postroom_client.exchange import Call, Steps, decoded, path, present
from postroom_client.results import Message

LONGEST_WAIT_SECONDS = 120.0


def wait(
    inbox_id: str,
    *,
    timeout: float = LONGEST_WAIT_SECONDS,
    after: str | None = None,
    from_addr: str | None = None,
    subject: str | None = None,
    thread_id: str | None = None,
) -> Steps[Message | None]:
    """The first matching message that arrives within `timeout` seconds, or None."""
    left = timeout
    while True:
        found: Message | None = yield wait_once(
            inbox_id,
            timeout=min(left, LONGEST_WAIT_SECONDS),
            after=after,
            from_addr=from_addr,
            subject=subject,
            thread_id=thread_id,
        )
        left -= LONGEST_WAIT_SECONDS
        if found is not None or left <= 0:
            return found


def wait_once(
    inbox_id: str,
    *,
    timeout: float = LONGEST_WAIT_SECONDS,
    after: str | None = None,
    from_addr: str | None = None,
    subject: str | None = None,
    thread_id: str | None = None,
) -> Call[Message | None]:
    """As `wait`, in one request."""
    filters = {"from": from_addr, "subject": subject, "thread_id": thread_id}
    return Call(
        "GET",
        path("v1", "inboxes", inbox_id, "wait"),
        lambda reply: decoded(Message)(reply) if reply.content else None,
        query=present(timeout=timeout, after=after, **filters),
        timeout_seconds=timeout + ANSWER_MARGIN_SECONDS,
    )
