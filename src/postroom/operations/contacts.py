"""Operations on contacts: who exchanged email with the inboxes of a key."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from postroom.accounts import accounts, audit
from postroom.accounts.audit_erasure import hashed
from postroom.accounts.keys import Caller
from postroom.clock import to_iso
from postroom.errors import BadRequest, no_such
from postroom.fields import InboxFilter, PageQuery, PodFilter, Timestamp, show_item
from postroom.limits import ADDRESS_CHARACTERS
from postroom.mailbox import contacts, inboxes, jobs, legal_holds
from postroom.outward.holding import approvers
from postroom.queue import suppressions
from postroom.storage.database import Tx
from postroom.upkeep.erasure import erase_contact as erase_contact_steps
from postroom_mail.mime.address import normalize
from postroom_mail.writing.header_words import CONTROL


class ContactsQuery(PageQuery, rename="camel", frozen=True):
    q: (
        Annotated[
            str,
            Meta(
                max_length=ADDRESS_CHARACTERS,
                description="Only those whose address, domain or a word of whose name begins like this.",
            ),
        ]
        | None
    ) = None
    inbox_id: InboxFilter | None = None
    pod_id: PodFilter | None = None


class ContactVerdicts(Struct, frozen=True):
    """How many received emails were judged so."""

    clean: int
    suspicious: int
    malicious: int


class Contact(Struct, rename="camel", frozen=True):
    """The counts include emails deleted since. `isKnown`: it wrote an email that did not fail DMARC."""

    address: str
    name: Annotated[str, Meta(description="As in the newest email that did not fail DMARC, or empty.")]
    first_seen_at: Timestamp
    last_seen_at: Timestamp
    received: Annotated[int, Meta(description="Emails from this address.")]
    sent: Annotated[int, Meta(description="Emails to this address.")]
    threads: int
    auth_passed: Annotated[int, Meta(description="Received emails that passed DMARC.")]
    auth_failed: Annotated[int, Meta(description="Received emails that failed DMARC.")]
    verdicts: ContactVerdicts
    suppressed: Annotated[
        str | None, Meta(description="Why the account does not send to it, or null: `bounce`, `complaint`, …")
    ]
    is_known: bool


class ContactPage(Struct, frozen=True):
    data: list[Contact]
    total: int


class StartedJob(Struct, rename="camel", frozen=True):
    job_id: str


def list_contacts(tx: Tx, caller: Caller, query: ContactsQuery) -> ContactPage:
    """List contacts by address; the total stops counting 1,000 after the page"""
    scope = inboxes.narrow(tx, caller.scope, query.inbox_id, query.pod_id)
    if scope is None:
        return ContactPage([], 0)
    asked = "" if query.q is None else contacts.fold_word(query.q)
    if query.q is not None and CONTROL.search(query.q):
        raise BadRequest("q has a control character. Use the beginning of a name or address.", field="q")
    found, total = (
        contacts.search(tx, scope, asked, query.limit, query.offset)
        if asked
        else contacts.list_within(tx, scope, query.limit, query.offset)
    )
    return ContactPage(show_all(tx, caller, found), total)


def get_contact(tx: Tx, caller: Caller, address: str) -> Contact:
    """Get a contact: what is known of one address"""
    return show_all(tx, caller, [find(tx, caller, address)])[0]


def begin_export(tx: Tx, caller: Caller, address: str, now: int) -> Contact:
    found = find(tx, caller, address)
    audit.record_by(tx, caller, "contact.exported", found.address, now)
    return show_all(tx, caller, [found])[0]


def erase_contact(tx: Tx, caller: Caller, address: str, now: int) -> StartedJob:
    """Erase a contact with all its email; the job shows its progress"""
    found = find(tx, caller, address)
    known = jobs.find_unfinished(tx, caller.scope, jobs.ERASE_CONTACT, found.address)
    if known is not None:
        return StartedJob(known.id)
    legal_holds.require_free_contact(tx, caller.scope, found.address)
    job = jobs.add(
        tx,
        caller.scope,
        jobs.ERASE_CONTACT,
        found.address,
        caller.actor,
        approvers.of_caller(caller),
        erase_contact_steps.count_all(tx, caller.scope),
        now,
        is_waiting=accounts.get(tx, caller.account_id).erasure_approval,
    )
    audit.record_by(tx, caller, "contact.erasure", job.id, now, after={"address": hashed(found.address)})
    return StartedJob(job.id)


def find(tx: Tx, caller: Caller, address: str) -> contacts.Contact:
    found = None if CONTROL.search(address) else contacts.find(tx, caller.scope, normalize(address))
    if found is None:
        raise no_such("contact")
    return found


def show_all(tx: Tx, caller: Caller, found: Sequence[contacts.Contact]) -> list[Contact]:
    stopped = suppressions.find_all(tx, [(caller.account_id, each.address) for each in found])
    return [
        show_item(
            Contact,
            each,
            first_seen_at=to_iso(each.first_at),
            last_seen_at=to_iso(each.last_at),
            verdicts=ContactVerdicts(each.clean, each.suspicious, each.malicious),
            suppressed=stopped.get((caller.account_id, each.address)),
        )
        for each in found
    ]
