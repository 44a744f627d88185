"""Applies a post of a mail service: an email into its inboxes, a bounce, a complaint, or a handshake."""

from collections.abc import Callable

from postroom import limits, log
from postroom.accounts import accounts, domains, secret_values
from postroom.errors import BadRequest, InvalidSignature, Unavailable, UnknownRecipient
from postroom.external_mailboxes import connections
from postroom.external_mailboxes.connections import Connection
from postroom.external_mailboxes.fetching import Fetcher, FetchError
from postroom.external_mailboxes.providers.mailgun import read_mailgun
from postroom.external_mailboxes.providers.plain import read_plain
from postroom.external_mailboxes.providers.post import BrokenPost, ForgedPost, Post, Posted, PostedMail
from postroom.external_mailboxes.providers.postmark import read_postmark
from postroom.external_mailboxes.providers.resend import download_url, read_resend
from postroom.external_mailboxes.providers.sendgrid import read_sendgrid
from postroom.external_mailboxes.providers.ses import certificate_url, read_ses
from postroom.inward import bounces, destinations
from postroom.inward.attribute import About
from postroom.inward.mails import Arrival, Destination, Origin, trace_inside
from postroom.inward.receive import Reader, TooManyHops, receive_mail
from postroom.mailbox import inboxes, messages
from postroom.processes import pools
from postroom.queue import suppressions
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom_mail.mime.address import mailbox_of, normalize
from postroom_mail.mime.parse import parse_mail
from postroom_mail.reports.reasons import Fault
from postroom_mail.reports.report import Report

MAX_RECIPIENTS = 100
CERTIFICATES = 16  # kept in memory
RESEND_URL = "https://api.resend.com"
PROVIDERS = ("raw", "mailgun", "sendgrid", "postmark", "ses", "cloudflare", "resend")

_READERS: dict[str, Callable[[Post, str], Posted]] = {
    "raw": read_plain,
    "cloudflare": read_plain,
    "mailgun": read_mailgun,
    "sendgrid": read_sendgrid,
    "postmark": read_postmark,
    "resend": read_resend,
}


class PostIntake:
    """Takes a post only once it is verified, and answers when its content is durable."""

    def __init__(self, resources: Resources, reader: Reader, fetcher: Fetcher) -> None:
        self._resources = resources
        self._reader = reader
        self.fetcher = fetcher  # for requests to external services
        self._certificates: dict[str, bytes] = {}

    async def take(self, connection: Connection, post: Post) -> None:
        try:
            posted = await self._read(connection, post)
        except ForgedPost as error:
            raise InvalidSignature(str(error)) from None
        except BrokenPost as error:
            await self._record_failure(connection, str(error))
            raise BadRequest(str(error)) from None
        content_hash = await pools.READING.run(post.content_hash)
        if await self._is_known(connection, posted, content_hash):
            return
        await self._follow(connection, posted)
        await self._resources.db.write(record_post, connection, posted.post_id, content_hash, post.now)

    async def _read(self, connection: Connection, post: Post) -> Posted:
        key = str(connection.hidden.get("signingKey", ""))
        if connection.provider != "ses":
            return await pools.READING.run(_READERS[connection.provider], post, key)
        certificate = key.encode() or await self._certificate(await pools.READING.run(certificate_url, post))
        posted = await pools.READING.run(read_ses, post, certificate)
        if connection.settings.get("topic", posted.topic) != posted.topic:
            raise ForgedPost("The post is from another topic than the confirmed one.")
        return posted

    async def _certificate(self, url: str) -> bytes:
        if url not in self._certificates:
            if len(self._certificates) >= CERTIFICATES:
                self._certificates.clear()
            self._certificates[url] = await self._fetch(url, {}, 64 * 1024)
        return self._certificates[url]

    async def _fetch(self, url: str, headers: dict[str, str], limit: int) -> bytes:
        try:
            answer = await self.fetcher.fetch("GET", url, headers, limit=limit)
        except FetchError as error:
            raise Unavailable(f"{error} It is tried again with the next post.", retry_after=60) from None
        if answer.status != 200:
            raise Unavailable(f"The service answered {answer.status} when it was asked.", retry_after=60)
        return answer.body

    async def _is_known(self, connection: Connection, posted: Posted, content_hash: str) -> bool:
        known = await self._resources.db.read(find_post, connection.id, posted.post_id)
        if known not in (None, content_hash):
            raise InvalidSignature("This post was already used with other content. Sign each post again.")
        return known is not None

    async def _follow(self, connection: Connection, posted: Posted) -> None:
        if posted.confirm:
            await self._fetch(posted.confirm, {}, 64 * 1024)
            await self._resources.db.write(connections.set_topic, connection.id, posted.topic)
        for report in posted.reports:
            await self._resources.db.write(
                apply_notice, connection, report, self._resources.config.base_url, self._resources.now()
            )
        if posted.fetch:
            await self._take_mail(connection, PostedMail(await self._fetch_mail(connection, posted.fetch)))
        elif posted.mail is not None:
            await self._take_mail(connection, posted.mail)

    async def _fetch_mail(self, connection: Connection, email_id: str) -> bytes:
        """Resend posts the id of an email: asks for its URL, and then for its bytes."""
        api_url = str(connection.settings.get("apiUrl") or RESEND_URL).rstrip("/")
        key = {"Authorization": f"Bearer {connection.hidden.get('apiKey', '')}"}
        answer = await self._fetch(f"{api_url}/emails/receiving/{email_id}", key, 8 * 1024 * 1024)
        try:
            url = await pools.READING.run(download_url, answer)
        except BrokenPost as error:
            raise Unavailable(str(error), retry_after=60) from None
        return await self._fetch(url, {}, limits.FOREIGN_EMAIL_BYTES)

    async def _take_mail(self, connection: Connection, mail: PostedMail) -> None:
        resources = self._resources
        named = mail.recipients or await pools.READING.run(header_recipients, mail.raw)
        found = await resources.db.read(
            find_destinations, connection, named, resources.config.domain, resources.now()
        )
        arrival = Arrival(
            origin=Origin(
                destinations=found,
                trace=trace_inside(resources.config.domain, "with HTTP", resources.now()),
                peer_ip=mail.peer_ip,
                helo="",
                mail_from=mail.mail_from,
            ),
            raw=mail.raw,
            counts_once=True,
        )
        try:
            await receive_mail(resources, self._reader, arrival)
        except TooManyHops:
            raise BadRequest("The email has passed too many servers: it loops.") from None
        log.get().info("mail received", connection=connection.id, size=len(mail.raw), inboxes=len(found))
        await resources.db.write(connections.record_mail, connection.id, resources.now())

    async def _record_failure(self, connection: Connection, reason: str) -> None:
        await self._resources.db.write(connections.record_state, connection, connections.FAILING, reason)


