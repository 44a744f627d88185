"""Delivery results by provider, and a test letter: sent, followed, and shown with its checks."""

import secrets
from operator import attrgetter
from typing import Any, Literal

import msgspec
from msgspec import Struct
from starlette.responses import Response

from postroom.errors import NotFound
from postroom.fields import PageQuery
from postroom.operations import domains, inboxes, messages
from postroom.operations.inboxes import InboxQuery
from postroom.operations.ways.deliverability import (
    Deliverability,
    DeliverabilityQuery,
    get_deliverability,
)
from postroom.outward.courier import domain_of
from postroom.web.api.accounts import domains as api
from postroom.web.api.outward import send as api_send
from postroom.web.dashboard.desk import Desk, go
from postroom.web.dashboard.display import sheets
from postroom.web.interface.bodies.send_body import SendBody, to_order

PATH = "/app/settings/deliverability"
SPANS = {"1": "24 hours", "7": "7 days", "30": "30 days"}
MOST_INBOXES = 100
SUBJECT = "Test mail"
TEXT = (
    "If you can read this, mail from here arrives.\n\nIf it is in your spam folder, look at its source:"
    " the field Authentication-Results says what your server thinks of it.\n"
)


class ProvidersQuery(Struct, frozen=True):
    days: Literal["1", "7", "30"] = "7"


class SentLetter(Struct, frozen=True):
    id: str


class LetterForm(Struct, rename="camel", frozen=True):
    to: str
    inbox_id: str


async def read(desk: Desk, query: ProvidersQuery) -> Deliverability:
    found: Deliverability = await desk.run(get_deliverability, query=DeliverabilityQuery(query.days))
    return found


async def show_deliverability(desk: Desk, query: ProvidersQuery) -> Response:
    found = await read(desk, query)
    page = await desk.ask(inboxes.list_inboxes, query=InboxQuery(limit=MOST_INBOXES))
    return await desk.show(
        "providers_page.html",
        "settings",
        title="Deliverability",
        providers=found.data,
        warming=found.warm_ups,
        inboxes=page["data"],
        query=query,
        spans=SPANS,
    )


async def export(desk: Desk, query: ProvidersQuery) -> Response:
    head = ("provider", "accepted", "deferred", "bounced", "complained", "tls", "secondsToAccept")
    columns = attrgetter(
        "provider", "accepted", "deferred", "bounced", "complained", "tls", "seconds_to_accept"
    )
    return sheets.to_file(f"providers-{query.days}.csv", head, map(columns, (await read(desk, query)).data))


async def send_letter(desk: Desk, body: LetterForm) -> Response:
    wanted = SendBody(body=TEXT, subject=SUBJECT, to=body.to)
    order = await to_order(body.inbox_id, f"letter-{secrets.token_urlsafe(16)}", wanted)
    sent = await api_send.accept_order(desk.call, order)
    message_id = msgspec.json.decode(sent.content, type=SentLetter).id
    return go(f"{PATH}/letters/{message_id}", "The test mail is on its way.")


async def show_letter(desk: Desk, message_id: str) -> Response:
    """The checks query DNS, so they run only when the letter is finished."""
    message = await desk.ask(messages.get_message, message_id=message_id)
    if message["direction"] != "outbound":
        raise NotFound("No such mail.")
    is_settled = message["status"] != "pending" or message.get("hold") is not None
    return await desk.show(
        "letter.html",
        "settings",
        title="Test mail",
        message=message,
        is_settled=is_settled,
        checks=await find_checks(desk, message) if is_settled else [],
    )


async def find_checks(desk: Desk, message: dict[str, Any]) -> list[dict[str, Any]]:
    """Checks of the sender's domain, as far as the person may see it."""
    name = domain_of(message["fromAddr"])
    page = await desk.ask(domains.list_domains, query=PageQuery(limit=MOST_INBOXES))
    found = next((each["id"] for each in page["data"] if each["domain"] == name), None)
    if found is None:
        return []
    checks: list[dict[str, Any]] = (await desk.ask(api.get_domain_health, domain_id=found))["data"]
    return checks
