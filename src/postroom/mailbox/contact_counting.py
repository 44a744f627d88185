"""What an email adds to the contacts of its inbox: to its sender, or to its recipients.

It is counted with the event that it came or left. Imported and blocked email counts for nobody.
"""

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from postroom.fields import Cursor, Span
from postroom.limits import ADDRESS_CHARACTERS
from postroom.mailbox import documents, inboxes, messages
from postroom.mailbox.contacts import COUNTS, words_of
from postroom.mailbox.documents import Document
from postroom.mailbox.messages import INBOUND, RECEIVED, SENT
from postroom.mailbox.thread_digests import plain_name
from postroom.storage import pages
from postroom.storage.database import Tx, delete, field_names
from postroom_mail.mime.address import Address, mailbox_of, normalize, parse_list

RECIPIENTS = 50
OLDER_AT_ONCE = 100
COUNTED = (RECEIVED, SENT)


class Exchange(Struct, frozen=True):
    """What one email, or several, add to a contact of an inbox."""

    inbox_id: str
    address: str
    pod_id: str
    account_id: str
    name: str
    first_at: int
    last_at: int
    received: int = 0
    sent: int = 0
    threads: int = 0
    auth_passed: int = 0
    auth_failed: int = 0
    clean: int = 0
    suspicious: int = 0
    malicious: int = 0


class CountedMail(Struct, frozen=True):
    """An email that came or left, where its inbox is, and the addresses that are the inbox itself."""

    account_id: str
    pod_id: str
    document: Document
    at: int
    own_addresses: Collection[str] = ()


def count_all(tx: Tx, mails: Iterable[CountedMail]) -> None:
    """Add emails to the contacts that they came from or went to."""
    found = [(mail, each) for mail in mails for each in exchanges(mail)]
    if not found:
        return
    threads = {(mail.document.thread_id, each.address): each.inbox_id for mail, each in found}
    new = _add_threads(tx, threads)
    whole: dict[tuple[str, str], Exchange] = {}
    for mail, each in found:
        is_new = new.pop((mail.document.thread_id, each.address), None) is not None
        key = (each.inbox_id, each.address)
        whole[key] = _join(whole.get(key), replace(each, threads=int(is_new)))
    _add(tx, [whole[key] for key in sorted(whole)])
    _add_words(tx, [each for each in whole.values() if each.threads])


def exchanges(mail: CountedMail) -> list[Exchange]:
    """Return one exchange for the sender of a received email, or for each recipient of a sent one."""
    document = mail.document
    is_inbound = document.direction == INBOUND
    own = {mailbox_of(document.to_addr), *mail.own_addresses}
    once: dict[str, Exchange] = {}
    for person in senders(document) if is_inbound else recipients(document):
        address = normalize(person.address)
        is_address = "@" in address and len(address) <= ADDRESS_CHARACTERS and address.isprintable()
        if is_address and mailbox_of(address) not in own and address not in once:
            once[address] = _exchange(mail, address, person.name, is_inbound)
    return list(once.values())


def senders(document: Document) -> Sequence[Address]:
    return parse_list(documents.first_addresses(document.from_addr))[:1]


def recipients(document: Document) -> list[Address]:
    fields = (document.header_to, ", ".join(document.cc), ", ".join(document.bcc or ()))
    found = [each for field in fields for each in parse_list(documents.first_addresses(field))]
    return found[:RECIPIENTS]


def _exchange(mail: CountedMail, address: str, name: str, is_inbound: bool) -> Exchange:
    document, at = mail.document, mail.at
    dmarc = document.auth.dmarc if is_inbound and document.auth is not None else ""
    verdict = document.verdict if is_inbound else None
    return Exchange(
        document.inbox_id,
        address,
        mail.pod_id,
        mail.account_id,
        "".join(filter(str.isprintable, plain_name(name))),
        at,
        at,
        received=int(is_inbound),
        sent=int(not is_inbound),
        auth_passed=int(dmarc == "pass"),
        auth_failed=int(dmarc == "fail"),
        clean=int(verdict == "clean"),
        suspicious=int(verdict == "suspicious"),
        malicious=int(verdict == "malicious"),
    )


def _join(one: Exchange | None, other: Exchange) -> Exchange:
    if one is None:
        return other
    sums = {name: getattr(one, name) + getattr(other, name) for name in COUNTS}
    first, last = min(one.first_at, other.first_at), max(one.last_at, other.last_at)
    return replace(one, name=other.name or one.name, first_at=first, last_at=last, **sums)


def _add_threads(tx: Tx, threads: dict[tuple[str, str], str]) -> dict[tuple[str, str], bool]:
    """Return those pairs of thread and address that are new."""
    rows = tx.many(
        "insert into contact_threads (thread_id, address, inbox_id) values :rows on conflict do nothing"
        " returning thread_id, address",
        [(*key, threads[key]) for key in sorted(threads)],
    )
    return {(row["thread_id"], row["address"]): True for row in rows}


def _add(tx: Tx, found: Sequence[Exchange]) -> None:
    """Add what was found. An email that fails authentication gives a name only to a contact that has none."""
    names = field_names(Exchange)
    sums = ", ".join(f"{name} = contacts.{name} + excluded.{name}" for name in COUNTS)
    tx.many(
        f"insert into contacts ({', '.join(names)}) values :rows on conflict (inbox_id, address)"
        " do update set name = case when excluded.name <> ''"
        " and (contacts.name = '' or excluded.auth_failed = 0) then excluded.name else contacts.name end,"
        " first_at = case when excluded.first_at < contacts.first_at then excluded.first_at"
        " else contacts.first_at end,"
        " last_at = case when excluded.last_at > contacts.last_at then excluded.last_at"
        f" else contacts.last_at end, {sums}",
        [tuple(getattr(each, name) for name in names) for each in found],
    )


def _add_words(tx: Tx, found: Sequence[Exchange]) -> None:
    rows = {
        (each.inbox_id, word, each.address, each.pod_id, each.account_id)
        for each in found
        for word in words_of(each.address, each.name)
    }
    if rows:
        tx.many(
            "insert into contact_words (inbox_id, word, address, pod_id, account_id) values :rows"
            " on conflict do nothing",
            sorted(rows),
        )


def count_some_older(tx: Tx) -> bool:
    """Count some email from before contacts were counted. False if none is left."""
    row = tx.one("select * from uncounted_contacts order by inbox_id limit 1")
    if row is None:
        return False
    inbox, behind = inboxes.find(tx, row["inbox_id"]), Cursor(row["behind_at"], row["behind_id"])
    span = Span(OLDER_AT_ONCE, behind, is_ascending=True, until=row["until_at"] + 1)
    source = f"select id, created_at from messages where inbox_id = :inbox_id and {messages.LISTED}"
    found = pages.rows_of(tx, source, span, inbox_id=row["inbox_id"])
    if inbox is None or not found:
        delete(tx, "uncounted_contacts", inbox_id=row["inbox_id"])
        return True
    read = messages.list_outlines(tx, [each["id"] for each in found])
    counted = [each for each in read if each.status in COUNTED and not each.is_imported]
    count_all(
        tx,
        [
            CountedMail(
                inbox.account_id,
                inbox.pod_id,
                documents.decode(each.document),
                each.created_at,
                inbox.mailboxes,
            )
            for each in counted
        ],
    )
    tx.run(
        "update uncounted_contacts set behind_at = :at, behind_id = :id where inbox_id = :inbox_id",
        at=found[-1]["created_at"],
        id=found[-1]["id"],
        inbox_id=row["inbox_id"],
    )
    return True
