"""Delivery results by provider, and a test email: sent, followed, and shown with its checks."""

import secrets
from operator import attrgetter
from typing import Any, Literal

import msgspec
from msgspec import Struct
from starlette.responses import Response

from postroom.errors import NotFound
from postroom.fields import PageQuery
from postroom.operations import domains, inboxes
from postroom.operations.deliverability import (
    Deliverability,
    DeliverabilityQuery,
    get_deliverability,
)
from postroom.operations.inboxes import InboxQuery
from postroom.operations.sending.send import SendBody, to_order
from postroom.outward.courier import domain_of
from postroom.web.api import domains as api
from postroom.web.api import send as api_send
from postroom.web.api.decision_waiting import DecisionQuery, get_message
from postroom.web.dashboard.display import sheets
from postroom.web.dashboard.page_context import PageContext, go

PATH = "/app/settings/deliverability"
SPANS = {"1": "24 hours", "7": "7 days", "30": "30 days"}
MOST_INBOXES = 100
SUBJECT = "Test email"
TEXT = (
    "If you can read this, email from this server arrives.\n\nIf it is in your spam folder, open the source"
    " of the message. Its header Authentication-Results shows the checks of your mail server.\n"
)


class ProvidersQuery(Struct, frozen=True):
    days: Literal["1", "7", "30"] = "7"


class SentTestEmail(Struct, frozen=True):
    id: str


class TestEmailForm(Struct, rename="camel", frozen=True):
    to: str
    inbox_id: str


async def read(context: PageContext, query: ProvidersQuery) -> Deliverability:
    found: Deliverability = await context.run(get_deliverability, query=DeliverabilityQuery(query.days))
    return found


async def show_deliverability(context: PageContext, query: ProvidersQuery) -> Response:
    found = await read(context, query)
    page = await context.ask(inboxes.list_inboxes, query=InboxQuery(limit=MOST_INBOXES))
    return await context.show(
        "providers_page.html",
        "settings",
        title="Deliverability",
        providers=found.data,
        warming=found.warm_ups,
        inboxes=page["data"],
        query=query,
        spans=SPANS,
    )


async def export(context: PageContext, query: ProvidersQuery) -> Response:
    head = ("provider", "accepted", "deferred", "bounced", "complained", "tls", "secondsToAccept")
    columns = attrgetter(
        "provider", "accepted", "deferred", "bounced", "complained", "tls", "seconds_to_accept"
    )
    return sheets.to_file(
        f"providers-{query.days}.csv", head, map(columns, (await read(context, query)).data)
    )


async def send_test_email(context: PageContext, body: TestEmailForm) -> Response:
    wanted = SendBody(body=TEXT, subject=SUBJECT, to=body.to)
    order = await to_order(body.inbox_id, f"letter-{secrets.token_urlsafe(16)}", wanted)
    sent = await api_send.accept_order(context.call, order)
    message_id = msgspec.json.decode(sent.content, type=SentTestEmail).id
    return go(f"{PATH}/letters/{message_id}", "The test email is on its way.")


async def show_test_email(context: PageContext, message_id: str) -> Response:
    """Show a test email. The checks query DNS, so they run only when the email is finished."""
    message = await context.ask(get_message, message_id=message_id, query=DecisionQuery())
    if message["direction"] != "outbound":
        raise NotFound("There is no such email.")
    is_settled = message["status"] != "pending" or message.get("hold") is not None
    return await context.show(
        "test_email.html",
        "settings",
        title="Test email",
        message=message,
        is_settled=is_settled,
        checks=await find_checks(context, message) if is_settled else [],
    )


async def find_checks(context: PageContext, message: dict[str, Any]) -> list[dict[str, Any]]:
    """Checks of the sender's domain, as far as the person may see it."""
    name = domain_of(message["fromAddr"])
    page = await context.ask(domains.list_domains, query=PageQuery(limit=MOST_INBOXES))
    found = next((each["id"] for each in page["data"] if each["domain"] == name), None)
    if found is None:
        return []
    checks: list[dict[str, Any]] = (await context.ask(api.get_domain_health, domain_id=found))["data"]
    return checks
