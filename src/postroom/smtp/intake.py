"""From a finished SMTP transaction to a stored mail."""

from collections.abc import Awaitable, Callable
from typing import cast

from postroom import log
from postroom.clock import to_mail_date
from postroom.errors import is_out_of_space
from postroom.inward.journal.mail_journal import LARGEST_BYTES, DepositFull, MailJournal
from postroom.inward.journal.turns import Backlogged
from postroom.inward.mails import Arrival, Destination, Origin, Unwanted
from postroom.inward.receive import Reader, TooManyHops, receive_mail, require_few_hops
from postroom.processes import pools
from postroom.resources import Resources
from postroom.smtp.backend import MailIntake, MailLoop, MailRefused, StorageFull
from postroom.smtp.dialogue import replies
from postroom.smtp.envelope import Envelope

READ_IN_LOOP_BYTES = 1024 * 1024  # larger content is on disk: a thread reads it


class DatabaseIntake:
    """Reads an email and stores it, in this process."""

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


class JournalIntake:
    """Appends an email to this process's journal; a large one is stored directly, after those before it."""

    def __init__(
        self, journal: MailJournal, large: MailIntake, hostname: str, now: Callable[[], int]
    ) -> None:
        self._journal = journal
        self._large = large
        self._hostname = hostname
        self._now = now

    async def accept(self, envelope: Envelope) -> None:
        if envelope.size_bytes > LARGEST_BYTES:
            if not await self._journal.wait_until_deposited():
                raise Backlogged("Smaller emails that came before wait to be stored.")
            await self._large.accept(envelope)
            return
        arrival = await to_arrival(envelope, self._hostname, self._now())
        try:
            require_few_hops(arrival.raw)
            await self._journal.append(arrival)
        except TooManyHops as error:
            raise MailLoop from error
        except (OSError, DepositFull) as error:
            if isinstance(error, DepositFull) or is_out_of_space(error):
                raise StorageFull from error
            raise
        log_received(envelope)


class RefusingIntake:
    """Finds out first whether an email is refused, if its recipients may do that.

    `find_refusal` never raises.
    """

    def __init__(
        self,
        intake: MailIntake,
        find_refusal: Callable[[Arrival], Awaitable[Unwanted | None]],
        hostname: str,
        now: Callable[[], int],
    ) -> None:
        self._intake = intake
        self._find_refusal = find_refusal
        self._hostname = hostname
        self._now = now

    async def accept(self, envelope: Envelope) -> None:
        if envelope.may_be_refused:
            unwanted = await self._find_refusal(await to_arrival(envelope, self._hostname, self._now()))
            if unwanted is not None:
                raise MailRefused(to_reply(unwanted))
        await self._intake.accept(envelope)


def to_reply(unwanted: Unwanted) -> bytes:
    if unwanted.reason == Unwanted.DMARC:
        return replies.refused_by_policy(unwanted.domain)
    return replies.COME_AGAIN if unwanted.reason == Unwanted.GREYLIST else replies.NOT_AS_JUNK


async def to_arrival(envelope: Envelope, hostname: str, now: int) -> Arrival:
    return Arrival(
        origin=Origin(
            destinations=tuple(cast(Destination, recipient.destination) for recipient in envelope.recipients),
            trace=envelope.received_header(hostname, to_mail_date(now)),
            peer_ip=envelope.peer,
            helo=envelope.helo,
            mail_from=envelope.mail_from,
        ),
        raw=await read_content(envelope),
    )


def log_received(envelope: Envelope) -> None:
    log.get().info(
        "mail received",
        id=envelope.id,
        peer=envelope.peer,
        size=envelope.size_bytes,
        inboxes=len(envelope.recipients),
    )


async def read_content(envelope: Envelope) -> bytes:
    is_small = envelope.size_bytes <= READ_IN_LOOP_BYTES
    return envelope.read() if is_small else await pools.FILES.run(envelope.read)
