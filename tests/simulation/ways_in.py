"""What APPEND, import, mailboxes elsewhere and submission call, for a server without sockets."""

import asyncio
from collections.abc import AsyncIterator
from email import message_from_bytes

import httpx2
import msgspec
from msgspec import Struct

from postroom.accounts.permissions import READING, WRITING
from postroom.errors import ApiError
from postroom.external_mailboxes import connections
from postroom.external_mailboxes.follow_mailbox import Follower, begin, take_mail
from postroom.external_mailboxes.mailbox_access import OAuthTokens
from postroom.imap import appending
from postroom.imap.dialogue.requests import AppendMail
from postroom.imap.state import ImapState
from postroom.inward.mails import Arrival, Destination, Origin
from postroom.inward.receive import AT_ONCE_BYTES, OwnReader, receive_mail
from postroom.mailbox import inboxes
from postroom.net.spool import InMemory
from postroom.operations.folders import names
from postroom.outward.raw_submission.submitted_mail import FinishedMail, send_finished
from postroom.processes import pools
from postroom.transfer.import_mail import import_all
from postroom.transfer.sources import OldMail
from postroom_mail.authentication import dkim
from postroom_mail.writing.content_hash import Content, read_content
from tests.doubles import RefusingFetcher
from tests.mail.keys import private_key, signing_key
from tests.stepped import House, UnreadFiles

LINK_URL = "https://hidden.example/take"
SELECTOR = "s1"
FOREIGN_FIELDS = (
    "Subject: HIDDEN",
    "Sender: HIDDEN@bank.example",
    "Resent-To: HIDDEN@bank.example",
    "Bcc: HIDDEN@bank.example",
    "Disposition-Notification-To: HIDDEN@bank.example",
    "List-Unsubscribe: <https://HIDDEN.example/out>",
    "Authentication-Results: HIDDEN.example; dkim=pass",
    "Received: from HIDDEN.example by there.example",
    "Content-Description: HIDDEN",
    "Comments: HIDDEN",
    "X-Mailer: HIDDEN",
    "In-Reply-To: <HIDDEN@earlier.example>",
)
# The fields of an email that is composed here, beside X- fields, which are hashed with their names.
COMPOSED_FIELDS = frozenset(
    "from to cc subject date message-id mime-version content-type content-transfer-encoding"
    " in-reply-to references auto-submitted reply-to".split()
)


class Shape(Struct, frozen=True):
    """How a mail client writes an email, and what a rule finds in it. TEXT stands for its words."""

    body: str
    has_link: bool = False
    has_file: bool = False
    is_signed: bool = False


def _part(kind: str, body: str, *fields: str) -> str:
    return "\r\n".join((f"Content-Type: {kind}", *fields, "", body))


def _parts(kind: str, *children: str, before: str = "", after: str = "") -> str:
    inside = "".join(f"--b\r\n{child}\r\n" for child in children)
    return f"Content-Type: multipart/{kind}; boundary=b\r\n\r\n{before}{inside}--b--\r\n{after}"


_PLAIN, _HTML = _part("text/plain", "TEXT"), _part("text/html", "<p>TEXT</p>")
_ANCHOR = f"<p>TEXT <a href='{LINK_URL}'>HIDDEN</a></p>"
_FILE = _part("text/csv", "1,2", 'Content-Disposition: attachment; filename="HIDDEN.csv"')
_PROTOCOL = 'protocol="application/pgp-signature"'
_SIGNED = _parts(f"signed; {_PROTOCOL}", _PLAIN, _part("application/pgp-signature", "abc"))
SHAPES = (
    Shape(_part("text/plain", "TEXT")),
    Shape(_parts("alternative", _PLAIN, _HTML)),
    Shape(_parts("mixed", _PLAIN, before="HIDDEN\r\n", after="HIDDEN\r\n")),
    Shape(_parts("alternative", _PLAIN, _HTML, _part("text/html", _ANCHOR)), has_link=True),
    Shape(_part("text/html", _ANCHOR), has_link=True),
    Shape(_parts("mixed", _PLAIN, _FILE), has_file=True),
    Shape(_part("text/plain", "TEXT\r\n\r\nbegin 644 a.exe\r\n#0V%T\r\n`\r\nend"), has_file=True),
    Shape(_SIGNED, has_link=True, has_file=True, is_signed=True),
)


