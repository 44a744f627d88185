"""A claimed delivery and all that the database knows about it, read in one look-up."""

from msgspec import Struct

from postroom.accounts import domains
from postroom.accounts.audit_erasure import hashed
from postroom.accounts.dkim_keys import DkimKey
from postroom.external_mailboxes import connections
from postroom.external_mailboxes.connections import WayOut
from postroom.inward.mails import AcceptedMail
from postroom.mailbox import documents, holds, messages, raw_mails
from postroom.mailbox.holds import Hold
from postroom.mailbox.messages import Message
from postroom.outward import simulator
from postroom.outward.courier import domain_of
from postroom.outward.holding import checks
from postroom.outward.holding.checks import INPUT_COLUMNS, SUPPRESSED_AS, SendCheck
from postroom.queue.deliveries import Delivery
from postroom.queue.outcomes import Outcome, TriedDelivery
from postroom.queue.providers.paces import PaceRules
from postroom.storage.database import Row, Tx
from postroom_mail.authentication.arc_seal import SeenResults


class Outgoing(Struct, frozen=True):
    """A message to deliver: its sender, its number of recipients, and its bytes or their blob."""

    message: Message
    sender: str
    own_addresses: tuple[str, ...]  # of its inbox here, whatever it sends as
    pod_id: str
    send_check: SendCheck
    is_claimed: bool  # the claim is still ours: not cancelled, held or claimed again
    hold: Hold | None
    recipients: int
    content: bytes | None
    blob: str | None
    way: WayOut
    written_as: str = ""  # its author


class MailJob(Struct, frozen=True):
    """A claimed delivery and all that the database knows about it."""

    delivery: Delivery
    outgoing: Outgoing
    is_local: bool
    is_simulated: bool
    keys: tuple[DkimKey, ...]
    seen: SeenResults | None = None  # for a redirected mail: how it was authenticated on arrival
    zone: str = ""  # the domain served here in whose name it is signed
    is_alias_gone: bool = False  # it was written in the name of an alias that was deleted

    @property
    def message(self) -> Message:
        return self.outgoing.message

    @property
    def domain(self) -> str:
        return domain_of(self.delivery.target)

    @property
    def sender_domain(self) -> str:
        return self.zone or domain_of(self.outgoing.sender)


class Receiver(Struct, frozen=True):
    """The provider that gets an email. A relay is never slowed: it has its own queue."""

    provider: str = ""  # "": it stays here
    is_relay: bool = False


class Admission(Struct, frozen=True):
    """Whether the provider is slowed, and whether the mail counts in the warm-up of its sender's domain."""

    receiver: Receiver = Receiver()
    is_slowed: bool = False
    is_counted: bool = False


class TriedMail(Struct, frozen=True):
    """An email that was tried. `answers` of the simulator are stored with the outcome or not at all."""

    job: MailJob
    outcome: Outcome
    base_url: str
    answers: tuple[AcceptedMail, ...] = ()
    admission: Admission = Admission()
    pacing: PaceRules = PaceRules()

    @property
    def delivery(self) -> TriedDelivery:
        return TriedDelivery(self.job.delivery, self.outcome)


def look_up(tx: Tx, delivery: Delivery, service_domain: str) -> MailJob | None:
    """Return None if the mail may no longer leave."""
    outgoing = find_outgoing(tx, delivery)
    if outgoing is None:
        return None
    target = domain_of(delivery.target)
    is_simulated = target == simulator.domain_of(service_domain)
    is_local = not is_simulated and domains.is_served(tx, target, service_domain)
    if is_local or is_simulated:
        return MailJob(delivery, outgoing, is_local, is_simulated, ())
    zone = domains.find_zone(tx, domain_of(outgoing.sender), service_domain)
    keys = () if zone is None else domains.signing_keys(tx, zone.name, service_domain)
    seen = find_seen(tx, outgoing.message) if keys else None
    is_gone = is_alias_gone(tx, outgoing, service_domain)
    return MailJob(delivery, outgoing, is_local, is_simulated, keys, seen, zone.name if zone else "", is_gone)


def is_alias_gone(tx: Tx, outgoing: Outgoing, service_domain: str) -> bool:
    """Return whether its author is an address of this server that is no longer one of the inbox."""
    written_as = outgoing.written_as
    if written_as in (*outgoing.own_addresses, outgoing.sender):
        return False
    return domains.is_served(tx, domain_of(written_as), service_domain)


def is_redirected(message: Message) -> bool:
    return b'"redirectOf":"' in message.document


def find_seen(tx: Tx, message: Message) -> SeenResults | None:
    """Return how a redirected mail was authenticated on arrival.

    None for other mail, or if not known any more.
    """
    if not is_redirected(message):
        return None
    redirect_of = documents.decode(message.document).redirect_of
    row = tx.one(f"select {documents.COLUMNS} from messages where id = :id", id=redirect_of or "")
    auth = None if row is None else documents.decode(documents.from_row(row)).auth
    if auth is None:
        return None
    return SeenResults(auth.spf, auth.dkim, auth.dmarc, auth.arc or "none", auth.domain)


def find_outgoing(tx: Tx, delivery: Delivery) -> Outgoing | None:
    """Return None if the sending inbox was deleted: nothing more leaves for it."""
    row = tx.one(
        f"select {messages.COLUMNS}, messages.from_address, inboxes.address as sender,"
        f" inboxes.aliases, {connections.OF_SENDER}, {INPUT_COLUMNS},"
        f" {SUPPRESSED_AS},"
        " (select 1 from deliveries where id = :delivery_id and state = 'pending' and attempts = :number)"
        " as is_claimed,"
        " raw_mails.content, raw_mails.content_bytes, raw_mails.blob,"
        " (select count(*) from deliveries where message_id = :id and kind = 'mail') as recipients"
        " from messages join inboxes on inboxes.id = messages.inbox_id"
        " left join raw_mails on raw_mails.message_id = messages.id where messages.id = :id",
        id=delivery.message_id,
        target=delivery.target,
        hashed_target=hashed(delivery.target),
        delivery_id=delivery.id,
        number=delivery.attempts,
    )
    if row is None:
        return None
    content = None if row["content"] is None else raw_mails.plain(row["content"], row["content_bytes"])
    message = Message.from_row(row)
    hold = holds.find(tx, message.id) if message.has_hold else None
    written_as, own = row["from_address"], (row["sender"], *(row["aliases"] or "").split())
    is_from_here = written_as in own
    way = connections.find_way_out(tx, row, is_from_here)
    sender = row["external_address"] if way.connection_id else row["sender"]
    return Outgoing(
        message=message,
        sender=written_as if is_from_here else sender,
        own_addresses=own,
        written_as=written_as,
        pod_id=row["pod_id"],
        send_check=judge(tx, row, delivery.target, hold),
        is_claimed=row["is_claimed"] is not None,
        hold=hold,
        recipients=row["recipients"],
        content=content,
        blob=row["blob"],
        way=way,
    )


def judge(tx: Tx, row: Row, target: str, hold: Hold | None) -> SendCheck:
    """Judges this attempt by what the look-up found."""
    suppressed = {} if row["suppressed_as"] is None else {target: row["suppressed_as"]}
    excused = "" if hold is None else hold.excused
    return checks.judge_all(tx, [checks.to_check_input(row, [target], suppressed, excused)])[0]
