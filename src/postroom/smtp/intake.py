"""Where SMTP meets the house: who can receive here, and the taking over of a mail for good."""

from collections.abc import Awaitable
from typing import cast

from postroom import log
from postroom.accounts import accounts, domains
from postroom.clock import DAY, to_mail_date
from postroom.errors import STORE_AWAY
from postroom.inward import review_answers
from postroom.inward.mails import Arrival, Destination
from postroom.inward.receive import Reader, TooManyHops, receive_mail
from postroom.mail.address import mailbox_of
from postroom.mail.writing import return_path, review_path
from postroom.mailbox import inboxes, messages
from postroom.processes import pools
from postroom.resources import Resources, Tx
from postroom.smtp.envelope import Envelope
from postroom.smtp.limits import Accepted, MailLoop, RecipientVerdict, Refused, StorageFull

READ_IN_LOOP_BYTES = 1024 * 1024
BOUNCE_MAX_AGE_DAYS = 10
OUT_OF_SPACE = ("disk is full", "no space left", "quota exceeded", "file too large", STORE_AWAY.lower())


class DatabaseDirectory:
    """The directory of the SMTP server: who can receive here."""

    def __init__(self, resources: Resources, return_path_secret: bytes) -> None:
        self._resources = resources
        self._return_path_secret = return_path_secret

    def check_recipient(self, address: str) -> RecipientVerdict | Awaitable[RecipientVerdict]:
        whole = address if "@" in address else f"{address}@{self._resources.config.domain}"
        return self._resources.db.look_up(self._find_destination, whole)

    def _find_destination(self, tx: Tx, address: str) -> RecipientVerdict:
        mailbox = mailbox_of(address)
        if not domains.is_served(tx, mailbox.rpartition("@")[2], self._resources.config.domain):
            return Refused.NOT_LOCAL
        local_part = address.rpartition("@")[0]
        if return_path.is_return_path(local_part):
            return self._find_return_path(tx, local_part)
        if review_path.is_review_path(local_part):
            reviewed = review_answers.find_reviewed(tx, local_part)
            if reviewed is None:
                return Refused.UNKNOWN
            return Accepted(Destination(reviewed.inbox_id, review=reviewed))
        inbox = inboxes.find_by_address(tx, mailbox)
        if inbox is None:
            return Refused.UNKNOWN
        return Refused.FULL if accounts.is_full(tx, inbox.account_id) else Accepted(Destination(inbox.id))

    def _find_return_path(self, tx: Tx, local_part: str) -> RecipientVerdict:
        """Never an inbox that happens to have the name before the plus: the report is not for its owner."""
        today = self._resources.now() // DAY
        path = return_path.decode(self._return_path_secret, local_part, today, BOUNCE_MAX_AGE_DAYS)
        message = None if path is None else messages.find(tx, path.message_id)
        if message is None or inboxes.find(tx, message.inbox_id) is None:
            return Refused.UNKNOWN
        return Accepted(Destination(message.inbox_id, path))


class DatabaseIntake:
    """The intake of the SMTP server: takes a mail over for good."""

    def __init__(self, resources: Resources, reader: Reader) -> None:
        self._resources = resources
        self._reader = reader

    async def accept(self, envelope: Envelope) -> None:
        arrival = await to_arrival(envelope, self._resources.config.domain, self._resources.now())
        try:
            await receive_mail(self._resources, self._reader, arrival)
        except TooManyHops as error:
            raise MailLoop from error
        except Exception as error:
            if is_out_of_space(error):
                raise StorageFull from error
            raise
        note(envelope)


async def to_arrival(envelope: Envelope, hostname: str, now: int) -> Arrival:
    return Arrival(
        destinations=tuple(cast(Destination, recipient.destination) for recipient in envelope.recipients),
        raw=await read_content(envelope),
        trace=envelope.received_header(hostname, to_mail_date(now)),
        peer_ip=envelope.peer,
        helo=envelope.helo,
        mail_from=envelope.mail_from,
    )


def note(envelope: Envelope) -> None:
    log.get().info(
        "mail received",
        id=envelope.id,
        peer=envelope.peer,
        size=envelope.size_bytes,
        inboxes=len(envelope.recipients),
    )


def is_out_of_space(error: BaseException) -> bool:
    """The storage says so itself, or the fault behind what it says."""
    reasons = f"{error} {error.__cause__}".lower()
    return any(words in reasons for words in OUT_OF_SPACE)


async def read_content(envelope: Envelope) -> bytes:
    is_small = envelope.size_bytes <= READ_IN_LOOP_BYTES
    return envelope.read() if is_small else await pools.FILES.run(envelope.read)