class Silent:
    """Nobody reads what the IMAP server writes."""

    def write(self, data: bytes) -> None:
        return None

    async def drain(self) -> None:
        return None


async def receive(house: House, inbox_id: str, sender: str, raw: bytes) -> None:
    """From a peer that is believed, and judged at once."""
    origin = Origin((Destination(inbox_id),), trace=b"", peer_ip="", helo="", mail_from=sender)
    await receive_mail(house.resources, OwnReader(AT_ONCE_BYTES), Arrival(origin, raw))
    await house.examine()


async def append(house: House, token: str, address: str, folder: str, raw: bytes) -> None:
    db, now = house.resources.db, house.clock.now()
    caller, inbox = await db.read(names.log_in, address, token, READING, now)
    await db.write(names.open_folders, caller, inbox.id, now)
    client = ImapState(house.resources, UnreadFiles(), Silent(), caller, inbox, mail=InMemory(raw))
    await appending.append(client, AppendMail(folder, frozenset(), None))


async def import_old(house: House, inbox_id: str, raw: bytes) -> int:
    """Returns how many were new."""
    inbox = await house.resources.db.read(inboxes.find, inbox_id)
    assert inbox is not None

    async def batches() -> AsyncIterator[list[OldMail]]:
        yield [OldMail(raw, house.clock.now(), "")]

    return await import_all(
        house.resources, pools.READING, UnreadFiles(), inbox, batches(), lambda done: None
    )


async def pull(house: House, connection_id: str, uid: int, raw: bytes) -> bool:
    """After a login that worked. Whether the email was taken."""
    resources = house.resources
    connection = await resources.db.read(connections.find, connection_id)
    assert connection is not None
    if not connection.is_proven:
        connection = await resources.db.write(begin, connection, 1, 0, resources.config.domain)
    tokens = OAuthTokens(resources, RefusingFetcher())
    follower = Follower(resources, OwnReader(AT_ONCE_BYTES), tokens, asyncio.Semaphore(1))
    is_taken = await take_mail(follower, connection, uid, raw)
    await house.examine()
    return is_taken


async def submit(house: House, token: str, address: str, mail: FinishedMail) -> httpx2.Response:
    """The answer, as the HTTP interface would give it."""
    resources, now = house.resources, house.clock.now()
    try:
        caller, inbox = await resources.db.read(names.log_in, address, token, WRITING, now)
        receipt = await send_finished(resources, caller, inbox, mail)
    except ApiError as error:
        return httpx2.Response(error.status, json={"error": error.code, "message": error.message})
    return httpx2.Response(200, content=msgspec.json.encode(receipt))


def with_signature(raw: bytes, domain: str, now: int) -> bytes:
    return dkim.sign(raw, domain=domain, keys=[(SELECTOR, private_key())], signed_at=now) + raw


def records(domain: str) -> dict[tuple[str, str], list[str]]:
    """Of a domain with a DMARC policy that signs its email."""
    return {
        (f"_dmarc.{domain}", "TXT"): ["v=DMARC1; p=none"],
        (f"{SELECTOR}._domainkey.{domain}", "TXT"): [dkim.public_record(signing_key())],
    }


def find_uncovered(raw: bytes, bcc: list[str], hidden: str) -> list[str]:
    """What would leave with an email and is not part of its content hash."""
    content = read_content(raw, bcc)
    mail = message_from_bytes(raw)
    names_written = [name.lower() for name in mail]
    found = [name for name in names_written if not name.startswith("x-") and name not in COMPOSED_FIELDS]
    found += [name for name in set(names_written) if names_written.count(name) > 1]
    leaves = [part for part in mail.walk() if not part.is_multipart()]
    texts = [text for text in (content.body_text, content.body_html) if text]
    if len(leaves) > len(texts) + len(content.attachments):
        found.append(f"{len(leaves)} parts")
    decoded = [part.get_payload(decode=True) for part in leaves if part.get_filename() is None]
    written = [raw, *(each for each in decoded if isinstance(each, bytes))]
    if any(hidden.encode() in each for each in written) and hidden not in _words(content):
        found.append(hidden)
    return found


def _words(content: Content) -> str:
    return msgspec.json.encode(content).decode()
