"""Templates in sends and drafts: their texts with the fields filled in."""

from collections.abc import Mapping
from typing import TypeVar

from msgspec import UNSET, UnsetType, structs

from postroom.errors import BadRequest
from postroom.mailbox import drafts, inboxes, templates
from postroom.mailbox.templates import Template, TemplateText
from postroom.operations.drafts import DraftBody
from postroom.operations.sending.send import SendBody, hash_body, require_subject, to_order
from postroom.outward.send_stages import Order, SendAnswer
from postroom.processes import pools
from postroom.queue import idempotency
from postroom.web.call import Call, Tx

D = TypeVar("D", bound=DraftBody)


async def order_from_template(call: Call, inbox_id: str, key: str, body: SendBody) -> Order | SendAnswer:
    """Return the order with the template filled in, or the stored answer to a repeat."""
    request_hash = await pools.COMPOSING.run(hash_body, inbox_id, body)
    found = await call.resources.db.read(look_up, call, inbox_id, key, request_hash, body.template or "")
    if isinstance(found, SendAnswer):
        return found
    require_alone(body.body, body.body_html)
    content = await fill(found, body.fields)
    written = structs.replace(
        body,
        body=content.body,
        body_html=content.body_html,
        subject=body.subject or content.subject,
    )
    order = await to_order(inbox_id, key, written)
    return structs.replace(order, request_hash=request_hash)


def look_up(
    tx: Tx, call: Call, inbox_id: str, key: str, request_hash: str, wanted: str
) -> SendAnswer | Template:
    """Return the stored answer to this request, else the template. Check a caller from the cache again."""
    if call.is_remembered and call.inbox is not None:
        inboxes.require_unchanged(tx, [(call.caller, call.inbox)], call.now())
    inbox = inboxes.get(tx, call.scope, inbox_id)
    known = idempotency.find_answer(tx, call.scope, inbox, key, request_hash, call.now())
    if known is not None:
        return SendAnswer(known, is_replay=True)
    return templates.get_of_inbox(tx, inbox, wanted)


async def fill_new_draft(call: Call, inbox_id: str, body: D) -> D:
    """Return the body with its template filled in now, so that a draft shows what will be sent."""
    if not body.template:
        return without_template(body)
    template = await call.resources.db.read(find_of_inbox, call, inbox_id, body.template)
    return await fill_draft(template, body)


async def fill_changed_draft(call: Call, draft_id: str, body: D) -> D:
    if not body.template:
        return without_template(body)
    template = await call.resources.db.read(find_of_draft, call, draft_id, body.template)
    return await fill_draft(template, body)


def find_of_inbox(tx: Tx, call: Call, inbox_id: str, wanted: str) -> Template:
    return templates.get_of_inbox(tx, inboxes.get(tx, call.scope, inbox_id), wanted)


def find_of_draft(tx: Tx, call: Call, draft_id: str, wanted: str) -> Template:
    return find_of_inbox(tx, call, drafts.get(tx, call.scope, draft_id).inbox_id, wanted)


def without_template(body: D) -> D:
    if body.fields:
        raise BadRequest("fields need a template.", field="template")
    return structs.replace(body, template=UNSET, fields=UNSET)


async def fill_draft(template: Template, body: D) -> D:
    require_alone(body.body, body.body_html)
    content = await fill(template, body.fields or {})
    return structs.replace(
        body,
        body=content.body,
        body_html=content.body_html,
        subject=body.subject or content.subject or UNSET,
        template=UNSET,
        fields=UNSET,
    )


def require_alone(body: str | UnsetType | None, body_html: str | UnsetType | None) -> None:
    if body or body_html:
        raise BadRequest("An email has a body or a template, not both.", field="template")


async def fill(template: Template, values: Mapping[str, str]) -> TemplateText:
    """Return the text with the values filled in, in a thread: a template may be as long as an email."""
    content = await pools.COMPOSING.run(templates.fill, template, dict(values))
    if content.subject is not None:
        require_subject(content.subject)
    return content
