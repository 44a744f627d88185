"""Check a new connection: it signs in, is live, receives an email and sends one."""

import secrets
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from postroom_client.cli.doctor_checks import Finding
from postroom_client.client import Client
from postroom_client.results import Connection

T = TypeVar("T")
LOOK_SECONDS = 1.0
LEFT = ("sent", "delivered", "captured")
STOPPED = ("failed", "bounced", "rejected", "held")
OUT, BACK = "an email out", "an email in"


def examine(
    client: Client, made: Connection, inbox_id: str | None, recipient: str | None, seconds: float
) -> Iterator[Finding]:
    """Yield each finding, until one fails. An email to the mailbox itself tests both directions."""
    if made.kind == "imap":
        for check in (check_sign_in, check_live):
            found = check(client, made, seconds)
            yield found
            if found.verdict == "fail":
                return
    recipient = recipient or (made.address if made.smtp is not None else None)
    if recipient and inbox_id:
        yield check_out(client, inbox_id, recipient, seconds)
    yield check_in(client, made, seconds)


def check_sign_in(client: Client, made: Connection, seconds: float) -> Finding:
    tried = client.test_connection(made.id)
    if tried.ok:
        return Finding("sign in", "pass", f"{made.username} at {made.host}, {tried.milliseconds} ms")
    return Finding(
        "sign in", "fail", tried.error or "", "Is it the right kind of password? See docs/real-mail.md"
    )


def check_live(client: Client, made: Connection, seconds: float) -> Finding:
    found = wait_for(lambda: client.get_connection(made.id), lambda each: each.state != "connecting", seconds)
    if found.state == "live":
        return Finding("mailbox", "pass", f"{found.folder} is watched.")
    return Finding("mailbox", "fail", found.last_error or found.state, f"postroom connections test {made.id}")


def check_out(client: Client, inbox_id: str, recipient: str, seconds: float) -> Finding:
    word = secrets.token_hex(4)
    sent = client.send(
        inbox_id,
        to=[recipient],
        subject=f"Postroom is connected ({word})",
        body="This email shows that sending works. You can delete it.",
    )
    message = wait_for(
        lambda: client.get_message(sent.id), lambda each: each.status in LEFT + STOPPED, seconds
    )
    if message.captured:
        return Finding(OUT, "warn", "Captured: this server sends no mail.", "Set POSTROOM_OUTBOUND.")
    if message.status in LEFT:
        return Finding(OUT, "pass", f"Sent to {recipient}.")
    step = f"See why: postroom messages get {sent.id}"
    return Finding(OUT, "fail", f"{message.status} after {seconds:g} s", step)


def check_in(client: Client, made: Connection, seconds: float) -> Finding:
    found = wait_for(
        lambda: client.get_connection(made.id), lambda each: each.last_mail_at is not None, seconds
    )
    if found.last_mail_at is not None:
        return Finding(BACK, "pass", "An email arrived.")
    detail = found.last_error or f"None came within {seconds:g} s."
    return Finding(BACK, "fail", detail, f"Send one, then: postroom connections get {made.id}")


def wait_for(look: Callable[[], T], is_done: Callable[[T], bool], seconds: float) -> T:
    """Look until it is done or the time is over. Return the last look either way."""
    ends_at = time.monotonic() + seconds
    while not is_done(found := look()) and time.monotonic() < ends_at:
        time.sleep(LOOK_SECONDS)
    return found
