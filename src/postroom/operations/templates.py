"""Operations on templates: texts of an inbox with fields, from which its emails are written."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from postroom import limits
from postroom.accounts import audit, names
from postroom.accounts.keys import Caller
from postroom.errors import BadRequest
from postroom.fields import InboxFilter, Limit, Offset, PodFilter, Timestamp, Truncated, show_item
from postroom.mailbox import inboxes, templates
from postroom.mailbox.templates import TemplateText
from postroom.operations import client_ids
from postroom.operations.client_ids import AlreadyThere, OwnId
from postroom.operations.inbox_fields import get_named
from postroom.storage.database import Tx
from postroom_mail.writing.header_words import CONTROL

AUDITED_CHARACTERS = 1000
AUDITED_FIELDS = 50

TemplateName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.NAME_CHARACTERS,
        description="Name used by sends, unique in its inbox.",
        examples=["welcome"],
        extra_json_schema={"pattern": names.GIVEN_PATTERN},
    ),
]
TemplateSubject = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.SUBJECT_CHARACTERS,
        description="Subject of emails written from it, unless they give their own.",
        examples=["Welcome, {{name}}"],
        extra_json_schema={"pattern": r"^[^\x00-\x1f\x7f-\x9f]*$"},
    ),
]
TemplateBody = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.BODY_CHARACTERS,
        description="Plain text, or HTML, which is detected; `{{name}}` is a field.",
        examples=["Hello {{name}}, your order {{order}} is on its way."],
    ),
]
TemplateHtml = Annotated[
    str,
    Meta(
        max_length=limits.HTML_CHARACTERS,
        description="A separate HTML version; field values are escaped in it.",
    ),
]


class NewTemplate(Struct, rename="camel", frozen=True):
    inbox_id: Annotated[str, Meta(description="The inbox whose emails are written from it.")]
    name: TemplateName
    body: TemplateBody
    subject: TemplateSubject | None = None
    body_html: TemplateHtml | None = None
    client_id: OwnId | None = None


class TemplateChange(Struct, rename="camel", frozen=True):
    name: TemplateName | UnsetType = UNSET
    body: TemplateBody | UnsetType = UNSET
    subject: TemplateSubject | UnsetType | None = UNSET
    body_html: TemplateHtml | UnsetType | None = UNSET


class TemplateQuery(Struct, rename="camel", frozen=True):
    inbox_id: InboxFilter | None = None
    pod_id: PodFilter | None = None
    limit: Limit = limits.PAGE
    offset: Offset = 0


class Template(Struct, rename="camel", frozen=True):
    """`fields` are the names in its texts: an email from it needs a value for each."""

    id: str
    inbox_id: str
    name: str
    subject: str | None
    body: str
    body_html: str | None
    fields: list[str]
    created_at: Timestamp
    updated_at: Timestamp
    client_id: str | None = None

    @classmethod
    def of(cls, template: templates.Template) -> "Template":
        content = template.content
        texts = {"subject": content.subject, "body": content.body, "body_html": content.body_html}
        return show_item(cls, template, **texts)


class AuditedTemplate(Struct, rename="camel", frozen=True):
    """As stored in the audit log, with a shortened body: that may be as long as an email."""

    inbox_id: str
    name: str
    subject: str | None
    body: str
    fields: list[str]

    @classmethod
    def of(cls, template: templates.Template) -> "AuditedTemplate":
        content = template.content
        body = (content.body_html or content.body)[:AUDITED_CHARACTERS]
        fields = template.fields[:AUDITED_FIELDS]
        return show_item(cls, template, subject=content.subject, body=body, fields=fields)


class TemplatePage(Struct, rename="camel", frozen=True):
    data: list[Template]
    total: int
    truncated: Truncated | UnsetType = UNSET


def create_template(tx: Tx, caller: Caller, body: NewTemplate, now: int) -> Template:
    """Create a template for the emails of an inbox"""
    inbox = get_named(tx, caller.scope, body.inbox_id)
    require_new(tx, inbox.id, body.client_id)
    content = TemplateText(body.body, body.subject, body.body_html)
    require_valid(body.name, content)
    made = templates.add(tx, inbox, body.name, content, now, body.client_id)
    after = AuditedTemplate.of(made)
    audit.record_by(tx, caller, "template.created", made.id, now, within=made.scope, after=after)
    return Template.of(made)


def require_new(tx: Tx, inbox_id: str, client_id: str | None) -> None:
    """Raise AlreadyThere if the inbox has a template with this clientId."""
    client_ids.require_valid(client_id)
    if client_id is None:
        return
    inboxes.lock(tx, inbox_id)
    known = templates.find_by_client_id(tx, inbox_id, client_id)
    if known is not None:
        raise AlreadyThere(Template.of(known))


def list_templates(tx: Tx, caller: Caller, query: TemplateQuery) -> TemplatePage:
    """List templates, newest first"""
    scope = inboxes.narrow(tx, caller.scope, query.inbox_id, query.pod_id)
    if scope is None:
        return TemplatePage([], 0)
    found, total = templates.list_within(tx, scope, query.limit, query.offset)
    return TemplatePage([Template.of(each) for each in found.items], total, found.is_cut or UNSET)


def get_template(tx: Tx, caller: Caller, template_id: str) -> Template:
    """Get a template"""
    return Template.of(templates.get(tx, caller.scope, template_id))


def change_template(tx: Tx, caller: Caller, template_id: str, body: TemplateChange, now: int) -> Template:
    """Change a template: missing fields stay, null clears"""
    known = templates.get(tx, caller.scope, template_id)
    old = known.content
    name = known.name if body.name is UNSET else body.name
    content = TemplateText(
        body=old.body if body.body is UNSET else body.body,
        subject=old.subject if body.subject is UNSET else body.subject,
        body_html=old.body_html if body.body_html is UNSET else body.body_html,
    )
    require_valid(name, content)
    changed = templates.put(tx, known, name, content, now)
    before, after = AuditedTemplate.of(known), AuditedTemplate.of(changed)
    audit.record_by(
        tx, caller, "template.changed", known.id, now, within=known.scope, before=before, after=after
    )
    return Template.of(changed)


def delete_template(tx: Tx, caller: Caller, template_id: str, now: int) -> None:
    """Delete a template; drafts and emails written from it stay as they are"""
    known = templates.get(tx, caller.scope, template_id)
    templates.remove(tx, known)
    before = AuditedTemplate.of(known)
    audit.record_by(tx, caller, "template.deleted", known.id, now, within=known.scope, before=before)


def require_valid(name: str, content: TemplateText) -> None:
    """Raise for a template from a page that breaks the limits of the request's type."""
    names.require_given(name, "name")
    for field, text, most in (
        ("subject", content.subject, limits.SUBJECT_CHARACTERS),
        ("body", content.body, limits.BODY_CHARACTERS),
        ("bodyHtml", content.body_html, limits.HTML_CHARACTERS),
    ):
        if text is not None and len(text) > most:
            raise BadRequest(f"{field} has at most {most:,} characters.", field=field)
    if not content.body:
        raise BadRequest("body must not be empty.", field="body")
    if content.subject is not None and CONTROL.search(content.subject):
        raise BadRequest("subject must not have line breaks or control characters.", field="subject")
