"""Sources of old mail: files, or an external mailbox; in batches, never all in memory."""

from collections.abc import AsyncIterator, Callable, Sequence
from ipaddress import ip_address
from typing import Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from postroom import limits
from postroom.errors import BadRequest
from postroom.external_mailboxes.imap_client import (
    TLS_PORT,
    ImapClient,
    ListedMail,
    MailServerAddress,
    open_client,
)
from postroom.external_mailboxes.imap_wire import ImapError
from postroom.net import allowed_target
from postroom.processes import pools
from postroom.resources import Resources
from postroom.transfer import mbox
from postroom.transfer.mbox import FiledMail
from postroom_mail.authentication.lookup import DnsTemporary

BATCH_MAILS = 200
BATCH_BYTES = 16 * 1024 * 1024
ASKED_AT_ONCE = 2_000

OnProgress = Callable[[int], None]
Listed = TypeVar("Listed", FiledMail, ListedMail)


class OldMail(Struct, frozen=True):
    """An email as it was sent, when it came, and its envelope sender."""

    raw: bytes
    at: int
    mail_from: str
    labels: tuple[str, ...] = ()


class MailboxAt(Struct, frozen=True):
    """The parts of imap://user:password@host:port/folder."""

    host: str
    port: int
    username: str
    password: str
    folder: str


def in_batches(sizes: Sequence[int]) -> list[slice]:
    """Limits the number of emails and bytes of a batch."""
    found, start, total = [], 0, 0
    for number, size in enumerate(sizes):
        if number > start and (number - start >= BATCH_MAILS or total + size > BATCH_BYTES):
            found.append(slice(start, number))
            start, total = number, 0
        total += size
    return [*found, slice(start, len(sizes))] if sizes else []


class Known(Protocol):
    """Which of these Message-IDs the inbox has: those emails need not be read again."""

    async def __call__(self, message_ids: Sequence[str]) -> set[str]: ...


async def from_files(
    filed: Sequence[FiledMail], find_known: Known, skip: OnProgress
) -> AsyncIterator[list[OldMail]]:
    async for part in without_known(filed, find_known, skip):
        for batch in in_batches([mail.length for mail in part]):
            yield await pools.FILES.run(read_files, part[batch])


async def without_known(
    mails: Sequence[Listed], find_known: Known, skip: OnProgress
) -> AsyncIterator[list[Listed]]:
    """Yield in parts, so that what one part stores is known to the next one."""
    for start in range(0, len(mails), ASKED_AT_ONCE):
        part = mails[start : start + ASKED_AT_ONCE]
        known = await find_known([mail.message_id for mail in part])
        new = [mail for mail in part if mail.message_id not in known]
        skip(len(part) - len(new))
        if new:
            yield new


def read_files(filed: Sequence[FiledMail]) -> list[OldMail]:
    return [
        OldMail(mbox.read(mail), mail.at, mail.mail_from, mail.labels)
        for mail in filed
        if mail.length <= limits.EMAIL_BYTES
    ]


def parse_url(url: str) -> MailboxAt:
    form = "imap://user:password@host/FOLDER; port 993 is TLS, any other STARTTLS"
    try:
        parts = urlsplit(url)
        port = parts.port or TLS_PORT
    except ValueError:
        raise BadRequest(f"The mailbox must be like {form}.") from None
    if parts.scheme not in ("imap", "imaps") or not parts.hostname or not parts.username:
        raise BadRequest(f"The mailbox must be like {form}.")
    folder = unquote(parts.path.lstrip("/")) or "INBOX"
    return MailboxAt(parts.hostname, port, unquote(parts.username), unquote(parts.password or ""), folder)


async def open_mailbox(resources: Resources, wanted: MailboxAt) -> ImapClient:
    """Open a mailbox at any address: the operator chose it."""
    try:
        found = await allowed_target.resolve_target(resources.resolver, f"https://{wanted.host}/", True)
    except (allowed_target.ForbiddenTarget, DnsTemporary) as error:
        raise ImapError(f"{wanted.host} cannot be reached: {error}.") from None
    is_loopback = all(ip_address(ip).is_loopback for ip in found.ips)
    client = await open_client(MailServerAddress(found.host, found.ips, wanted.port, is_loopback))
    try:
        await client.log_in(wanted.username, wanted.password)
        await client.select(wanted.folder, is_changed=False)
    except BaseException:
        client.close()
        raise
    return client


async def list_mailbox(client: ImapClient) -> list[ListedMail]:
    """List the emails, oldest first, so that each comes before its answers."""
    found = [mail async for part in client.list_behind(0, with_ids=True) for mail in part]
    return sorted(found, key=lambda mail: (mail.arrived_at, mail.uid))


async def from_mailbox(
    client: ImapClient, listed: Sequence[ListedMail], find_known: Known, skip: OnProgress, now: int
) -> AsyncIterator[list[OldMail]]:
    """Yield the emails of one command per batch; those that are gone or too large are left out."""
    async for wanted in without_known(listed, find_known, skip):
        for part in in_batches([mail.size_bytes for mail in wanted]):
            yield await fetch_batch(client, wanted[part], now)


async def fetch_batch(client: ImapClient, wanted: Sequence[ListedMail], now: int) -> list[OldMail]:
    asked = [mail for mail in wanted if mail.size_bytes <= limits.EMAIL_BYTES]
    if not asked:
        return []
    raws = await client.fetch_all([mail.uid for mail in asked], 2 * BATCH_BYTES + limits.EMAIL_BYTES)
    return [
        OldMail(raws[mail.uid], min(mail.arrived_at or now, now), "") for mail in asked if mail.uid in raws
    ]
