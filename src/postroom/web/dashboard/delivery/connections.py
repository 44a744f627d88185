"""Connections in and out: choose one, fill in the form, and follow each check."""

import secrets
from typing import Any

import msgspec
from msgspec import Struct
from starlette.responses import Response

from postroom.errors import BadRequest
from postroom.fields import Offset, explain
from postroom.operations import connections, messages
from postroom.operations.connections import NewConnection
from postroom.operations.messages import MessageQuery
from postroom.operations.sending.send import SendBody, to_order
from postroom.web.api import connections as api
from postroom.web.api import send as api_send
from postroom.web.dashboard import undo
from postroom.web.dashboard.delivery import steps
from postroom.web.dashboard.page_context import PageContext, go
from postroom.web.dashboard.paging import OffsetQuery
from postroom.web.dashboard.settings.rules import read_number

PATH = "/app/settings/connections"
CONSENT_PATH = f"{PATH}/consent"
# Host of IMAP, host and port of SMTP, and which password it takes.
MAILBOXES = {
    "gmail": ("imap.gmail.com", "smtp.gmail.com", 465, "an app password (Google account, Security)"),
    "fastmail": ("imap.fastmail.com", "smtp.fastmail.com", 465, "an app password (Privacy & Security)"),
    "icloud": ("imap.mail.me.com", "smtp.mail.me.com", 587, "an app-specific password"),
    "microsoft": ("outlook.office365.com", "smtp.office365.com", 587, "no password, but OAuth"),
}
# Providers that take OAuth, and the URLs of their tokens.
TOKEN_URLS = {
    "gmail": "https://oauth2.googleapis.com/token",
    "microsoft": "https://login.microsoftonline.com/common/oauth2/v2.0/token",
}
WITHOUT_PASSWORDS = ("microsoft",)
OWN_MAILBOX = "imap"
SERVICES = ("mailgun", "sendgrid", "postmark", "ses", "cloudflare", "resend", "raw")
WAYS = (*MAILBOXES, OWN_MAILBOX, *SERVICES)


class WayQuery(Struct, frozen=True):
    way: str = ""
    offset: Offset = 0


class ConnectionForm(Struct, rename="camel", frozen=True):
    way: str
    inbox_id: str = ""
    username: str = ""
    password: str = ""
    client_id: str = ""
    client_secret: str = ""
    refresh_token: str = ""
    host: str = ""
    port: str = ""
    smtp_host: str = ""
    smtp_port: str = ""
    signing_key: str = ""
    api_key: str = ""


class TryForm(Struct, rename="camel", frozen=True):
    inbox_id: str
    to: str


async def show_connections(context: PageContext, query: WayQuery, asked: str = "") -> Response:
    """Show the connections. `asked` is the query of the provider's consent page."""
    paging = OffsetQuery(query.offset)
    page = await context.ask(connections.list_connections, query=paging.to_page())
    return await context.show(
        "connections.html",
        "settings",
        title="Connections",
        connections=page["data"],
        way=query.way if query.way in WAYS else "",
        ways=WAYS,
        mailboxes=MAILBOXES,
        services=SERVICES,
        with_oauth=TOKEN_URLS,
        without_passwords=WITHOUT_PASSWORDS,
        steps=steps,
        redirect_uri=f"{context.call.resources.config.base_url}{CONSENT_PATH}",
        asked=asked,
        **paging.of(page["total"]),
    )


async def connect(context: PageContext, body: ConnectionForm) -> Response:
    made = await context.ask(connections.create_connection, body=to_new_connection(body))
    if made["kind"] == "http":
        return await show(context, made)  # its URL is shown this once
    return go(f"{PATH}/{made['id']}", "Connected. The checks run on their own.")


def to_new_connection(form: ConnectionForm) -> NewConnection:
    """Return the new connection, validated as in the API."""
    if form.way not in WAYS:
        raise BadRequest("Choose a connection.", field="way")
    fields = fields_of_service(form) if form.way in SERVICES else fields_of_mailbox(form)
    given = {name: value for name, value in fields.items() if value not in ("", None)}
    try:
        return msgspec.convert(given, NewConnection)
    except msgspec.ValidationError as error:
        raise explain(error, NewConnection) from None


def fields_of_service(form: ConnectionForm) -> dict[str, Any]:
    return {
        "kind": "http",
        "provider": form.way,
        "inboxId": form.inbox_id,
        "signingKey": form.signing_key,
        "apiKey": form.api_key,
    }


def fields_of_mailbox(form: ConnectionForm) -> dict[str, Any]:
    own = (form.host, form.smtp_host, read_number(form.smtp_port, "smtpPort") or 465, "")
    host, smtp_host, smtp_port, _ = MAILBOXES.get(form.way, own)
    return {
        "kind": "imap",
        "host": host,
        "port": read_number(form.port, "port"),
        "username": form.username,
        "password": form.password,
        "oauth": oauth_of(form),
        "smtp": {"host": smtp_host, "port": smtp_port} if smtp_host else None,
        "inboxId": form.inbox_id,
    }


def oauth_of(form: ConnectionForm) -> dict[str, str] | None:
    if not form.client_id:
        return None
    if form.way not in TOKEN_URLS:
        raise BadRequest(
            "OAuth is available for Gmail and Microsoft 365. For other providers, use the API.", field="way"
        )
    return {
        "tokenUrl": TOKEN_URLS[form.way],
        "clientId": form.client_id,
        "clientSecret": form.client_secret,
        "refreshToken": form.refresh_token,
    }


async def show_connection(context: PageContext, connection_id: str) -> Response:
    return await show(context, (await context.ask(connections.get_connection, connection_id=connection_id)))


async def show(context: PageContext, connection: dict[str, Any]) -> Response:
    return await context.show(
        "connection.html",
        "settings",
        title=connection["address"] or connection["provider"],
        connection=connection,
        url_once=connection.get("url", ""),
        steps=steps,
        sent=await find_sent(context, connection),
    )


async def find_sent(context: PageContext, connection: dict[str, Any]) -> dict[str, Any] | None:
    """Return the last email sent from its inbox since it was connected."""
    if connection["inboxId"] is None:
        return None
    query = MessageQuery(direction="outbound", limit=1)
    page = await context.ask(messages.list_inbox_messages, inbox_id=connection["inboxId"], query=query)
    return next((each for each in page["data"] if each["createdAt"] >= connection["createdAt"]), None)


async def try_connection(context: PageContext, connection_id: str) -> Response:
    tried = await context.ask(api.test_connection, connection_id=connection_id)
    result = f"Connected ({tried['milliseconds']} ms)." if tried["ok"] else tried["error"]
    return go(f"{PATH}/{connection_id}", result)


async def send_mail(context: PageContext, connection_id: str, body: TryForm) -> Response:
    """Send an email to the mailbox itself, which tests both directions."""
    wanted = SendBody(
        body="This email shows that Postroom can send through this connection. You can delete it.",
        subject="Postroom is connected",
        to=body.to,
    )
    order = await to_order(body.inbox_id, f"connect-{secrets.token_urlsafe(16)}", wanted)
    await api_send.accept_order(context.call, order)
    return go(f"{PATH}/{connection_id}", f"The email to {body.to} is on its way.")


delete_connection = undo.delayed(
    connections.delete_connection,
    PATH,
    "Deleting the connection in {seconds} seconds. Emails received through it stay.",
)
