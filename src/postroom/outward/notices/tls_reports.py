"""Reports to domains once a day how TLS sessions with their servers began, by mail or HTTPS (RFC 8460)."""

from itertools import groupby

from postroom import ids, log
from postroom.accounts import accounts, domains
from postroom.accounts.dkim_keys import DkimKey
from postroom.clock import DAY, MINUTE
from postroom.inward.addressing import NOBODYS_NAME
from postroom.outward import reviewers
from postroom.outward.courier import (
    DeliveryError,
    OutgoingMail,
    Receipt,
    WebhookCourier,
    attempt,
    domain_of,
)
from postroom.outward.deliver_mail import Outbound
from postroom.outward.notices import notify_people, system_emails
from postroom.outward.sign_mail import Unsigned
from postroom.processes import pools
from postroom.queue import leader_leases, sent_reports, tls_sessions
from postroom.queue.deliveries import Delivery
from postroom.queue.outcomes import TriedDelivery
from postroom.queue.sent_reports import SentReport
from postroom.queue.tls_sessions import SUCCESS, CountedSession
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom_mail.authentication.lookup import DnsTemporary
from postroom_mail.reports import tls_report_writing
from postroom_mail.reports.tls_report_writing import FailureDetail, PolicyResult, ReportedPolicy, Summary

PAUSE_SECONDS = 300.0
AT_ONCE = 200
LEASE = "TLS reports"
LEASE_HELD = 10 * MINUTE


async def write_reports(resources: Resources) -> None:
    """Runs until cancelled, on one node at a time."""
    await leader_leases.lead(resources, LEASE, LEASE_HELD, write_due, PAUSE_SECONDS)


async def write_due(resources: Resources) -> None:
    """Write the reports of every past day and every domain that email went to."""
    today = resources.now() // DAY
    for day, domain in await resources.db.read(tls_sessions.list_days, today, AT_ONCE):
        try:
            texts = await resources.resolver.txt(f"_smtp._tls.{domain}")
        except DnsTemporary:
            continue  # until its rows expire
        addresses = tls_report_writing.read_addresses(texts)
        await resources.db.write(write_one, domain, day, addresses, resources.config.domain, resources.now())


def write_one(tx: Tx, domain: str, day: int, addresses: list[str], own_domain: str, now: int) -> bool:
    """Removes the counts and stores the report in one transaction, so that only one node reports them."""
    counted, first = tls_sessions.take(tx, domain, day), accounts.find_first(tx)
    if not counted or not addresses or first is None:
        return False
    report_id = ids.new(ids.TLS_REPORT, now)
    content = tls_report_writing.write_report(own_domain, report_id, day, to_results(counted))
    targets = [(each, tls_report_writing.lane_of(each)) for each in addresses]
    return sent_reports.add(
        tx, "tls_reports", SentReport(report_id, domain, day, content), first.id, targets, now
    )


def to_results(counted: list[CountedSession]) -> list[PolicyResult]:
    """Groups by policy; `counted` is in order."""
    ordered = sorted(counted, key=lambda each: str(each.session.policy))
    return [to_result(list(group)) for _, group in groupby(ordered, key=lambda each: each.session.policy)]


def to_result(counted: list[CountedSession]) -> PolicyResult:
    session = counted[0].session
    failures = [each for each in counted if each.session.result != SUCCESS]
    succeeded = sum(each.count for each in counted if each.session.result == SUCCESS)
    return PolicyResult(
        ReportedPolicy(session.policy.kind, session.domain, session.policy.lines, session.policy.hosts),
        Summary(succeeded, sum(each.count for each in failures)),
        tuple(to_failure(each) for each in failures),
    )


def to_failure(counted: CountedSession) -> FailureDetail:
    session = counted.session
    return FailureDetail(
        session.result, session.host, session.ip, counted.count, session.reason, session.own_ip
    )


# --- delivering


async def deliver_report(
    resources: Resources, outbound: Outbound, courier: WebhookCourier, delivery: Delivery
) -> None:
    report, keys = await resources.db.read(look_up, delivery.message_id, resources.config.domain)
    if report is None:
        await resources.db.write(system_emails.give_up, delivery, resources.now())
        return
    if tls_report_writing.mailbox_of(delivery.target):
        sending = send_mail(resources, outbound, report, keys, delivery.target)
        outcome = await attempt(resources, sending, "a TLS report could not be sent", report=report.id)
    else:
        headers = {"Content-Type": tls_report_writing.MEDIA_TYPE}
        outcome = await notify_people.post(resources, courier, delivery.target, report.content, headers)
    log.get().info("a TLS report was tried", domain=report.domain, day=report.day, done=outcome.is_success)
    tried = TriedDelivery(delivery, outcome)
    await outbound.recorder.record(tried, lambda: reviewers.write_tried(resources, tried))


def look_up(tx: Tx, report_id: str, own_domain: str) -> tuple[SentReport | None, tuple[DkimKey, ...]]:
    return sent_reports.find(tx, "tls_reports", report_id), domains.signing_keys(tx, own_domain, own_domain)


async def send_mail(
    resources: Resources, outbound: Outbound, report: SentReport, keys: tuple[DkimKey, ...], target: str
) -> Receipt:
    own_domain, recipient = resources.config.domain, tls_report_writing.mailbox_of(target)
    sender = f"{NOBODYS_NAME}@{own_domain}"
    raw = await pools.READING.run(
        tls_report_writing.write_mail,
        own_domain,
        report.domain,
        sender,
        recipient,
        report.id,
        report.day,
        report.content,
    )
    if not keys:
        raise DeliveryError("4.7.5 No key signs reports yet.", permanent=False, enhanced="4.7.5")
    unsigned = Unsigned(f"report {report.id} {recipient}", raw, own_domain, keys, resources.now())
    signed = await outbound.signers.sign(unsigned) + raw
    mail = OutgoingMail("", recipient, signed, domain_of(recipient), is_tls_report=True)
    return await outbound.courier.deliver(mail)
