"""Templates: texts of an inbox with fields, from which emails are written."""

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from postroom import ids, limits
from postroom.accounts.scope import Scope
from postroom.errors import BadRequest, NotFound, TemplateExists, TemplateLimitReached, no_such
from postroom.mailbox import inboxes
from postroom.mailbox.inboxes import Inbox
from postroom.storage import pages
from postroom.storage.database import Row, Tx, count, insert_item, item_from_row, update
from postroom.storage.pages import CutPage
from postroom_mail.html import text
from postroom_mail.writing import template_fields
from postroom_mail.writing.template_fields import FieldError

TEMPLATES_OF_AN_INBOX = 100
MOST_BYTES_OF_A_CHARACTER = 4

# An inbox disappears at once, and its templates a little later.
OF_AN_INBOX = "exists (select 1 from inboxes where inboxes.id = templates.inbox_id)"


class TemplateText(Struct, rename="camel", frozen=True, omit_defaults=True):
    """The content of an email; in a template with `{{name}}` where a value goes."""

    body: str
    subject: str | None = None
    body_html: str | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.subject or "", self.body, self.body_html or "")


class Template(Struct, frozen=True):
    id: str
    account_id: str
    pod_id: str
    inbox_id: str
    name: str
    content: TemplateText
    created_at: int
    updated_at: int
    client_id: str | None = None

    @classmethod
    def from_row(cls, row: Row) -> "Template":
        return item_from_row(cls, row, content=msgspec.json.decode(row["content"], type=TemplateText))

    @property
    def scope(self) -> Scope:
        return Scope(self.account_id, self.pod_id, self.inbox_id)

    @property
    def fields(self) -> list[str]:
        return template_fields.names_in(self.content.texts)


def add(
    tx: Tx, inbox: Inbox, name: str, content: TemplateText, now: int, client_id: str | None = None
) -> Template:
    inboxes.lock(tx, inbox.id)
    _require_room(tx, inbox.id)
    _require_free(tx, inbox.id, name)
    new_id = ids.new(ids.TEMPLATE, now)
    made = Template(new_id, inbox.account_id, inbox.pod_id, inbox.id, name, content, now, now, client_id)
    insert_item(tx, "templates", made, content=_encode(content))
    return made


def _encode(content: TemplateText) -> str:
    """Encode as JSON, which can hold characters that a text column of PostgreSQL cannot."""
    return msgspec.json.encode(content).decode()


def _require_room(tx: Tx, inbox_id: str) -> None:
    row = tx.one("select count(*) as templates from templates where inbox_id = :id", id=inbox_id)
    if row is not None and row["templates"] >= TEMPLATES_OF_AN_INBOX:
        raise TemplateLimitReached(
            f"An inbox has at most {TEMPLATES_OF_AN_INBOX} templates. Delete one first."
        )


def _require_free(tx: Tx, inbox_id: str, name: str) -> None:
    if _find_by(tx, "name", inbox_id, name) is not None:
        raise TemplateExists(f"The inbox has a template called '{name}'. Choose another name.")


def put(tx: Tx, template: Template, name: str, content: TemplateText, now: int) -> Template:
    inboxes.lock(tx, template.inbox_id)
    if name != template.name:
        _require_free(tx, template.inbox_id, name)
    update(tx, "templates", template.id, name=name, content=_encode(content), updated_at=now)
    return msgspec.structs.replace(template, name=name, content=content, updated_at=now)


def get(tx: Tx, scope: Scope, template_id: str) -> Template:
    row = ids.is_id(ids.TEMPLATE, template_id) and tx.one(
        f"select * from templates where id = :id and {OF_AN_INBOX}", id=template_id
    )
    if not row or not scope.covers(row["account_id"], row["pod_id"], row["inbox_id"]):
        raise no_such("template")
    return Template.from_row(row)


def get_of_inbox(tx: Tx, inbox: Inbox, wanted: str) -> Template:
    """Find by id or name."""
    found = find_of_inbox(tx, inbox.id, wanted)
    if found is None:
        raise NotFound("The inbox has no such template.")
    return found


def find_of_inbox(tx: Tx, inbox_id: str, wanted: str) -> Template | None:
    return _find_by(tx, "id", inbox_id, wanted) or _find_by(tx, "name", inbox_id, wanted)


def find_by_client_id(tx: Tx, inbox_id: str, client_id: str) -> Template | None:
    return _find_by(tx, "client_id", inbox_id, client_id)


def _find_by(tx: Tx, column: str, inbox_id: str, value: str) -> Template | None:
    row = "\0" not in value and tx.one(
        f"select * from templates where inbox_id = :inbox_id and {column} = :value",
        inbox_id=inbox_id,
        value=value,
    )
    return Template.from_row(row) if row else None


def list_within(tx: Tx, scope: Scope, limit: int, offset: int) -> tuple[CutPage[Template], int]:
    """List the templates, newest first."""
    column, owner = scope.owner
    where = f"from templates where account_id = :account_id and {column} = :owner and {OF_AN_INBOX}"
    rows = tx.all(
        f"select id, {MOST_BYTES_OF_A_CHARACTER} * length(content) as {pages.SIZE} {where}"
        " order by created_at desc, id desc limit :limit offset :offset",
        account_id=scope.account_id,
        owner=owner,
        limit=limit,
        offset=offset,
    )
    total = count(tx, f"select count(*) as number {where}", account_id=scope.account_id, owner=owner)
    found = pages.whole_rows(tx, "templates", rows)
    return CutPage([Template.from_row(row) for row in found.items], found.is_cut), total


def remove(tx: Tx, template: Template) -> None:
    tx.run("delete from templates where id = :id", id=template.id)


def fill(template: Template, values: Mapping[str, str]) -> TemplateText:
    """Fill a template. Plain text stays plain whatever its values look like; its HTML is made from it."""
    try:
        return _fill(template, values)
    except FieldError as error:
        raise BadRequest(str(error), field="fields") from error


def _fill(template: Template, values: Mapping[str, str]) -> TemplateText:
    template_fields.require_all(template.fields, values)
    content = template.content
    is_html = text.looks_like_html(content.body)
    body = template_fields.fill(content.body, values, limits.BODY_CHARACTERS, is_html=is_html)
    body_html = None
    if content.body_html is not None:
        body_html = template_fields.fill(content.body_html, values, limits.HTML_CHARACTERS, is_html=True)
    elif not is_html and text.looks_like_html(body):
        body_html = template_fields.as_html(body)
    subject = None
    if content.subject is not None:
        subject = template_fields.fill(content.subject, values, limits.SUBJECT_CHARACTERS)
    return TemplateText(body, subject, body_html)