def header_recipients(raw: bytes) -> tuple[str, ...]:
    mail = parse_mail(raw)
    return tuple(each.address for each in (*mail.to, *mail.cc) if each.address)


def find_destinations(
    tx: Tx, connection: Connection, named: tuple[str, ...], service_domain: str, now: int
) -> tuple[Destination, ...]:
    """Return the mailbox's inbox, or those of the recipients in its scope; others are ignored.

    Raises UnknownRecipient if there is none.
    """
    if connection.inbox_id is not None:
        accounts.require_room(accounts.is_full(tx, connection.account_id))
        return (Destination(connection.inbox_id),)
    secret = secret_values.get(tx, secret_values.RETURN_PATH)
    found: dict[Destination, None] = {}
    for address in dict.fromkeys(named[:MAX_RECIPIENTS]):
        destination = _find(tx, connection, address, service_domain, secret, now)
        if destination is not None:
            found[destination] = None
    if not found:
        raise UnknownRecipient(
            "No inbox has one of these addresses. Create one, or give the connection an inboxId.",
            recipients=[address[: limits.ADDRESS_CHARACTERS] for address in named[:10]],
        )
    return tuple(found)


def _find(
    tx: Tx, connection: Connection, address: str, service_domain: str, secret: bytes, now: int
) -> Destination | None:
    if not domains.is_served(tx, mailbox_of(address).rpartition("@")[2], service_domain):
        return None
    found = destinations.find(tx, address, secret, service_domain, now)
    inbox = None if found is None else inboxes.find(tx, found.destination.inbox_id)
    if found is None or inbox is None or not inboxes.is_within(inbox, connection.scope):
        return None
    accounts.require_room(found.is_full)
    return found.destination


def find_post(tx: Tx, connection_id: str, post_id: str) -> str | None:
    """Return the hash of the content that came with this id."""
    row = post_id and tx.one(
        "select content_hash from posts where connection_id = :connection_id and post_id = :post_id",
        connection_id=connection_id,
        post_id=post_id[:255],
    )
    return str(row["content_hash"]) if row else None


def record_post(tx: Tx, connection: Connection, post_id: str, content_hash: str, now: int) -> None:
    if post_id:
        tx.run(
            "insert into posts (connection_id, post_id, content_hash, received_at)"
            " values (:connection_id, :post_id, :content_hash, :now) on conflict do nothing",
            connection_id=connection.id,
            post_id=post_id[:255],
            content_hash=content_hash,
            now=now,
        )


def apply_notice(tx: Tx, connection: Connection, report: Report, base_url: str, now: int) -> None:
    """Apply a notice like a report by email, but proven by the service.

    If the email is not found, a bounce or a complaint still suppresses the address.
    """
    sent = messages.find_sent_within(
        tx, connection.scope, report.original_message_id or "", now - bounces.MAX_AGE
    )
    inbox = None if sent is None else inboxes.find(tx, sent.inbox_id)
    if sent is not None and inbox is not None:
        tx.ring(*bounces.apply_report(tx, inbox, report, About(sent.id), base_url, now))
    elif report.kind in ("bounce", "complaint"):
        suppress_named(tx, connection.account_id, report, now)


def suppress_named(tx: Tx, account_id: str, report: Report, now: int) -> None:
    is_complaint = report.kind == "complaint"
    for each in report.recipients:
        if is_complaint or each.fault is Fault.RECIPIENT:
            kind = suppressions.COMPLAINT if is_complaint else suppressions.BOUNCE
            suppressions.add(tx, account_id, normalize(each.final_recipient), kind, now, None, each.last_word)
