"""What the standard library and Dovecot see of an email that came in, against what REST and IMAP show."""

import asyncio
import imaplib
from collections.abc import Iterable, Sequence
from email import message_from_bytes
from email.utils import getaddresses

from postroom_mail.authentication.canonical import split_mail
from tests.adversary import agreement, imap_reading
from tests.adversary.agreement import ApiView
from tests.adversary.hostile import Hostile
from tests.adversary.imap_reading import ClientView
from tests.adversary.second_reading import decoded
from tests.connections.dovecot import PASSWORD, running_dovecot

USER = "reader@elsewhere.example"
# Where no standard says what they are, readers differ, and the email's own signature covers all of them.
OPEN = (
    "nonsense",
    "text/",
    "no boundary",
    "part header with a line that is no field",
    "attached header with a line that is no field",
)
REPEATED = ("content-type", "content-transfer-encoding")


def is_clear(mail: Hostile) -> bool:
    """Whether every program reads the same header: fields only, and none from which they choose."""
    found = split_mail(mail.raw)
    return found.is_sound and all(len(found.named(name)) <= 1 for name in REPEATED)


def is_clear_inside(mail: Hostile) -> bool:
    return is_clear(mail) and not {*mail.tricks} & {*OPEN}


def compare_with_the_standard_library(mail: Hostile, api: ApiView, client: ClientView) -> Iterable[str]:
    """The header ends where it ends for IMAP, and REST shows the first field of each name."""
    if not is_clear(mail):
        return
    seen = message_from_bytes(api.raw)
    names = [name.lower() for name in seen]
    if names != [name.lower() for name in message_from_bytes(client.header)]:
        yield "the standard library sees other fields than IMAP gives"
    if one_line(decoded(seen["Subject"] or "")) != one_line(api.message["subject"]):
        yield f"the standard library sees the subject {decoded(seen['Subject'] or '')!r}"
    (_, sender), *_ = getaddresses([seen["From"]])
    if sender not in api.message["fromAddr"]:
        yield f"the standard library sees the sender {sender!r}"


def one_line(text: str) -> str:
    return " ".join(text.split())


async def read_by_dovecot(raws: Sequence[bytes]) -> dict[bytes, ClientView]:
    """What a mail client sees of these emails if they lie in a mailbox of Dovecot."""
    async with running_dovecot() as dovecot:
        await dovecot.put(USER, *raws)

        def read() -> list[ClientView]:
            client = imaplib.IMAP4("127.0.0.1", dovecot.port, timeout=120)
            try:
                client.login(USER, PASSWORD)
                return imap_reading.read_all(client, "INBOX")
            finally:
                client.logout()

        return {view.raw: view for view in await asyncio.to_thread(read)}


def compare_with_dovecot(mail: Hostile, api: ApiView, client: ClientView, other: ClientView) -> Iterable[str]:
    if is_clear(mail) and client.header != other.header:
        yield "Dovecot ends the header elsewhere"
    if is_clear_inside(mail):
        yield from (f"Dovecot: {fault}" for fault in agreement.compare(api, other))
