"""postroom webhook test, rotate, retry: of the account's webhook, or of an inbox's own."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from postroom_client.cli import output
from postroom_client.cli.accounts.shown import KEEP_SECRET
from postroom_client.cli.command import OfInbox, command
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import GROUPS

if TYPE_CHECKING:
    from postroom_client.results import Retried, WebhookDelivery, WebhookTest

app = GROUPS["webhook"]


@command(app, "test")
def try_out(context: CommandContext, inbox_id: OfInbox = None) -> None:
    """Post a signed test event now."""
    from postroom_client.calls import calls

    call = calls.test_webhook() if inbox_id is None else calls.test_inbox_webhook(inbox_id)
    context.show(call, _show_test)


@command(app, "rotate")
def rotate(context: CommandContext, inbox_id: OfInbox = None) -> None:
    """Create a new secret; the old one stays valid for 24 hours."""
    from postroom_client.calls import calls

    if inbox_id is None:
        context.show(calls.rotate_webhook_secret(), lambda made: _show_secret(made.secret))
    else:
        rotated = calls.rotate_inbox_webhook_secret(inbox_id)
        context.show(rotated, lambda made: _show_secret(made.webhook_secret))
    output.note(KEEP_SECRET)


@command(app, "retry")
def retry(
    context: CommandContext,
    delivery_id: Annotated[str | None, typer.Argument(help="Id of the delivery, whd_…")] = None,
    failed_since: Annotated[
        datetime | None, typer.Option(help="Instead: all that failed since this time (UTC).")
    ] = None,
) -> None:
    """Post a delivery again now, or all that failed since a time."""
    from postroom_client.calls import calls

    if (delivery_id is None) == (failed_since is None):
        raise typer.BadParameter("pass either the id of a delivery or --failed-since")
    if failed_since is not None:
        since = failed_since if failed_since.tzinfo else failed_since.replace(tzinfo=UTC)
        context.show(calls.retry_failed_webhook_deliveries(since), _show_retried)
    elif delivery_id is not None:
        context.show(calls.retry_webhook_delivery(delivery_id), _show_delivery)


def _show_test(result: "WebhookTest") -> None:
    output.print_human(f"The endpoint answered {result.status} in {result.milliseconds} ms.")


def _show_secret(secret: str) -> None:
    output.print_human(output.record([("secret", secret)]))


def _show_delivery(delivery: "WebhookDelivery") -> None:
    output.print_human(output.record([("id", delivery.id), ("state", delivery.state)]))


def _show_retried(result: "Retried") -> None:
    output.print_human(f"{result.retried} retried.")
