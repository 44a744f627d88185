"""Templates of inboxes: texts with their fields marked, edited, and tried as a draft."""

from msgspec import UNSET, Struct
from starlette.responses import Response

from postroom.errors import ApiError, NotFound
from postroom.fields import Offset
from postroom.mailbox import inboxes
from postroom.operations import templates
from postroom.operations.drafts import NewDraft
from postroom.operations.templates import NewTemplate, Template, TemplateChange, TemplateQuery
from postroom.web.api import drafts
from postroom.web.dashboard import undo
from postroom.web.dashboard.actions import runs
from postroom.web.dashboard.page_context import PageContext, go, plain
from postroom.web.dashboard.pages.message import html_page
from postroom.web.dashboard.paging import OffsetQuery

PATH = "/app/settings/templates"


class TemplatesQuery(Struct, rename="camel", frozen=True):
    inbox_id: str = ""
    pod_id: str = ""
    offset: Offset = 0


class TemplateForm(Struct, rename="camel", frozen=True):
    name: str
    body: str
    subject: str = ""
    inbox_id: str = ""


class FieldsForm(Struct, rename="camel", frozen=True):
    """The values in `field_value` belong to the names in `field_name`, in order."""

    field_name: list[str] = []
    field_value: list[str] = []

    @property
    def values(self) -> dict[str, str]:
        return dict(zip(self.field_name, self.field_value, strict=False))


async def show_templates(context: PageContext, query: TemplatesQuery) -> Response:
    paging = OffsetQuery(query.offset)
    asked = TemplateQuery(query.inbox_id or None, query.pod_id or None, paging.to_page().limit, query.offset)
    page = await context.ask(templates.list_templates, query=asked)
    found = page["data"]
    addresses = await context.read(inboxes.addresses_of, list({each["inboxId"] for each in found}))
    return await context.show(
        "templates.html",
        "settings",
        title="Templates",
        query=query,
        templates=found,
        addresses=addresses,
        **paging.of(page["total"]),
    )


create_template = runs(
    templates.create_template,
    f"{PATH}/{{made.id}}",
    "The template is created.",
    TemplateForm,
    lambda form: {"body": NewTemplate(form.inbox_id, form.name, form.body, form.subject or None)},
)


async def show_template(context: PageContext, template_id: str) -> Response:
    return await show(context, await context.run(templates.get_template, template_id=template_id))


async def show(
    context: PageContext,
    template: Template,
    form: TemplateForm | None = None,
    values: dict[str, str] | None = None,
    error: ApiError | None = None,
) -> Response:
    """Show a template. Refused input is shown again, with the reason."""
    addresses = await context.read(inboxes.addresses_of, [template.inbox_id])
    return await context.show(
        "template.html",
        "settings",
        200 if error is None else error.status,
        title=template.name,
        template=plain(template),
        address_of_inbox=addresses.get(template.inbox_id, ""),
        form=form or TemplateForm(template.name, template.body, template.subject or ""),
        values=values or {},
        error=error,
    )


async def show_html(context: PageContext, template_id: str) -> Response:
    template = await context.run(templates.get_template, template_id=template_id)
    if not template.body_html:
        raise NotFound("This template has no HTML.")
    return await html_page(template.body_html)


async def change_template(context: PageContext, template_id: str, body: TemplateForm) -> Response:
    """Change a template. If the text changed, its own HTML is dropped: else they would differ."""
    template = await context.run(templates.get_template, template_id=template_id)
    is_same = body.body.splitlines() == template.body.splitlines()
    change = TemplateChange(body.name, body.body, body.subject or None, UNSET if is_same else None)
    try:
        await context.run(templates.change_template, template_id=template_id, body=change)
    except ApiError as error:
        if error.status >= 500:
            raise
        return await show(context, template, form=body, error=error)
    return go(f"{PATH}/{template_id}", "The template is saved.")


delete_template = undo.delayed(templates.delete_template, PATH, "Deleting the template in {seconds} seconds.")


async def try_template(context: PageContext, template_id: str, body: FieldsForm) -> Response:
    """Creates a draft that shows what would be sent."""
    template = await context.run(templates.get_template, template_id=template_id)
    wanted = NewDraft(template=template.id, fields=body.values)
    try:
        made = await drafts.create_draft(context.call, template.inbox_id, wanted)
    except ApiError as error:
        if error.status >= 500:
            raise
        return await show(context, template, values=body.values, error=error)
    return go(f"/app/drafts/{made.id}", "Created a draft from the template.")
