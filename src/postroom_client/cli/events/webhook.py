"""postroom webhook …"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from postroom_client.cli import output
from postroom_client.cli.command import Limit, Offset, OfInbox, command, group
from postroom_client.cli.desk import Desk

if TYPE_CHECKING:
    from postroom_client.results import Page, Retried, Webhook, WebhookDelivery, WebhookTest

app = group("The webhook of the account, and its deliveries.")

KEEP_IT = "The secret is shown only now: keep it."


@command(app, "set")
def set_up(
    desk: Desk,
    url: Annotated[str, typer.Argument(help="Where to post events.", show_default=False)],
    event_types: Annotated[
        list[str] | None,
        typer.Option("--event-type", metavar="KIND", help="Kind to post (repeatable); message.received."),
    ] = None,
    secret: Annotated[str | None, typer.Option(help="Secret that signs; a new one by default.")] = None,
) -> None:
    """Have events posted to a URL. An inbox's own webhook: postroom inbox update --webhook-url."""
    from postroom_client.calls import calls

    made = desk.show(calls.set_webhook(url, event_types=event_types, secret=secret), _show_webhook)
    if made.secret:
        output.note(KEEP_IT)


@command(app, "show")
def show(desk: Desk) -> None:
    """Show where events are posted."""
    from postroom_client.calls import calls
    from postroom_client.errors import NotFound

    try:
        desk.show(calls.get_webhook(), _show_webhook)
    except NotFound:
        raise NotFound("No webhook is set. Set one: postroom webhook set URL") from None


@command(app, "test")
def try_out(desk: Desk, inbox_id: OfInbox = None) -> None:
    """Post a signed test event now."""
    from postroom_client.calls import calls

    desk.show(calls.test_webhook() if inbox_id is None else calls.test_inbox_webhook(inbox_id), _show_test)


@command(app, "rotate")
def rotate(desk: Desk, inbox_id: OfInbox = None) -> None:
    """Make a new secret; the old one stays good for 24 hours."""
    from postroom_client.calls import calls

    if inbox_id is None:
        desk.show(calls.rotate_webhook_secret(), lambda made: _show_secret(made.secret))
    else:
        rotated = calls.rotate_inbox_webhook_secret(inbox_id)
        desk.show(rotated, lambda made: _show_secret(made.webhook_secret))
    output.note(KEEP_IT)


@command(app, "deliveries")
def deliveries(
    desk: Desk,
    state: Annotated[
        Literal["pending", "delivered", "failed"] | None, typer.Option(help="Only these; all by default.")
    ] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> None:
    """List what was posted, newest first."""
    from postroom_client.calls import calls

    listing = calls.list_webhook_deliveries(state=state, limit=limit, offset=offset)
    desk.show(listing, _show_deliveries)


@command(app, "retry")
def retry(
    desk: Desk,
    delivery_id: Annotated[str | None, typer.Argument(help="Id of the delivery, whd_…")] = None,
    failed_since: Annotated[
        datetime | None, typer.Option(help="Instead: all that failed since this moment (UTC).")
    ] = None,
) -> None:
    """Post a delivery again, now, or all that failed since a moment."""
    from postroom_client.calls import calls

    if (delivery_id is None) == (failed_since is None):
        raise typer.BadParameter("pass either the id of a delivery or --failed-since")
    if failed_since is not None:
        since = failed_since if failed_since.tzinfo else failed_since.replace(tzinfo=UTC)
        desk.show(calls.retry_failed_webhook_deliveries(since), _show_retried)
    elif delivery_id is not None:
        desk.show(calls.retry_webhook_delivery(delivery_id), _show_delivery)


@command(app, "delete")
def delete(desk: Desk) -> None:
    """Stop posting events."""
    from postroom_client.calls import calls

    desk.ask(calls.delete_webhook())
    desk.done({"deleted": True}, "Events are posted nowhere now.")


def _show_webhook(webhook: "Webhook") -> None:
    pairs = [
        ("url", webhook.url),
        ("events", ", ".join(webhook.event_types)),
        ("state", "on" if webhook.enabled else f"off: {webhook.disabled_reason or 'no reason given'}"),
    ]
    if webhook.secret:
        pairs.append(("secret", webhook.secret))
    output.print_human(output.record(pairs))


def _show_test(result: "WebhookTest") -> None:
    output.print_human(f"The endpoint answered {result.status} in {result.milliseconds} ms.")


def _show_secret(secret: str) -> None:
    output.print_human(output.record([("secret", secret)]))


def _show_delivery(delivery: "WebhookDelivery") -> None:
    output.print_human(output.record([("id", delivery.id), ("state", delivery.state)]))


def _show_retried(result: "Retried") -> None:
    output.print_human(f"{result.retried} go again.")


def _show_deliveries(page: "Page[WebhookDelivery]") -> None:
    if not page.data:
        output.note("Nothing was posted yet. Try it: postroom webhook test")
        return
    rows = [_row(item) for item in page.data]
    output.print_human(output.table(("ID", "EVENT", "STATE", "TRIES", "LAST", "WHEN"), rows))
    output.note_rest(page)


def _row(delivery: "WebhookDelivery") -> output.Row:
    last = delivery.attempts[-1] if delivery.attempts else None
    answer = "" if last is None else str(last.status or last.answer or "")
    tries = str(len(delivery.attempts))
    return delivery.id, delivery.event_id, delivery.state, tries, answer, output.ago(delivery.created_at)
