"""Contacts: who exchanged email with the inboxes, and what is known of one address."""

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct
from starlette.responses import Response

from postroom.errors import BadRequest
from postroom.fields import Offset, ScopeFilter
from postroom.mailbox import attachments, contacts, documents, thread_parts
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.documents import Document
from postroom.mailbox.messages import INBOUND
from postroom.mailbox.notes import Note, list_newest
from postroom.operations import contacts as operations
from postroom.operations import jobs, policies, suppressions
from postroom.operations.contacts import ContactsQuery
from postroom.operations.notes import may_note
from postroom.operations.policies import NewRule
from postroom.operations.suppressions import NewSuppression
from postroom.web.api.contacts import export_contact
from postroom.web.call import Tx
from postroom.web.dashboard.actions import runs
from postroom.web.dashboard.display import note_lines
from postroom.web.dashboard.display.rendering import link
from postroom.web.dashboard.page_context import PageContext, go
from postroom.web.dashboard.pages.mail import ThreadRow, rows_of_threads
from postroom_mail.mime.address import normalize, parse_list

PATH = "/app/contact"
ROWS = 50
THREADS, FILES, CODES, NOTES = 20, 20, 10, 20
MESSAGES = 5  # of each thread, in which files and codes are looked for


class ListQuery(Struct, rename="camel", frozen=True):
    q: str = ""
    inbox_id: str = ""
    pod_id: str = ""
    offset: Offset = 0


class AddressQuery(Struct, frozen=True):
    address: str = ""


class AddressForm(Struct, frozen=True):
    address: str


class EraseForm(AddressForm, frozen=True):
    typed: str = ""


class ContactFile(Struct, frozen=True):
    file: Attachment
    message_id: str
    created_at: str


class ContactHistory(Struct, frozen=True):
    """What the newest threads with an address hold of it."""

    rows: list[ThreadRow]
    files: list[ContactFile]
    codes: list[tuple[str, str]]  # a code, and when it came
    noted: list[tuple[Note, list[note_lines.NoteLine]]]


async def show_contacts(context: PageContext, query: ListQuery) -> Response:
    asked = ContactsQuery(
        limit=ROWS,
        offset=query.offset,
        q=query.q or None,
        inbox_id=query.inbox_id or None,
        pod_id=query.pod_id or None,
    )
    page = await context.ask(operations.list_contacts, query=asked)
    return await context.show(
        "contacts.html",
        "contacts",
        title="Contacts",
        contacts=page["data"],
        total=page["total"],
        limit=ROWS,
        query=query,
    )


async def show_contact(context: PageContext, query: AddressQuery) -> Response:
    contact = await context.ask(operations.get_contact, address=query.address)
    return await context.show(
        "contact.html",
        "contacts",
        title=contact["name"] or contact["address"],
        contact=contact,
        history=await context.read(read_history, context, contact["address"]),
    )


def read_history(tx: Tx, context: PageContext, address: str) -> ContactHistory:
    rows = rows_of_threads(tx, context, contacts.list_threads(tx, context.call.scope, address, THREADS))
    thread_ids = [row.thread.id for row in rows]
    received = [each for thread_id in thread_ids for each in list_received(tx, thread_id, address)]
    files = attachments.list_of_messages(tx, [each.id for each in received], with_text=False)
    noted = list_newest(tx, thread_ids, NOTES) if may_note(context.call.caller) else []
    return ContactHistory(
        rows,
        [ContactFile(file, each.id, each.created_at) for each in received for file in files.get(each.id, ())][
            :FILES
        ],
        [(code, each.created_at) for each in received for code in each.codes][:CODES],
        [(note, note_lines.read(note.body)) for note in noted],
    )


def list_received(tx: Tx, thread_id: str, address: str) -> list[Document]:
    """List the newest emails of an address in a thread."""
    newest = thread_parts.list_outlines(tx, thread_id, MESSAGES, 0)
    found = [documents.decode(each.document) for each in newest if not each.is_imported]
    return [each for each in found if each.direction == INBOUND and is_from(each, address)]


def is_from(document: Document, address: str) -> bool:
    return any(normalize(each.address) == address for each in parse_list(document.from_addr)[:1])


def page_of(form: AddressForm) -> str:
    return link(PATH, address=form.address)


def rule_of(kind: Literal["allow", "block"]) -> Callable[[AddressForm], dict[str, Any]]:
    """Return what makes a rule for the address of the form, in all of the person's scope."""
    return lambda form: {"query": ScopeFilter(), "body": NewRule(kind, form.address, "inbound")}


block = runs(
    policies.add_policy_rule,
    page_of,
    "Email from {body.address} is blocked from now on.",
    AddressForm,
    rule_of("block"),
)
allow = runs(
    policies.add_policy_rule,
    page_of,
    "Email from {body.address} is allowed where the policy is an allow list.",
    AddressForm,
    rule_of("allow"),
)
suppress = runs(
    suppressions.add_suppression,
    page_of,
    "No email is sent to {body.address}.",
    AddressForm,
    lambda form: {"body": NewSuppression(form.address)},
)
unsuppress = runs(
    suppressions.delete_suppression,
    page_of,
    "Emails to {body.address} are sent again.",
    AddressForm,
    lambda form: {"address": form.address},
)


async def export(context: PageContext, query: AddressQuery) -> Response:
    response: Response = await context.perform(export_contact, address=query.address)
    response.headers["Cache-Control"] = "no-store"
    return response


async def erase(context: PageContext, body: EraseForm) -> Response:
    """Erase a contact. Typing the address confirms it."""
    if body.typed.strip().lower() != body.address:
        raise BadRequest(f"Type {body.address} to erase it with all email.", field="typed")
    job = await context.run(operations.erase_contact, address=body.address)
    return go(f"/app/jobs/{job.job_id}")


async def show_job(context: PageContext, job_id: str) -> Response:
    job = await context.ask(jobs.get_job, job_id=job_id)
    return await context.show("job.html", "contacts", title="Erasure", job=job)


confirm = runs(jobs.confirm_job, "/app/jobs/{job_id}", "Confirmed. The erasure has begun.")
cancel = runs(jobs.cancel_job, "/app/jobs/{job_id}", "Cancelled. Nothing was erased.")
