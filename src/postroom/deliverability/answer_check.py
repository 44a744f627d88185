"""Answers an email to check@ with what was seen of it: only to authenticated senders, and rarely."""

from ipaddress import ip_address

from postroom.accounts import accounts, domains
from postroom.clock import MINUTE
from postroom.deliverability.server_checks import leads_back
from postroom.inward import received_reports
from postroom.inward.received_reports import ReceivedReport
from postroom.inward.sender_checks import check_sender
from postroom.mailbox.documents import Verdicts
from postroom.net.dns import Resolver
from postroom.outward.notices import system_emails
from postroom.processes import pools
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom_mail.authentication.lookup import DnsTemporary, Lookup
from postroom_mail.mime.address import normalize
from postroom_mail.mime.parse import ParsedMail, parse_mail

PAUSE = 10 * MINUTE  # between two answers to one address
SUBJECT = "Result of your test email"


async def answer_check(resources: Resources, lookup: Lookup, received: ReceivedReport) -> None:
    mail = await pools.READING.run(parse_mail, received.content)
    verdicts = await check_sender(received.content, mail, received, lookup)
    answer = ""
    if may_be_answered(mail, received, verdicts):
        reverse = await describe_peer(resources.resolver, received.peer_ip)
        answer = write_answer(received, verdicts, reverse)
    sender = normalize(mail.from_address)
    await resources.db.write(finish, received, sender, answer, resources.config.domain, resources.now())


def may_be_answered(mail: ParsedMail, received: ReceivedReport, verdicts: Verdicts) -> bool:
    """Return whether to answer: never a machine, nor an address that may be forged."""
    if mail.automated or not received.mail_from or not mail.from_address:
        return False
    same = normalize(received.mail_from).rpartition("@")[2] == normalize(mail.from_address).rpartition("@")[2]
    return verdicts.dmarc == "pass" or (verdicts.dmarc == "none" and verdicts.spf == "pass" and same)


async def describe_peer(resolver: Resolver, peer_ip: str) -> str:
    try:
        names = await resolver.ptr(ip_address(peer_ip).compressed)
        confirmed = bool(names) and await leads_back(resolver, peer_ip, names)
    except (DnsTemporary, ValueError):
        return "the DNS gave no answer"
    if not names:
        return "none: many servers refuse email from an address without a name"
    return f"{names[0]}, which {'leads' if confirmed else 'does not lead'} back to the address"


def write_answer(received: ReceivedReport, verdicts: Verdicts, reverse: str) -> str:
    encrypted = "yes" if received.has_tls else "no: it can be read on the way"
    return (
        f"Your email to check@{received.domain} arrived. This is what the server saw:\n\n"
        f"From address: {received.peer_ip}\n"
        f"Reverse name: {reverse}\n"
        f"TLS: {encrypted}\n"
        f"SPF: {verdicts.spf}\n"
        f"DKIM: {verdicts.dkim}\n"
        f"DMARC: {verdicts.dmarc}\n"
        f"ARC: {verdicts.arc or 'none'}\n\n"
        "pass is good; none means that the domain has no such record or signature; anything else may keep "
        "mail from arriving.\nThis answer comes at most once in ten minutes, only to verified senders.\n"
    )


def finish(tx: Tx, received: ReceivedReport, sender: str, answer: str, service: str, now: int) -> None:
    """Finish once, by whichever node is first."""
    if not received_reports.remove(tx, received.id) or not answer or not is_in_turn(tx, sender, now):
        return
    first = accounts.find_first(tx)
    owner = domains.find_owner(tx, received.domain) if received.domain != service else None
    account_id = owner or (first.id if first else None)
    if account_id is not None:
        system_emails.add(tx, account_id, None, sender, SUBJECT, answer, now, is_personal=False)


def is_in_turn(tx: Tx, sender: str, now: int) -> bool:
    taken = tx.run(
        "insert into check_answers (sender, answered_at) values (:sender, :now)"
        " on conflict (sender) do update set answered_at = excluded.answered_at"
        " where check_answers.answered_at <= :before",
        sender=sender,
        now=now,
        before=now - PAUSE,
    )
    return taken == 1
