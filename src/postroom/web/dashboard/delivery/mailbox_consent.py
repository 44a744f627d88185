"""Access to a mailbox at Google or Microsoft: granted on their page, and stored as a refresh token."""

from typing import cast
from urllib.parse import urlencode

import msgspec
from msgspec import Struct, structs
from starlette.responses import Response

from postroom.accounts import sessions
from postroom.accounts.oauth.grants import challenge_of
from postroom.accounts.people import challenges
from postroom.errors import BadRequest
from postroom.external_mailboxes.fetching import Fetcher
from postroom.external_mailboxes.imap_wire import ImapError
from postroom.external_mailboxes.mailbox_access import ask_for_tokens, reason_of
from postroom.operations import connections as verbs
from postroom.web.dashboard.delivery import connections
from postroom.web.dashboard.delivery.connections import CONSENT_PATH, PATH, ConnectionForm
from postroom.web.dashboard.page_context import PageContext, go

NOT_YET = "not given yet"  # in place of the refresh token, so that all else is validated first
ERROR_CHARACTERS = 300


class ConsentProvider(Struct, frozen=True):
    name: str
    scope: str


PROVIDERS = {
    "gmail": ConsentProvider("Google", "https://mail.google.com/"),
    "microsoft": ConsentProvider(
        "Microsoft",
        "https://outlook.office.com/IMAP.AccessAsUser.All https://outlook.office.com/SMTP.Send"
        " offline_access",
    ),
}


class PendingConsent(Struct, frozen=True):
    form: ConnectionForm
    verifier: str


class ConsentAnswer(Struct, frozen=True):
    state: str = ""
    code: str = ""
    error: str = ""
    error_description: str = ""


async def begin(context: PageContext, body: ConnectionForm) -> Response:
    """Begin with a page that has a link: browsers would not let our form redirect to another site."""
    provider = PROVIDERS.get(body.way)
    if provider is None:
        raise BadRequest("Choose a connection with OAuth.", field="way")
    connections.to_new_connection(structs.replace(body, refresh_token=NOT_YET))
    resources, state = context.call.resources, sessions.new_token()
    pending = PendingConsent(body, sessions.new_token() + sessions.new_token())
    stored = msgspec.json.encode(pending).decode()
    await resources.db.write(
        challenges.add, challenges.MAILBOX_CONSENT, state, context.session.id, resources.now(), stored
    )
    asked = question(provider, pending, state, redirect_uri(context))
    return await connections.show_connections(context, connections.WayQuery(body.way), asked)


def question(provider: ConsentProvider, pending: PendingConsent, state: str, back: str) -> str:
    """Return the query of the provider's page.

    Google gives a refresh token only for newly granted offline access.
    """
    query = {
        "response_type": "code",
        "client_id": pending.form.client_id,
        "redirect_uri": back,
        "scope": provider.scope,
        "state": state,
        "login_hint": pending.form.username,
        "access_type": "offline",
        "prompt": "consent",
        "code_challenge": challenge_of(pending.verifier),
        "code_challenge_method": "S256",
    }
    return urlencode(query)


def redirect_uri(context: PageContext) -> str:
    return f"{context.call.resources.config.base_url}{CONSENT_PATH}"


async def take_answer(context: PageContext, query: ConsentAnswer) -> Response:
    """Take the provider's answer. The attempt is used up first, whatever it says."""
    resources = context.call.resources
    stored = await resources.db.write(
        challenges.take, challenges.MAILBOX_CONSENT, query.state, context.session.id, resources.now()
    )
    pending = msgspec.json.decode(stored, type=PendingConsent)
    if not query.code:
        reason = (query.error_description or query.error)[:ERROR_CHARACTERS]
        raise BadRequest(f"{PROVIDERS[pending.form.way].name} gave no access: {reason}. Connect again.")
    token = await exchange(
        cast(Fetcher, context.call.webhook_courier), pending, query.code, redirect_uri(context)
    )
    body = connections.to_new_connection(structs.replace(pending.form, refresh_token=token))
    made = await context.ask(verbs.create_connection, body=body)
    return go(f"{PATH}/{made['id']}", "Connected. The checks run on their own.")


async def exchange(fetcher: Fetcher, pending: PendingConsent, code: str, back: str) -> str:
    """Exchanges the code for a refresh token (RFC 6749 section 4.1.3)."""
    form = {
        "grant_type": "authorization_code",
        "client_id": pending.form.client_id,
        "client_secret": pending.form.client_secret,
        "code": code,
        "code_verifier": pending.verifier,
        "redirect_uri": back,
    }
    try:
        status, found = await ask_for_tokens(fetcher, connections.TOKEN_URLS[pending.form.way], form)
    except ImapError as error:
        raise BadRequest(f"{error} Connect again.") from None
    token = found.get("refresh_token")
    if status != 200 or not isinstance(token, str):
        reason = reason_of(status, found) if status != 200 else "no refresh token was given"
        raise BadRequest(f"The provider rejected the code: {reason}. Check the client ID and secret.")
    return token
