"""From a finished SMTP transaction to a stored mail."""

from typing import cast

from postroom import log
from postroom.clock import to_mail_date
from postroom.errors import STORE_AWAY
from postroom.inward.mails import Arrival, Destination
from postroom.inward.receive import Reader, TooManyHops, receive_mail
from postroom.processes import pools
from postroom.resources import Resources
from postroom.smtp.backend import MailLoop, StorageFull
from postroom.smtp.envelope import Envelope

READ_IN_LOOP_BYTES = 1024 * 1024
OUT_OF_SPACE = ("disk is full", "no space left", "quota exceeded", "file too large", STORE_AWAY.lower())


class DatabaseIntake:
    """Reads a mail and stores it, in this process."""

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
        log_received(envelope)


async def to_arrival(envelope: Envelope, hostname: str, now: int) -> Arrival:
    return Arrival(
        destinations=tuple(cast(Destination, recipient.destination) for recipient in envelope.recipients),
        raw=await read_content(envelope),
        trace=envelope.received_header(hostname, to_mail_date(now)),
        peer_ip=envelope.peer,
        helo=envelope.helo,
        mail_from=envelope.mail_from,
    )


def log_received(envelope: Envelope) -> None:
    log.get().info(
        "mail received",
        id=envelope.id,
        peer=envelope.peer,
        size=envelope.size_bytes,
        inboxes=len(envelope.recipients),
    )


def is_out_of_space(error: BaseException) -> bool:
    """Judged by the words of the error and of its cause: each storage has its own type."""
    reasons = f"{error} {error.__cause__}".lower()
    return any(words in reasons for words in OUT_OF_SPACE)


async def read_content(envelope: Envelope) -> bytes:
    is_small = envelope.size_bytes <= READ_IN_LOOP_BYTES
    return envelope.read() if is_small else await pools.FILES.run(envelope.read)
