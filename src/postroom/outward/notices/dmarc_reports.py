"""Reports to domains once a day what came in their name, and what was done with it (RFC 9990)."""

from postroom import ids, log
from postroom.accounts import accounts, domains
from postroom.accounts.dkim_keys import DkimKey
from postroom.clock import MINUTE
from postroom.inward.addressing import NOBODYS_NAME
from postroom.outward import reviewers
from postroom.outward.courier import DeliveryError, OutgoingMail, Receipt, attempt, domain_of
from postroom.outward.deliver_mail import Outbound
from postroom.outward.notices import system_emails
from postroom.outward.sign_mail import Unsigned
from postroom.processes import pools
from postroom.queue import dmarc_results, leader_leases, sent_reports
from postroom.queue.deliveries import Delivery
from postroom.queue.outcomes import TriedDelivery
from postroom.queue.sent_reports import SentReport
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom_mail.authentication.lookup import DnsTemporary
from postroom_mail.authentication.tags import readable_tags
from postroom_mail.reports import dmarc_report_writing
from postroom_mail.reports.dmarc_report_writing import needs_consent, read_mailboxes

PAUSE_SECONDS = 300.0
AT_ONCE = 200
LEASE = "DMARC reports"
LEASE_HELD = 10 * MINUTE
DAY_OF = 24 * 60 * MINUTE
CONSENT = b"v=DMARC1"


async def write_reports(resources: Resources) -> None:
    """Runs until cancelled, on one node at a time."""
    await leader_leases.lead(resources, LEASE, LEASE_HELD, write_due, PAUSE_SECONDS)


async def write_due(resources: Resources) -> None:
    """Write the reports of every past day and every domain that email came from."""
    today = resources.now() // DAY_OF
    for day, domain in await resources.db.read(dmarc_results.list_days, today, AT_ONCE):
        try:
            mailboxes = await find_mailboxes(resources, domain)
        except DnsTemporary:
            continue  # until its rows expire
        own_domain, now = resources.config.domain, resources.now()
        await resources.db.write(write_one, domain, day, mailboxes, own_domain, now)


async def find_mailboxes(resources: Resources, domain: str) -> list[str]:
    """Return who wants reports now. Another domain must have said that it takes them."""
    texts = await resources.resolver.txt(f"_dmarc.{domain}")
    records = [tags for tags in map(readable_tags, texts) if tags.get("v") == "DMARC1"]
    found = []
    for mailbox in read_mailboxes(records[0]) if len(records) == 1 else []:
        name = needs_consent(domain, mailbox)
        said = await resources.resolver.txt(name) if name else (CONSENT,)
        if any(text.startswith(CONSENT) for text in said):
            found.append(mailbox)
    return found


def write_one(tx: Tx, domain: str, day: int, mailboxes: list[str], own_domain: str, now: int) -> bool:
    """Removes the results and stores the report in one transaction, so that only one node reports them."""
    seen, first = dmarc_results.take(tx, domain, day), accounts.find_first(tx)
    if not seen or not mailboxes or first is None:
        return False
    report_id = ids.new(ids.DMARC_REPORT, now)
    content = dmarc_report_writing.write_report(own_domain, report_id, day, domain, seen)
    targets = [(each, domain_of(each)) for each in mailboxes]
    return sent_reports.add(
        tx, "dmarc_reports", SentReport(report_id, domain, day, content), first.id, targets, now
    )


# --- delivering


async def deliver_report(resources: Resources, outbound: Outbound, delivery: Delivery) -> None:
    report, keys = await resources.db.read(look_up, delivery.message_id, resources.config.domain)
    if report is None:
        await resources.db.write(system_emails.give_up, delivery, resources.now())
        return
    sending = send_mail(resources, outbound, report, keys, delivery.target)
    outcome = await attempt(resources, sending, "a DMARC report could not be sent", report=report.id)
    log.get().info("a DMARC report was tried", domain=report.domain, day=report.day, done=outcome.is_success)
    tried = TriedDelivery(delivery, outcome)
    await outbound.recorder.record(tried, lambda: reviewers.write_tried(resources, tried))


def look_up(tx: Tx, report_id: str, own_domain: str) -> tuple[SentReport | None, tuple[DkimKey, ...]]:
    return sent_reports.find(tx, "dmarc_reports", report_id), domains.signing_keys(tx, own_domain, own_domain)


async def send_mail(
    resources: Resources,
    outbound: Outbound,
    report: SentReport,
    keys: tuple[DkimKey, ...],
    recipient: str,
) -> Receipt:
    own_domain = resources.config.domain
    raw = await pools.READING.run(
        dmarc_report_writing.write_mail,
        own_domain,
        report.domain,
        f"{NOBODYS_NAME}@{own_domain}",
        recipient,
        report.id,
        report.day,
        report.content,
    )
    if not keys:
        raise DeliveryError("4.7.5 No key signs reports yet.", permanent=False, enhanced="4.7.5")
    unsigned = Unsigned(f"report {report.id} {recipient}", raw, own_domain, keys, resources.now())
    signed = await outbound.signers.sign(unsigned) + raw
    return await outbound.courier.deliver(OutgoingMail("", recipient, signed, domain_of(recipient)))
