"""postroom doctor --send-to: send a well-formed test email, and check its delivery."""

import time
from collections.abc import Iterator

from postroom_client.cli.doctor_checks import Finding, Verdict
from postroom_client.client import Client
from postroom_client.results import DomainHealth, Message

PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 0.5
SUBJECT = "Test email"
TEXT = (
    "If you can read this, email from this server arrives.\n\nIf it is in your spam folder, open the source"
    " of the message. Its header Authentication-Results shows the checks of your mail server.\n"
)
VERDICTS: dict[str, Verdict] = {"ok": "pass", "missing": "fail", "wrong": "fail", "unknown": "warn"}


def send_test_email(client: Client, inbox_id: str, address: str) -> Iterator[Finding]:
    sent = client.send(inbox_id, to=address, subject=SUBJECT, body=TEXT)
    yield to_finding(wait_until_settled(client, sent.id))
    domain = client.get_inbox(inbox_id).address.rpartition("@")[2]
    for each in client.iter_domains():
        if each.domain == domain:
            yield from show_checks(client.get_domain_health(each.id))


def wait_until_settled(client: Client, message_id: str) -> Message:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        message = client.get_message(message_id)
        if message.status != "pending" or message.hold is not None or time.monotonic() > deadline:
            return message
        time.sleep(LOOK_SECONDS)


def to_finding(message: Message) -> Finding:
    said = "; ".join(
        f"{each.state}, TLS {each.tls or 'none'}: {each.last_reply}" for each in message.recipients
    )
    if message.captured:
        return Finding("test email", "warn", "captured, not sent", "Set POSTROOM_OUTBOUND to send mail.")
    if message.status == "sent":
        return Finding(
            "test email", "pass", said, "Check whether it is in the inbox there or in the spam folder."
        )
    verdict: Verdict = "fail" if message.status == "failed" else "warn"
    return Finding("test email", verdict, said or message.status, f"postroom messages get {message.id}")


def show_checks(health: DomainHealth) -> Iterator[Finding]:
    for check in health.data:
        verdict = VERDICTS[check.state]
        yield Finding(f"letter: {check.name}", verdict, check.found, "" if verdict == "pass" else check.why)
