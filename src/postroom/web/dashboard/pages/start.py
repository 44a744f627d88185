"""The first page: steps until an agent has read the first email, and after that the mail."""

import json
from email.utils import formatdate

from msgspec import Struct
from starlette.responses import Response

from postroom.accounts import domains, keys
from postroom.clock import SECOND, to_mail_date
from postroom.events import webhook_log, webhooks
from postroom.inward.mails import Arrival, Destination, Origin
from postroom.inward.receive import AT_ONCE_BYTES, OwnReader, receive_mail
from postroom.mailbox import inboxes
from postroom.mailbox.inboxes import Inbox
from postroom.operations.inboxes import create_inbox as create_new_inbox
from postroom.operations.keys import NewKey, create_inbox_key
from postroom.web.call import Tx
from postroom.web.dashboard.actions import runs
from postroom.web.dashboard.page_context import PageContext, go

AGENT_KEY = "agent"


class InboxChoice(Struct, rename="camel", frozen=True):
    inbox_id: str


class FirstSteps(Struct, frozen=True):
    """Which steps towards a working agent are done."""

    inbox: Inbox | None
    has_mail: bool
    has_agent: bool
    has_webhook: bool
    has_posted: bool
    has_domain: bool
    is_domain_verified: bool

    @property
    def are_enough(self) -> bool:
        return self.inbox is not None and self.has_mail


async def show_home(context: PageContext) -> Response:
    steps = await context.read(read_steps, context)
    return go("/app/mail") if steps.are_enough else await show_steps(context, steps)


async def show_start(context: PageContext) -> Response:
    return await show_steps(context, await context.read(read_steps, context))


async def show_steps(context: PageContext, steps: FirstSteps, token: str = "") -> Response:
    config = context.call.resources.config
    mcp = {
        "mcpServers": {
            "postroom": {
                "type": "http",
                "url": f"{config.base_url}/mcp",
                "headers": {"Authorization": "Bearer KEY"},
            }
        }
    }
    return await context.show(
        "start.html",
        "start",
        title="First steps",
        steps=steps,
        token=token,
        domain=config.domain,
        mcp=json.dumps(mcp, indent=2).replace("KEY", token or "$KEY"),
    )


def read_steps(tx: Tx, context: PageContext) -> FirstSteps:
    scope = context.call.scope
    found, _ = inboxes.list_within(tx, scope, 1, 0)
    named, _ = domains.list_within(tx, scope, 1, 0)
    return FirstSteps(
        inbox=found[0] if found else None,
        has_mail=inboxes.has_mail(tx, scope),
        has_agent=keys.is_any_used(tx, scope.account_id),
        has_webhook=webhooks.find(tx, scope.account_id) is not None,
        has_posted=webhook_log.find_last(tx, scope.account_id, "delivered") is not None,
        has_domain=bool(named),
        is_domain_verified=any(domain.verified_at is not None for domain in named),
    )


create_inbox = runs(create_new_inbox, "/app/start", "{made.address} is ready to receive email.")


async def send_test_mail(context: PageContext, body: InboxChoice) -> Response:
    """Uses the same path as any received mail."""
    resources = context.call.resources
    inbox = await context.read(inboxes.get, context.call.scope, body.inbox_id)
    arrival = test_mail(inbox, resources.config.domain, context.call.now())
    await receive_mail(resources, OwnReader(AT_ONCE_BYTES), arrival)
    return go("/app/mail", f"Sent a test email to {inbox.address}.")


def test_mail(inbox: Inbox, domain: str, now: int) -> Arrival:
    sender = f"postmaster@{domain}"
    date = formatdate(now / SECOND, usegmt=True).replace("GMT", "+0000")
    lines = [
        f"From: Postroom <{sender}>",
        f"To: {inbox.address}",
        "Subject: Your first email",
        f"Date: {to_mail_date(now)}",
        f"Message-ID: <test.{now}.{inbox.id}@{domain}>",
        "Content-Type: text/plain; charset=utf-8",
        "",
        "Hello,",
        "",
        "this email arrived like every other: Postroom stored it, put it into a thread and sent an event.",
        "Agents get the important parts separately. Here, your code is 482913.",
        "",
        "Postroom",
        "",
    ]
    trace = f"Received: by {domain} with HTTP; {date}\r\n".encode()
    return Arrival(Origin((Destination(inbox.id),), trace, "", "", sender), "\r\n".join(lines).encode())


async def create_agent_key(context: PageContext, body: InboxChoice) -> Response:
    """Create a key of one inbox for an agent, without `approve` and `manage`. It is shown only once."""
    made = await context.ask(create_inbox_key, inbox_id=body.inbox_id, body=NewKey(AGENT_KEY))
    return await show_steps(context, await context.read(read_steps, context), made["token"])
