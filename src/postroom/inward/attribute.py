"""Finds the sent mail that a report is proven to be about: by a signed return path that it names, or, for a
complaint, by our own signature on the mail inside it. Knowing a Message-ID proves nothing.
"""

import time

from msgspec import Struct

from postroom.accounts import domains, secret_values
from postroom.accounts.dkim_keys import DkimKey
from postroom.clock import DAY
from postroom.mailbox import inboxes, messages
from postroom.processes import pools
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom_mail.authentication import dkim
from postroom_mail.authentication.canonical import SplitMail, split_mail
from postroom_mail.authentication.dkim_verify import check_dkim_signatures, claimed_domains
from postroom_mail.authentication.lookup import TimedLookup
from postroom_mail.mime.address import mailbox_of
from postroom_mail.mime.parse import ParsedMail, parse_mail
from postroom_mail.reports.report import Report
from postroom_mail.writing import return_path

MAX_AGE_DAYS = 30
VERIFY_SECONDS = 60.0  # nothing is asked over the network


class About(Struct, frozen=True):
    """A sent mail, and the position of the recipient if known."""

    message_id: str
    position: int | None = None


async def find_subject(resources: Resources, report: Report | None) -> About | None:
    if report is None or report.kind == "other":
        return None
    found = await resources.db.read(by_return_path, report.return_paths, resources.now())
    if found is None and report.kind == "complaint" and report.original_has_body:
        return await by_signature(resources, report.original)
    return found


def by_return_path(tx: Tx, paths: tuple[str, ...], now: int) -> About | None:
    secret = secret_values.get(tx, secret_values.RETURN_PATH) if paths else b""
    for path in paths:
        found = return_path.decode(secret, path.rpartition("@")[0], now // DAY, MAX_AGE_DAYS)
        if found is not None:
            return About(found.message_id, found.recipient_index)
    return None


async def by_signature(resources: Resources, original: bytes) -> About | None:
    """Return what a signature proves. Only keys stored here count, not published ones."""
    mail = await pools.READING.run(split_mail, original)
    keys = await resources.db.read(find_keys, claimed_domains(mail), resources.config.domain)
    signed_by = await pools.READING.run(verified_domains, mail, keys) if keys else set()
    if not signed_by:
        return None
    parsed = await pools.READING.run(parse_mail, original)
    return await resources.db.read(find_sent, parsed, signed_by, resources.now())


def find_keys(tx: Tx, names: list[str], service_domain: str) -> dict[str, list[DkimKey]]:
    """Includes retired keys: the mail may be older."""
    found = {name: domains.keys_of(tx, name, service_domain) for name in names}
    return {name: keys for name, keys in found.items() if keys}


def verified_domains(mail: SplitMail, keys: dict[str, list[DkimKey]]) -> set[str]:
    records = {
        key.name_below(name): dkim.public_record(key.private_key).encode()
        for name, of_domain in keys.items()
        for key in of_domain
    }
    lookup = TimedLookup(OwnRecords(records), time.monotonic() + VERIFY_SECONDS, time.monotonic)
    verdicts = check_dkim_signatures(mail, lookup, time.time())
    return {signature.domain for signature in verdicts if signature.verdict == "pass"}


class OwnRecords:
    """Answers like the DNS, from our own records alone."""

    def __init__(self, records: dict[str, bytes]) -> None:
        self._records = records

    def txt(self, name: str, timeout_seconds: float) -> tuple[bytes, ...]:
        record = self._records.get(name)
        return () if record is None else (record,)

    def mx(self, name: str, timeout_seconds: float) -> tuple[tuple[int, str], ...]:
        return ()

    def ipv4(self, host: str, timeout_seconds: float) -> tuple[str, ...]:
        return ()

    def ipv6(self, host: str, timeout_seconds: float) -> tuple[str, ...]:
        return ()

    def ptr(self, ip: str, timeout_seconds: float) -> tuple[str, ...]:
        return ()


def find_sent(tx: Tx, original: ParsedMail, signed_by: set[str], now: int) -> About | None:
    """Return the sent email. From and Message-ID are signed, so they identify it."""
    from_domain = original.from_address.rpartition("@")[2]
    if signed_by.isdisjoint(domains.at_or_above(from_domain)) or not original.message_id:
        return None
    inbox = inboxes.find_by_address(tx, mailbox_of(original.from_address))
    if inbox is None:
        return None
    since = now - MAX_AGE_DAYS * DAY
    message = messages.find_outbound(tx, inbox.id, original.message_id, since)
    return None if message is None else About(message.id)
