"""Where a person authorizes a program: by OAuth, or by a code that it shows."""

from typing import cast
from urllib.parse import urlsplit

from msgspec import Struct, structs
from starlette.responses import RedirectResponse, Response

from postroom.accounts.oauth import device_codes
from postroom.accounts.oauth.oauth_error import OauthError
from postroom.config import Config
from postroom.errors import BadRequest
from postroom.external_mailboxes.fetching import Fetcher, FetchError
from postroom.operations.people import client_documents, oauth_consent
from postroom.operations.people.oauth_consent import Asked, Choice
from postroom.web.dashboard.display.rendering import HEADERS
from postroom.web.dashboard.forms import WHOLE_SCOPE
from postroom.web.dashboard.page_context import PageContext, go
from postroom.web.oauth.endpoints import to_client

SENTENCES = {
    "draft": "Read emails and write drafts. A person approves each send.",
    "read": "Read emails only.",
    "send": "Read, write and send emails. Your approval rules apply.",
    "everything": "All permissions that you have.",
}


class ConsentForm(Asked, frozen=True):
    level: str = ""
    scope_id: str | None = None
    decision: str = ""

    @property
    def asked(self) -> Asked:
        return Asked(*(getattr(self, name) for name in Asked.__struct_fields__))


class DeviceQuery(Struct, frozen=True):
    code: str = ""


class DeviceForm(DeviceQuery, frozen=True):
    level: str = ""
    scope_id: str | None = None
    decision: str = ""


def chosen(form: ConsentForm | DeviceForm) -> Choice:
    """Return the choice. A form that names no scope is refused: it would get all that the person may use."""
    if form.scope_id is None:
        raise BadRequest("Choose the scope of the app.", field="scope_id")
    return Choice(form.level, "" if form.scope_id == WHOLE_SCOPE else form.scope_id)


async def show_consent(context: PageContext, query: Asked) -> Response:
    config = context.call.resources.config
    document_host = await learn(context, query.client_id)
    client = await context.read(oauth_consent.require_client, query)
    try:
        resource = oauth_consent.require_sound(query, config)
    except OauthError as error:
        return back_to(query, config, error=error.oauth, error_description=error.message)
    response = await context.show(
        "consent.html",
        "",
        title="Allow an app",
        client=client,
        asked=structs.asdict(query),
        host=urlsplit(query.redirect_uri).netloc,
        document_host=document_host,
        levels=oauth_consent.offered_levels(context.call.caller, resource),
        sentences=SENTENCES,
        of_one_inbox=oauth_consent.INBOX_PREFIX in resource,
        resource=resource,
    )
    return allow_leading_to(response, query.redirect_uri)


async def learn(context: PageContext, client_id: str) -> str:
    """Fetch the document of a program that is known by its URL, at most every ten minutes. Return its host.

    Only for people who are signed in, and only from where a webhook may go.
    """
    if not client_documents.is_document(client_id):
        return ""
    host, resources = client_documents.require_document_url(client_id), context.call.resources
    if await context.read(client_documents.is_fresh, client_id, context.call.now()):
        return host
    fetcher, limit = cast(Fetcher, context.call.webhook_courier), client_documents.DOCUMENT_BYTES
    try:
        found = await fetcher.fetch("GET", client_id, {"Accept": "application/json"}, b"", limit)
    except FetchError as error:
        raise client_documents.refused(f"its document could not be read. {error}".rstrip(".")) from None
    if found.status != 200:
        raise client_documents.refused(f"{host} answered with {found.status} instead of a document")
    account_id, config = context.call.caller.account_id, resources.config
    await resources.db.write(
        client_documents.keep, client_id, found.body, account_id, config, context.call.now()
    )
    return host


def allow_leading_to(response: Response, redirect_uri: str) -> Response:
    """Allow the redirect.

    Browsers apply `form-action` to redirects of a form too, so it must name the client's address.
    """
    parts = urlsplit(redirect_uri)
    policy = response.headers["Content-Security-Policy"]
    wider = f"form-action 'self' {parts.scheme}://{parts.netloc}"
    response.headers["Content-Security-Policy"] = policy.replace("form-action 'self'", wider)
    return response


async def decide_consent(context: PageContext, body: ConsentForm) -> Response:
    config, asked = context.call.resources.config, body.asked
    await context.read(oauth_consent.require_client, asked)
    if body.decision != "allow":
        return back_to(asked, config, error="access_denied", error_description="The person refused.")
    try:
        code = await context.decide(oauth_consent.allow, asked, chosen(body), config)
    except OauthError as error:
        return back_to(asked, config, error=error.oauth, error_description=error.message)
    return back_to(asked, config, code=code)


def back_to(asked: Asked, config: Config, **answer: str) -> Response:
    return RedirectResponse(to_client(asked, config, **answer), 303, headers=HEADERS)


async def show_device(context: PageContext, query: DeviceQuery) -> Response:
    code = None
    if query.code:
        code = await context.read(device_codes.find_waiting, query.code, context.call.now())
    return await context.show(
        "device.html",
        "",
        title="Allow an app",
        code=code,
        levels=list(oauth_consent.device_levels(context.call.caller)),
        sentences=SENTENCES,
    )


async def decide_device(context: PageContext, body: DeviceForm) -> Response:
    if body.decision != "allow":
        await context.decide(oauth_consent.refuse_device, body.code)
        return go("/app", "Access denied.")
    await context.decide(oauth_consent.allow_device, body.code, chosen(body))
    return go("/app", "Access allowed. You can revoke it under API keys.")
