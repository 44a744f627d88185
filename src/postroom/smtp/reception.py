"""Where SMTP meets the house: who can receive here, and the taking over of a mail for good."""

import asyncio
from email.utils import formatdate

from postroom import inboxes, log
from postroom.clock import SECOND
from postroom.mail.address import mailbox_of
from postroom.receive import Arrival, receive_mail
from postroom.resources import Resources
from postroom.smtp.envelope import Envelope
from postroom.smtp.policy import Accepted, RecipientVerdict, Refused, StorageFull

READ_IN_LOOP_BYTES = 1024 * 1024
OUT_OF_SPACE = ("disk is full", "no space left", "quota exceeded")


class Reception:
    """The directory and the mailroom of the SMTP server."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    async def check_recipient(self, address: str) -> RecipientVerdict:
        mailbox = mailbox_of(address if "@" in address else f"{address}@{self._resources.config.domain}")
        if mailbox.rpartition("@")[2] != self._resources.config.domain:
            return Refused.NOT_LOCAL
        inbox = await self._resources.db.read(inboxes.find_by_address, mailbox)
        return Refused.UNKNOWN if inbox is None else Accepted(inbox.id)

    async def accept(self, envelope: Envelope) -> None:
        date = formatdate(self._resources.now() / SECOND, usegmt=True).replace("GMT", "+0000")
        arrival = Arrival(
            inbox_ids=tuple(str(recipient.destination) for recipient in envelope.recipients),
            raw=await read_content(envelope),
            trace=envelope.received_header(self._resources.config.domain, date),
            peer_ip=envelope.peer,
            helo=envelope.helo,
            mail_from=envelope.mail_from,
        )
        try:
            await receive_mail(self._resources, arrival)
        except Exception as error:
            if any(words in str(error).lower() for words in OUT_OF_SPACE):
                raise StorageFull from error
            raise
        log.get().info(
            "mail received",
            id=envelope.id,
            peer=envelope.peer,
            size=envelope.size_bytes,
            inboxes=len(arrival.inbox_ids),
        )


async def read_content(envelope: Envelope) -> bytes:
    is_small = envelope.size_bytes <= READ_IN_LOOP_BYTES
    return envelope.read() if is_small else await asyncio.to_thread(envelope.read)
